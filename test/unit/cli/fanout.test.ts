import type { ChildProcess } from "node:child_process";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Folder, interruptAt } from "./command.ts";
import { answered, echo, type FakePlan, FakeServer, refusedLine, send } from "./fake-server.ts";

// Each start of the command is a process, and the machine may be busy with others.
vi.setConfig({ testTimeout: 30_000 });

let folder: Folder;
let server: FakeServer | null = null;
beforeEach(async () => {
  folder = await Folder.create();
});
afterEach(async () => {
  await server?.stop();
  server = null;
  await folder.remove();
});

const ARGS = ["batch", "in.txt", "-o", "out.jsonl"];

async function serve(plan: FakePlan = {}): Promise<FakeServer> {
  server = await FakeServer.start(plan);
  return server;
}

/** Runs the command at the server of this test. */
function run(args: readonly string[] = ARGS, options: Parameters<Folder["fanout"]>[1] = {}) {
  const env = { FANOUT_URL: server?.url ?? "http://127.0.0.1:1", FANOUT_TOKEN: "token", ...options.env };
  return folder.fanout(args, { ...options, env });
}

const text = (custom_id: string, content: string) => ({ custom_id, text: content, finish_reason: "stop" });

describe("the file that starts fanout in a clone", () => {
  it("runs it on a Node that takes no types out of TypeScript, too", async () => {
    const { stdout, status } = await run(["batch", "--help"], { env: { NODE_OPTIONS: "--no-strip-types" } });
    expect([status, stdout]).toEqual([0, expect.stringContaining("Usage: fanout batch INPUT")]);
  });
});

