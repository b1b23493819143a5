/** `POST /tool_call`: tools that the operator registers, called for code that never sees where they are. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { HOSTILE, startToolServer, type ToolServer } from "../support/tool-server.ts";
import { clientOf } from "./client.ts";
import { logOf } from "./following.ts";
import { lineSchema } from "./log-lines.ts";
import { startRestarting } from "./restarting.ts";
import { documentOf, errorOf, startOwnGateway, startWorld, type Answer, type RunAccess, type World } from "./world.ts";

let tools: ToolServer;
let world: World;
beforeAll(async () => {
  tools = await startToolServer();
  world = await startWorld(undefined, { TOOL_HOSTS: tools.host });
});
beforeEach(() => tools.forget());
afterAll(async () => {
  tools.release();
  await world.stop();
  await tools.stop();
});

const at = (path: string): string => `http://${tools.host}${path}`;

/** A run with one tool, called `t`, at this path. */
function runWith(path: string, fields: Record<string, unknown> = {}, run: Record<string, unknown> = {}) {
  return world.openRun({ tools: [{ name: "t", url: at(path), ...fields }], ...run });
}

const call = (run: RunAccess, input: unknown = {}, name = "t"): Promise<Answer> =>
  run.send("/tool_call", { json: { tool_name: name, input } });

const plainError = z.strictObject({ error: z.string().min(1) });

/** Status and message of a failure as the clients of this route read it. */
function failureOf(answer: Answer): [status: number, message: string] {
  expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
  expect(answer.headers.get("x-request-id")).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  return [answer.status, plainError.parse(answer.json).error];
}

const toolLine = lineSchema("tool_called");

/** The log lines of the run's tool calls, checked against their schema, as the operator reads them. */
async function toolLines({ id }: RunAccess): Promise<z.infer<typeof toolLine>[]> {
  const { text } = await world.sendAsOperator(`/runs/${id}/log`);
  const lines = text.split("\n").filter((line) => line.includes('"event_type":"tool_called"'));
  return lines.map((line) => toolLine.parse(JSON.parse(line)));
}

describe("a tool call", () => {
  it("returns the tool's result, and sends the tool nothing about the caller", async () => {
    const run = await runWith("/echo?key=of-the-url");
    const input = { q: "naïve 🦉", deep: [1, { a: null }], text: "</script>\u0000" };
    const answer = await call(run, input);
    expect([answer.status, answer.json]).toEqual([200, { result: input }]);
    expect(answer.headers.get("x-fanout-run")).toBe(run.id);
    const [sent] = tools.requests;
    expect(tools.requests).toHaveLength(1);
    expect(JSON.parse(sent?.body ?? "")).toEqual({ tool_name: "t", input });
    expect(sent?.headers).toMatchObject({ "content-type": "application/json", "x-fanout-run": run.id });
    expect(JSON.stringify(sent)).not.toContain(run.token);
    expect(JSON.stringify(sent)).not.toContain("fo-run-");
    const names = Object.keys(sent?.headers ?? {}).toSorted();
    expect(names).toEqual(["accept", "content-length", "content-type", "host", "x-fanout-run"]);
  });

  it("forwards no header and no other field of its request", async () => {
    const run = await runWith("/whole");
    const headers = { cookie: "a=b", "x-api-key": run.token, "x-secret": "s", "user-agent": "sandbox" };
    const json = { tool_name: "t", input: [1], token: run.token, tool: "other" };
    const answer = await run.send("/tool_call", { json, headers });
    expect(answer.json).toEqual({ result: { tool_name: "t", input: [1] } });
    expect(JSON.stringify(tools.requests)).not.toMatch(/fo-run-|cookie|x-secret|sandbox/);
  });

  it("can be made by the operator for a named run", async () => {
    const run = await runWith("/echo");
    const asked = { json: { tool_name: "t", input: 3 }, headers: { "x-fanout-run": run.id } };
    expect((await world.sendAsOperator("/tool_call", asked)).json).toEqual({ result: 3 });
  });

  it("is read as JSON whatever its content type, like the original server", async () => {
    const run = await runWith("/echo");
    const body = JSON.stringify({ tool_name: "t", input: { query: "q" } });
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const answer = await run.send("/tool_call", { method: "POST", body, headers });
    expect([answer.status, answer.json]).toEqual([200, { result: { query: "q" } }]);
  });

  it("has {} as its input by default", async () => {
    const run = await runWith("/echo");
    expect((await run.send("/tool_call", { json: { tool_name: "t" } })).json).toEqual({ result: {} });
  });

  it.each([
    ["other JSON as the result itself", "/whole", { tool_name: "t", input: {} }],
    ["text as a string, even if it looks like JSON", "/text", '{"result":1}'],
    ["a body without content type that is not JSON as a string", "/bare", "plain words"],
    ["text that addresses a model unchanged, as data", "/hostile", HOSTILE],
  ])("returns %s", async (_, path, result) => {
    const answer = await call(await runWith(path));
    expect([answer.status, answer.json]).toEqual([200, { result }]);
  });

  it("writes one line to the log, costs nothing and does not count as an LLM call", async () => {
    const run = await runWith("/echo", {}, { budget: { usd: 0, calls: 0 } });
    expect((await call(run, "four")).status).toBe(200);
    expect(await toolLines(run)).toMatchObject([
      { run_id: run.id, tool: "t", ok: true, status: 200, code: null, bytes: 17, attempts: 1 },
    ]);
    const { budget, stats, metrics } = await documentOf(run);
    expect([budget.usd.spent, budget.calls.spent, budget.usd.reserved]).toEqual([0, 0, 0]);
    expect([stats.total_queries, metrics.attempts]).toEqual([0, 0]);
    expect(await logOf(run)).toHaveLength(2);
  });
});

