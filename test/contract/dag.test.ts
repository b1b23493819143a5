/** Calls that depend on each other: `POST /dag`, what becomes of its tasks, and how it is read later. The provider repeats prompts. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { documentOf, errorOf, startWorld, type Answer, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const task = z.looseObject({
  status: z.string(),
  output: z.string().nullable().optional(),
  outputs: z.array(z.string().nullable()).optional(),
  error: z.looseObject({ code: z.string() }).nullable(),
  attempts: z.int(),
});
const graph = z.looseObject({
  id: z.string(),
  object: z.literal("graph"),
  version: z.int(),
  status: z.string(),
  tasks: z.record(z.string(), task),
  outputs: z.record(z.string(), z.unknown()),
  completed: z.array(z.string()),
  partial: z.array(z.string()),
  failed: z.array(z.string()),
  skipped: z.array(z.string()),
  metrics: z.looseObject({ critical_path_ms: z.number(), wall_ms: z.number(), sequential_ms: z.number() }),
});
type Graph = z.infer<typeof graph>;

function graphOf(answer: Answer): Graph {
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return graph.parse(answer.json);
}

const open = (more: Record<string, unknown> = {}): Promise<RunAccess> =>
  world.openRun({ budget: { usd: 1 }, default_model: "up-1", ...more });

async function dag(body: Record<string, unknown>, run?: RunAccess): Promise<Graph> {
  return graphOf(await (run ?? (await open())).send("/dag", { json: body }));
}

const statusesOf = ({ tasks }: Graph): Record<string, string> =>
  Object.fromEntries(Object.entries(tasks).map(([id, { status }]) => [id, status]));

describe("POST /dag", () => {
  it("starts a task when what it refers to has ended, with the output in place of the reference", async () => {
    const done = await dag({
      tasks: [
        { id: "write", prompt: "Both: {{a.output}} and {{b.output}}" },
        { id: "a", prompt: "alpha" },
        { id: "b", prompt: "beta" },
      ],
    });
    expect(done.status).toBe("completed");
    expect(done.tasks["write"]).toMatchObject({ status: "completed", output: "Both: alpha and beta", attempts: 1 });
    expect(done.outputs).toEqual({ write: "Both: alpha and beta" });
    expect(done.completed).toEqual(["write", "a", "b"]);
    expect([...world.upstream.counters.sends.keys()].at(-1)).toBe("Both: alpha and beta");
  });

  it("inserts an output as it is: what looks like a reference in it is not replaced", async () => {
    const done = await dag({
      tasks: [
        { id: "1", prompt: "$2 and {{2.output}} cost $10", dependencies: [] },
        { id: "2", prompt: "two" },
        { id: "3", prompt: "Say $1!" },
      ].map((each) => (each.id === "1" ? { ...each, prompt: "costs $10 or {{user}}" } : each)),
    });
    expect(done.tasks["3"]?.output).toBe("Say costs $10 or {{user}}!");
  });

  it("prepends results as Markdown sections with inject: markdown", async () => {
    const done = await dag({
      tasks: [
        { id: "a", prompt: "alpha" },
        { id: "b", prompt: "Go on.", dependencies: ["a"] },
      ],
      options: { inject: "markdown" },
    });
    expect(done.tasks["b"]?.output).toBe("## Result from a\nalpha\n\nGo on.");
  });

  it("starts a task the moment its own dependencies end, while others of their level still run", async () => {
    const run = await open();
    const running = run.send("/dag", {
      json: {
        tasks: [
          { id: "slow", prompt: "{{latch/slow}} slow" },
          { id: "quick", prompt: "quick" },
          { id: "next", prompt: "next after {{quick.output}}" },
        ],
      },
    });
    await expect.poll(() => world.upstream.counters.sends.get("next after quick")).toBe(1);
    expect(world.upstream.counters.inFlight).toBe(1);
    world.upstream.open("slow");
    expect(graphOf(await running).status).toBe("completed");
  });

  it("runs one slot per element of an output, and keeps their order", async () => {
    const done = await dag({
      tasks: [
        { id: "find", prompt: '{"items": ["one", "two", "three"]}' },
        { id: "verify", foreach: "{{find.output.json.items}}", max_items: 50, prompt: "Is {{item}} true?" },
        { id: "again", foreach: "{{verify.outputs}}", prompt: "Sure? {{item}}" },
        { id: "report", prompt: "All: {{again.outputs}}" },
      ],
    });
    expect(done.tasks["verify"]?.outputs).toEqual(["Is one true?", "Is two true?", "Is three true?"]);
    expect(done.outputs["report"]).toBe("All: Sure? Is one true?\n\nSure? Is two true?\n\nSure? Is three true?");
    expect([done.status, world.upstream.counters.requests]).toEqual(["completed", 8]);
  });

  it("leaves failed elements out of what dependents read, and is partial", async () => {
    const done = await dag({
      tasks: [
        { id: "find", prompt: "{{status/400}}", fallback: '["good", "{{status/400}} bad", "fine"]' },
        { id: "each", foreach: "{{find.output.json}}", prompt: "x {{item}}" },
        { id: "strict", prompt: "never {{each.outputs}}" },
        { id: "most", prompt: "{{each.outputs}}", run_if: { at_least: 0.6 } },
        { id: "last", prompt: "after {{strict.output}}" },
      ],
    });
    expect([done.status, statusesOf(done)]).toEqual([
      "partial",
      { find: "completed", each: "partial", strict: "skipped", most: "completed", last: "skipped" },
    ]);
    expect(done.tasks["each"]?.outputs).toEqual(["x good", null, "x fine"]);
    expect(done.outputs).toEqual({ most: "x good\n\nx fine", last: null });
  });

  it("skips what depends on a failed task, and what depends on that, and names the dependency", async () => {
    const done = await dag({
      tasks: [
        { id: "a", prompt: "{{status/400}} a" },
        { id: "b", prompt: "b {{a.output}}" },
        { id: "c", prompt: "c {{b.output}}" },
        { id: "d", prompt: "d" },
      ],
    });
    expect([done.status, statusesOf(done)]).toEqual([
      "partial",
      { a: "failed", b: "skipped", c: "skipped", d: "completed" },
    ]);
    expect(done.tasks["b"]?.error).toMatchObject({ code: "dependency_failed", dependency: "a" });
    expect(done.tasks["c"]?.error).toMatchObject({ code: "dependency_failed", dependency: "b" });
    expect(done).toMatchObject({ completed: ["d"], failed: ["a"], skipped: ["b", "c"] });
  });

  it("completes a failed task with its fallback, or with the first alternative that completes", async () => {
    const done = await dag({
      tasks: [
        { id: "a", prompt: "{{status/400}} a", fallback: "unknown" },
        { id: "b", prompt: "{{status/400}} b", alternatives: ["b2", "b3"] },
        { id: "b2", prompt: "{{status/400}} b2" },
        { id: "b3", prompt: "third" },
        { id: "good", prompt: "good", alternatives: ["unneeded"] },
        { id: "unneeded", prompt: "unneeded" },
        { id: "all", prompt: "{{a.output}} {{b.output}} {{good.output}}" },
      ],
    });
    expect(done.outputs).toEqual({ all: "unknown third good" });
    expect(done.tasks["a"]).toMatchObject({ status: "completed", fallback: true, error: { code: "upstream_error" } });
    expect(done.tasks["b"]).toMatchObject({ status: "failed", replaced_by: "b3" });
    expect(done.tasks["unneeded"]).toMatchObject({ status: "skipped", error: null, not_needed: true });
    expect(world.upstream.counters.sends.has("unneeded")).toBe(false);
  });

  it("makes as many retries as the task allows", { tags: ["slow"] }, async () => {
    const done = await dag({
      tasks: [
        { id: "none", prompt: "{{status/503}} none", max_retries: 0 },
        { id: "two", prompt: "{{status/503/first/2}} two", max_retries: 2 },
      ],
    });
    expect(done.tasks["none"]).toMatchObject({ status: "failed", attempts: 1 });
    expect(done.tasks["two"]).toMatchObject({ status: "completed", attempts: 3 });
  });

  it("starts nothing more after a failure with on_error: abort", async () => {
    const done = await dag({
      tasks: [
        { id: "bad", prompt: "{{status/400}} bad" },
        { id: "slow", prompt: "{{delay/300}} slow" },
        { id: "later", prompt: "later {{slow.output}}" },
      ],
      options: { on_error: "abort" },
    });
    expect(statusesOf(done)).toEqual({ bad: "failed", slow: "completed", later: "cancelled" });
    expect(world.upstream.counters.sends.has("later {{delay/300}} slow")).toBe(false);
  });

  it("fails a task whose reference finds nothing in the output, and sends nothing for it", async () => {
    const done = await dag({
      tasks: [
        { id: "a", prompt: "no JSON" },
        { id: "b", prompt: "b {{a.output.json.x}}" },
        { id: "c", foreach: "{{a.output.json.items}}", prompt: "{{item}}" },
      ],
    });
    expect(statusesOf(done)).toEqual({ a: "completed", b: "failed", c: "failed" });
    expect(world.upstream.counters.requests).toBe(1);
  });

  it("reserves for the text that is sent, outputs included", async () => {
    const run = await open({ budget: { usd: 1, prompt_tokens: 100_000 } });
    const long = "word ".repeat(2_000);
    const running = run.send("/dag", {
      json: {
        tasks: [
          { id: "a", prompt: long },
          { id: "b", prompt: "{{latch/held}} {{a.output}}", max_tokens: 16 },
        ],
      },
    });
    await expect.poll(() => world.upstream.counters.requests).toBe(2);
    const { budget } = await documentOf(run);
    expect(budget.prompt_tokens.reserved).toBeGreaterThan(long.length / 4);
    world.upstream.open("held");
    expect(graphOf(await running).status).toBe("completed");
    const { budget: after } = await documentOf(run);
    expect([after.usd.reserved, after.prompt_tokens.reserved]).toEqual([0, 0]);
  });

  it("gives the same graph for the same Idempotency-Key, at no cost, and 409 for another body", async () => {
    const run = await open();
    const headers = { "idempotency-key": "plan-1" };
    const json = {
      tasks: [
        { id: "a", prompt: "alpha" },
        { id: "b", prompt: "{{a.output}} beta" },
      ],
    };
    const first = graphOf(await run.send("/dag", { json, headers }));
    const second = await run.send("/dag", { json, headers });
    expect(graphOf(second)).toEqual(first);
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    expect(world.upstream.counters.requests).toBe(2);
    expect(errorOf(await run.send("/dag", { json: { tasks: [{ id: "a", prompt: "x" }] }, headers })).code).toBe(
      "idempotency_conflict",
    );
  });

  it("streams each task as it ends", async () => {
    const run = await open();
    const answer = await run.send("/dag", {
      json: {
        tasks: [
          { id: "find", prompt: '["x", "y"]' },
          { id: "each", foreach: "{{find.output.json}}", prompt: "{{item}}" },
          { id: "bad", prompt: "{{status/400}} {{each.outputs}}" },
          { id: "after", prompt: "{{bad.output}}" },
        ],
      },
      headers: { accept: "application/x-ndjson" },
    });
    const lines = answer.text
      .trim()
      .split("\n")
      .map((line) => z.looseObject({ type: z.string() }).parse(JSON.parse(line)));
    expect(lines[0]).toMatchObject({ type: "graph_started", version: 1, tasks: 4 });
    expect(lines[1]).toMatchObject({ type: "task", task: "find", output: '["x", "y"]', status: "completed" });
    expect(
      new Set(
        lines.slice(2, 4).map(({ task: id, element, output }) => `${String(id)} ${String(element)} ${String(output)}`),
      ),
    ).toEqual(new Set(["each 0 x", "each 1 y"]));
    expect(lines.slice(4, 6)).toMatchObject([
      { task: "bad", status: "failed" },
      { task: "after", status: "skipped", error: { code: "dependency_failed" } },
    ]);
    expect(lines.at(-1)).toMatchObject({ type: "graph_completed", status: "partial" });
    expect(lines).toHaveLength(7);
  });
});

describe("GET and DELETE /dag/:id", () => {
  it("shows a graph that continues without its client, while it runs and when it has ended", async () => {
    const run = await open();
    const json = {
      tasks: [
        { id: "a", prompt: "{{latch/go}} a" },
        { id: "b", prompt: "b {{a.output}}" },
      ],
    };
    const accepted = await run.send("/dag", { json, headers: { prefer: "respond-async" } });
    expect([accepted.status, accepted.headers.get("location")]).toEqual([202, expect.stringMatching(/^\/groups\/pg-/)]);
    const id = z.object({ id: z.string() }).parse(accepted.json).id;
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const now = graphOf(await run.send(`/dag/${id}`));
    expect([now.status, statusesOf(now)]).toEqual(["running", { a: "running", b: "queued" }]);
    world.upstream.open("go");
    const ended = graphOf(await run.send(`/dag/${id}?wait_ms=20000`));
    expect([ended.status, ended.outputs["b"]]).toEqual(["completed", "b {{latch/go}} a"]);
    expect(graphOf(await run.send(`/groups/${id}`))).toEqual(ended);
    const page = z.looseObject({ data: z.array(z.looseObject({ id: z.string() })) });
    expect(page.parse((await run.send(`/groups/${id}/results`)).json).data.map((slot) => slot.id)).toEqual(["a", "b"]);
  });

  it("cancels a graph: what waits never starts, and no element of an unknown number is counted", async () => {
    const run = await open();
    const json = {
      tasks: [
        { id: "a", prompt: "{{latch/never}} a" },
        { id: "each", foreach: "{{a.output.json}}", max_items: 500, prompt: "{{item}}" },
        { id: "b", prompt: "b {{each.outputs}}" },
      ],
    };
    const accepted = await run.send("/dag", { json, headers: { prefer: "respond-async" } });
    const id = z.object({ id: z.string() }).parse(accepted.json).id;
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const stopped = await run.send(`/dag/${id}`, { method: "DELETE" });
    expect(stopped.json).toMatchObject({ status: "cancelled", count: 3, counts: { cancelled: 3 } });
    const ended = graphOf(await run.send(`/dag/${id}`));
    expect([ended.status, statusesOf(ended)]).toEqual([
      "cancelled",
      { a: "cancelled", each: "cancelled", b: "cancelled" },
    ]);
  });
});
