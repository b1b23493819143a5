/** `fanout run`, `runs`, `top`, `trace`, `watch`: the command at a gateway, from the checkout and from its package. */
import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { packJavaScript } from "../../scripts/pack/javascript.ts";
import { type Ended, Folder } from "../unit/cli/command.ts";
import { documentOf, startWorld, type World } from "./world.ts";

const WORKFLOWS = join(import.meta.dirname, "../../examples/workflows");

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

let folder: Folder;
beforeEach(async () => void (folder = await Folder.create()));
afterEach(() => folder.remove());

const operator = () => ({ FANOUT_URL: world.gateway.url, ADMIN_KEY: world.gateway.adminKey });
const fanout = (args: readonly string[], env: Record<string, string> = operator()): Promise<Ended> =>
  folder.fanout(args, { env });

const whole = z.object({
  result: z.unknown(),
  failures: z.array(z.looseObject({ code: z.string() })),
  run: z.string(),
  cost_usd: z.number(),
  duration_ms: z.number(),
  agents: z.int(),
  completed: z.int(),
  failed: z.int(),
  url: z.string(),
});
const lastLine = (text: string): string => text.trimEnd().split("\n").at(-1) ?? "";
/** Standard output is the document, and nothing else. */
const wholeOf = ({ stdout }: Ended) => whole.parse(JSON.parse(stdout));
const runOf = async (id: string) =>
  z
    .looseObject({
      status: z.string(),
      name: z.string(),
      budget: z.object({ usd: z.object({ limit: z.number(), spent: z.number() }) }),
    })
    .parse((await world.sendAsOperator(`/runs/${id}`)).json);

