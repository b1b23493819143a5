/** Tasks of a graph that call tools of the run: inputs with references, limits, failures, LLMCompiler's steps, plans of a model. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { roleModel } from "../support/role-model/answer.ts";
import { startTools, type RoleTools } from "../support/role-model/tools.ts";
import { startToolServer } from "../support/tool-server.ts";
import { logOf } from "./following.ts";
import { documentOf, errorOf, startWorld, type RunAccess, type World } from "./world.ts";

let tools: RoleTools;
let world: World;
beforeAll(async () => {
  tools = await startTools();
  world = await startWorld(roleModel, { TOOL_HOSTS: "127.0.0.1" });
});
beforeEach(() => {
  tools.calls.length = 0;
  world.upstream.forget();
});
afterAll(async () => {
  await world.stop();
  await tools.stop();
});

const query = { type: "object", properties: { query: { type: "string" } }, required: ["query"] };
const expression = { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] };
const openRun = (more: Record<string, unknown> = {}): Promise<RunAccess> =>
  world.openRun({
    default_model: "up-1",
    budget: { usd: 1 },
    tools: [
      { name: "search", url: `${tools.url}/search`, description: "finds a fact", parameters: query, idempotent: true },
      { name: "math", url: `${tools.url}/math`, description: "computes", parameters: expression },
    ],
    ...more,
  });
const HEIGHTS = [
  { id: "a", tool: "search", input: { query: "height of the Tokyo Tower" } },
  { id: "b", tool: "search", input: { query: "height of the Eiffel Tower" } },
  { id: "c", tool: "math", input: { expression: "{{a.output}} - {{b.output}}" } },
];

it("calls tools with the outputs of other tasks in their inputs, and charges nothing for it", async () => {
  const run = await openRun();
  const { json } = await run.send("/dag", { json: { tasks: HEIGHTS, model: "up-1", system: "Be brief." } });
  expect(json).toMatchObject({ status: "completed", outputs: { c: "3" }, usage: { cost: 0, total_tokens: 0 } });
  expect(tools.calls.at(-1)).toEqual({ tool_name: "math", input: { expression: "333 - 330" } });
  const { budget } = await documentOf(run);
  expect([budget.calls.spent, budget.usd.spent, world.upstream.counters.requests]).toEqual([0, 0, 0]);
  const called = (await logOf(run)).filter(({ event_type }) => event_type === "tool_called");
  expect(called.map((line) => line["tool"]).toSorted()).toEqual(["math", "search", "search"]);
});

it("feeds a model's task from a tool, a tool from a model's task, and one tool call per element", async () => {
  const run = await openRun();
  const { json } = await run.send("/dag", {
    json: {
      tasks: [
        { id: "a", tool: "search", input: { query: "height of the Shard" } },
        { id: "b", prompt: "math({{a.output}} * 2)" },
        { id: "c", tool: "math", input: { expression: "{{b.output}} + 1" } },
        { id: "list", prompt: "x", fallback: '["1 + 1","2 + 2"]', model: "sim/fail?status=400" },
        { id: "each", foreach: "{{list.output.json}}", max_items: 5, tool: "math", input: { expression: "{{item}}" } },
      ],
    },
  });
  expect(json).toMatchObject({ tasks: { b: { output: "620" }, c: { output: "621" }, each: { outputs: ["2", "4"] } } });
});

it("gives a tool numbers where its parameters want them", async () => {
  const server = await startToolServer();
  const parameters = {
    type: "object",
    properties: { n: { type: "number" }, ok: { type: "boolean" }, s: { type: "string" } },
  };
  const more = [{ name: "typed", url: `http://${server.host}/echo`, parameters }];
  const run = await openRun({ tools: [{ name: "math", url: `${tools.url}/math`, parameters: expression }, ...more] });
  const input = { n: "{{a.output}}", ok: "true", s: "{{a.output}}" };
  const tasks = [
    { id: "a", tool: "math", input: { expression: "1 + 1" } },
    { id: "b", tool: "typed", input },
  ];
  await run.send("/dag", { json: { tasks } });
  expect(server.requests.map(({ body }) => body)).toEqual(['{"tool_name":"typed","input":{"n":2,"ok":true,"s":"2"}}']);
  await server.stop();
});

it("runs the steps of LLMCompiler as tool calls, and those that are no tool by a model that is told the name", async () => {
  const run = await openRun();
  const plan = '1. search("height of the Shard")\n2. math("$1 * 2")\n3. other("$2", 3)\n4. join()\n';
  const headers = { "content-type": "text/x-llmcompiler" };
  const { json } = await run.send("/dag", { method: "POST", body: plan, headers });
  expect(json).toMatchObject({ tasks: { 1: { output: "310", phase: "search" }, 2: { output: "620" } } });
  expect([...world.upstream.counters.sends.keys()]).toEqual(['other("620", 3)']);
  const wide = await run.send("/dag/validate", { method: "POST", body: '1. search("a", "b")\n', headers });
  expect(errorOf(wide).message).toContain("line 1 has 2 arguments, and the tool search has fewer parameters");
});

it("offers a planner the tools of the run, and runs what it plans with them", async () => {
  const run = await openRun();
  const { json } = await run.send("/plan", { json: { goal: "How tall are the Tokyo Tower and the Shard?" } });
  expect(json).toMatchObject({
    outputs: { t1: "333", t2: "310" },
    rounds: [
      {
        tasks: [
          { id: "t1", tool: "search" },
          { id: "t2", tool: "search" },
        ],
        status: "completed",
      },
    ],
  });
  expect(tools.calls).toHaveLength(2);
  expect([...world.upstream.counters.sends.keys()][0]).toContain(
    '- search(query): finds a fact Parameters: {"type":"object"',
  );
});

it("has a plan written once for all requests with its key, while its tools are called", async () => {
  const run = await openRun();
  const json = { goal: "How much taller is the Tokyo Tower than the Shard?", stream: true };
  const send = () => run.send("/plan", { json, headers: { "idempotency-key": "heights" } });
  const [first, again] = [await send(), await send()];
  const ended = { status: "completed", outputs: { t3: "23" }, plan: { state: "ended", errors: [] } };
  expect([first.json, again.json]).toMatchObject([ended, ended]);
  expect([first, again].map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, "true"]);
  expect(tools.calls.map(({ tool_name }) => tool_name)).toEqual(["search", "search", "math"]);
  expect(world.upstream.counters.requests).toBe(1);
});

it.each([
  ["It waits for ever.", "bounded", "7"],
  ["It waits for a second.", "plain", "3"],
])("tries the alternative that an examiner's verdict on a change asks for: %s", async (change, taken, result) => {
  const run = await openRun();
  const verdict = (is: string) => ({ task: "examine", json: `$.verdict == "${is}"` });
  const tasks = [
    { id: "examine", prompt: `As an attacker. Answer with JSON.\n# The change\n${change}` },
    {
      id: "fix",
      prompt: "math(9 + 9)",
      model: "sim/fail?status=400",
      alternatives: [
        { id: "bounded", when: verdict("reject") },
        { id: "plain", when: verdict("accept") },
      ],
    },
    { id: "bounded", prompt: "math(2 * 3)" },
    { id: "plain", prompt: "math(1 + 1)" },
    { id: "end", prompt: "math({{fix.output}} + 1)" },
  ];
  const { json } = await run.send("/dag", { json: { tasks } });
  expect(json).toMatchObject({ status: "completed", outputs: { end: result }, tasks: { fix: { replaced_by: taken } } });
  const sent = [...world.upstream.counters.sends.keys()].map((text) => text.trim());
  expect(["math(2 * 3)", "math(1 + 1)"].filter((prompt) => sent.includes(prompt))).toHaveLength(1);
});

it("fails a task whose input does not fit, and skips what needs it, without a call", async () => {
  const run = await openRun();
  const tasks = [
    { id: "a", tool: "search", input: { text: "x" } },
    { id: "b", tool: "math", input: { expression: "$1 {{a.output}}" } },
  ];
  const { json } = await run.send("/dag", { json: { tasks } });
  expect(json).toMatchObject({
    status: "failed",
    tasks: { a: { status: "failed", error: { code: "invalid_input" } }, b: { status: "skipped" } },
  });
  expect(tools.calls).toEqual([]);
  const { status, json: refused } = await run.send("/tool_call", {
    json: { tool_name: "search", input: { query: 7 } },
  });
  expect([status, refused]).toEqual([400, { error: expect.stringContaining("$.query") }]);
});

it.each([
  [{ id: "a", tool: "absent" }, 404, 'tool "absent" not found; this run has search, math'],
  [{ id: "a", tool: "search", model: "up-1" }, 400, "tasks[0].model is about a model"],
  [{ id: "a", tool: "search", prompt: "x" }, 400, "tasks[0].prompt is about a model"],
  [{ id: "a", input: {} }, 400, "tasks[0].input needs tool"],
  [{ id: "a", tool: "search", input: { query: "{{b.output}}" } }, 422, 'no task has the id "b"'],
])("refuses %j before anything is called", async (task, status, message) => {
  const run = await openRun();
  const answer = await run.send("/dag", { json: { tasks: [task] } });
  expect([answer.status, errorOf(answer).message]).toEqual([status, expect.stringContaining(message)]);
  expect(tools.calls).toEqual([]);
});

it("calls a tool again after a passing failure only if it may be repeated", async () => {
  const server = await startToolServer();
  const failing = (name: string, idempotent: boolean) => ({ name, url: `http://${server.host}/500`, idempotent });
  const run = await openRun({ tools: [failing("again", true), failing("once", false)] });
  const tasks = [
    { id: "a", tool: "again", max_retries: 1 },
    { id: "b", tool: "once", max_retries: 1, fallback: "none" },
  ];
  const { json } = await run.send("/dag", { json: { tasks } });
  expect(json).toMatchObject({ tasks: { a: { status: "failed", attempts: 2 }, b: { output: "none", attempts: 1 } } });
  await server.stop();
});