describe("a tool call is refused", () => {
  it.each([
    ["without a name", { input: {} }, "missing tool_name"],
    ["with an empty name", { tool_name: "" }, "missing tool_name"],
    ["with a name that no tool can have", { tool_name: "a b" }, "tool_name: "],
    ["with a name that is no text", { tool_name: ["t"] }, "tool_name: "],
    ["as a list", [{ tool_name: "t" }], "the body: "],
  ])("%s: 400", async (_, json, message) => {
    const run = await runWith("/echo");
    expect(failureOf(await run.send("/tool_call", { json }))).toEqual([400, expect.stringContaining(message)]);
    expect(tools.requests).toEqual([]);
    expect(await toolLines(run)).toEqual([]);
  });

  it("if its body is not JSON, whatever its content type: 400; with another method: 405", async () => {
    const run = await runWith("/echo");
    const headers = { "content-type": "application/json" };
    expect(failureOf(await run.send("/tool_call", { method: "POST", body: "{", headers }))[0]).toBe(400);
    const form = { method: "POST", body: "tool_name=t", headers: { "content-type": "text/csv" } };
    expect(failureOf(await run.send("/tool_call", form))[0]).toBe(400);
    expect(failureOf(await run.send("/tool_call"))[0]).toBe(405);
  });

  it("for a tool that this run does not have: 404 with the names of its tools, and none of another run", async () => {
    const run = await runWith("/echo");
    await world.openRun({ tools: [{ name: "other", url: at("/echo") }] });
    const [status, message] = failureOf(await call(run, {}, "other"));
    expect([status, message]).toEqual([404, 'tool "other" not found; this run has t']);
    expect(failureOf(await call(await world.openRun(), {}, "t"))[0]).toBe(404);
    for (const name of ["__proto__", "constructor", "toString"]) expect((await call(run, {}, name)).status).toBe(404);
    expect(tools.requests).toEqual([]);
  });

  it("without a credential, and with a forged one: 401", async () => {
    expect(failureOf(await world.send("/tool_call", { json: { tool_name: "t" } }))[0]).toBe(401);
    const run = await runWith("/echo");
    expect(failureOf(await world.send("/tool_call", { json: { tool_name: "t" }, token: `${run.token}x` }))[0]).toBe(
      401,
    );
  });

  it("if its input is too large: 413; input of the maximum size is accepted", async () => {
    const run = await runWith("/500");
    const { tool_call_bytes_max: bytesMax } = z
      .looseObject({ tool_call_bytes_max: z.int() })
      .parse((await world.send("/limits")).json);
    const around = JSON.stringify({ tool_name: "t", input: "" }).length;
    expect((await call(run, "x".repeat(bytesMax - around))).status).toBe(500);
    expect(tools.requests[0]?.body).toHaveLength(bytesMax);
    expect(failureOf(await call(run, "x".repeat(bytesMax - around + 1)))[0]).toBe(413);
    // Numbers that are longer written out than as they came.
    const numbers = `{"tool_name":"t","input":[${Array.from({ length: 100_000 }, () => "1e20").join()}]}`;
    const long = { method: "POST", body: numbers, headers: { "content-type": "application/json" } };
    expect(failureOf(await run.send("/tool_call", long))[0]).toBe(413);
    expect(tools.requests).toHaveLength(1);
  });

  it("if it is nested too deeply: 400", async () => {
    const run = await runWith("/echo");
    const body = `{"tool_name":"t","input":${"[".repeat(10_000)}${"]".repeat(10_000)}}`;
    const deep = { method: "POST", body, headers: { "content-type": "application/json" } };
    expect(failureOf(await run.send("/tool_call", deep))).toEqual([
      400,
      expect.stringContaining("level 73 of nesting"),
    ]);
  });

  it.each([
    ["closed", (run: RunAccess) => run.send(`/runs/${run.id}/close`, { method: "POST" })],
    ["cancelled", (run: RunAccess) => run.send(`/runs/${run.id}`, { method: "DELETE" })],
  ])("once the run is %s: 401", async (status, end) => {
    const run = await runWith("/echo");
    await end(run);
    expect(failureOf(await call(run))).toEqual([401, expect.stringContaining(status)]);
    expect(tools.requests).toEqual([]);
  });

  it("once the run has expired: 401", { tags: ["slow"] }, async () => {
    const run = await runWith("/echo", {}, { expires_in_s: 1 });
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    expect(failureOf(await call(run))[0]).toBe(401);
    const asOperator = { json: { tool_name: "t" }, headers: { "x-fanout-run": run.id } };
    expect(failureOf(await world.sendAsOperator("/tool_call", asOperator))[0]).toBe(401);
  });

  it("while the run is paused: 503 after a few seconds", { tags: ["slow"] }, async () => {
    const run = await runWith("/echo");
    await world.sendAsOperator(`/runs/${run.id}`, { method: "PATCH", json: { paused: true } });
    const answer = await call(run);
    expect(failureOf(answer)).toEqual([503, "the run is paused"]);
    expect(answer.headers.get("retry-after")).toBe("1");
    const waiting = call(run, "resumed");
    await world.sendAsOperator(`/runs/${run.id}`, { method: "PATCH", json: { paused: false } });
    expect((await waiting).json).toEqual({ result: "resumed" });
    expect(await toolLines(run)).toHaveLength(1);
  });
});

