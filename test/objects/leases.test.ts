import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { LEASE_TTL_MS, SETTLE_LAG_MS } from "../../src/limits.ts";
import { skipTime, withHeartbeats } from "../support/objects-clock.ts";
import { acquireOne, crash, openUnwatched } from "../support/objects-direct.ts";
import {
  expectSettled,
  expectWhole,
  openRun,
  prompts,
  untilInFlight,
  upstreamStats,
  type TestRun,
} from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

describe("a lane", () => {
  it("that is evicted in the middle of a batch, and its run with it, loses nothing", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const batch = run.batch({ prompts: prompts(12), model: "up/key/evicted-lane/delay/150" });
    await untilInFlight("evicted-lane", 6);
    await evictDurableObject(env.LANE.getByName(`${run.id}/0`));
    await evictDurableObject(run.object);
    await run.document();
    skipTime(LEASE_TTL_MS);
    const answer = await batch;
    expectWhole(answer, prompts(12));
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it("that is lost has its attempts charged as estimates and made again once their leases are over", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const model = "up/key/lost-lane/delay/300";
    const batch = run.batch({ prompts: prompts(9), model, max_tokens: 50 });
    await untilInFlight("lost-lane", 6);
    await crash(env.LANE.getByName(`${run.id}/0`));
    // Its attempts ended at the upstream, and nobody knows.
    await untilInFlight("lost-lane", 0);
    skipTime(LEASE_TTL_MS);
    const answer = await batch;
    expectWhole(answer, prompts(9));
    expect(answer.items.map(({ attempts }) => attempts)).toEqual([2, 2, 2, 2, 2, 2, 1, 1, 1]);
    expect(answer.items.map(({ estimated }) => estimated)).toEqual(answer.items.map(({ attempts }) => attempts === 2));
    const { requests, sends } = await upstreamStats("lost-lane");
    expect(requests).toBe(15);
    expect(Math.max(...Object.values(sends))).toBe(2);
    const budget = await run.budget();
    expectSettled(budget, answer.usage.cost);
    expect(budget.calls.spent).toBe(15);
    // Six lost attempts at their whole reservation: 50 completion tokens each.
    expect(budget.completion_tokens.spent).toBeGreaterThan(6 * 50);
  });
});

describe("a crash of everything", () => {
  it("in the middle of a batch ends every slot once, within the budget", async () => {
    const run = await openRun({ max_parallel: 12, budget: { usd: 0.01 } });
    const batch = run.batch({ prompts: prompts(40), model: "up/key/crash/delay/100/jitter/100", max_tokens: 50 });
    await untilInFlight("crash", 12);
    const inFlightAtMost = 12;
    await abortAllDurableObjects();
    // A lease that a restart finds gets a fresh term.
    await run.document();
    skipTime(LEASE_TTL_MS);
    const answer = await batch;
    expectWhole(answer, prompts(40));
    const { budget, metrics, stats } = await run.document();
    expectSettled(budget, answer.usage.cost);
    expect(metrics.attempts).toBeLessThanOrEqual(40 + inFlightAtMost);
    expect(metrics.retries).toBe(metrics.attempts - 40);
    expect(metrics.retries).toBeGreaterThan(0);
    expect(stats).toMatchObject({ total_queries: 40, parallel_batches: 1, pending_queries: 0 });
  });

  it("is recovered from by the run's alarm alone, where no client waits any more", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const lanes = await openUnwatched(run, prompts(12), "up/key/alone/delay/150");
    for (const lane of lanes) await env.LANE.getByName(`${run.id}/${lane}`).start(run.id, lane);
    await untilInFlight("alone", 6);
    await abortAllDurableObjects();
    await run.document();
    skipTime(LEASE_TTL_MS);
    await runDurableObjectAlarm(run.object);
    await expect.poll(() => statusOf(run), { timeout: 5_000 }).toBe("completed");
    const { calls } = await run.budget();
    expect(calls).toMatchObject({ spent: 18, reserved: 0 });
  });

  it("is recovered from by alarms alone, though each of them wakes an object that knows nothing", async () => {
    const run = await openRun({ budget: { calls: 5 } });
    await acquireOne(run);
    for (let alarms = 0; alarms < 3; alarms += 1) {
      await crash(run.object);
      const alarm = runDurableObjectAlarm(run.object);
      await scheduler.wait(50);
      skipTime(LEASE_TTL_MS);
      await alarm;
      await scheduler.wait(2 * SETTLE_LAG_MS);
    }
    await crash(run.object);
    expect((await run.budget()).calls).toMatchObject({ spent: 1, reserved: 0 });
  });

  it("between the opening of a batch and the start of its lanes leaves the start to the run's alarm", async () => {
    const run = await openRun({ max_parallel: 12 });
    expect(await openUnwatched(run, prompts(12), "up/key/unstarted")).toEqual([0, 1]);
    await evictDurableObject(run.object);
    await runDurableObjectAlarm(run.object);
    await expect.poll(() => statusOf(run)).toBe("completed");
    expect([...watched(run.id).laneStubsTakenBy]).toEqual(["run.alarm"]);
    expect((await upstreamStats("unstarted")).requests).toBe(12);
  });
});

describe("a lease", () => {
  it("of a lane lives on for as long as the lane's heartbeats come", async () => {
    const run = await openRun({ max_parallel: 2 });
    const answer = await withHeartbeats(20, async () => {
      const batch = run.batch({ prompts: prompts(2), model: "up/key/beating-lane/delay/600" });
      await untilInFlight("beating-lane", 2);
      await ageBy(3 * LEASE_TTL_MS, run.object);
      return batch;
    });
    expect(answer.items.map(({ attempts, estimated }) => ({ attempts, estimated }))).toEqual([
      { attempts: 1, estimated: false },
      { attempts: 1, estimated: false },
    ]);
  });

  it("of a Worker lives on for as long as the Worker's heartbeats come", async () => {
    const run = await openRun();
    const answer = await withHeartbeats(20, async () => {
      const query = run.query({ prompt: "p", model: "up/key/beating-worker/delay/600" });
      await untilInFlight("beating-worker", 1);
      await ageBy(3 * LEASE_TTL_MS, run.object);
      return query;
    });
    expect(answer).toMatchObject({ text: "p", attempts: 1 });
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it("without heartbeats is over after its time, and not a moment before", async () => {
    const run = await openRun({ max_parallel: 2 });
    await withHeartbeats(null, async () => {
      const batch = run.batch({ prompts: prompts(1), model: "up/key/silent/delay/400" });
      await untilInFlight("silent", 1);
      skipTime(LEASE_TTL_MS - 5_000);
      await runDurableObjectAlarm(run.object);
      expect((await run.budget()).calls).toMatchObject({ spent: 0, reserved: 1 });
      skipTime(5_000);
      await runDurableObjectAlarm(run.object);
      expect((await run.budget()).calls.spent).toBe(1);
      const answer = await batch;
      expect(answer.items[0]).toMatchObject({ status: "completed", attempts: 2, estimated: true });
    });
  });
});

/** Lets time pass in steps shorter than a lease, with room for heartbeats between them; the alarm looks at each step. */
async function ageBy(ms: number, stub: DurableObjectStub): Promise<void> {
  for (let leftMs = ms; leftMs > 0; leftMs -= 15_000) {
    skipTime(15_000);
    await scheduler.wait(60);
    await runDurableObjectAlarm(stub);
  }
}

async function statusOf(run: TestRun): Promise<string | undefined> {
  return (await run.object.waitGroup(1, 0))?.status;
}
