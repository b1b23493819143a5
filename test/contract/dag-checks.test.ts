/** What a client learns of a graph before it runs. In this world a token costs $1 (in) or $2 (out) per million. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { GRAPH_TASKS_MAX } from "../../src/limits.ts";
import { documentOf, errorOf, startWorld, type Answer, type RunAccess, type World } from "./world.ts";

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld();
  run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
});
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

function refusedWith(status: number, answer: Answer) {
  expect(answer.status).toBe(status);
  return errorOf(answer);
}

const check = (json: unknown) => run.send("/dag/validate", { json });
const quote = (json: unknown, by: RunAccess = run) => by.send("/dag?quote=1", { json });
const task = (id: string, ...dependencies: string[]) => ({ id, prompt: `This is task ${id}`, dependencies });

describe("POST /dag/validate", () => {
  it("returns the figures of a valid graph and its warnings", async () => {
    const tasks = [
      task("find"),
      { id: "verify", foreach: "{{find.output.json.items}}", max_items: 20, prompt: "Is this true? {{item}}" },
      { id: "report", prompt: "Write up: {{verify.outputs}}", run_if: { at_least: 0.8 } },
      { ...task("alone"), prompt: "Go" },
      task("also-alone"),
    ];
    const answer = await check({ tasks });
    expect([answer.status, answer.json]).toEqual([
      200,
      {
        object: "graph_validation",
        valid: true,
        warnings: [
          { code: "orphans", message: expect.any(String), tasks: ["alone", "also-alone"] },
          { code: "short_prompt", message: expect.any(String), tasks: ["alone"] },
        ],
        stats: {
          total: 5,
          edges: 2,
          slots: 24,
          roots: 3,
          parallelizable: 3,
          max_depth: 3,
          max_width: 3,
          critical_path: ["find", "verify", "report"],
          critical_path_ms: 30_000,
        },
      },
    ]);
  });

  it("refuses a cycle with 422 and its path", async () => {
    const error = refusedWith(422, await check({ tasks: [task("a", "b"), task("b", "a"), task("c", "a")] }));
    expect(error).toMatchObject({ code: "invalid_graph", retryable: false, cycle: ["a", "b", "a"] });
    expect(error.message).toContain("a → b → a");
  });

  it("names everything that is wrong with a graph, and the field of the first fault", async () => {
    const tasks = [task("a", "x"), { id: "b", prompt: "{{y.output}}" }, { ...task("c"), foreach: "{{item}}" }];
    const error = refusedWith(422, await check({ tasks }));
    expect(error).toMatchObject({ code: "invalid_graph", param: "tasks[0].dependencies[0]" });
    for (const part of ['"x"', 'tasks[1].prompt: no task has the id "y"', "tasks[2].foreach"]) {
      expect(error.message).toContain(part);
    }
    expect(refusedWith(422, await check({ tasks: [task("a"), task("a")] })).message).toContain("tasks[1].id");
    expect(refusedWith(422, await check({ tasks: [task("a", "a")] })).message).toContain("itself");
  });

  it("refuses a body that is no graph with 400 and the field", async () => {
    expect(refusedWith(400, await check({ tasks: [{ id: "a" }] }))).toMatchObject({ param: "tasks[0].prompt" });
    expect(refusedWith(400, await check({ tasks: [] }))).toMatchObject({ param: "tasks" });
    const tasks = Array.from({ length: GRAPH_TASKS_MAX + 1 }, (_, index) => task(`t${index}`));
    expect(refusedWith(400, await check({ tasks }))).toMatchObject({ param: "tasks" });
  });

  it("accepts a chain of 10,000 tasks: nothing recurses", { tags: ["slow"] }, async () => {
    const chain = Array.from({ length: GRAPH_TASKS_MAX }, (_, at) =>
      task(`t${at}`, ...(at === 0 ? [] : [`t${at - 1}`])),
    );
    expect((await check({ tasks: chain })).json).toMatchObject({ stats: { max_depth: GRAPH_TASKS_MAX } });
    const ring = [task("t0", `t${GRAPH_TASKS_MAX - 1}`), ...chain.slice(1)];
    expect(refusedWith(422, await check({ tasks: ring }))).toMatchObject({ code: "invalid_graph" });
  });
});

describe("a plan as a model writes it", () => {
  const plan = (type: string, body: string) =>
    run.send("/dag/validate", { method: "POST", headers: { "content-type": type }, body });

  it("is a graph, as LLMCompiler's text and as JSON lines", async () => {
    const text =
      'Thought: two\n1. search("height of A")\n2. search("height of B")\n3. math("$1 / $2")\n4. join()\n<END_OF_PLAN>';
    const stats = { total: 3, roots: 2, edges: 2, critical_path: ["1", "3"] };
    expect((await plan("text/x-llmcompiler", text)).json).toMatchObject({ valid: true, stats });
    const lines = [task("1"), task("2"), { id: "3", prompt: "Divide $1 by $2" }].map((each) => JSON.stringify(each));
    expect((await plan("application/x-ndjson", lines.join("\n"))).json).toMatchObject({ valid: true, stats });
  });

  it("is refused with the numbers of its bad lines", async () => {
    const error = refusedWith(400, await plan("text/x-llmcompiler", '1. search("a")\nSure!\n2. math("b"\n'));
    expect(error.message).toMatch(/line 2 .*line 3 /);
    expect(refusedWith(400, await plan("application/x-ndjson", '{"id":"a"')).message).toContain("line 1");
    expect(refusedWith(422, await plan("text/x-llmcompiler", '1. f("$2")\n2. f("$1")')).cycle).toEqual(["1", "2", "1"]);
  });

  it("has a content type: another one is refused with 415", async () => {
    refusedWith(415, await plan("text/plain", '1. f("a")'));
  });
});

describe("POST /dag?quote=1", () => {
  it("counts every element of a foreach, and what earlier outputs can add to a prompt", async () => {
    const tasks = [
      { id: "find", prompt: "x".repeat(100), max_tokens: 50 },
      { id: "each", foreach: "{{find.output}}", max_items: 10, prompt: "y".repeat(100), max_tokens: 10 },
      { id: "end", prompt: `${"z".repeat(86)}{{each.outputs}}`, max_tokens: 20 },
    ];
    const answer = await quote({ tasks });
    // A token per byte, 8 per message and 128 for the template, and the whole cap. `end` has 100 bytes, which the reference is
    // part of, and ten outputs of 10 tokens with four bytes each.
    expect([answer.status, answer.json]).toEqual([
      200,
      {
        object: "quote",
        worst_usd: 0.000336 + 10 * 0.000256 + 0.000678,
        likely_usd: expect.any(Number),
        remaining_usd: 1,
        fits: true,
        tasks: [
          expect.objectContaining({ id: "find", model: "up/up-1", calls_max: 1, worst_usd: 0.000336 }),
          expect.objectContaining({ id: "each", model: "up/up-1", calls_max: 10, worst_usd: 0.00256 }),
          expect.objectContaining({ id: "end", calls_max: 1, prompt_tokens_max: 638, completion_tokens_max: 20 }),
        ],
      },
    ]);
    expect(world.upstream.counters.requests).toBe(0);
  });

  it("names the model of every task, its own or inherited, and refuses one that does not exist", async () => {
    const tasks = [{ ...task("a"), model: "sim/echo" }, task("b")];
    expect((await quote({ tasks })).json).toMatchObject({ tasks: [{ model: "sim/echo" }, { model: "up/up-1" }] });
    expect(refusedWith(404, await quote({ tasks: [{ ...task("a"), model: "none" }] })).code).toBe("model_not_found");
  });

  it("says whether the worst fits what is left, and reserves nothing", async () => {
    const poor = await world.openRun({ budget: { calls: 3 }, default_model: "up-1" });
    const each = (max_items: number) => ({
      tasks: [task("a"), { id: "b", foreach: "{{a.output}}", max_items, prompt: "Is it? {{item}}" }],
    });
    expect((await quote(each(2), poor)).json).toMatchObject({ fits: true });
    expect((await quote(each(3), poor)).json).toMatchObject({ fits: false });
    expect((await documentOf(poor)).budget.calls).toMatchObject({ reserved: 0, spent: 0 });
  });

  it("refuses an invalid graph like any other request for one", async () => {
    expect(refusedWith(422, await quote({ tasks: [task("a", "a")] })).code).toBe("invalid_graph");
  });
});

describe("GET /dag/:id/outline", () => {
  const outlineOf = (id: string, by: RunAccess = run) => by.send(`/dag/${id}/outline`);

  it("has the tasks and what each waits for, and not their texts, while the graph runs and after", async () => {
    const tasks = [
      { id: "find", prompt: '{"items":["secret one","two"]}' },
      {
        id: "each",
        foreach: "{{find.output.json.items}}",
        max_items: 5,
        prompt: "{{item}}",
        tier: "P0",
        phase: "read",
      },
      { id: "again", foreach: "{{each.outputs}}", prompt: "{{item}}", estimated_duration_ms: 5 },
      { id: "report", prompt: "{{again.outputs}}", alternatives: ["short"], run_if: "any" },
      { id: "short", prompt: "short", run_if: { at_least: 0.5 } },
    ];
    const answer = await run.send("/dag", { json: { tasks } });
    const { id, status } = z.looseObject({ id: z.string(), status: z.string() }).parse(answer.json);
    const outline = await outlineOf(id);
    expect(outline.json).toEqual({
      id,
      object: "graph_outline",
      version: 1,
      status,
      slots: 13,
      tasks: [
        { id: "find", first: 0, slots: 1, dependencies: [] },
        { id: "each", first: 1, slots: 5, dependencies: [0], tier: "P0", phase: "read" },
        { id: "again", first: 6, slots: 5, dependencies: [1], follows: 1, estimated_duration_ms: 5 },
        { id: "report", first: 11, slots: 1, dependencies: [2], run_if: "any", alternatives: [4] },
        { id: "short", first: 12, slots: 1, dependencies: [], run_if: { at_least: 0.5 }, alternative_of: 3 },
      ],
    });
    expect(outline.text).not.toContain("secret");
    const log = (await run.send(`/runs/${run.id}/log`)).text.split("\n");
    const started = log.find((line) => line.includes(id) && line.includes('"group_started"'));
    expect(JSON.parse(started ?? "{}")).toMatchObject({ tasks: 5 });
  });

  it("refers to the tasks that a change has left", async () => {
    const opened = await run.send("/dag", {
      json: {
        tasks: [
          { id: "a", prompt: "{{fault/hang}} a" },
          { id: "b", prompt: "b", dependencies: ["a"] },
          { id: "c", prompt: "c", dependencies: ["b"] },
        ],
      },
      headers: { prefer: "respond-async" },
    });
    const { id } = z.looseObject({ id: z.string() }).parse(opened.json);
    const operations = [{ op: "update_task", task: { id: "b", prompt: "b2", dependencies: ["a"] } }];
    const changed = await run.send(`/dag/${id}`, { method: "PATCH", json: { version: 1, operations } });
    expect(changed.status).toBe(200);
    const outline = z.looseObject({ tasks: z.array(z.looseObject({})) }).parse((await outlineOf(id)).json);
    expect(outline).toMatchObject({ version: 2, status: "running" });
    expect(outline.tasks.map(({ id: task, dependencies }) => [task, dependencies])).toEqual([
      ["a", []],
      ["c", [2]],
      ["b", [0]],
    ]);
    await run.send(`/dag/${id}`, { method: "DELETE" });
  });

  it("is not there for another run, for a batch, and for no id", async () => {
    const { id } = z
      .looseObject({ id: z.string() })
      .parse((await run.send("/dag", { json: { tasks: [task("a")] } })).json);
    const batch = await run.send("/batch", { json: { prompts: ["a", "b"] } });
    const batchId = z.looseObject({ id: z.string() }).parse(batch.json).id;
    const other = await world.openRun();
    for (const answer of [await outlineOf(id, other), await outlineOf(batchId), await outlineOf("pg-1-2")]) {
      expect(refusedWith(404, answer)).toMatchObject({ code: "not_found" });
    }
  });
});