describe("a tool call fails", () => {
  it.each([
    ["at a redirect, which is not followed", "/redirect", "redirect (302)", 302],
    ["at an error of the tool's, told with its words", "/500", "answered 500: the index is gone", 500],
    ["at the tool's own 404, which is not an unknown tool", "/404", "answered 404", 404],
    ["at the tool's own 408, which is not a timeout", "/408", "answered 408", 408],
    ["at JSON that breaks off", "/broken-json", "JSON", 200],
    ["at JSON that is nested without end", "/deep", "64 levels", 200],
    ["at what is not UTF-8", "/binary", "not UTF-8", 200],
    ["at an answer that says it is too large", "/large", "more than 2097152 bytes", 200],
    ["at an answer that never ends", "/endless", "more than 2097152 bytes", 200],
    ["at a lost connection", "/lost", "lost the connection", null],
    ["at a connection that is lost within the answer", "/lost-within", "lost the connection", null],
  ])("%s: 500", async (_, path, message, status) => {
    const run = await runWith(`${path}?key=of-the-url`);
    const failure = failureOf(await call(run));
    expect(failure).toEqual([500, expect.stringContaining(message)]);
    expect(failure[1]).not.toMatch(/127\.0\.0\.1|of-the-url/);
    expect(tools.requests.map(({ path: asked }) => asked)).toEqual([`${path}?key=of-the-url`]);
    expect(await toolLines(run)).toMatchObject([{ ok: false, status, code: "upstream_error", attempts: 1 }]);
    await expect.poll(tools.inFlight).toBe(0);
  });

  it.each(["/hang", "/stall"])("on a timeout, also within the answer (%s): 408", { tags: ["slow"] }, async (path) => {
    const run = await runWith(path, { timeout_ms: 1_500, idempotent: true });
    expect(failureOf(await call(run))).toEqual([408, expect.stringContaining("1500 ms")]);
    expect(await toolLines(run)).toMatchObject([{ ok: false, status: null, code: "upstream_timeout", attempts: 1 }]);
    // Its connection is closed, too.
    await expect.poll(tools.inFlight).toBe(0);
    expect(tools.requests).toHaveLength(1);
  });

  it("if nothing listens at the tool's address: 500", async () => {
    const gateway = await startOwnGateway({ vars: { TOOL_HOSTS: "127.0.0.1:1" } });
    const { token } = await gateway.openRun({ tools: [{ name: "t", url: "http://127.0.0.1:1/", idempotent: true }] });
    const answer = await gateway.fetch("/tool_call", { token, json: { tool_name: "t" } });
    expect([answer.status, await answer.json()]).toEqual([
      500,
      { error: expect.stringContaining("lost the connection") },
    ]);
  });
});

