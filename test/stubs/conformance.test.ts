/** What every stub does, whatever its language: the rules and the drivers are in README.md beside this file. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { startWorld, type RunAccess, type World } from "../contract/world.ts";
import { startFaultyProxy, type Fate, type FaultyProxy } from "../support/faulty-proxy.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";
import { buildDriver, drive, languages, missingOf, type Driven, type Record_ } from "./language.ts";

let world: World;
let run: RunAccess;
let tools: ToolServer;
/** Lets the prompts that wait be answered. */
let release = (): void => undefined;

beforeAll(async () => {
  let released = Promise.resolve();
  tools = await startToolServer();
  const waits = ({ prompt }: { prompt: string }) => (prompt.includes("wait for it") ? { after: released } : {});
  world = await startWorld(waits, { TOOL_HOSTS: tools.host });
  hold = () => {
    released = new Promise((resolve) => (release = resolve));
  };
});
let hold = (): void => undefined;
afterAll(() => Promise.all([world.stop(), tools.stop()]));
beforeEach(async () => {
  world.upstream.forget();
  run = await world.openRun({ default_model: "up-1", budget: { usd: 1 }, max_parallel: 32 });
});

const text = (value: string): Record_ => ({ kind: "text", text: value });
const texts = (records: Record_[]): string[] =>
  records.map((record) => (record.kind === "text" ? record.text : "FAILED"));

async function proxyTo(fates: readonly Fate[]): Promise<FaultyProxy> {
  const proxy = await startFaultyProxy(world.gateway.url, fates);
  onTestFinished(() => proxy.stop());
  return proxy;
}

const keysOf = ({ requests }: FaultyProxy) => requests.map(({ headers }) => headers["idempotency-key"]);

const found = await languages();

it("has a language for each stub", async () => {
  expect(found.length).toBeGreaterThan(0);
});

