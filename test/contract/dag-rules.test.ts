/** The rules of a graph over its results: tiers, early stops, one result from many, answers that fit a schema. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { endOf, logOf } from "./following.ts";
import { documentOf, errorOf, startWorld, type Answer, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const open = (more: Record<string, unknown> = {}): Promise<RunAccess> =>
  world.openRun({ budget: { usd: 5 }, default_model: "up-1", ...more });

const reply = z.looseObject({ id: z.string(), status: z.string(), tasks: z.record(z.string(), z.looseObject({})) });

function graphOf(answer: Answer) {
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return reply.parse(answer.json);
}

const lastLine = (answer: Answer): unknown => JSON.parse(answer.text.trim().split("\n").at(-1) ?? "");
const NDJSON = { accept: "application/x-ndjson" };

describe("tiers of a graph", () => {
  it("strict ones start nothing before all tasks of earlier tiers have ended, and say what they wait for", async () => {
    const run = await open();
    const tasks = [
      { id: "summary", prompt: "summary", tier: "P1" },
      { id: "style", prompt: "style of {{summary.output}}" },
      { id: "security", prompt: "{{latch/first}} security", tier: "P0" },
      { id: "after", prompt: "after {{security.output}}", tier: "P0" },
    ];
    const sent = { json: { tasks, tiers: "strict" }, headers: { prefer: "respond-async" } };
    const { id } = z.looseObject({ id: z.string() }).parse((await run.send("/dag", sent)).json);
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const page = z.looseObject({ data: z.array(z.looseObject({ id: z.string(), waiting_for: z.unknown() })) });
    const { data } = page.parse((await run.send(`/groups/${id}/results`)).json);
    expect(data.find((slot) => slot.id === "summary")?.waiting_for).toEqual({ dependency: ["security", "after"] });
    expect(world.upstream.counters.requests).toBe(1);
    world.upstream.open("first");
    expect((await endOf(run, `/dag/${id}`)).json).toMatchObject({ status: "completed", escalations: [] });
    const order = [...world.upstream.counters.sends.keys()];
    expect(order.map((prompt) => prompt.split(" ")[0])).toEqual(["{{latch/first}}", "after", "summary", "style"]);
  });

  it("a failed task is an escalation, a warning or a note by its tier, in every form of the answer", async () => {
    const run = await open();
    const tasks = [
      { id: "security", prompt: "{{status/400}} a", tier: "P0" },
      { id: "tests", prompt: "{{status/400}} b", tier: "P1" },
      { id: "style", prompt: "{{status/400}} c" },
      { id: "fine", prompt: "fine", tier: "P0" },
    ];
    const failed = {
      status: "escalated",
      escalations: [{ index: 0, id: "security", tier: "P0", code: "upstream_error", message: expect.any(String) }],
      warnings: [{ id: "tests", tier: "P1" }],
      notes: [{ id: "style", tier: "P2" }],
    };
    const done = await run.send("/dag", { json: { tasks } });
    expect(done.json).toMatchObject(failed);
    const { id } = graphOf(done);
    expect((await run.send(`/dag/${id}`)).json).toMatchObject(failed);
    expect((await run.send(`/groups/${id}/report?format=json`)).json).toMatchObject(failed);
    expect(lastLine(await run.send("/dag", { json: { tasks }, headers: NDJSON }))).toMatchObject(failed);
  });

  it("no task is an escalation that a fallback or an alternative answers for; one whose alternatives fail is", async () => {
    const run = await open();
    const P0 = { tier: "P0" };
    const tasks = [
      { id: "a", prompt: "{{status/400}} a", ...P0, fallback: "none" },
      { id: "b", prompt: "{{status/400}} b", ...P0, alternatives: ["b2"] },
      { id: "b2", prompt: "second", ...P0 },
    ];
    expect((await run.send("/dag", { json: { tasks } })).json).toMatchObject({ status: "completed", escalations: [] });
    const lost = [...tasks, { id: "c", prompt: "{{status/400}} c", ...P0, alternatives: ["c2"] }];
    const more = [...lost, { id: "c2", prompt: "{{status/400}} c2", ...P0 }];
    const done = await run.send("/dag", { json: { tasks: more } });
    expect(done.json).toMatchObject({ status: "escalated", escalations: [{ id: "c" }] });
    expect(z.looseObject({ escalations: z.array(z.unknown()) }).parse(done.json).escalations).toHaveLength(1);
    const escalated = (await logOf(run)).filter((line) => line.event_type === "escalated");
    expect(escalated).toMatchObject([{ index: 3, tier: "P0", code: "upstream_error" }]);
  });

  it("a task that waits for a later tier is refused, with its path", async () => {
    const run = await open();
    const tasks = [
      { id: "a", prompt: "a" },
      { id: "b", prompt: "{{a.output}}", tier: "P0" },
    ];
    const refused = await run.send("/dag", { json: { tasks, tiers: "strict" } });
    expect([refused.status, errorOf(refused).code, errorOf(refused).param]).toEqual([
      422,
      "invalid_graph",
      "tasks[1].tier",
    ]);
  });

  it("order ready tasks by the priority of their tier", async () => {
    const run = await open({ max_parallel: 1 });
    const tasks = [
      { id: "low", prompt: "low", priority: "low" },
      { id: "plain", prompt: "plain" },
      { id: "urgent", prompt: "urgent", tier: "P0" },
    ];
    await run.send("/dag", { json: { tasks } });
    expect([...world.upstream.counters.sends.keys()]).toEqual(["urgent", "plain", "low"]);
  });
});

describe("stop_when on a graph", () => {
  it("counts the results only, cancels what waits, aborts what runs, and says what that saved", async () => {
    const run = await open();
    const hanging = Array.from({ length: 3 }, (_, at) => ({ id: `h${at}`, prompt: `{{fault/hang}} ${at}` }));
    const tasks = [
      { id: "find", prompt: "[1, 2, 3]" },
      { id: "each", foreach: "{{find.output.json}}", prompt: "Yes." },
      ...hanging,
      { id: "late", prompt: "late {{h0.output}}" },
      { id: "many", foreach: "{{h1.output.json}}", max_items: 50, prompt: "{{item}}" },
    ];
    const done = await run.send("/dag", { json: { tasks, stop_when: { quorum: { of: 3 }, in_flight: "abort" } } });
    // `many` counts as one call: how many elements it would have had is not known.
    expect(done.json).toMatchObject({ status: "completed", saved_calls: 2, aborted_calls: 3, shadow: false });
    expect(graphOf(done).tasks["late"]).toMatchObject({ status: "cancelled", attempts: 0 });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(0);
    expect((await documentOf(run)).budget.usd.reserved).toBe(0);
  });

  it("does not take a task that others depend on, nor a fallback, for a result", async () => {
    const run = await open();
    const tasks = [
      { id: "a", prompt: "a" },
      { id: "b", prompt: "b {{a.output}}" },
      { id: "c", prompt: "{{status/400}} c", fallback: "unknown" },
      { id: "d", prompt: "d {{b.output}}" },
    ];
    const done = await run.send("/dag", { json: { tasks, stop_when: { n_success: 1, shadow: true } } });
    expect(done.json).toMatchObject({ status: "completed", saved_calls: 0, stopped_at: null });
    expect(world.upstream.counters.requests).toBe(4);
  });

  it("is left out of a retry, which runs what the stop cancelled", async () => {
    const run = await open({ max_parallel: 1 });
    const tasks = ["one", "two", "three"].map((id) => ({ id, prompt: id }));
    const stopped = await run.send("/dag", { json: { tasks, stop_when: { n_success: 1 } } });
    expect(stopped.json).toMatchObject({ status: "completed", saved_calls: 2 });
    const again = await run.send(`/dag/${graphOf(stopped).id}/retry`, { method: "POST" });
    expect(again.json).toMatchObject({ status: "completed", counts: { completed: 3 } });
    expect(world.upstream.counters.requests).toBe(3);
  });
});

describe("aggregate on a graph", () => {
  it("combines the results only: no error and no fallback votes, and an alternative answers for its task", async () => {
    const run = await open();
    const tasks = [
      { id: "draft", prompt: "no" },
      { id: "a", prompt: "yes", dependencies: ["draft"] },
      { id: "b", prompt: "{{status/400}} b", alternatives: ["b2"] },
      { id: "b2", prompt: "**Yes**" },
      { id: "c", prompt: "{{status/400}} no", fallback: "no" },
      { id: "d", prompt: "{{status/400}} d" },
    ];
    const aggregate = { strategy: "vote", rule: "quorum", of: 2 };
    const voted = { decided: true, winner: "yes", votes: 2, failed: 2, abstained: 0 };
    const done = await run.send("/dag", { json: { tasks, aggregate } });
    expect(done.json).toMatchObject({ status: "partial", aggregation: voted });
    const { id } = graphOf(done);
    expect((await run.send(`/groups/${id}/report?format=json`)).json).toMatchObject({ aggregation: voted });
    const streamed = await run.send("/dag", { json: { tasks, aggregate }, headers: NDJSON });
    expect(lastLine(streamed)).toMatchObject({ type: "graph_completed", aggregation: voted });
  });

  it("weighs votes by the ids of tasks, every element of a foreach like its task", async () => {
    const run = await open();
    const tasks = [
      { id: "find", prompt: '["a", "a"]' },
      { id: "each", foreach: "{{find.output.json}}", prompt: "{{item}}" },
      { id: "architect", prompt: "b" },
    ];
    const weights = { architect: 5, each: 2 };
    const done = await run.send("/dag", {
      json: { tasks, aggregate: { strategy: "vote", rule: "weighted", weights } },
    });
    expect(done.json).toMatchObject({ aggregation: { winner: "b", votes: 3, agreement: 0.556 } });
  });

  it("is not there before the end", async () => {
    const run = await open();
    const tasks = [{ id: "a", prompt: "{{latch/later}} a" }];
    const sent = { json: { tasks, aggregate: { strategy: "merge" } }, headers: { prefer: "respond-async" } };
    const { id } = z.looseObject({ id: z.string() }).parse((await run.send("/dag", sent)).json);
    expect((await run.send(`/dag/${id}`)).json).not.toHaveProperty("aggregation");
    world.upstream.open("later");
    expect((await endOf(run, `/dag/${id}`)).json).toMatchObject({ aggregation: { output: "{{latch/later}} a" } });
  });
});

describe("a task with a schema", () => {
  it("has its answer as JSON beside its output, a foreach one for each element", async () => {
    const run = await open();
    const schema = { type: "array", items: { type: "integer" } };
    const tasks = [
      { id: "find", prompt: "[1, 2]", schema },
      { id: "each", foreach: "{{find.output.json}}", prompt: "[{{item}}]", schema },
      { id: "mixed", foreach: "{{find.output.json}}", prompt: "{{item}}", schema, schema_retries: 0 },
      { id: "plain", prompt: "[1]" },
    ];
    const done = graphOf(await run.send("/dag", { json: { tasks } }));
    expect(done.tasks["find"]).toMatchObject({ output: "[1, 2]", json: [1, 2] });
    expect(done.tasks["each"]).toMatchObject({ outputs: ["[1]", "[2]"], json: [[1], [2]] });
    expect(done.tasks["mixed"]).toMatchObject({ status: "failed", outputs: [null, null] });
    expect(done.tasks["mixed"]).not.toHaveProperty("json");
    expect(done.tasks["plain"]).not.toHaveProperty("json");
  });
});

it.each([
  [{ tiers: "loose" }, "tiers"],
  [{ stop_when: {} }, "stop_when"],
  [{ aggregate: { strategy: "merge", mode: "json", separator: "," } }, "aggregate.separator"],
  [{ aggregate: { strategy: "vote", escalate: {} } }, "aggregate.escalate"],
])("%j is refused with the name of the field", async (more, param) => {
  const run = await open();
  expect(errorOf(await run.send("/dag", { json: { tasks: [{ id: "a", prompt: "a" }], ...more } })).param).toBe(param);
});