describe("fanout batch", () => {
  it(
    "writes the answers in the input's order, says last what they cost and where the run is, and ends with status 0",
    { tags: ["slow"] },
    async () => {
      let spentUsd = 0.1;
      const { batches, url } = await serve({ looks: () => 1, spentUsd: () => (spentUsd += 0.25) });
      await folder.write("in.txt", "one\ntwo\nthree\n");
      const { status, stdout, stderr } = await run();
      expect([status, stdout]).toEqual([0, ""]);
      expect(await folder.lines("out.jsonl")).toEqual([
        text("row-1", "one"),
        text("row-2", "two"),
        text("row-3", "three"),
      ]);
      expect(stderr.split("\n")).toEqual([
        "Batch batch_1: 3 lines.",
        "3 lines completed: out.jsonl",
        expect.stringMatching(/^3 calls completed, 0 failed · \$0\.5000 · \d+s · http\S+\/ui\/runs\/run_1$/),
        "",
      ]);
      expect(stderr).toContain(` · ${url}/ui/runs/run_1\n`);
      expect([...batches.values()].map(({ body }) => body)).toEqual([
        { input_file_id: "file-1", endpoint: "/v1/chat/completions", completion_window: "24h" },
      ]);
    },
  );

  it("leaves nothing behind but the output and what remembers the batch", async () => {
    await serve();
    await folder.write("in.txt", "one\n");
    await run();
    expect((await readdir(folder.path)).toSorted()).toEqual(["in.txt", "out.jsonl", "out.jsonl.fanout"]);
    expect(await folder.read("out.jsonl.fanout")).not.toContain("token");
  });

  it("writes failed and missing lines in their places, and ends with status 2", async () => {
    const { url } = await serve({
      answer: (line, place) => {
        if (place === 1) return refusedLine(line.custom_id, "bad \u001b[31mprompt");
        return place === 2 ? null : echo(line);
      },
    });
    await folder.write("in.txt", "one\ntwo\nthree\nfour\n");
    const { status, stderr } = await run();
    expect(status).toBe(2);
    expect(await folder.lines("out.jsonl")).toEqual([
      text("row-1", "one"),
      { custom_id: "row-2", error: { code: "bad_request", message: "bad \u001b[31mprompt", status: 400 } },
      { custom_id: "row-3", error: { code: "missing", message: "The batch has no answer for this line." } },
      text("row-4", "four"),
    ]);
    expect(stderr).toContain("\n  row-2: bad_request: bad prompt\n");
    expect(stderr).toContain("\n2 lines completed, 2 failed: out.jsonl\n");
    expect(stderr).not.toContain("\u001b");
    expect(url).not.toBe("");
  });

  it("reports a hundred lines that failed for one reason in one line", async () => {
    await serve({ answer: ({ custom_id }) => refusedLine(custom_id, "no such model") });
    await folder.write("in.txt", "x\n".repeat(100));
    const { status, stderr } = await run();
    expect(status).toBe(2);
    expect(stderr.split("\n").slice(-4)).toEqual([
      "  100 lines (row-1, row-2, row-3, …): bad_request: no such model",
      "0 lines completed, 100 failed: out.jsonl",
      expect.stringMatching(/^0 calls completed, 100 failed · cost unknown · \d+s · batch batch_1$/),
      "",
    ]);
  });

  it("keeps the output's bytes with --raw", async () => {
    await serve();
    await folder.write(
      "in.jsonl",
      '{"custom_id":"b","method":"POST","url":"/v1/chat/completions","body":{"messages":[{"content":"x"}]}}\n"y"\n',
    );
    expect((await run(["batch", "in.jsonl", "-o", "out.jsonl", "--raw"])).status).toBe(0);
    expect(await folder.lines("out.jsonl")).toEqual(
      [answered("b", "x"), answered("row-2", "y")].map((one) => one?.line),
    );
  });

  it("writes .csv and text by the output's name", { tags: ["slow"] }, async () => {
    await serve({ answer: ({ custom_id }) => answered(custom_id, `a "b",\n${custom_id}`) });
    await folder.write("in.csv", 'id,prompt\nx,"1,\n2"\ny,3\n');
    await run(["batch", "in.csv", "-o", "out.csv"]);
    expect(await folder.read("out.csv")).toBe('custom_id,text,error\r\nx,"a ""b"",\nx",\r\ny,"a ""b"",\ny",\r\n');
    await run(["batch", "in.csv", "-o", "out.txt"]);
    expect(await folder.read("out.txt")).toBe('a "b",\\nx\na "b",\\ny\n');
  });

  it("reads standard input", async () => {
    await serve();
    const { status } = await run(["batch", "-", "--from", "text", "-o", "out.jsonl", "--model", "m"], {
      stdin: "a\nb",
    });
    expect(status).toBe(0);
    expect(server?.input.map(({ body }) => body)).toEqual([
      { model: "m", messages: [{ role: "user", content: "a" }] },
      { model: "m", messages: [{ role: "user", content: "b" }] },
    ]);
  });

  it("says nothing with --quiet, failed lines or not", async () => {
    await serve({ answer: ({ custom_id }) => refusedLine(custom_id, "no") });
    await folder.write("in.txt", "one\n");
    expect(await run([...ARGS, "--quiet"])).toEqual({ status: 2, stdout: "", stderr: "" });
  });

  it("prints one JSON document and nothing else with --json, also when lines failed", { tags: ["slow"] }, async () => {
    let spentUsd = 1;
    const { url } = await serve({
      answer: (line, place) => (place === 1 ? refusedLine(line.custom_id, "bad") : echo(line)),
      spentUsd: () => (spentUsd += 0.25),
    });
    await folder.write("in.txt", "one\ntwo\n");
    const document = {
      ...{ batch: "batch_1", status: "completed", output: "out.jsonl", completed: 1, failed: 1 },
      causes: [{ message: "bad_request: bad", count: 1, names: ["row-2"] }],
      ...{ run: "run_1", url: `${url}/ui/runs/run_1`, cost_usd: 0.25, duration_ms: expect.any(Number) },
    };
    const first = await run([...ARGS, "--json"]);
    expect([first.status, first.stdout.split("\n").length, JSON.parse(first.stdout)]).toEqual([2, 2, document]);
    expect(first.stderr).toMatch(/\n1 call completed, 1 failed · \$0\.2500 · .*\n$/);
    // By now the run has spent on other calls.
    const again = await run([...ARGS, "--json", "--quiet"]);
    expect([again.status, again.stderr, JSON.parse(again.stdout)]).toEqual([2, "", document]);
  });

  it("says with --json why an input was refused, by line, and that it cost nothing", async () => {
    await serve({ ends: { status: "failed", errors: [{ message: "No model.", line: 2 }] }, spentUsd: () => 1 });
    await folder.write("in.txt", "one\n\ntwo\n");
    const { status, stdout } = await run([...ARGS, "--json", "-q"]);
    expect([status, JSON.parse(stdout)]).toEqual([
      3,
      expect.objectContaining({
        ...{ status: "failed", output: null, completed: 0, failed: 0, cost_usd: 0 },
        causes: [{ message: "No model.", count: 1, names: ["3"] }],
      }),
    ]);
  });

  it.each(["..", "run_1/../../elsewhere", "run \u001b[31m"])(
    "shows no page for a run with the id %j",
    async (runId) => {
      await serve({ spentUsd: () => 1, runId });
      await folder.write("in.txt", "one\n");
      const { stderr, stdout } = await run([...ARGS, "--json"]);
      expect(stderr).toMatch(/ · batch batch_1\n$/);
      expect(JSON.parse(stdout)).toMatchObject({ run: null, url: null });
    },
  );

  it("prints the errors of a refused input at the input's own lines, and ends with status 3", async () => {
    const errors = [
      { code: "model_not_found", message: "No model \u001b]0;x\u0007here.", param: "body.model", line: 2 },
      { code: "empty_file", message: "Of the file.", param: null, line: null },
    ];
    await serve({ ends: { status: "failed", errors } });
    await folder.write("in.txt", "one\n\n\ntwo\n");
    const { status, stderr } = await run([...ARGS, "-q"]);
    expect(status).toBe(3);
    expect(stderr.split("\n").slice(0, 2)).toEqual(["Line 4: No model here.", "Of the file."]);
    expect(await readdir(folder.path)).toEqual(["in.txt"]);
  });

  it("prints one line where an input is refused at a hundred lines for one reason", async () => {
    const errors = Array.from({ length: 100 }, (_, index) => ({ message: "model is missing", line: index + 1 }));
    await serve({ ends: { status: "failed", errors } });
    await folder.write("in.txt", "x\n".repeat(100));
    const { status, stderr } = await run([...ARGS, "-q"]);
    expect(status).toBe(3);
    expect(stderr.split("\n")).toEqual([
      "100 lines (1, 2, 3, …): model is missing",
      "The server refused the input. No call was made and nothing was charged.",
      "",
    ]);
  });

  it("writes what is done of a batch that has expired, and ends with status 4", { tags: ["slow"] }, async () => {
    await serve({ ends: { status: "expired" }, answer: (line, place) => (place === 0 ? echo(line) : null) });
    await folder.write("in.txt", "one\ntwo\n");
    const { status, stderr } = await run();
    expect(status).toBe(4);
    expect(stderr).toContain("The batch has expired. 1 line completed, 1 failed: out.jsonl\n");
    expect(await folder.lines("out.jsonl")).toMatchObject([{ text: "one" }, { error: { code: "missing" } }]);
  });
});

