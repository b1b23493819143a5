/** Waiting is free: while calls are at the upstream or wait for a permit, no object is held awake by them. */
import { expect, it } from "vitest";
import { CALL_SOCKET_AFTER_MS } from "../../../src/limits.ts";
import { evict } from "../../support/objects-direct.ts";
import { StreamFollower } from "../../support/objects-events.ts";
import { withTimers } from "../../support/objects-clock.ts";
import { awake, meterObjects, operations, resetMeter } from "../../support/objects-meter.ts";
import { watched, watchObjects } from "../../support/objects-watch.ts";
import { quiet } from "./quiet.ts";
import { expectSettled, openLatch, openRun, prompts, untilInFlight, upstreamStats } from "../../support/objects-run.ts";

watchObjects();
meterObjects();

const QUERIES = 64;

it("a page that looks on while calls are at the upstream holds no object", { tags: ["slow"] }, async () => {
  resetMeter();
  const key = "awake-page";
  const run = await openRun({ max_parallel: 8, budget: { usd: 1 } });
  const asked = prompts(8);
  await withTimers([CALL_SOCKET_AFTER_MS], 10, async () => {
    const queries = asked.map((prompt) => run.query({ prompt, model: `up/key/${key}/latch/${key}` }));
    await untilInFlight(key, 8);
    const page = await StreamFollower.connect(run);
    await page.until("attempt_started", 8);
    // Each query's Worker and the page have opened their sockets: a socket that opens later is an operation. So is the message
    // with which the page says what it has read.
    await expect.poll(() => watched(run.id).calls["fetch"] ?? 0).toBe(8 + 1);
    // A report of credit may still be on its way.
    await expect.poll(() => awake().objects).toEqual([]);
    const before = await quiet();
    expect(awake().objects).toEqual([]);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect({ ...operations(), timerMs: 0 }).toEqual({ ...before, timerMs: 0 });
    // The page's socket outlives the object's sleep, and rings when the calls end.
    await evict(run.object);
    await openLatch(key);
    await Promise.all(queries);
    await page.until("slot_completed", 8);
    await page.disconnect();
  });
});

it.each([64, 8])(
  "64 queries at width %i hold no object, and an eviction in their middle loses none",
  { tags: ["slow"] },
  async (width) => {
    resetMeter();
    const key = `awake-${width}`;
    const run = await openRun({ max_parallel: width, budget: { usd: 1 } });
    const socketsOpened = (): number => watched(run.id).calls["fetch"] ?? 0;
    const asked = prompts(QUERIES);
    // Their Workers have opened their sockets, as they have after a moment of a call of 20 seconds.
    const answers = await withTimers([CALL_SOCKET_AFTER_MS], 10, async () => {
      const queries = asked.map((prompt) => run.query({ prompt, model: `up/key/${key}/latch/${key}` }));
      await untilInFlight(key, width);
      // One request for permits each at most, one while it is queued, one socket: then nothing until something ends.
      await expect.poll(() => awake().objects).toEqual([]);
      await expect.poll(socketsOpened).toBe(QUERIES);
      await expect.poll(() => awake().objects).toEqual([]);
      const before = operations();
      expect(before.requests).toBeLessThanOrEqual(3 * QUERIES + 5);
      // Long enough for any pulse that is shorter than a lease's term would allow to be seen at its scale.
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect({ ...operations(), timerMs: 0 }).toEqual({ ...before, timerMs: 0 });
      await evict(run.object);
      await openLatch(key);
      return Promise.all(queries);
    });
    expect(answers.map(({ text, attempts }) => [text, attempts])).toEqual(asked.map((prompt) => [prompt, 1]));
    expect((await upstreamStats(key)).requests).toBe(QUERIES);
    expectSettled(
      await run.budget(),
      answers.reduce((total, { usage }) => total + usage.cost, 0),
    );
  },
);
