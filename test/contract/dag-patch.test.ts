/** A graph changes while it runs: `PATCH /dag/:id`. The provider repeats prompts; those with a latch wait until it opens. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { documentOf, errorOf, startWorld, type Answer, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const graph = z.looseObject({
  id: z.string(),
  version: z.int(),
  status: z.string(),
  tasks: z.record(z.string(), z.looseObject({ status: z.string(), output: z.string().nullable().optional() })),
  outputs: z.record(z.string(), z.unknown()),
});
type Graph = z.infer<typeof graph>;
type Opened = { run: RunAccess; id: string };

function graphOf(answer: Answer): Graph {
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return graph.parse(answer.json);
}

/** A graph whose first task waits at a latch; `draft` waits for it, and `report` for `draft`. */
async function open(latch: string, more: Record<string, unknown> = {}): Promise<Opened> {
  const run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
  const tasks = [
    { id: "find", prompt: `{{latch/${latch}}} found` },
    { id: "draft", prompt: "draft {{find.output}}" },
    { id: "report", dependencies: ["draft"], prompt: "report" },
  ];
  const answer = await run.send("/dag", { json: { tasks, ...more }, headers: { prefer: "respond-async" } });
  await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
  return { run, id: z.object({ id: z.string() }).parse(answer.json).id };
}

const patch = ({ run, id }: Opened, operations: object[], version = 1): Promise<Answer> =>
  run.send(`/dag/${id}`, { method: "PATCH", json: { version, operations } });

async function ended({ run, id }: Opened): Promise<Graph> {
  return graphOf(await run.send(`/dag/${id}?wait_ms=20000`));
}

const statusesOf = ({ tasks }: Graph): Record<string, string> =>
  Object.fromEntries(Object.entries(tasks).map(([id, { status }]) => [id, status]));

