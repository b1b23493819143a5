/** After a restart the run reconciles leases with its lanes: attempts that no lane is making are retried at once. */
import { abortAllDurableObjects } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { FOUND_LEASE_TTL_MS } from "../../src/limits.ts";
import { crash } from "../support/objects-direct.ts";
import { batchOnLanes, EXECUTORS } from "../support/objects-group.ts";
import {
  expectSettled,
  expectWhole,
  letThrough,
  openLatch,
  openRun,
  prompts,
  untilInFlight,
  upstreamStats,
} from "../support/objects-run.ts";
import { watchObjects } from "../support/objects-watch.ts";

watchObjects();

describe("a run that was restarted", () => {
  it(
    "retries attempts at once that were lost with their lanes, and charges the lost ones",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
      const batch = batchOnLanes(run, {
        prompts: prompts(12),
        model: "up/key/recalled-all/latch/recalled-all",
        max_tokens: 50,
      });
      await untilInFlight("recalled-all", 6);
      await abortAllDurableObjects();
      await openLatch("recalled-all");
      // Without replies of its lanes the run would wait for the ends of the leases, which this test does not bring forward.
      const timeout = FOUND_LEASE_TTL_MS / 2;
      await expect.poll(async () => (await run.object.waitGroup(1, 0))?.status, { timeout }).toBe("completed");
      const answer = await batch;
      expectWhole(answer, prompts(12));
      expect(answer.items.filter(({ estimated }) => estimated)).toHaveLength(6);
      expect((await upstreamStats("recalled-all")).requests).toBe(18);
      expectSettled(await run.budget(), answer.usage.cost);
    },
  );

  it("loses nothing of a client's Worker, which no crash of objects ends", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const model = "up/key/recalled-worker/latch/recalled-worker";
    const batch = run.batch({ prompts: prompts(12), model, max_tokens: 50 });
    await untilInFlight("recalled-worker", 6);
    await abortAllDurableObjects();
    await openLatch("recalled-worker");
    const answer = await batch;
    expectWhole(answer, prompts(12));
    expect(answer.items.filter(({ estimated, attempts }) => estimated || attempts > 1)).toEqual([]);
    expect((await upstreamStats("recalled-worker")).requests).toBe(12);
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it.each(EXECUTORS)("keeps attempts that $executor is still making", async ({ key: by, sendBatch }) => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const key = `recalled-none-${by}`;
    const batch = sendBatch(run, { prompts: prompts(12), model: `up/key/${key}/latch/${key}`, max_tokens: 50 });
    await untilInFlight(key, 6);
    await crash(run.object);
    await run.document();
    await openLatch(key);
    const answer = await batch;
    expectWhole(answer, prompts(12));
    expect(answer.items.filter(({ estimated, attempts }) => estimated || attempts > 1)).toEqual([]);
    expect((await upstreamStats(key)).requests).toBe(12);
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it("recovers from several restarts in a row", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const model = "up/key/recalled-often/latch/recalled-often";
    const batch = run.batch({ prompts: prompts(30), model, max_tokens: 50 });
    let seen = 0;
    for (let restarts = 0; restarts < 4; restarts++) {
      await expect.poll(async () => (await upstreamStats("recalled-often")).requests).toBeGreaterThan(seen);
      seen = (await upstreamStats("recalled-often")).requests;
      // Six calls end around each restart, so that some are left for the next.
      await letThrough("recalled-often", 6);
      await crash(run.object);
      await run.document();
    }
    await openLatch("recalled-often");
    const answer = await batch;
    expectWhole(answer, prompts(30));
    expectSettled(await run.budget(), answer.usage.cost);
  });
});
