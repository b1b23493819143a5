/**
 * `POST /plan` with `stream`: the plan runs while its model writes it. The planner of these tests writes its next lines only when it
 * is told to, so what happens before is known by its order, and by no clock.
 */
import { createServer, type ServerResponse } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";
import { logOf } from "./following.ts";
import { documentOf, errorOf, startWorld, type RunAccess, type World } from "./world.ts";

/** A provider whose stream is written by the test. `asked`: the prompts; `write` adds to the text of the last one. */
class SlowPlanner {
  readonly asked: string[] = [];
  /** Whether the gateway has left the last answer before its end. */
  isLeft = false;
  #response: ServerResponse | null = null;
  /** Whether the last request was one of Anthropic's: its answer is a message. */
  #isMessage = false;
  readonly #server = createServer((request, response) => {
    let body = "";
    request.on("data", (part: Buffer) => (body += part.toString()));
    request.on("end", () => {
      this.asked.push(body);
      this.#isMessage = request.url === "/v1/messages";
      this.isLeft = false;
      response.on("close", () => (this.isLeft = !response.writableEnded));
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      this.#response = response;
    });
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the planner has no port");
    return `http://127.0.0.1:${address.port}/v1`;
  }

  /** Waits for the next request, and forgets the one before. */
  async awaited(): Promise<void> {
    await expect.poll(() => this.#response, { timeout: 30_000 }).not.toBeNull();
  }

  write(content: string): void {
    if (this.#isMessage)
      return this.#part("content_block_delta", { index: 0, delta: { type: "text_delta", text: content } });
    this.#event({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
  }

  end(finish: string | null = "stop"): void {
    if (this.#isMessage) {
      this.#part("message_delta", {
        delta: { stop_reason: "end_turn" },
        usage: { input_tokens: 10, output_tokens: 20 },
      });
      this.#part("message_stop", {});
      this.#response?.end();
    } else if (finish !== null) {
      this.#event({ choices: [{ index: 0, delta: {}, finish_reason: finish }] });
      this.#event({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 } });
      this.#response?.write("data: [DONE]\n\n");
      this.#response?.end();
    } else this.#response?.destroy();
    this.#response = null;
  }

  /** Sets the present answer apart: what writes to it, and what ends it. The next request has an answer of its own. */
  held(): [write: (content: string) => void, end: () => void] {
    const held = this.#response;
    this.#response = null;
    const within = (act: () => void): void => {
      const present = this.#response;
      this.#response = held;
      act();
      this.#response = present;
    };
    return [(content) => within(() => this.write(content)), () => within(() => this.end())];
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #part(type: string, more: object): void {
    this.#response?.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
  }

  #event(more: object): void {
    const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "planner", ...more };
    this.#response?.write(`data: ${JSON.stringify(chunk)}\n\n`);
  }
}

const planner = new SlowPlanner();
let tools: ToolServer;
let world: World;
beforeAll(async () => {
  tools = await startToolServer();
  const prices = { "*": { input: 1, output: 2 } };
  const base_url = await planner.start();
  const slow = { kind: "openai", base_url, models: ["planner"], prices };
  const claude = { kind: "anthropic", base_url, models: ["claude-planner"], prices };
  world = await startWorld(undefined, { TOOL_HOSTS: "127.0.0.1" }, { slow, claude });
});
afterAll(async () => {
  planner.stop();
  await world.stop();
  await tools.stop();
});

const openRun = (): Promise<RunAccess> =>
  world.openRun({
    default_model: "up-1",
    budget: { usd: 1 },
    tools: [{ name: "find", url: `http://${tools.host}/echo`, description: "finds a fact" }],
  });

const FIRST = '{"id": "t1", "tool": "find", "input": {"query": "first"}}\n';
const body = { goal: "reach it", planner_model: "planner", stream: true };