describe("fanout batch, when something is wrong", () => {
  it.each([
    [[], 1, /^fanout: many LLM calls/],
    [["--help"], 0, /^fanout: many LLM calls/],
    [["batch", "--help"], 0, /Exit status: 0 all lines completed/],
  ])("helps with %j", async (args, status, stdout) => {
    expect(await folder.fanout(args)).toEqual({ status, stdout: expect.stringMatching(stdout), stderr: "" });
  });

  it.each([[["--help"]], [["batch", "--help"]]])("fits the help of %j on one screen", async (args) => {
    const { stdout } = await folder.fanout(args);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.length).toBeLessThanOrEqual(36);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(100);
  });

  it.each([
    [["frobnicate"], {}, /^Unknown command: frobnicate\./],
    [ARGS, { FANOUT_TOKEN: "" }, /^No credential: FANOUT_TOKEN is set neither .* Set FANOUT_TOKEN/],
    [["batch", "none.txt", "-o", "o"], {}, /^No such file: none\.txt\.$/m],
    [["batch", ".", "-o", "o", "--from", "text"], {}, /^\. is a folder\.$/m],
    [["batch", "in.txt", "-o", "in.txt"], {}, /^The input and the output are the same file\.$/m],
    [["batch", "empty.txt", "-o", "o"], {}, /^The input is empty/],
    [["batch", "bad.jsonl", "-o", "o"], {}, /^Line 2 is not JSON: \{"prompt$/m],
    [["batch", "in.txt", "-o", "no/such/out"], {}, /ENOENT/],
    [
      ARGS,
      { FANOUT_URL: "http://127.0.0.1:1" },
      /^Nothing listens at http:\/\/127\.0\.0\.1:1\. Start the gateway with npm start/,
    ],
  ])("ends with status 1 for %j with %j and says what to do", async (args, env, message) => {
    await folder.write("in.txt", "one\n");
    await folder.write("empty.txt", "\n");
    await folder.write("bad.jsonl", '"a"\n{"prompt');
    const { status, stdout, stderr } = await run(args, { env });
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(message);
  });

  it.each([
    [
      401,
      { error: { message: "no such token \u001b[31m" } },
      /does not accept the token from FANOUT_TOKEN \(no such token\)\.\n$/,
    ],
    [402, { error: { message: "spent" } }, /^The run's budget does not cover this request \(spent\)\.\n$/],
    [404, {}, /^POST \/v1\/files returned 404 \(\{\}\)\.\n$/],
    [500, { error: { message: "no FILES", retryable: false } }, /^POST \/v1\/files returned 500 \(no FILES\)\.\n$/],
    [302, {}, /redirects to http:\/\/elsewhere\. To use that server, pass it as --url\.\n$/],
  ])("ends with status 1 when the server answers %i, after one attempt", async (code, body, message) => {
    const meddle: FakePlan["meddle"] = ({ method }, reply) => {
      if (method !== "POST") return false;
      send(reply, code, body, { location: "http://elsewhere" });
      return true;
    };
    const { seen } = await serve({ meddle });
    await folder.write("in.txt", "one\n");
    const { status, stderr } = await run([...ARGS, "-q"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(message);
    expect(seen).toHaveLength(1);
  });

  it("asks again where the server says that it may pass", { tags: ["slow"] }, async () => {
    let failures = 0;
    const meddle: FakePlan["meddle"] = (_, reply) => {
      failures += 1;
      if (failures % 2 === 0) return false;
      send(reply, failures % 4 === 1 ? 503 : 429, { error: { message: "busy" } }, { "retry-after-ms": "1" });
      return true;
    };
    await serve({ meddle });
    await folder.write("in.txt", "one\n");
    const { status, stderr } = await run();
    expect(status).toBe(0);
    expect(stderr).toContain("! POST /v1/files returned 503 (busy). Retrying in ");
    expect(server?.files.size).toBe(2);
  });

  it("looks on where the connection breaks off, also in the middle of the answers", { tags: ["slow"] }, async () => {
    let broken = 0;
    const meddle: FakePlan["meddle"] = ({ method, path }, reply) => {
      if (method !== "GET" || path === "/budget" || broken === 2) return false;
      if (broken === 0 && path.startsWith("/v1/batches")) {
        broken = 1;
        reply.destroy();
        return true;
      }
      if (!path.endsWith("/content")) return false;
      broken = 2;
      reply.writeHead(200, { "content-length": "100000" });
      reply.write('{"custom_id":"row-1","resp', () => reply.destroy());
      return true;
    };
    await serve({ meddle });
    await folder.write("in.txt", "one\n");
    const { status, stderr } = await run();
    expect([status, broken]).toEqual([0, 2]);
    expect(stderr).toMatch(/! Cannot reach http:\/\/127\.0\.0\.1:\d+: ECONNRESET\. Retrying in /);
    expect(await folder.lines("out.jsonl")).toEqual([text("row-1", "one")]);
  });

  it("sends nothing where the output cannot be written", async () => {
    await serve();
    await folder.write("in.txt", "one\n");
    await folder.write("file", "");
    const { status, stderr } = await run(["batch", "in.txt", "-o", join("file", "out.jsonl")]);
    expect([status, stderr]).toEqual([1, expect.stringContaining("ENOTDIR")]);
    expect(server?.seen).toEqual([]);
  });
});

describe("fanout batch, started again", () => {
  it("continues the same batch and pays for nothing again", { tags: ["slow"] }, async () => {
    const { batches, seen } = await serve();
    await folder.write("in.txt", "one\ntwo\n");
    await run();
    const before = seen.length;
    const { status, stderr } = await run(["batch", "in.txt", "-o", "out.jsonl", "--raw"]);
    expect(status).toBe(0);
    expect(stderr).toContain("Continuing batch batch_1.\n");
    expect(batches.size).toBe(1);
    expect(seen.slice(before).map(({ method }) => method)).not.toContain("POST");
  });

  it(
    "leaves the batch running on Ctrl-C, says how to come back, and comes back to it",
    { tags: ["slow"] },
    async () => {
      let looks = 1_000_000;
      const { batches } = await serve({ looks: () => looks });
      await folder.write("in.txt", "one\n");
      const first = await run(ARGS, { onSaid: interruptAt("Batch batch_1: 1 line.") });
      expect(first.status).toBe(130);
      expect(first.stderr).toContain(
        "Batch batch_1 is still running; run the same command again to continue. To cancel it:\n",
      );
      expect(first.stderr).toContain("fanout batch --cancel -o out.jsonl\n");
      const batch = batches.get("batch_1");
      if (batch !== undefined) batch.looks = 0;
      looks = 0;
      expect((await run()).status).toBe(0);
      expect([batches.size, server?.count("POST", /files/)]).toEqual([1, 1]);
    },
  );

  it("finds the batch whose creation got no reply", { tags: ["slow"] }, async () => {
    let child: ChildProcess | null = null;
    const silent = () => child?.kill("SIGKILL") === true;
    const { batches } = await serve({ silent });
    await folder.write("in.txt", "one\n");
    const killed = run(ARGS, { onStarted: (started) => void (child = started) });
    expect((await killed).status).toBe(null);
    child = null;
    expect((await run()).status).toBe(0);
    const keys = server?.seen.filter(({ path, method }) => path === "/v1/batches" && method === "POST");
    expect(keys).toHaveLength(2);
    expect(keys?.[0]?.headers["idempotency-key"]).toMatch(/^fanout-batch-[0-9a-f]{64}$/);
    expect(keys?.[1]?.headers["idempotency-key"]).toBe(keys?.[0]?.headers["idempotency-key"]);
    expect(keys?.[1]?.body).toEqual(keys?.[0]?.body);
    expect([batches.size, server?.count("POST", /files/)]).toEqual([1, 1]);
  });

  it(
    "sends the service tier, also when it cancels a batch whose creation got no answer, and takes another tier for another batch",
    { tags: ["slow"] },
    async () => {
      let child: ChildProcess | null = null;
      const { batches } = await serve({ silent: () => child?.kill("SIGKILL") === true, looks: () => 1e9 });
      await folder.write("in.txt", "one\n");
      await run([...ARGS, "--service-tier", "batch"], { onStarted: (started) => void (child = started) });
      child = null;
      const other = await run();
      expect([other.status, other.stderr]).toEqual([1, expect.stringContaining("another input or other options")]);
      expect((await run(["batch", "--cancel", "-o", "out.jsonl"])).status).toBe(0);
      const created = server?.seen.filter(({ path, method }) => path === "/v1/batches" && method === "POST") ?? [];
      expect(created.map(({ body }) => JSON.parse(body.toString()).service_tier)).toEqual(["batch", "batch"]);
      expect(batches.size).toBe(1);
    },
  );

  it("begins a new batch with --fresh, under another key", { tags: ["slow"] }, async () => {
    const { batches } = await serve();
    await folder.write("in.txt", "one\n");
    await run();
    expect((await run([...ARGS, "--fresh"])).status).toBe(0);
    expect(batches.size).toBe(2);
  });

  it(
    "does not replace the answers to another input, but with --fresh or where they were deleted",
    { tags: ["slow"] },
    async () => {
      const { batches } = await serve();
      await folder.write("in.txt", "one\n");
      await run();
      await folder.write("in.txt", "two\n");
      const refused = await run();
      expect([refused.status, batches.size]).toEqual([1, 1]);
      expect(refused.stderr).toMatch(/^out\.jsonl has the answers to another input.*-o.*--fresh\.$/m);
      expect(await folder.lines("out.jsonl")).toEqual([text("row-1", "one")]);
      expect((await run([...ARGS, "--fresh"])).status).toBe(0);
      expect(await folder.lines("out.jsonl")).toEqual([text("row-1", "two")]);
      await folder.write("in.txt", "three\n");
      await rm(join(folder.path, "out.jsonl"));
      expect((await run()).status).toBe(0);
      expect([await folder.lines("out.jsonl"), batches.size]).toEqual([[text("row-1", "three")], 3]);
    },
  );

  it("refuses to forget a batch that runs, but for --fresh", { tags: ["slow"] }, async () => {
    const { batches } = await serve({ looks: () => 1_000_000 });
    await folder.write("in.txt", "one\n");
    await run(ARGS, { onSaid: interruptAt("Batch batch_1: 1 line.") });
    await folder.write("in.txt", "two\n");
    const other = await run();
    expect(other.status).toBe(1);
    expect(other.stderr).toMatch(/^out\.jsonl belongs to a batch with another input or other options\./);
    expect(batches.size).toBe(1);
    const fresh = await run([...ARGS, "--fresh"], { onSaid: interruptAt("Batch batch_2: 1 line.") });
    expect(fresh.status).toBe(130);
    expect(fresh.stderr).toContain("Batch batch_1 is abandoned. It may still be running and spending.\n");
    expect(batches.size).toBe(2);
  });

  it("cancels with --cancel, and then writes what is done with status 4", { tags: ["slow"] }, async () => {
    await serve({ looks: () => 1_000_000 });
    await folder.write("in.txt", "one\n");
    await run(ARGS, { onSaid: interruptAt("Batch batch_1: 1 line.") });
    const cancelled = await run(["batch", "--cancel", "-o", "out.jsonl", "--json"]);
    expect(cancelled.status).toBe(0);
    expect(cancelled.stderr).toContain("Batch batch_1 is cancelling.\n");
    expect(JSON.parse(cancelled.stdout)).toEqual({ batch: "batch_1", status: "cancelling" });
    expect((await run()).status).toBe(4);
    const again = await run(["batch", "--cancel", "-o", "out.jsonl"]);
    expect([again.status, again.stderr]).toEqual([1, expect.stringMatching(/^Batch batch_1 has already ended/)]);
  });

  it("cancels nothing where nothing was begun, and nothing at another server", { tags: ["slow"] }, async () => {
    await serve();
    const none = await run(["batch", "--cancel", "-o", "out.jsonl"]);
    expect([none.status, none.stderr]).toEqual([
      1,
      expect.stringMatching(/^No batch was started for this output: out\.jsonl\.fanout does not exist/),
    ]);
    await folder.write("in.txt", "one\n");
    await run();
    const before = server?.seen.length;
    const env = { FANOUT_URL: `${server?.url}/elsewhere` };
    const other = await run(["batch", "--cancel", "-o", "out.jsonl"], { env });
    expect([other.status, other.stderr]).toEqual([1, expect.stringMatching(/^The batch is at http/)]);
    expect(server?.seen.length).toBe(before);
  });

  it("says so where the batch is not this token's, or the state is none", { tags: ["slow"] }, async () => {
    const { batches } = await serve();
    await folder.write("in.txt", "one\n");
    await run();
    batches.clear();
    const unknown = await run();
    expect([unknown.status, unknown.stderr]).toEqual([
      1,
      expect.stringContaining("The token may belong to another run."),
    ]);
    await folder.write("out.jsonl.fanout", "{");
    const broken = await run();
    expect([broken.status, broken.stderr]).toEqual([1, expect.stringContaining("To start a new batch, use --fresh")]);
    expect((await run([...ARGS, "--fresh"])).status).toBe(0);
  });
});
