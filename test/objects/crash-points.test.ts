/** Crashes between an answer and its record. After each, every slot has ended once, and nothing is reserved. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { LEASE_TTL_MS, SOCKET_RENEW_MS } from "../../src/limits.ts";
import { skipTime, withTimers } from "../support/objects-clock.ts";
import { crash, evict, loseNextSettlement } from "../support/objects-direct.ts";
import { batchOnLanes, EXECUTORS, expectAtRest, lookAt, openAsync } from "../support/objects-group.ts";
import { logOf, ofType } from "../support/objects-log.ts";
import {
  expectWhole,
  openLatch,
  openRun,
  prompts,
  untilInFlight,
  upstreamStats,
  type TestRun,
} from "../support/objects-run.ts";
import { late } from "../support/objects-paces.ts";
import { holdsNothing, ring, ringUntil } from "../support/objects-tree.ts";

const [WORKER, LINES, LANES] = EXECUTORS;

describe("an attempt that the upstream has answered", () => {
  it.each([
    { dies: "lane", isRetried: true, by: LANES },
    { dies: "run", isRetried: false, by: LANES },
    { dies: "run", isRetried: false, by: WORKER },
    { dies: "run", isRetried: false, by: LINES },
    { dies: "lane and run", isRetried: true, by: LANES },
  ])(
    "is settled once if the $dies crashes before the settlement of $by.executor is stored",
    { tags: ["slow"] },
    async (crashed) => {
      const { dies, isRetried, by } = crashed;
      const key = `unrecorded-${dies.replaceAll(" ", "-")}-${by.key}`;
      const run = await openRun({ max_parallel: 6, budget: { usd: 1, calls: 100 } });
      const lost = loseNextSettlement({ endsRun: dies !== "lane" }, async (_, lane) => {
        if (dies !== "run") await crash(env.LANE.getByName(`${run.id}/${lane}`));
      });
      const batch = by.sendBatch(run, { prompts: prompts(9), model: `up/key/${key}/latch/${key}`, max_tokens: 50 });
      await untilInFlight(key, 6);
      await openLatch(key);
      await expect.poll(lost).toBe(true);
      // A lane that lives reports the settlement to the next instance of the run.
      if (dies !== "run") await untilLeasesEnd(run);
      await ring(run.object);
      const answer = await batch;
      expectWhole(answer, prompts(9));
      // What died with its lane is attempted twice, and the first attempt stays charged.
      const twice = answer.items.filter(({ attempts }) => attempts === 2).length;
      expect(twice > 0).toBe(isRetried);
      expect(answer.items.filter(({ estimated }) => estimated).length).toBe(twice);
      expect((await upstreamStats(key)).requests).toBe(9 + twice);
      expect((await run.budget()).calls.spent).toBe(9 + twice);
      await expectAtRest(run);
    },
  );

  it(
    "is not attempted twice if its settlement is stored and lane and run crash before the reply",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
      const lost = loseNextSettlement({ endsRun: true }, async (real, lane) => {
        await real();
        await crash(env.LANE.getByName(`${run.id}/${lane}`));
      });
      const others = prompts(5, "{{latch/unheard-reply}}");
      const batch = batchOnLanes(run, { prompts: ["first", ...others], model: "up/key/unheard-reply", max_tokens: 50 });
      await expect.poll(lost).toBe(true);
      await untilLeasesEnd(run);
      await ring(run.object);
      await openLatch("unheard-reply");
      const answer = await batch;
      expect(answer.items.map(({ attempts }) => attempts)).toEqual([1, 2, 2, 2, 2, 2]);
      expect((await upstreamStats("unheard-reply")).sends["first"]).toBe(1);
      await expectAtRest(run);
    },
  );

  it("is neither lost nor made twice if its run is evicted and the next instance gets the settlement", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const id = await openAsync(run, { prompts: prompts(12), model: "up/key/evicted/latch/evicted" });
    await untilInFlight("evicted", 6);
    await evict(run.object);
    await openLatch("evicted");
    expect(await lookAt(run, id, 15_000)).toMatchObject({ status: "completed" });
    expect((await upstreamStats("evicted")).requests).toBe(12);
    await expectAtRest(run);
  });
});

describe("a crash of all objects at once", () => {
  it(
    "with batches and queries in flight loses no slot, and the log has each event once",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ max_parallel: 12, budget: { usd: 0.05 } });
      const model = late("up/key/all/latch/all");
      // The runtime does not close the sockets of objects that it ends all at once.
      const left = await withTimers([SOCKET_RENEW_MS], 100, async () => {
        const waited = run.batch({ prompts: prompts(24), model, max_tokens: 50 });
        const async = await openAsync(run, { prompts: prompts(12, "left"), model, max_tokens: 50 });
        const queries = prompts(4, "alone").map((prompt) => run.query({ prompt, model, max_tokens: 50 }));
        await untilInFlight("all", 12);
        await abortAllDurableObjects();
        await openLatch("all");
        const hasCompleted = async (seq: number): Promise<boolean> =>
          (await run.object.waitGroup(seq, 0))?.status === "completed";
        await ringUntil([run], async () => (await hasCompleted(1)) && (await hasCompleted(2)));
        expectWhole(await waited, prompts(24));
        expect((await Promise.all(queries)).map(({ text }) => text)).toEqual(prompts(4, "alone"));
        return async;
      });
      expect((await upstreamStats("all")).requests).toBeLessThanOrEqual(40 + 12);
      await expectAtRest(run);
      expect(ofType(await logOf(run), "group_completed").map((line) => line.parallel_group_id)).toContain(left);
    },
  );

  it("right after a query's answer charges its reservation if the settlement was not stored", async () => {
    const run = await openRun({ budget: { calls: 5 } });
    await run.query({ prompt: "p", model: "up/key/unstored", max_tokens: 50 });
    await abortAllDurableObjects();
    await untilLeasesEnd(run);
    await ringUntil([run], () => holdsNothing(run));
    expect((await run.budget()).calls.spent).toBe(1);
    expect((await upstreamStats("unstored")).requests).toBe(1);
    await expectAtRest(run);
  });

  it(
    "repeated five times loses no slot, logs each event once and never spends more than the budget",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ max_parallel: 12, budget: { usd: 0.02, calls: 150 } });
      const id = await openAsync(run, {
        prompts: prompts(60),
        model: "up/key/often/delay/40/jitter/60/status/503/first/1/percent/10",
        max_tokens: 20,
      });
      for (let round = 0; round < 5; round++) {
        await scheduler.wait(60);
        if (round % 2 === 0) await abortAllDurableObjects();
        else await crash(run.object);
        await untilLeasesEnd(run);
      }
      await ringUntil([run], async () => (await run.object.waitGroup(1, 0))?.status !== "running");
      const results = await run.object.results(1, 0);
      expect(results.map(({ state, text }) => [state, text])).toEqual(
        prompts(60).map((prompt) => ["completed", prompt]),
      );
      await expectAtRest(run);
      expect(ofType(await logOf(run), "group_completed").map((line) => line.parallel_group_id)).toEqual([id]);
    },
  );
});

describe("a group that was cancelled", () => {
  it("stays cancelled if its run crashes right after, and its end is logged once", async () => {
    const run = await openRun({ max_parallel: 4 });
    await openAsync(run, { prompts: prompts(40), model: "up/key/lost-cancel/latch/never" });
    await untilInFlight("lost-cancel", 4);
    await run.object.cancelGroup(1);
    await abortAllDurableObjects();
    expect((await run.object.waitGroup(1, 0))?.counts).toMatchObject({ cancelled: 40, queued: 0, running: 0 });
    await expectAtRest(run);
  });
});

/** Ends the terms of the leases that a restarted run has found. */
async function untilLeasesEnd(run: TestRun): Promise<void> {
  // The first call wakes the new instance, and the terms of the found leases begin.
  await expect.poll(() => run.object.budget().catch(() => null)).not.toBeNull();
  skipTime(LEASE_TTL_MS);
}