it("calls the first tool before the planner has written its second line", async () => {
  const run = await openRun();
  const before = tools.requests.length;
  const answering = run.send("/plan", { json: body });
  await planner.awaited();
  expect(planner.asked.at(-1)).toContain("- find(): finds a fact");
  planner.write(`Here is the plan:\n${FIRST}`);
  // The stream is open: what has come of it is one line.
  await expect.poll(() => tools.requests.length - before, { timeout: 30_000 }).toBe(1);
  planner.write('{"id": "t2", "prompt": "{{t1.output}} and mo');
  planner.write('re"}\n');
  planner.end();
  const { status, json } = await answering;
  expect(status).toBe(200);
  expect(json).toMatchObject({
    object: "graph",
    status: "completed",
    plan: {
      state: "ended",
      errors: [],
      tasks: [
        { id: "t1", tool: "find", input: { query: "first" } },
        { id: "t2", prompt: "{{t1.output}} and more" },
      ],
    },
    tasks: { t1: { status: "completed" }, t2: { status: "completed", output: expect.stringContaining(" and more") } },
  });
  // The planner and the task of a model; a tool costs nothing.
  expect((await documentOf(run)).budget.calls.spent).toBe(2);
  const order = (await logOf(run)).map(({ event_type }) => event_type);
  const plannerEnds = (await logOf(run)).findIndex(
    (line) => line.event_type === "attempt_ended" && line["upstream"] === "slow",
  );
  expect(order.indexOf("tool_called")).toBeGreaterThan(0);
  expect(order.indexOf("tool_called")).toBeLessThan(plannerEnds);
});

it.each([{ planner_model: "claude-planner" }, { model: "up-1" }])(
  "has it written at an upstream that speaks Anthropic's protocol, named by %o or by the run",
  async (named) => {
    const run = await world.openRun({
      default_model: named.model === undefined ? "up-1" : "claude-planner",
      budget: { usd: 1 },
    });
    const answering = run.send("/plan", { json: { goal: "reach it", stream: true, ...named } });
    await planner.awaited();
    expect(JSON.parse(planner.asked.at(-1) ?? "")).toMatchObject({ model: "claude-planner", stream: true });
    planner.write('{"id": "a", "prompt": "first of claude"}\n{"id": "b", "pro');
    await expect.poll(() => world.upstream.counters.sends.has("first of claude"), { timeout: 30_000 }).toBe(true);
    planner.write('mpt": "{{a.output}} and more"}\n');
    planner.end();
    expect((await answering).json).toMatchObject({
      status: "completed",
      plan: { state: "ended", errors: [] },
      outputs: { b: "first of claude and more" },
    });
    expect((await documentOf(run)).budget.calls.spent).toBe(3);
    world.upstream.forget();
  },
);

it.each(["planner", "claude-planner"])(
  "is refused under a run that cannot pay for %s, which says so",
  async (named) => {
    const run = await world.openRun({ budget: { usd: 0 } });
    const refused = await run.send("/plan", { json: { goal: "reach it", stream: true, planner_model: named } });
    expect([refused.status, errorOf(refused).code]).toEqual([402, "budget_exhausted"]);
  },
);