describe("a tool that is idempotent", () => {
  it("is retried once after a lost connection", async () => {
    const run = await runWith("/lost-once", { idempotent: true });
    expect((await call(run)).json).toEqual({ result: "try 2" });
    expect(await toolLines(run)).toMatchObject([{ ok: true, status: 200, attempts: 2 }]);
    expect(tools.requests).toHaveLength(2);
  });

  it("is called twice at most", async () => {
    const run = await runWith("/lost", { idempotent: true });
    expect(failureOf(await call(run))[0]).toBe(500);
    expect(tools.requests).toHaveLength(2);
    expect(await toolLines(run)).toMatchObject([{ ok: false, attempts: 2 }]);
  });

  it("is the only one that is retried", async () => {
    const run = await runWith("/lost-once");
    expect(failureOf(await call(run))[0]).toBe(500);
    expect(tools.requests).toHaveLength(1);
  });

  it("is not retried after any answer", async () => {
    for (const path of ["/500", "/408", "/broken-json", "/redirect", "/large"]) {
      tools.forget();
      expect((await call(await runWith(path, { idempotent: true }))).status).toBe(500);
      expect(tools.requests).toHaveLength(1);
    }
  });
});

describe("concurrent tool calls", () => {
  it("are limited to max_parallel; the next waits until one has ended", async () => {
    const run = await runWith("/held", {}, { max_parallel: 3 });
    const calls = Array.from({ length: 5 }, (_, index) => call(run, index));
    await expect.poll(tools.inFlight).toBe(3);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect([tools.requests.length, tools.peakInFlight()]).toEqual([3, 3]);
    tools.release();
    for (const answer of await Promise.all(calls)) expect(answer.json).toEqual({ result: "released" });
    expect([tools.requests.length, tools.peakInFlight()]).toEqual([5, 3]);
    expect(await toolLines(run)).toHaveLength(5);
  });

  it("above max_parallel end as 503 if no other ends in time, and write no log line", { tags: ["slow"] }, async () => {
    const run = await runWith("/held", {}, { max_parallel: 1 });
    const first = call(run);
    await expect.poll(tools.inFlight).toBe(1);
    const startedMs = performance.now();
    const answer = await call(run);
    expect(failureOf(answer)).toEqual([503, expect.stringContaining("too many tool calls")]);
    expect(Number(answer.headers.get("retry-after-ms"))).toBeGreaterThan(0);
    expect(performance.now() - startedMs).toBeGreaterThan(4_000);
    tools.release();
    expect((await first).status).toBe(200);
    expect(await toolLines(run)).toHaveLength(1);
  });

  it("release every permit, however they end", { tags: ["slow"] }, async () => {
    const paths = ["/500", "/lost", "/redirect", "/large", "/broken-json", "/hang", "/echo"];
    const named = paths.map((path, index) => ({
      name: `t${index}`,
      url: at(path),
      timeout_ms: path === "/hang" ? 500 : 10_000,
    }));
    const run = await world.openRun({ tools: named, max_parallel: 1 });
    for (let round = 0; round < 2; round += 1) {
      for (const { name } of named) expect((await call(run, {}, name)).status).not.toBe(503);
    }
    expect((await call(run, 1, "t6")).json).toEqual({ result: 1 });
  });

  it("do not share permits with LLM calls", async () => {
    const run = await runWith("/held", {}, { max_parallel: 1, default_model: "up-1" });
    const tool = call(run);
    await expect.poll(tools.inFlight).toBe(1);
    expect((await run.send("/query", { json: { prompt: "meanwhile" } })).status).toBe(200);
    tools.release();
    expect((await tool).status).toBe(200);
  });
});

