/** Graphs over objects that are evicted or crash: nothing of what is ready is stored, so it is computed again. */
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { crash, evict } from "../support/objects-direct.ts";
import {
  expectSettled,
  openLatch,
  openRun,
  untilInFlight,
  upstreamStats,
  type TestRun,
} from "../support/objects-run.ts";

const graph = z.looseObject({
  id: z.string(),
  status: z.string(),
  tasks: z.record(z.string(), z.looseObject({ status: z.string(), attempts: z.int() })),
  outputs: z.record(z.string(), z.unknown()),
  usage: z.looseObject({ cost: z.number() }),
});
type Graph = z.infer<typeof graph>;

async function dag(run: TestRun, body: Record<string, unknown>): Promise<Graph> {
  const response = await run.post("/dag", body);
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.any(String)]);
  return graph.parse(JSON.parse(text));
}

const statusesOf = ({ tasks }: Graph): string[] => Object.values(tasks).map(({ status }) => status);

/** `find` answers with two elements, whose calls wait at a latch; each is checked by a pipeline, and a report has all. */
const pipeline = (key: string) => ({
  model: `up/key/${key}`,
  tasks: [
    { id: "find", prompt: '["one", "two"]' },
    { id: "each", foreach: "{{find.output.json}}", max_items: 20, prompt: `{{latch/${key}}} {{item}}` },
    { id: "check", foreach: "{{each.outputs}}", prompt: "ok: {{item}}" },
    { id: "report", prompt: "{{check.outputs}}" },
  ],
});
const reportOf = (key: string): string => ["one", "two"].map((item) => `ok: {{latch/${key}}} ${item}`).join("\n\n");

describe("a graph whose run object restarts", () => {
  for (const [name, restart] of [
    ["is evicted", evict],
    ["crashes", crash],
  ] as const) {
    it(`continues where it was when the object ${name}: each task ends once, with the same outputs`, async () => {
      const key = `graph-${name.replaceAll(" ", "-")}`;
      const run = await openRun({ max_parallel: 4, budget: { usd: 1 } });
      const running = dag(run, pipeline(key));
      await untilInFlight(key, 2);
      const restarted = restart(run.object);
      await openLatch(key);
      await restarted;
      const done = await running;
      expect([done.status, done.outputs]).toEqual(["completed", { report: reportOf(key) }]);
      expect((await upstreamStats(key)).requests).toBe(6);
      expectSettled(await run.budget(), done.usage.cost);
    });
  }

  it("reads the same after it has ended as before the restart, absent elements and skipped tasks included", async () => {
    const run = await openRun({ max_parallel: 4 });
    const done = await dag(run, {
      model: "up/key/graph-same",
      tasks: [
        { id: "find", prompt: '["one"]' },
        { id: "each", foreach: "{{find.output.json}}", max_items: 9, prompt: "{{item}}" },
        { id: "bad", prompt: "{{status/400}} {{each.outputs}}" },
        { id: "after", prompt: "{{bad.output}}" },
      ],
    });
    expect(statusesOf(done)).toEqual(["completed", "completed", "failed", "skipped"]);
    await evict(run.object);
    expect(graph.parse(await (await run.send("GET", `/dag/${done.id}`)).json())).toEqual(done);
  });

  it("keeps a cancelled graph cancelled, with one slot for a foreach whose elements were not known", async () => {
    const run = await openRun({ max_parallel: 4 });
    const body = pipeline("graph-cancelled");
    const response = await run.post("/dag", body, { headers: { prefer: "respond-async" } });
    const { id } = z.looseObject({ id: z.string() }).parse(await response.json());
    await untilInFlight("graph-cancelled", 2);
    const cancelled = z
      .looseObject({ counts: z.unknown() })
      .parse(await (await run.send("DELETE", `/dag/${id}`)).json());
    expect(cancelled.counts).toMatchObject({ completed: 1, cancelled: 5, queued: 0, running: 0 });
    await evict(run.object);
    const after = graph.parse(await (await run.send("GET", `/dag/${id}`)).json());
    expect([after.status, statusesOf(after)]).toEqual([
      "cancelled",
      ["completed", "cancelled", "cancelled", "cancelled"],
    ]);
    await openLatch("graph-cancelled");
  });
});

describe("a graph that is changed while it runs", () => {
  for (const [name, restart] of [
    ["is evicted", evict],
    ["crashes", crash],
  ] as const) {
    it(`keeps its change when the object ${name}, and answers the repeated request without a second one`, async () => {
      const key = `changed-${name.replaceAll(" ", "-")}`;
      const run = await openRun({ max_parallel: 4, budget: { usd: 1 } });
      const accepted = await run.post("/dag", pipeline(key), { headers: { prefer: "respond-async" } });
      const { id } = z.looseObject({ id: z.string() }).parse(await accepted.json());
      await untilInFlight(key, 2);
      const change = {
        version: 1,
        operations: [
          { op: "update_task", task: { id: "report", prompt: "All: {{check.outputs}}" } },
          { op: "add_task", task: { id: "after", prompt: "After {{report.output}}" } },
        ],
      };
      const version = z.looseObject({ version: z.int() });
      const patch = async () => version.parse(await (await run.send("PATCH", `/dag/${id}`, change)).json()).version;
      expect(await patch()).toBe(2);
      const restarted = restart(run.object);
      expect(await patch()).toBe(2);
      await openLatch(key);
      await restarted;
      const done = graph.parse(await (await run.send("GET", `/dag/${id}?wait_ms=20000`)).json());
      expect([done.status, done.outputs]).toEqual(["completed", { after: `After All: ${reportOf(key)}` }]);
      expect((await upstreamStats(key)).requests).toBe(7);
      expectSettled(await run.budget(), done.usage.cost);
      await evict(run.object);
      expect(graph.parse(await (await run.send("GET", `/dag/${id}`)).json())).toEqual(done);
    });
  }
});

describe("a batch whose items run in order", () => {
  it("keeps their order when the object crashes, and ends as a batch", async () => {
    const run = await openRun({ max_parallel: 4, budget: { usd: 1 } });
    const items = ["one", "two", "three"].map((word) => ({
      id: word,
      prompt: `{{latch/serial-${word}}} ${word}`,
      files: ["x"],
    }));
    const body = { items, model: "up/key/serial", validate_independence: "serialize", dedupe: false };
    const running = run.batch(body);
    await untilInFlight("serial", 1);
    await openLatch("serial-one");
    await expect.poll(async () => (await run.object.waitGroup(1, 0))?.counts.completed).toBe(1);
    await crash(run.object);
    await openLatch("serial-three");
    expect((await run.object.waitGroup(1, 0))?.counts.completed).toBe(1);
    await openLatch("serial-two");
    const answer = await running;
    expect(answer.results).toEqual(items.map(({ prompt }) => prompt));
    expectSettled(await run.budget(), answer.usage.cost);
  });
});