describe("fanout run", () => {
  it.each([
    ["find_verify_write", { claims: expect.any(Number), unchecked: 0, report: expect.any(String) }],
    ["review_panel", { mean: expect.any(Number), reviews: expect.any(Array), decision: expect.any(String) }],
    ["map_reduce", { parts: 12, lost: 0, summary: expect.any(String) }],
    ["best_of_n", { answers: 4, unverified: 0, held: expect.any(Number) }],
    ["debate", { rounds: 2, decided: expect.any(Boolean), verdicts: [expect.any(Object), expect.any(Object)] }],
    ["plan_execute_judge", { plans: expect.any(Number), results: expect.any(Array), answer: expect.any(String) }],
  ])(
    "runs %s, prints its result last, and says what it cost and how long it took",
    { tags: ["slow"] },
    async (name, result) => {
      const ended = await fanout([
        "run",
        join(WORKFLOWS, `${name}.mjs`),
        "--budget",
        "1",
        "--model",
        "sim/echo",
        "--json",
      ]);
      expect([ended.status, ended.stderr.includes("✗")]).toEqual([0, false]);
      const { run, cost_usd, agents, url, ...rest } = wholeOf(ended);
      expect(rest).toMatchObject({ result, failures: [], completed: agents, failed: 0 });
      expect((await world.send(new URL(url).pathname)).status).toBe(200);
      const { status, budget } = await runOf(run);
      expect([status, budget.usd.limit]).toEqual(["closed", 1]);
      expect(cost_usd).toBeCloseTo(budget.usd.spent, 9);
      expect(lastLine(ended.stderr)).toMatch(/^\d+ calls completed, 0 failed · <?\$[\d.]+ · \d+s · /);
      expect(lastLine(ended.stderr).split(" · ").at(-1)).toBe(`${world.gateway.url}/ui/runs/${run}`);
    },
  );

  it.each(["find_verify_write", "review_panel", "map_reduce"])(
    "costs nothing when %s runs again from its first run",
    { tags: ["slow"] },
    async (name) => {
      const args = ["run", join(WORKFLOWS, `${name}.mjs`), "--budget", "1", "--model", "sim/echo", "--json"];
      const first = wholeOf(await fanout(args));
      expect(first.cost_usd).toBeGreaterThan(0);
      const second = wholeOf(await fanout([...args, "--replay-from", first.run]));
      expect(second).toMatchObject({ result: first.result, agents: first.agents, failures: [], cost_usd: 0 });
      expect((await runOf(second.run)).budget.usd.spent).toBe(0);
    },
  );

  it("stops hard at the budget: the run has spent no more, and the exit status says so", async () => {
    const file = join(WORKFLOWS, "map_reduce.mjs");
    const ended = await fanout(["run", file, "--budget", "0.003", "--model", "sim/echo", "--json"]);
    expect([ended.status, ended.stderr]).toEqual([3, expect.stringContaining("Stopped at the budget.")]);
    const { run, cost_usd, failures } = wholeOf(ended);
    expect(failures.map(({ code }) => code)).toContain("budget_exhausted");
    const { budget } = await runOf(run);
    expect(budget.usd.spent).toBeLessThanOrEqual(0.003);
    expect(budget.usd.spent).toBeGreaterThan(0);
    expect(cost_usd).toBeCloseTo(budget.usd.spent, 9);
  });

  it("makes null of a call that fails, and an entry in failures", async () => {
    await folder.write(
      "script.mjs",
      `export default async ({ agent, parallel, pipeline, failures }) => ({
        alone: await agent("x", { model: "sim/fail?status=400", label: "bad" }),
        side: await parallel([() => agent("good"), () => { throw new Error("mine"); }]),
        through: await pipeline([1, 2], (n) => (n === 1 ? null : n), (n) => n * 10),
        codes: failures.map(({ label, code }) => [label, code]) });`,
    );
    const ended = await fanout(["run", "script.mjs", "--budget", "1", "--model", "sim/echo"]);
    expect(ended.status).toBe(2);
    expect(ended.stderr).toMatch(
      /^✗ {2}bad · .*\n✗ {2}1 failed in the script \(mine\)\n1 call completed, 1 failed \(.+\n$/,
    );
    expect(JSON.parse(lastLine(ended.stdout))).toEqual({
      alone: null,
      side: ["good", null],
      through: [null, 20],
      codes: [
        ["bad", expect.any(String)],
        [null, "script_error"],
      ],
    });
  });

  it("opens a child run of a token's run, whose token and not the operator's key the script sees", async () => {
    const parent = await world.openRun({ budget: { usd: 1 }, default_model: "sim/echo" });
    await folder.write(
      "script.mjs",
      "export default async ({ agent, budget }) => [await agent('hi'), budget.total, process.env.ADMIN_KEY ?? null];",
    );
    const env = { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: parent.token, ADMIN_KEY: "operator" };
    const ended = await fanout(["run", "script.mjs", "--budget", "0.25"], env);
    expect([ended.status, JSON.parse(lastLine(ended.stdout))]).toEqual([0, ["hi", 0.25, null]]);
    expect((await documentOf(parent)).budget.usd).toMatchObject({ reserved: 0, spent: expect.any(Number) });
  });

  it("keeps what a script prints away from the document of --json", { tags: ["slow"] }, async () => {
    await folder.write(
      "script.mjs",
      "console.log('to look at'); process.stdout.write('beside\\n'); setTimeout(() => console.log('late'), 50); export default 1;",
    );
    const ended = await fanout(["run", "script.mjs", "--budget", "1", "--json"]);
    expect([ended.status, wholeOf(ended).result]).toEqual([0, 1]);
    for (const text of ["to look at\n", "beside\n", "late\n"]) expect(ended.stderr).toContain(text);
    await folder.write("broken.mjs", "console.log('first'); throw new Error('of the script');");
    const broken = await fanout(["run", "broken.mjs", "--budget", "1", "--json"]);
    expect([broken.status, wholeOf(broken).result]).toEqual([1, null]);
  });

  it("writes phases and logs to the run's log, and logs to standard error", async () => {
    const run = await world.openRun({ default_model: "sim/echo" });
    await folder.write("script.mjs", "phase('look'); log('seen'); export default 1;");
    const env = { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: run.token };
    const ended = await fanout(["run", "script.mjs"], env);
    expect([ended.status, lastLine(ended.stdout), ended.stderr]).toEqual([
      0,
      "1",
      expect.stringMatching(/^ {3}seen\n0 calls completed, .+\n$/),
    ]);
    const log = (await run.send(`/runs/${run.id}/log`)).text;
    expect(log).toMatch(/"event_type":"phase".*"output":"look"/);
    expect((await documentOf(run)).status).toBe("active");
  });

  it.each([
    [["run"], "Expected one file"],
    [["run", "absent.mjs"], "No such file"],
    [["run", "script.mjs"], "Set a budget"],
    [["run", "script.mjs", "--budget", "much"], "--budget must be a number"],
    [["fly"], "Unknown command: fly"],
  ])("refuses %j with what to do", async (args, message) => {
    await folder.write("script.mjs", "export default 1;");
    const ended = await fanout(args);
    expect([ended.status, ended.stdout, ended.stderr]).toEqual([1, "", expect.stringContaining(message)]);
  });

  it("shows the line of a script that is no JavaScript, and where a result belongs", async () => {
    await folder.write("script.mjs", "const answer = 1;\nreturn answer;");
    const ended = await fanout(["run", "script.mjs", "--budget", "1"]);
    expect([ended.status, ended.stdout]).toEqual([1, ""]);
    expect(ended.stderr).toMatch(
      /script\.mjs:2\nreturn answer;\n[^]*Illegal return statement\nA script returns its result from/,
    );
    expect(ended.stderr).not.toContain("node:internal");
  });

  it("shows the stack of a script that throws, and fails", async () => {
    await folder.write("script.mjs", "export default () => { throw new Error('of the script'); };");
    const ended = await fanout(["run", "script.mjs", "--budget", "1"]);
    expect([ended.status, ended.stdout, ended.stderr]).toEqual([1, "", expect.stringContaining("of the script")]);
  });
});

describe("fanout runs, top, trace and watch", () => {
  it("list a run with its figures, as a table and as JSON", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ name: "listed here", default_model: "sim/echo", budget: { usd: 1 } });
    await run.send("/query", { json: { prompt: "x" } });
    const table = await fanout(["runs", "--name", "listed here"]);
    expect([table.status, table.stdout]).toEqual([
      0,
      expect.stringMatching(/listed here +active +<?\$0\.0\d{3} +\$1\.00 +1 /),
    ]);
    expect(table.stderr).toMatch(/^1 run · <?\$0\.0\d{3} · \d+s\n$/);
    const word = `w${crypto.randomUUID().replaceAll("-", "")}`;
    await run.send("/batch", { json: { prompts: [`Where is ${word}?`], model: "sim/echo" } });
    const searched = await fanout(["runs", "--search", word]);
    expect(searched.stdout).toContain(`${run.id.slice(0, 12)}`);
    expect(searched.stdout).toMatch(new RegExp(`^run_\\w+ prompt: Where is ${word}\\?$`, "m"));
    expect(searched.stderr).toMatch(/ · \d+ runs searched\n$/);
    const listed = await fanout(["runs", "--name", "listed here", "--json"]);
    expect(JSON.parse(listed.stdout)).toMatchObject({ data: [{ id: run.id }] });
    const now = await fanout(["top", "--once"]);
    const nowAsJson = await fanout(["top", "--once", "--json"]);
    expect(JSON.parse(nowAsJson.stdout)).toMatchObject({ runs: expect.any(Array), upstreams: expect.any(Array) });
    expect([listed.stderr, nowAsJson.stderr]).toEqual(["", ""]);
    expect([now.status, now.stdout]).toEqual([
      0,
      expect.stringMatching(/listed here[\s\S]*upstream +class[\s\S]*sim +open/),
    ]);
    const needs = await fanout(["runs"], { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: run.token });
    expect([needs.status, needs.stderr]).toEqual([1, expect.stringContaining("ADMIN_KEY")]);
  });

  it("save a trace, and show events as lines", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ default_model: "sim/echo" });
    await run.send("/batch", { json: { prompts: ["a", "b"] } });
    await run.send(`/runs/${run.id}/close`, { method: "POST" });
    const env = { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: run.token };
    const saved = await fanout(["trace", "-o", "t.json"], env);
    expect([saved.status, saved.stderr]).toEqual([0, expect.stringMatching(/^t\.json: [\d,]+ bytes/)]);
    expect(JSON.parse(await folder.read("t.json"))).toMatchObject({ traceEvents: expect.any(Array) });
    const lines = (await fanout(["watch", run.id, "--json"], env)).stdout.trimEnd().split("\n");
    const types = lines.map((line) => z.looseObject({ event_type: z.string() }).parse(JSON.parse(line)).event_type);
    expect([types[0], types.at(-1)]).toEqual(["run_opened", "run_closed"]);
    const shown = await fanout(["watch", run.id, "--plain"], { ...env, PATH: process.env["PATH"] ?? "" });
    expect([shown.status, shown.stdout]).toEqual([0, expect.stringContaining("2 of 2 ok")]);
  });
});

