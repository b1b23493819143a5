/** Plans that run while they are written, over objects that crash, and without whoever writes them. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { appendPlan, EMPTY_PLAN } from "../../src/run/graph/plan/append.ts";
import { LEASE_TTL_MS } from "../../src/limits.ts";
import type { CalledTask } from "../../src/objects/methods/groups.ts";
import { skipTime } from "../support/objects-clock.ts";
import { crash, evict, factsOf, openingOf, pagesOf } from "../support/objects-direct.ts";
import {
  expectSettled,
  openLatch,
  openRun,
  untilInFlight,
  upstreamStats,
  type TestRun,
} from "../support/objects-run.ts";
import { taskOf } from "../support/graphs.ts";

const graph = z.looseObject({
  id: z.string(),
  status: z.string(),
  version: z.int(),
  plan: z.object({ state: z.string(), errors: z.array(z.unknown()) }),
  outputs: z.record(z.string(), z.unknown()),
  usage: z.looseObject({ cost: z.number() }),
});

/** Sends a plan whose lines the test writes. */
function writePlan(run: TestRun): {
  write: (task: object) => Promise<void>;
  end: () => Promise<z.infer<typeof graph>>;
} {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const answer = run.postStream("/dag", readable, "application/x-ndjson");
  return {
    write: (task) => writer.write(new TextEncoder().encode(`${JSON.stringify(task)}\n`)),
    end: async () => {
      await writer.close();
      return graph.parse(await (await answer).json());
    },
  };
}

describe("a plan that is written while its run object restarts", () => {
  for (const [name, restart] of [
    ["is evicted", evict],
    ["crashes", crash],
  ] as const) {
    it(`continues when the object ${name}: each line is a task once`, async () => {
      const key = `plan-${name.replaceAll(" ", "-")}`;
      const model = `up/key/${key}`;
      const run = await openRun({ max_parallel: 4, budget: { usd: 1 } });
      const plan = writePlan(run);
      await plan.write({ id: "a", prompt: `{{latch/${key}}} alpha`, model });
      await untilInFlight(key, 1);
      await plan.write({ id: "b", prompt: "{{a.output}} beta", model });
      const restarted = restart(run.object);
      await plan.write({ id: "c", prompt: "gamma", model });
      await restarted;
      await plan.write({ id: "d", prompt: "{{c.output}} {{b.output}}", model });
      await openLatch(key);
      const done = await plan.end();
      expect([done.status, done.plan]).toEqual(["completed", { state: "ended", errors: [] }]);
      expect(done.outputs).toEqual({ d: `gamma {{latch/${key}}} alpha beta` });
      expect((await upstreamStats(key)).requests).toBe(4);
      expectSettled(await run.budget(), done.usage.cost);
    });
  }
});

/** A task with its call, as a Worker sends it. */
function called(id: string, prompt: string, model: string): CalledTask {
  return { ...taskOf(id, prompt), call: { body: { prompt }, facts: factsOf(prompt, model) } };
}

/** Opens a graph with the first line of a plan, as a Worker does that then dies. */
async function openPlan(run: TestRun, prompt: string, model: string): Promise<void> {
  const { pages, models } = pagesOf([prompt], model);
  const part = { tasks: [{ line: 1, task: taskOf("a", prompt) }], faults: [], line: 1, state: "open" } as const;
  const { graph: first } = appendPlan(EMPTY_PLAN, part);
  const opened = await run.object.openGroup(openingOf(1, models), pages, null, JSON.stringify(first));
  if (!opened.ok) throw new Error("the graph was refused");
  for (const lane of opened.lanes) await env.LANE.getByName(`${run.id}/${lane}`).start(run.id, lane);
}

describe("a part of a plan", () => {
  it("is added once, however often it is sent, and refused lines are named each time", async () => {
    const run = await openRun({ max_parallel: 2 });
    const model = "up/key/plan-repeat/latch/plan-repeat";
    await openPlan(run, "alpha", model);
    const tasks = [
      { line: 2, task: called("b", "beta", model) },
      { line: 3, task: called("c", "{{none.output}}", model) },
    ];
    const part = { tasks, faults: [], line: 3, state: "open" } as const;
    const reply = { isOpen: true, faults: [{ line: 3, message: 'prompt: no task has the id "none"' }] };
    expect(await run.object.appendPlan({ seq: 1, part })).toMatchObject(reply);
    expect(await run.object.appendPlan({ seq: 1, part })).toMatchObject(reply);
    await evict(run.object);
    expect(await run.object.appendPlan({ seq: 1, part })).toMatchObject(reply);
    const view = await run.object.waitGroup(1, 0);
    expect([view?.count, view?.graph]).toEqual([2, { slots: 2, version: 2 }]);
    const end = { tasks: [], faults: [], line: 3, state: "ended" } as const;
    expect(await run.object.appendPlan({ seq: 1, part: end })).toMatchObject({ isOpen: false });
    expect(await run.object.appendPlan({ seq: 1, part: { ...part, line: 9 } })).toMatchObject({ isOpen: false });
    expect((await run.object.waitGroup(1, 0))?.count).toBe(2);
    await openLatch("plan-repeat");
  });
});

describe("a plan whose Worker is gone without a word", () => {
  it("is cut one lease term after its last sign of life, also across a restart; what has come of it ends", async () => {
    const run = await openRun({ max_parallel: 2 });
    await openPlan(run, "alpha", "up/key/plan-gone");
    await expect.poll(async () => (await run.object.waitGroup(1, 0))?.counts.completed, { timeout: 20_000 }).toBe(1);
    skipTime(LEASE_TTL_MS - 5_000);
    await runDurableObjectAlarm(run.object);
    expect((await run.object.waitGroup(1, 0))?.status).toBe("running");
    const alive = { tasks: [], faults: [], line: 0, state: "open" } as const;
    expect(await run.object.appendPlan({ seq: 1, part: alive })).toMatchObject({ isOpen: true });
    skipTime(LEASE_TTL_MS - 5_000);
    await runDurableObjectAlarm(run.object);
    expect((await run.object.waitGroup(1, 0))?.status).toBe("running");
    await evict(run.object);
    expect((await run.object.waitGroup(1, 0))?.status).toBe("running");
    skipTime(LEASE_TTL_MS + 1_000);
    await runDurableObjectAlarm(run.object);
    expect((await run.object.waitGroup(1, 0))?.status).toBe("partial");
    const stored = z.looseObject({ plan: z.object({ state: z.string() }) });
    expect(stored.parse(JSON.parse((await run.object.graphJson(1)) ?? "{}")).plan.state).toBe("cut");
  });
});
