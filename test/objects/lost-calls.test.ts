/** Single calls whose Worker is lost: an alarm looks for them late, unless something waits, because alarms cost rows. */
import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { FOUND_LEASE_TTL_MS, LEASE_TTL_MS, LOST_CALL_MS } from "../../src/limits.ts";
import { skipTime } from "../support/objects-clock.ts";
import { acquireOne } from "../support/objects-direct.ts";
import { alarmOf, expectAtRest } from "../support/objects-group.ts";
import { openRun } from "../support/objects-run.ts";

const openSlow = () => openRun({ max_parallel: 2, budget: { usd: 1 } });

describe("a single call that is lost", () => {
  it("is charged at its reservation by the next turn after its lease, if nothing waits for it", async () => {
    const run = await openSlow();
    await acquireOne(run);
    const { usd: before } = await run.budget();
    expect(before.reserved).toBeGreaterThan(0);
    // No alarm is set for its lease.
    expect(await alarmOf(run)).toBeGreaterThan(Date.now() + LOST_CALL_MS - 60_000);
    skipTime(LEASE_TTL_MS);
    const { usage } = await run.query({ prompt: "next" });
    await expect.poll(async () => (await run.budget()).usd.reserved).toBe(0);
    expect((await run.budget()).usd.spent).toBeCloseTo(before.reserved + usage.cost, 9);
    await expectAtRest(run);
  });

  it("is charged by the alarm at the latest, even in a run that is not used any more", async () => {
    const run = await openSlow();
    await acquireOne(run);
    const { usd: before } = await run.budget();
    skipTime(LOST_CALL_MS);
    await runDurableObjectAlarm(run.object);
    expect((await run.budget()).usd).toMatchObject({ reserved: 0, spent: before.reserved });
  });

  it("has an alarm at the end of its lease once the run is closed, whose end waits for it", async () => {
    const run = await openSlow();
    await acquireOne(run);
    await run.object.end("closed");
    expect(await alarmOf(run)).toBeLessThanOrEqual(Date.now() + LEASE_TTL_MS);
    skipTime(LEASE_TTL_MS);
    await runDurableObjectAlarm(run.object);
    expect(await run.object.logPage(0, null)).toMatchObject({ final: true });
  });

  it("has an alarm soon after its run wakes from its rows, if nobody claims it", async () => {
    const run = await openSlow();
    await acquireOne(run);
    await evictDurableObject(run.object);
    await run.budget();
    await expect.poll(() => alarmOf(run)).toBeLessThanOrEqual(Date.now() + FOUND_LEASE_TTL_MS);
  });
});