describe("the package", () => {
  it("has what its commands need, and works where npm installs it", { tags: ["slow"] }, async () => {
    const place = await mkdtemp(join(tmpdir(), "fanout-pack-"));
    try {
      const call = promisify(execFile);
      const env = { PATH: process.env["PATH"], HOME: process.env["HOME"] };
      packJavaScript(place);
      const [tarball = ""] = await readdir(place);
      // The command needs no package beside it, so none is fetched.
      spawnSync("tar", ["-xzf", join(place, tarball), "-C", place]);
      await folder.write("script.mjs", "export default async ({ agent }) => await agent('packed');");
      const run = await world.openRun({ default_model: "sim/echo" });
      const own = { ...env, FANOUT_URL: world.gateway.url, FANOUT_TOKEN: run.token };
      const bin = join(place, "package/bin/fanout.mjs");
      const ran = await call(process.execPath, [bin, "run", join(folder.path, "script.mjs")], { env: own, cwd: place });
      expect(lastLine(ran.stdout)).toBe('"packed"');
      await run.send(`/runs/${run.id}/close`, { method: "POST" });
      const shown = await call(process.execPath, [bin, "watch", "--plain"], { env: own, cwd: place });
      expect(shown.stdout).toContain("· 1 ok");
      const tape = (prompt: string): string =>
        `${JSON.stringify({ request: { endpoint: "call", model: "m", body: { prompt } }, answer: { status: 200, contentType: "", chunks: [] } })}\n`;
      await folder.write("a.jsonl", tape("one"));
      await folder.write("b.jsonl", tape("two"));
      const files = ["a.jsonl", "b.jsonl"].map((name) => join(folder.path, name));
      const compared = await call(process.execPath, [bin, "cassette", "diff", ...files], {
        env: own,
        cwd: place,
      }).catch((error: unknown) => error);
      expect(compared).toMatchObject({
        code: 1,
        stdout: expect.stringContaining('body.prompt: recorded "two", requested "one"'),
      });
      const npx = await call("npx", ["--offline", "--yes", "--package", join(place, tarball), "fanout", "--help"], {
        env,
        cwd: place,
      });
      expect(npx.stdout).toContain("fanout COMMAND");
    } finally {
      await rm(place, { recursive: true, force: true });
    }
  });
});