describe.each(found.map((language) => ({ name: language.name, language })))("the stub for $name", ({ language }) => {
  let folder = "";
  const missing = missingOf(language);
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), `fanout-${language.name}-`));
    if (missing === null) buildDriver(language, folder);
  }, 180_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));
  beforeEach((context) => {
    if (missing !== null) context.skip(`this machine has no ${missing}`);
  });

  const start = (args: readonly string[], env: Record<string, string> = {}): Driven =>
    drive(language, { folder, args, env: { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: run.token, ...env } });
  const ask = (args: readonly string[], env?: Record<string, string>): Promise<Record_[]> => start(args, env).ended;

  it("answers a prompt, every character of it", async () => {
    const prompt = `naïve 漢字 🦉 e\u0301 "quoted" 'too' \\n \\u0041 $HOME %s {0} \`x\`\nsecond line\ttab \u2028 \u0001 \u007f end`;
    expect(await ask(["query", prompt])).toEqual([text(prompt)]);
    expect(await ask(["batch", prompt, prompt])).toEqual([text(prompt), text(prompt)]);
  });

  it("answers a long prompt, and one that looks like an option or like JSON", async () => {
    const prompts = ["x".repeat(12_000), "-n", "--help", "@/etc/passwd", '{"prompt":"p"}', "null", "  spaces  "];
    expect(texts(await ask(["batch", ...prompts]))).toEqual(prompts);
  });

  it("keeps the order of the prompts, whatever ends first", async () => {
    const prompts = Array.from({ length: 40 }, (_, index) => `${index} {{delay/${(index * 37) % 200}}}`);
    expect(texts(await ask(["batch", ...prompts]))).toEqual(prompts);
  });

  it("has a failure in its own place, and the others unharmed", async () => {
    const [first, failed, last, ...more] = texts(await ask(["batch", "one", "{{status/400}}", "three"]));
    expect([first, last, more]).toEqual(["one", "three", []]);
    expect(failed).toMatch(/^\[error\] ./);
  });

  it("asks nothing for an empty list", async () => {
    const proxy = await proxyTo([]);
    expect(await ask(["batch"], { FANOUT_URL: proxy.url })).toEqual([]);
    expect(proxy.requests).toEqual([]);
  });

  it("asks the model that it is told", async () => {
    const proxy = await proxyTo([]);
    const env = { FANOUT_URL: `${proxy.url}/` };
    expect(await ask(["query", "p", "up/up-2"], env)).toEqual([text("p")]);
    expect(await ask(["batch-model", "up/up-3", "p", "q"], env)).toEqual([text("p"), text("q")]);
    const asked = proxy.requests.map(({ path, body }) => ({ path, body: JSON.parse(body) as unknown }));
    expect(asked).toEqual([
      { path: "/query", body: { prompt: "p", model: "up/up-2" } },
      { path: "/batch", body: { prompts: ["p", "q"], model: "up/up-3" } },
    ]);
  });

  it("tells what the gateway refuses, with its code and status", async () => {
    const poor = await world.openRun({ default_model: "up-1", budget: { usd: 0.000000001 } });
    const env = { FANOUT_TOKEN: poor.token };
    expect(await ask(["query", "p"], env)).toEqual([
      { kind: "failure", code: "budget_exhausted", status: 402, retryable: false },
    ]);
    expect(texts(await ask(["batch", "p"], env))[0]).toMatch(/^\[error\] ./);
    expect(await ask(["query", "{{status/400}}"])).toEqual([
      { kind: "failure", code: "upstream_error", status: expect.any(Number), retryable: false },
    ]);
    expect(await ask(["batch", "p"], { FANOUT_TOKEN: "forged" })).toEqual([
      { kind: "failure", code: "invalid_api_key", status: 401, retryable: false },
    ]);
    expect(world.upstream.counters.requests).toBe(1);
  });

  it("asks nothing without a token, and takes the other names of its variables", async () => {
    const proxy = await proxyTo([]);
    const none = { FANOUT_URL: proxy.url, FANOUT_TOKEN: "" };
    expect(await ask(["query", "p"], none)).toEqual([
      { kind: "failure", code: "no_token", status: null, retryable: false },
    ]);
    expect(proxy.requests).toEqual([]);
    const others = { FANOUT_URL: "", FANOUT_TOKEN: "", GATEWAY_URL: proxy.url, GATEWAY_TOKEN: run.token };
    expect(await ask(["query", "p"], others)).toEqual([text("p")]);
    expect(proxy.requests).toHaveLength(1);
  });

  it.each<[string, Fate[], string[]]>([
    ["dropped before it is heard", ["drop", "drop"], ["query", "once"]],
    ["reset before the answer to a query", ["deafen", "deafen", "deafen", "deafen"], ["query", "once"]],
    ["cut in the middle of a query's answer", ["cut"], ["query", "once"]],
    ["reset before a batch's answer", ["deafen"], ["batch", "once", "too"]],
    ["cut in the middle of a batch's answer", ["cut", "cut"], ["batch", "once", "too"]],
    ["closed in the middle of a batch's answer", ["end"], ["batch", "once", "too"]],
  ])("asks again with the same key where the connection is %s, and nothing is made twice", async (_, fates, args) => {
    const proxy = await proxyTo(fates);
    const env = { FANOUT_URL: proxy.url };
    const prompts = args.slice(1);
    expect(texts(await ask(args, env))).toEqual(prompts);
    const keys = keysOf(proxy);
    expect(keys).toHaveLength(fates.length + 1);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^[\x21-\x7e]{16,255}$/);
    expect(new Set(proxy.requests.map(({ body }) => body)).size).toBe(1);
    expect(world.upstream.counters.sends).toEqual(new Map(prompts.map((prompt) => [prompt, 1])));
  });

  it("gives up after five tries", async () => {
    const proxy = await proxyTo(["drop", "drop", "drop", "drop", "drop"]);
    expect(await ask(["query", "p"], { FANOUT_URL: proxy.url })).toEqual([
      { kind: "failure", code: "unreachable", status: null, retryable: true },
    ]);
    expect(proxy.requests).toHaveLength(5);
  });

  it("waits for a gateway that is not there yet", async () => {
    const port = await freePort();
    const asking = ask(["query", "p"], { FANOUT_URL: `http://127.0.0.1:${port}` });
    const proxy = await startFaultyProxy(world.gateway.url, [], { port, delayMs: 1_500 });
    onTestFinished(() => proxy.stop());
    expect(await asking).toEqual([text("p")]);
  });

  it("asks under a fresh key each time, and never again what the gateway has answered", async () => {
    const proxy = await proxyTo([]);
    const env = { FANOUT_URL: proxy.url };
    await ask(["query", "p"], env);
    await ask(["query", "p"], env);
    await ask(["query", "{{status/400}}"], env);
    expect(new Set(keysOf(proxy)).size).toBe(3);
    expect(proxy.requests).toHaveLength(3);
  });

  it.each(["query", "batch"])("bears only so much silence of a %s", async (command) => {
    const proxy = await proxyTo([]);
    const asked = await ask([command, "{{delay/8000}}"], { FANOUT_URL: proxy.url, FANOUT_TIMEOUT_S: "1" });
    expect(asked).toEqual([{ kind: "failure", code: "timeout", status: null, retryable: true }]);
    expect(proxy.requests).toHaveLength(1);
  });

  it("tells an answer that is none from a failure of the gateway", async () => {
    const proxy = await proxyTo(["garbage", "garbage"]);
    const env = { FANOUT_URL: proxy.url };
    const bad = { kind: "failure", code: "bad_answer", retryable: false };
    expect(await ask(["query", "p"], env)).toEqual([expect.objectContaining(bad)]);
    expect(await ask(["batch", "p"], env)).toEqual([expect.objectContaining(bad)]);
    expect(proxy.requests).toHaveLength(2);
  });

  it("follows no redirect: its token goes to nobody else", async () => {
    const proxy = await proxyTo(["elsewhere"]);
    const answer = await ask(["query", "p"], { FANOUT_URL: proxy.url });
    expect(answer).toEqual([expect.objectContaining({ kind: "failure", code: "bad_answer" })]);
    expect([proxy.requests.length, proxy.strayed]).toEqual([1, []]);
  });

  it("puts its token on no command line", async () => {
    const asking = start(["query", "{{delay/700}}"]);
    const seen: string[] = [];
    for (let ended = false; !ended;) {
      ended = await Promise.race([asking.ended.then(() => true), sleep(50)]);
      seen.push(...(await commandLines()));
    }
    expect(seen.length).toBeGreaterThan(0);
    expect(seen.filter((line) => line.includes(run.token))).toEqual([]);
  });

  it("tells what is left of the budget, and what was used", async () => {
    await ask(["batch", "a", "b"]);
    const [left] = texts(await ask(["budget"]));
    const spent = 2 * (1 + 2) * 1e-6;
    expect(Number(left)).toBeGreaterThan(0.9);
    expect(Number(left)).toBeLessThan(1 - spent / 10);
    expect(await ask(["usage"])).toEqual([text("2")]);
  });

  it("leaves its result and its events in the run's log", async () => {
    expect(await ask(["final", "the 漢字 answer"])).toEqual([text("ok")]);
    expect(await ask(["log", "execution_result", "output", "42"])).toEqual([text("ok")]);
    const lines = (await run.ask(`/runs/${run.id}/log`)).text.trimEnd().split("\n");
    const events = lines.map((line) => JSON.parse(line) as unknown);
    expect(events).toContainEqual(
      expect.objectContaining({ event_type: "final_result", output: "the 漢字 answer", run_id: run.id }),
    );
    expect(events).toContainEqual(expect.objectContaining({ event_type: "execution_result", output: "42" }));
  });

  it("calls a tool of its run, and tells what it refuses; a lost call is not made again", async () => {
    const tooled = await world.openRun({
      tools: [
        { name: "words", url: `http://${tools.host}/text` },
        { name: "broken", url: `http://${tools.host}/500` },
      ],
    });
    const proxy = await proxyTo(["pass", "pass", "pass", "deafen"]);
    const call = (name: string) =>
      ask(["tool", name, "field", 'a "value"'], { FANOUT_URL: proxy.url, FANOUT_TOKEN: tooled.token });
    tools.forget();
    expect(await call("words")).toEqual([text('{"result":1}')]);
    expect(tools.requests.map(({ body }) => JSON.parse(body) as unknown)).toEqual([
      { tool_name: "words", input: { field: 'a "value"' } },
    ]);
    const failed = { kind: "failure", code: "tool_error", retryable: false };
    expect(await call("broken")).toEqual([{ ...failed, status: 500 }]);
    expect(await call("unknown")).toEqual([{ ...failed, status: 404 }]);
    expect(await call("words")).toEqual([{ kind: "failure", code: "unreachable", status: null, retryable: true }]);
    expect([proxy.requests.length, tools.requests.length]).toEqual([4, 3]);
  });

  describe.runIf(language.streams)("as a stream", () => {
    it("gives each slot as it ends", async () => {
      hold();
      const asking = start(["stream", "wait for it", "at once"]);
      while (asking.records().length === 0) if (await Promise.race([asking.ended, sleep(10)])) break;
      expect(asking.records()).toEqual([text("1\u001fat once")]);
      release();
      expect(await asking.ended).toEqual([text("1\u001fat once"), text("0\u001fwait for it")]);
    });

    it("gives each slot once, also where the connection is cut, and asks nothing for an empty list", async () => {
      const prompts = Array.from({ length: 30 }, (_, index) => `slot ${index}`);
      const proxy = await proxyTo(["end", "cut"]);
      const slots = texts(await ask(["stream", ...prompts], { FANOUT_URL: proxy.url }));
      const expected = prompts.map((prompt, index) => `${index}\u001f${prompt}`);
      expect(slots.toSorted()).toEqual(expected.toSorted());
      expect([proxy.requests.length, new Set(keysOf(proxy)).size]).toEqual([3, 1]);
      expect(world.upstream.counters.requests).toBe(30);
      expect(await ask(["stream"], { FANOUT_URL: proxy.url })).toEqual([]);
      expect(proxy.requests).toHaveLength(3);
    });

    it("has a failed slot as its error text", async () => {
      const slots = texts(await ask(["stream", "fine", "{{status/400}}"])).toSorted();
      expect(slots).toEqual(["0\u001ffine", expect.stringMatching(/^1.\[error\] ./)]);
    });
  });
});

const sleep = (ms: number): Promise<false> => new Promise((resolve) => setTimeout(() => resolve(false), ms));

/** The command lines of all processes of this machine. */
async function commandLines(): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  return Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
