/** A lane that has claimed for long enough completes its calls and ends; a lane of another number takes over. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it } from "vitest";
import { LaneLives } from "../../durable-objects/run/memory/lane-lives.ts";
import { LANE_ALARM_FROM_MS, LANE_LIFE_MS } from "../../src/limits.ts";
import { RunObject } from "../../src/index.ts";
import { withTimers } from "../support/objects-clock.ts";
import { openUnwatched } from "../support/objects-direct.ts";
import { openLatch, openRun, prompts, untilInFlight, upstreamStats } from "../support/objects-run.ts";

const plainMay = LaneLives.prototype.mayClaim;
const plainIsRetired = LaneLives.prototype.isRetired;
const plainNumbers = LaneLives.prototype.numbers;
const plainClaim = RunObject.prototype.settleAndClaim;

afterEach(() => {
  Object.assign(LaneLives.prototype, { mayClaim: plainMay, isRetired: plainIsRetired, numbers: plainNumbers });
  RunObject.prototype.settleAndClaim = plainClaim;
});

/** Puts the clock of lanes' lives forward, and no other: their leases would expire. */
function endLives(): void {
  const late = <T>(read: () => T): T => {
    const now = Date.now;
    Date.now = () => now() + LANE_LIFE_MS;
    try {
      return read();
    } finally {
      Date.now = now;
    }
  };
  LaneLives.prototype.mayClaim = function (this: LaneLives, ...args) {
    return late(() => plainMay.apply(this, args));
  };
  LaneLives.prototype.isRetired = function (this: LaneLives, ...args) {
    return late(() => plainIsRetired.apply(this, args));
  };
  LaneLives.prototype.numbers = function (this: LaneLives, ...args) {
    return late(() => plainNumbers.apply(this, args));
  };
}

/** The lanes that runs grant attempts to, in order. */
function watchGrants(): number[] {
  const granted: number[] = [];
  RunObject.prototype.settleAndClaim = async function (this: RunObject, ...args: Parameters<typeof plainClaim>) {
    const reply = await plainClaim.apply(this, args);
    if (reply.jobs.length > 0) granted.push(args[0]);
    return reply;
  };
  return granted;
}

describe("a lane whose life ends in the middle of its work", () => {
  it("completes its calls, claims no more, and another lane makes the rest, at the same width", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const granted = watchGrants();
    await openUnwatched(run, prompts(18), "up/latch/old-lane/key/old-lane");
    await runDurableObjectAlarm(run.object);
    await untilInFlight("old-lane", 6);
    expect(granted).toEqual([0]);
    endLives();
    await openLatch("old-lane");
    await expect.poll(async () => (await run.object.waitGroup(1, 0))?.status).toBe("completed");
    const slots = await run.object.results(1, 0);
    expect(slots.map(({ text }) => text)).toEqual(prompts(18));
    expect(slots.filter(({ attempts, estimated }) => attempts > 1 || estimated)).toEqual([]);
    expect(new Set(granted.slice(1))).toEqual(new Set([1]));
    const { requests, peakInFlight } = await upstreamStats("old-lane");
    expect([requests, peakInFlight]).toEqual([18, 6]);
    const { reserved, spent } = (await run.budget()).calls;
    expect([reserved, spent]).toEqual([0, 18]);
  });
});

describe("a lane that works for long", () => {
  it("renews its alarm until its last call has ended, so that it stays in memory", async () => {
    await withTimers([LANE_ALARM_FROM_MS], 0, async () => {
      const run = await openRun({ max_parallel: 1 });
      await openUnwatched(run, prompts(1), "up/latch/long-lane/key/long-lane");
      const lane = env.LANE.getByName(`${run.id}/0`);
      await runDurableObjectAlarm(run.object);
      await untilInFlight("long-lane", 1);
      for (let renewal = 0; renewal < 3; renewal++) {
        await expect.poll(() => runDurableObjectAlarm(lane)).toBe(true);
      }
      await openLatch("long-lane");
      await expect.poll(async () => (await run.object.waitGroup(1, 0))?.status).toBe("completed");
      // The alarm that is still set finds no work, and sets no other.
      await expect.poll(() => runDurableObjectAlarm(lane)).toBe(false);
    });
  });
});