describe("PATCH /dag/:id", () => {
  it("adds tasks, which start when what they depend on has ended, and shows the new version", async () => {
    const opened = await open("adds");
    const changed = graphOf(
      await patch(opened, [
        { op: "add_task", task: { id: "sum", prompt: "sum {{check.output}} {{draft.output}}" } },
        { op: "add_task", task: { id: "check", prompt: "{{latch/adds-check}} check" } },
      ]),
    );
    expect([changed.version, statusesOf(changed)["sum"]]).toEqual([2, "queued"]);
    // The added task that depends on nothing starts at once.
    await expect.poll(() => world.upstream.counters.inFlight).toBe(2);
    world.upstream.open("adds-check");
    world.upstream.open("adds");
    const done = await ended(opened);
    expect([done.status, done.version]).toEqual(["completed", 2]);
    expect(done.outputs).toEqual({
      report: "report",
      sum: "sum {{latch/adds-check}} check draft {{latch/adds}} found",
    });
    expect(world.upstream.counters.requests).toBe(5);
    const { budget } = await documentOf(opened.run);
    expect([budget.calls.spent, budget.usd.reserved]).toEqual([5, 0]);
  });

  it("updates, removes and rewires tasks that have not started", async () => {
    const opened = await open("changes");
    const changed = graphOf(
      await patch(opened, [
        { op: "update_task", task: { id: "draft", prompt: "draft anew" } },
        { op: "add_task", task: { id: "extra", prompt: "extra" } },
        { op: "remove_task", id: "extra" },
        { op: "add_dependency", id: "report", dependency: "find" },
      ]),
    );
    expect(Object.keys(changed.tasks).sort()).toEqual(["draft", "find", "report"]);
    await expect.poll(async () => (await look(opened)).tasks["draft"]?.status).toBe("completed");
    expect((await look(opened)).tasks["report"]?.status).toBe("queued");
    world.upstream.open("changes");
    const done = await ended(opened);
    expect([done.status, done.tasks["draft"]?.output]).toEqual(["completed", "draft anew"]);
    expect(Object.keys(done.tasks).sort()).toEqual(["draft", "find", "report"]);
    expect(world.upstream.counters.requests).toBe(3);
  });

  it("skips what is added behind a task that failed, and does not start what now waits for another", async () => {
    const opened = await open("waits");
    graphOf(await patch(opened, [{ op: "add_task", task: { id: "bad", prompt: "{{status/400}} bad" } }]));
    await expect.poll(async () => (await look(opened)).tasks["bad"]?.status).toBe("failed");
    const changed = graphOf(
      await patch(opened, [{ op: "add_task", task: { id: "after", prompt: "{{bad.output}}" } }], 2),
    );
    expect(changed.tasks["after"]?.status).toBe("skipped");
    world.upstream.open("waits");
    expect((await ended(opened)).status).toBe("partial");
  });

  it("gives added tasks the settings of their graph", async () => {
    const opened = await open("inherits", { model: "up-1/key/inherited", system: "Be brief" });
    graphOf(await patch(opened, [{ op: "add_task", task: { id: "more", prompt: "more" } }]));
    world.upstream.open("inherits");
    const done = await ended(opened);
    expect(done.tasks["more"]).toMatchObject({ status: "completed", model: "up-1/key/inherited" });
    const asked = world.upstream.counters.sends.keys();
    expect([...asked].filter((prompt) => prompt.includes("more"))).toHaveLength(1);
  });

  it("applies the same request once: its repetition is answered with the graph", async () => {
    const opened = await open("repeats");
    const operations = [{ op: "add_task", task: { id: "more", prompt: "more" } }];
    expect(graphOf(await patch(opened, operations)).version).toBe(2);
    const again = graphOf(await patch(opened, operations));
    expect([again.version, Object.keys(again.tasks)]).toEqual([2, ["find", "draft", "report", "more"]]);
    world.upstream.open("repeats");
    await ended(opened);
    expect(world.upstream.counters.requests).toBe(4);
  });

  it("is refused with 409 for another version than the present one, and names that", async () => {
    const opened = await open("stale");
    graphOf(await patch(opened, [{ op: "add_task", task: { id: "one", prompt: "one" } }]));
    const stale = await patch(opened, [{ op: "add_task", task: { id: "two", prompt: "two" } }]);
    expect([stale.status, errorOf(stale)]).toMatchObject([409, { code: "stale_version", version: 2 }]);
    world.upstream.open("stale");
    expect(Object.keys((await ended(opened)).tasks)).not.toContain("two");
  });

  it("is refused as a whole with 422: with the path of a cycle, or the task that has started", async () => {
    const opened = await open("refused");
    const cycle = await patch(opened, [
      { op: "add_task", task: { id: "new", prompt: "new" } },
      { op: "add_dependency", id: "draft", dependency: "report" },
    ]);
    expect([cycle.status, errorOf(cycle)]).toMatchObject([
      422,
      { code: "invalid_graph", cycle: ["draft", "report", "draft"] },
    ]);
    const started = await patch(opened, [
      { op: "add_task", task: { id: "new", prompt: "new" } },
      { op: "remove_task", id: "find" },
    ]);
    expect([started.status, errorOf(started).message]).toEqual([422, expect.stringContaining('"find" has started')]);
    const form = await patch(opened, [{ op: "add_task", task: { id: "new", promt: "new" } }]);
    expect(errorOf(form)).toMatchObject({ code: "invalid_request", message: expect.stringContaining("prompt") });
    const model = await patch(opened, [{ op: "add_task", task: { id: "new", prompt: "x", model: "no-such" } }]);
    expect(errorOf(model).code).toBe("model_not_found");
    expect((await look(opened)).version).toBe(1);
    world.upstream.open("refused");
    const done = await ended(opened);
    expect([done.version, Object.keys(done.tasks)]).toEqual([1, ["find", "draft", "report"]]);
    expect(errorOf(await patch(opened, [{ op: "remove_task", id: "report" }])).message).toContain("has ended");
  });

  it("is not found by another run", async () => {
    const { id } = await open("other");
    const stranger = await world.openRun({ budget: { usd: 1 } });
    const answer = await patch({ run: stranger, id }, [{ op: "remove_task", id: "report" }]);
    expect([answer.status, errorOf(answer).code]).toEqual([404, "not_found"]);
    world.upstream.open("other");
  });

  it("leaves removed tasks out of results, reports, cancellations and retries", async () => {
    const opened = await open("removed");
    graphOf(
      await patch(opened, [
        { op: "update_task", task: { id: "draft", prompt: "draft anew {{find.output}}" } },
        { op: "add_task", task: { id: "each", foreach: "{{find.output.json}}", prompt: "{{item}}" } },
      ]),
    );
    graphOf(await patch(opened, [{ op: "remove_task", id: "each" }], 2));
    const stopped = await opened.run.send(`/dag/${opened.id}`, { method: "DELETE" });
    expect(stopped.json).toMatchObject({ status: "cancelled", count: 3, counts: { cancelled: 3, queued: 0 } });
    const page = z.looseObject({ data: z.array(z.looseObject({ id: z.string() })) });
    const results = await opened.run.send(`/groups/${opened.id}/results`);
    expect(page.parse(results.json).data.map(({ id }) => id)).toEqual(["find", "report", "draft"]);
    world.upstream.open("removed");
    const again = await opened.run.send(`/dag/${opened.id}/retry`, { method: "POST" });
    expect(graphOf(again)).toMatchObject({
      status: "completed",
      version: 3,
      tasks: { draft: { output: "draft anew {{latch/removed}} found" } },
    });
    expect(Object.keys(graphOf(again).tasks).sort()).toEqual(["draft", "find", "report"]);
  });

  it("shows added tasks to a client that waits for the graph, as events and in the last one", async () => {
    const run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
    const json = { tasks: [{ id: "find", prompt: "{{latch/shows}} found" }] };
    const key = { "idempotency-key": "shown" };
    const streaming = run.send("/dag", { json, headers: { ...key, accept: "application/x-ndjson" } });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const found = await run.send("/dag", { json, headers: { ...key, prefer: "respond-async" } });
    const { id } = z.object({ id: z.string() }).parse(found.json);
    graphOf(await patch({ run, id }, [{ op: "add_task", task: { id: "more", prompt: "{{find.output}} and more" } }]));
    world.upstream.open("shows");
    const lines = (await streaming).text.trim().split("\n");
    const events = lines.map((line) => z.looseObject({ type: z.string() }).parse(JSON.parse(line)));
    expect(events.map(({ type, task }) => [type, task])).toEqual([
      ["graph_started", undefined],
      ["task", "find"],
      ["task", "more"],
      ["graph_completed", undefined],
    ]);
    expect(events.at(-1)).toMatchObject({ version: 2, status: "completed" });
  });
});