it("answers with an event for each task as it ends, also while the plan is still written", async () => {
  const run = await openRun();
  const answering = run.send("/plan", { json: body, headers: { accept: "application/x-ndjson" } });
  await planner.awaited();
  planner.write('{"id": "a", "prompt": "one"}\n{"id": "b", "prompt": "{{missing.output}}"}\n');
  planner.end();
  const { text } = await answering;
  const events = text
    .trim()
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => (JSON.parse(line) as { type: string }).type);
  expect(events.toSorted()).toEqual(["graph_completed", "graph_started", "plan_error", "task"]);
  expect(text).toContain('"status":"partial"');
  // Also the task that the graph could not take.
  expect(text).toMatch(/"type":"graph_completed".*"tasks":\[\{"id":"a","prompt":"one"\},\{"id":"b",/);
});

it.each([["length"], [null]] as const)(
  "runs what has come of a plan that ends with %s, which is cut",
  async (finish) => {
    const run = await openRun();
    const answering = run.send("/plan", { json: body });
    await planner.awaited();
    planner.write('{"id": "a", "prompt": "one"}\n{"id": "b", "pro');
    await expect.poll(() => world.upstream.counters.sends.has("one"), { timeout: 30_000 }).toBe(true);
    planner.end(finish);
    expect((await answering).json).toMatchObject({
      status: "partial",
      plan: { state: "cut" },
      tasks: { a: { output: "one" } },
    });
    world.upstream.forget();
  },
);

it("is refused without any task, with the planner's error, and beside what it cannot have", async () => {
  const run = await openRun();
  const answering = run.send("/plan", { json: body });
  await planner.awaited();
  planner.write("I cannot plan that.");
  planner.end();
  const none = await answering;
  expect([none.status, errorOf(none).message]).toEqual([400, expect.stringContaining("the plan has no task")]);
  const unknown = await run.send("/plan", { json: { ...body, planner_model: "nowhere" } });
  expect([unknown.status, errorOf(unknown).code]).toEqual([404, "model_not_found"]);
  const failed = await run.send("/plan", { json: { ...body, planner_model: "sim/fail?status=400" } });
  expect([failed.status >= 400, errorOf(failed).code]).toEqual([true, "upstream_error"]);
  for (const more of [{ replan: {} }, { run: false }]) {
    expect(errorOf(await run.send("/plan", { json: { ...body, ...more } })).message).toContain("leave out replan");
  }
});

it("finds the graph of its Idempotency-Key before a planner is asked, also while it is still written and its client has left", async () => {
  const run = await openRun();
  const headers = { "idempotency-key": "streamed" };
  const leaving = new AbortController();
  const asked = planner.asked.length;
  const left = run.send("/plan", { json: body, headers, signal: leaving.signal }).catch(() => null);
  await planner.awaited();
  leaving.abort();
  await left;
  planner.write('{"id": "t1", "prompt": "first of a key"}\n');
  await expect.poll(() => world.upstream.counters.sends.has("first of a key"), { timeout: 30_000 }).toBe(true);
  const again = run.send("/plan", { json: body, headers });
  planner.write('{"id": "t2", "prompt": "{{t1.output}} and more"}\n');
  planner.end();
  const found = await again;
  expect([found.status, found.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
  expect(found.json).toMatchObject({
    object: "graph",
    status: "completed",
    plan: { state: "ended", errors: [] },
    outputs: { t2: "first of a key and more" },
  });
  const events = await run.send("/plan", { json: body, headers: { ...headers, accept: "application/x-ndjson" } });
  expect(events.text.match(/"type":"[a-z_]+"/g)).toEqual([
    '"type":"graph_started"',
    '"type":"task"',
    '"type":"task"',
    '"type":"graph_completed"',
  ]);
  const other = await run.send("/plan", { json: { ...body, goal: "another one" }, headers });
  expect([other.status, errorOf(other).code]).toEqual([409, "idempotency_conflict"]);
  expect(planner.asked.length - asked).toBe(1);
  // The planner and two tasks.
  expect((await documentOf(run)).budget.calls.spent).toBe(3);
  world.upstream.forget();
});

it("runs one graph for two requests with a key at once, and stops the planner of the later one", async () => {
  const run = await openRun();
  const headers = { "idempotency-key": "twice" };
  const first = run.send("/plan", { json: body, headers });
  await planner.awaited();
  const [writeFirst, endFirst] = planner.held();
  const second = run.send("/plan", { json: body, headers });
  await planner.awaited();
  writeFirst('{"id": "t1", "prompt": "one of the first"}\n');
  await expect.poll(() => world.upstream.counters.sends.has("one of the first"), { timeout: 30_000 }).toBe(true);
  planner.write('{"id": "t1", "prompt": "one of the second"}\n');
  await expect.poll(() => planner.isLeft, { timeout: 30_000 }).toBe(true);
  planner.end(null);
  endFirst();
  for (const { status, json } of [await first, await second]) {
    expect([status, json]).toMatchObject([200, { status: "completed", outputs: { t1: "one of the first" } }]);
  }
  expect(world.upstream.counters.sends.has("one of the second")).toBe(false);
  world.upstream.forget();
});

it("stops the planner of a plan that is refused with its first task", async () => {
  const run = await openRun();
  const answering = run.send("/plan", { json: body });
  await planner.awaited();
  planner.write('{"id": "a", "prompt": "one", "model": "nowhere/none"}\n');
  const answer = await answering;
  expect([answer.status, errorOf(answer).code]).toEqual([404, "model_not_found"]);
  await expect.poll(() => planner.isLeft, { timeout: 30_000 }).toBe(true);
  await expect.poll(async () => (await documentOf(run)).budget.usd.reserved, { timeout: 30_000 }).toBe(0);
  planner.end(null);
});