describe("a tool call in flight", () => {
  it("is stopped when its run is cancelled, and is logged once", { tags: ["slow"] }, async () => {
    const run = await runWith("/hang");
    const calling = call(run);
    await expect.poll(tools.inFlight).toBe(1);
    await run.send(`/runs/${run.id}`, { method: "DELETE" });
    expect(failureOf(await calling)[0]).toBe(409);
    await expect.poll(() => tools.requests[0]?.leftAtMs).not.toBeNull();
    expect(await toolLines(run)).toMatchObject([{ ok: false, code: "cancelled", attempts: 1 }]);
  });

  it("is finished when its run is closed, and logged before the run's end", async () => {
    const run = await runWith("/held");
    const calling = call(run);
    await expect.poll(tools.inFlight).toBe(1);
    const closing = run.send(`/runs/${run.id}/close`, { method: "POST" });
    await new Promise((resolve) => setTimeout(resolve, 100));
    tools.release();
    expect((await calling).json).toEqual({ result: "released" });
    expect((await closing).status).toBe(200);
    expect(await toolLines(run)).toMatchObject([{ ok: true, code: null }]);
  });

  it("is stopped when its client disconnects, and releases its permit", async () => {
    const run = await runWith("/hang", {}, { max_parallel: 1 });
    const client = clientOf(world, "/tool_call", { token: run.token, json: { tool_name: "t" } });
    await expect.poll(tools.inFlight).toBe(1);
    client.leave();
    await expect.poll(tools.inFlight).toBe(0);
    await expect.poll(() => toolLines(run)).toMatchObject([{ ok: false, code: "cancelled" }]);
  });
});

describe("tools are registered", () => {
  const opened = z.looseObject({ id: z.string(), token: z.string(), tools: z.array(z.unknown()) });
  const asOpened = (answer: Answer) => opened.parse(answer.json);

  it("by the operator, who sees their addresses; a run token does not", async () => {
    const url = at("/echo?key=of-the-url");
    const asked = [
      { name: "search", url, description: "finds pages", idempotent: true, timeout_ms: 5 },
      { name: "t", url: at("/text") },
    ];
    const answer = await world.sendAsOperator("/runs", { json: { tools: asked } });
    const { id, token, tools: shown } = asOpened(answer);
    expect(shown).toEqual([
      asked[0],
      { name: "t", url: at("/text"), description: null, idempotent: false, timeout_ms: 60_000 },
    ]);
    expect(await world.sendAsOperator(`/runs/${id}`)).toMatchObject({ json: { tools: shown } });
    for (const path of ["/run", `/runs/${id}`]) {
      const own = await world.send(path, { token });
      expect(own.json).toMatchObject({
        tools: [
          { name: "search", description: "finds pages", idempotent: true, timeout_ms: 5 },
          { name: "t", description: null, idempotent: false, timeout_ms: 60_000 },
        ],
      });
      expect(own.text).not.toMatch(/of-the-url|127\.0\.0\.1|"url"/);
    }
    for (const { method, path } of [
      { method: "POST", path: `/runs/${id}/stats/reset` },
      { method: "POST", path: `/runs/${id}/close` },
      { method: "DELETE", path: `/runs/${id}` },
    ]) {
      expect((await world.send(path, { token, method })).text).not.toContain("of-the-url");
    }
  });

  it("never with a run token: 403 that names the field, and no child is opened", async () => {
    const run = await runWith("/echo");
    for (const list of [[{ name: "u", url: at("/echo") }], []]) {
      const answer = await run.send("/runs", { json: { tools: list } });
      const { code, param, message } = errorOf(answer);
      expect([answer.status, code, param]).toEqual([403, "forbidden", "tools"]);
      expect(message).toContain("tools: ");
    }
    expect((await logOf(run)).map(({ event_type }) => event_type)).toEqual(["run_opened"]);
  });

  it("at the root run only: its children have its tools and cannot name any", async () => {
    const run = await runWith("/echo");
    const child = asOpened(await run.send("/runs", { json: { name: "child" } }));
    expect(child.tools).toEqual([{ name: "t", description: null, idempotent: false, timeout_ms: 60_000 }]);
    const grandchild = asOpened(await world.send("/runs", { token: child.token, json: {} }));
    for (const { token } of [child, grandchild]) {
      expect((await world.send("/tool_call", { token, json: { tool_name: "t", input: 1 } })).json).toEqual({
        result: 1,
      });
    }
    expect(tools.requests.map(({ headers }) => headers["x-fanout-run"])).toEqual([child.id, grandchild.id]);
    const json = { tools: [{ name: "u", url: at("/echo") }] };
    const byOperator = await world.sendAsOperator("/runs", { json, headers: { "x-fanout-run": run.id } });
    expect([byOperator.status, errorOf(byOperator).param]).toEqual([400, "tools"]);
  });

  it.each([
    ["a host that is not listed", "https://tools.example.com/"],
    ["another port of a listed host", "http://127.0.0.1:1/"],
    ["no address", "search"],
    ["no http", "ftp://127.0.0.1/"],
  ])("and are refused with %s: 400 that names the field, and no run is opened", async (_, url) => {
    const before = (await world.sendAsOperator("/runs?limit=1")).text;
    const json = {
      tools: [
        { name: "t", url: at("/echo") },
        { name: "u", url },
      ],
    };
    const answer = await world.sendAsOperator("/runs", { json });
    expect([answer.status, errorOf(answer).param]).toEqual([400, "tools[1].url"]);
    expect((await world.sendAsOperator("/runs?limit=1")).text).toBe(before);
  });

  it("and are refused with a credential in the address, which the error does not repeat", async () => {
    const url = `http://me:hunter2@${tools.host}/echo`;
    const answer = await world.sendAsOperator("/runs", { json: { tools: [{ name: "t", url }] } });
    expect([answer.status, errorOf(answer).param]).toEqual([400, "tools[0].url"]);
    expect(answer.text).not.toContain("hunter2");
  });
});

