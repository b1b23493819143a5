import { abortAllDurableObjects, runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { LEASE_TTL_MS, SOCKET_RENEW_MS } from "../../src/limits.ts";
import { skipTime, withRenewals, withTimers } from "../support/objects-clock.ts";
import { acquireOne, crash, evict, openUnwatched, storedLeases } from "../support/objects-direct.ts";
import { batchOnLanes } from "../support/objects-group.ts";
import {
  expectSettled,
  expectWhole,
  openLatch,
  openRun,
  prompts,
  untilInFlight,
  upstreamStats,
  type TestRun,
} from "../support/objects-run.ts";
import { late } from "../support/objects-paces.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

describe("a lane", () => {
  it("that is evicted together with its run in the middle of a batch loses nothing", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const batch = batchOnLanes(run, { prompts: prompts(12), model: "up/key/evicted-lane/latch/evicted-lane" });
    await untilInFlight("evicted-lane", 6);
    // An object is evicted once its calls have ended.
    const evicted = evict(env.LANE.getByName(`${run.id}/0`));
    await openLatch("evicted-lane");
    await evicted;
    await evict(run.object);
    await run.document();
    skipTime(LEASE_TTL_MS);
    await runDurableObjectAlarm(run.object);
    const answer = await batch;
    expectWhole(answer, prompts(12));
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it(
    "that is lost has its attempts charged as estimates and retried after their leases expire",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
      const model = "up/key/lost-lane/latch/lost-lane";
      const batch = batchOnLanes(run, { prompts: prompts(9), model, max_tokens: 50 });
      await untilInFlight("lost-lane", 6);
      await crash(env.LANE.getByName(`${run.id}/0`));
      // Its attempts end at the upstream, and no lane gets the answers.
      await openLatch("lost-lane");
      await untilInFlight("lost-lane", 0);
      skipTime(LEASE_TTL_MS);
      await runDurableObjectAlarm(run.object);
      const answer = await batch;
      expectWhole(answer, prompts(9));
      expect(answer.items.map(({ attempts }) => attempts)).toEqual([2, 2, 2, 2, 2, 2, 1, 1, 1]);
      expect(answer.items.map(({ estimated }) => estimated)).toEqual(
        answer.items.map(({ attempts }) => attempts === 2),
      );
      const { requests, sends } = await upstreamStats("lost-lane");
      expect(requests).toBe(15);
      expect(Math.max(...Object.values(sends))).toBe(2);
      const budget = await run.budget();
      expectSettled(budget, answer.usage.cost);
      expect(budget.calls.spent).toBe(15);
      // Six lost attempts at their whole reservation: 50 completion tokens each.
      expect(budget.completion_tokens.spent).toBeGreaterThan(6 * 50);
    },
  );
});

describe("a crash of everything", () => {
  it("in the middle of a batch ends every slot once, within the budget", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 12, budget: { usd: 0.01 } });
    const inFlightAtMost = 12;
    // The runtime does not close the sockets of objects that it ends all at once.
    const answer = await withTimers([SOCKET_RENEW_MS], 100, async () => {
      const batch = batchOnLanes(run, {
        prompts: prompts(40),
        model: late("up/key/crash/early/1/latch/crash"),
        max_tokens: 50,
      });
      await untilInFlight("crash", 12);
      await abortAllDurableObjects();
      // A lease that a restart finds gets a fresh term.
      await run.document();
      skipTime(LEASE_TTL_MS);
      await openLatch("crash");
      await runDurableObjectAlarm(run.object);
      return batch;
    });
    expectWhole(answer, prompts(40));
    const { budget, metrics, stats } = await run.document();
    expectSettled(budget, answer.usage.cost);
    expect(metrics.attempts).toBeLessThanOrEqual(40 + inFlightAtMost);
    expect(metrics.retries).toBe(metrics.attempts - 40);
    expect(metrics.retries).toBeGreaterThan(0);
    expect(stats).toMatchObject({ total_queries: 40, parallel_batches: 1, pending_queries: 0 });
  });

  it("is recovered from by the run's alarm alone, if no client waits", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const lanes = await openUnwatched(run, prompts(12), "up/key/alone/latch/alone");
    for (const lane of lanes) await env.LANE.getByName(`${run.id}/${lane}`).start(run.id, lane);
    await untilInFlight("alone", 6);
    await abortAllDurableObjects();
    await run.document();
    skipTime(LEASE_TTL_MS);
    await openLatch("alone");
    await runDurableObjectAlarm(run.object);
    await expect.poll(() => statusOf(run)).toBe("completed");
    const { calls } = await run.budget();
    expect(calls).toMatchObject({ spent: 18, reserved: 0 });
  });

  it("is recovered from by alarms alone, even if each wakes a new instance", async () => {
    const run = await openRun({ budget: { calls: 5 } });
    await acquireOne(run);
    for (let alarms = 0; alarms < 3; alarms += 1) {
      await crash(run.object);
      const earlier = alarmsOf(run);
      const alarm = runDurableObjectAlarm(run.object);
      // The new instance has granted its terms once its alarm has begun.
      await expect.poll(() => alarmsOf(run), { interval: 5 }).toBeGreaterThan(earlier);
      skipTime(LEASE_TTL_MS);
      await alarm;
      // The platform's alarm for the end of their terms rings by the true time.
      await expect
        .poll(async () => {
          await runDurableObjectAlarm(run.object);
          return storedLeases(run);
        })
        .toBe(0);
    }
    await crash(run.object);
    expect((await run.budget()).calls).toMatchObject({ spent: 1, reserved: 0 });
  });

  it("between the opening of a batch and the start of its lanes leaves the start to the run's alarm", async () => {
    const run = await openRun({ max_parallel: 12 });
    expect(await openUnwatched(run, prompts(12), "up/key/unstarted")).toEqual([0]);
    await evict(run.object);
    await runDurableObjectAlarm(run.object);
    await expect.poll(() => statusOf(run)).toBe("completed");
    expect([...watched(run.id).laneStubsTakenBy]).toEqual(["run.alarm"]);
    expect((await upstreamStats("unstarted")).requests).toBe(12);
  });
});

describe("a lease", () => {
  it("without a socket or heartbeats expires after its term, and not earlier", async () => {
    const run = await openRun({ max_parallel: 2 });
    await withRenewals(null, async () => {
      const batch = run.batch({ prompts: prompts(1), model: "up/key/silent/latch/silent" });
      await untilInFlight("silent", 1);
      skipTime(LEASE_TTL_MS - 5_000);
      await runDurableObjectAlarm(run.object);
      expect((await run.budget()).calls).toMatchObject({ spent: 0, reserved: 1 });
      skipTime(5_000);
      await runDurableObjectAlarm(run.object);
      expect((await run.budget()).calls.spent).toBe(1);
      await openLatch("silent");
      const answer = await batch;
      expect(answer.items[0]).toMatchObject({ status: "completed", attempts: 2, estimated: true });
    });
  });
});

function alarmsOf(run: TestRun): number {
  return watched(run.id).calls["alarm"] ?? 0;
}

async function statusOf(run: TestRun): Promise<string | undefined> {
  return (await run.object.waitGroup(1, 0))?.status;
}