async function look({ run, id }: Opened): Promise<Graph> {
  return graphOf(await run.send(`/dag/${id}`));
}

describe("PATCH of a graph with tiers", () => {
  const tasks = [
    { id: "security", prompt: "{{latch/tier-0}} security", tier: "P0" },
    { id: "tests", prompt: "{{latch/tier-1}} tests", tier: "P1" },
    { id: "summary", prompt: "summary" },
  ];
  const task = (id: string, prompt: string, tier: string) => ({ op: "add_task", task: { id, prompt, tier } });
  const sent = (): string[] =>
    [...world.upstream.counters.sends.keys()].map((prompt) => prompt.split(" ").at(-1) ?? "");

  it("keeps strict tiers a barrier for what it adds, and adds nothing to a tier that has passed", async () => {
    const run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
    const answer = await run.send("/dag", { json: { tasks, tiers: "strict" }, headers: { prefer: "respond-async" } });
    const opened = { run, id: z.object({ id: z.string() }).parse(answer.json).id };
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const first = [task("secrets", "{{status/400}} secrets", "P0"), task("style", "style", "P1")];
    expect(graphOf(await patch(opened, first)).version).toBe(2);
    await expect.poll(sent).toEqual(["security", "secrets"]);
    world.upstream.open("tier-0");
    await expect.poll(() => sent().length).toBe(4);
    expect(sent().slice(2).sort()).toEqual(["style", "tests"]);
    const late = await patch(opened, [task("licences", "licences", "P0")], 2);
    expect([late.status, errorOf(late).code]).toEqual([422, "invalid_graph"]);
    expect(graphOf(await patch(opened, [task("notes", "notes", "P2")], 2)).version).toBe(3);
    world.upstream.open("tier-1");
    expect(await ended(opened)).toMatchObject({ status: "escalated", escalations: [{ id: "secrets", tier: "P0" }] });
    expect(sent().slice(4).sort()).toEqual(["notes", "summary"]);
  });

  it("lists what it added and what failed, also where tiers are no barrier", async () => {
    const run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
    const loose = [{ id: "tests", prompt: "{{latch/loose}} tests", tier: "P1" }];
    const answer = await run.send("/dag", { json: { tasks: loose }, headers: { prefer: "respond-async" } });
    const opened = { run, id: z.object({ id: z.string() }).parse(answer.json).id };
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    graphOf(await patch(opened, [task("late", "{{status/400}} late", "P0")]));
    await expect.poll(() => world.upstream.counters.requests).toBe(2);
    world.upstream.open("loose");
    expect(await ended(opened)).toMatchObject({ status: "escalated", escalations: [{ id: "late", tier: "P0" }] });
  });
});