describe("without a list of hosts", () => {
  it("only public hosts can be registered, as this runtime parses addresses", { tags: ["slow"] }, async () => {
    const gateway = await startOwnGateway();
    const statusOf = async (url: string): Promise<number> => {
      const request = { token: gateway.adminKey, json: { tools: [{ name: "t", url }] } };
      return (await gateway.fetch("/runs", request)).status;
    };
    for (const host of ["tools.example.com", "8.8.8.8", "[2606:4700::1111]"]) {
      expect([host, await statusOf(`https://${host}/`)]).toEqual([host, 201]);
    }
    for (const host of [
      tools.host,
      "localhost:8787",
      "127.1",
      "0x7f.1",
      "017700000001",
      "2130706433",
      "１２７.０.０.１",
      "169.254.169.254",
      "10.0.0.1",
      "192.168.1.1",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "[fd00:ec2::254]",
      "metadata.google.internal",
      "printer.local",
      "tools",
    ]) {
      expect([host, await statusOf(`http://${host}/`)]).toEqual([host, 400]);
    }
  });

  it("a wrong list stops the gateway with a message that names it", async () => {
    const gateway = await startOwnGateway({ vars: { TOOL_HOSTS: "https://tools.example.com" } });
    const answer = await gateway.fetch("/runs", { token: gateway.adminKey, json: {} });
    expect([answer.status, await answer.json()]).toMatchObject([500, { error: { message: /^TOOL_HOSTS: / } }]);
  });
});

it(
  "a tool call is limited to the hosts in the current list, also in a run that was opened under another list",
  { tags: ["slow"] },
  async () => {
    const place = await startRestarting();
    onTestFinished(() => place.stop());
    await place.restart({ TOOL_HOSTS: tools.host });
    const run = await place.openRun({ tools: [{ name: "t", url: at("/echo") }], max_parallel: 1 });
    expect((await call(run, 1)).json).toEqual({ result: 1 });
    await place.restart({ TOOL_HOSTS: tools.host });
    expect((await call(run, 2)).json).toEqual({ result: 2 });
    for (const vars of [{}, { TOOL_HOSTS: "tools.example.com" }]) {
      await place.restart(vars);
      const [status, message] = failureOf(await call(run, 3));
      expect([status, message]).toEqual([
        500,
        expect.stringMatching(/^TOOL_HOSTS: tool "t" may not be called any more/),
      ]);
      expect(message).not.toContain("127.0.0.1");
    }
    expect(tools.requests).toHaveLength(2);
    // No line is lost, though each gateway was killed right after the call.
    const told = (await logOf(run)).filter(({ event_type }) => event_type === "tool_called");
    expect(told.map(({ code, attempts }) => [code, attempts])).toEqual([
      [null, 1],
      [null, 1],
      ["misconfigured", 0],
      ["misconfigured", 0],
    ]);
  },
);
