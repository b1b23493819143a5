/** Single calls whose Worker is lost: an alarm looks for them late, unless something waits, because alarms cost rows. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { workerOf } from "../../src/run/leases/shard.ts";
import { FOUND_LEASE_TTL_MS, LATE_CALLS_MAX, LEASE_TTL_MS, LOST_CALL_MS } from "../../src/limits.ts";
import { skipTime } from "../support/objects-clock.ts";
import { acquireOne, evict, openAsWorker, SUCCESS } from "../support/objects-direct.ts";
import { alarmOf, expectAtRest } from "../support/objects-group.ts";
import { openRun, type TestRun } from "../support/objects-run.ts";
import { hold, signalsOf } from "../support/objects-sockets.ts";

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
    await evict(run.object);
    await run.budget();
    await expect.poll(() => alarmOf(run)).toBeLessThanOrEqual(Date.now() + FOUND_LEASE_TTL_MS);
  });
});

describe("a stored call that its client's Worker makes", () => {
  const owner = { kind: "executor", executor: workerOf(1) } as const;

  /** Opens a stored call as the Worker that makes it. Returns the id of its attempt. */
  async function openStored(run: TestRun, key: string): Promise<string> {
    const stored = { single: true, concurrency: 1 };
    const { jobs } = await openAsWorker(run, { count: 1, key, capacity: 1 }, stored);
    return jobs[0]?.lease.attemptId ?? "";
  }

  const isLate = async (run: TestRun): Promise<boolean> =>
    ((await alarmOf(run)) ?? 0) > Date.now() + LOST_CALL_MS - 60_000;
  const isInTime = async (run: TestRun): Promise<boolean> =>
    ((await alarmOf(run)) ?? Infinity) <= Date.now() + LEASE_TTL_MS;

  /** Opens the socket of the call's Worker, which names what it holds. */
  async function holdAsWorker(run: TestRun, attemptId: string): Promise<WebSocket> {
    const socket = await hold(run, owner);
    const signals = signalsOf(socket);
    socket.send(JSON.stringify({ ...owner, holds: [attemptId] }));
    await expect.poll(signals).toContainEqual({ type: "held", lost: [] });
    return socket;
  }

  it("has a late alarm, as one without a key, also while its Worker has a socket and when the run wakes", async () => {
    const run = await openSlow();
    const attemptId = await openStored(run, "stored-late");
    expect(await isLate(run)).toBe(true);
    await holdAsWorker(run, attemptId);
    await evict(run.object);
    // A turn that changes nothing.
    await run.object.settle({ attemptId: "unknown.1", outcome: SUCCESS, stored: null });
    expect(await isLate(run)).toBe(true);
  });

  it("has an alarm in time once another client has looked at it", async () => {
    const run = await openSlow();
    await openStored(run, "stored-looked");
    await run.object.waitGroup(1, 0);
    expect(await isInTime(run)).toBe(true);
  });

  it("has an alarm in time once another client waits for it at a socket", async () => {
    const run = await openSlow();
    await openStored(run, "stored-awaited");
    await hold(run, { kind: "group", readerId: "r", seq: 1, after: null, isArmed: true });
    expect(await isInTime(run)).toBe(true);
  });

  it("has an alarm in time once the socket of its Worker has broken, until the Worker is heard of", async () => {
    const run = await openSlow();
    const attemptId = await openStored(run, "stored-broken");
    (await holdAsWorker(run, attemptId)).close(4_000);
    await expect.poll(() => isInTime(run)).toBe(true);
    await holdAsWorker(run, attemptId);
    await runDurableObjectAlarm(run.object);
    expect(await isLate(run)).toBe(true);
  });

  it("has an alarm in time while a batch runs beside it, and once the run is closed", async () => {
    for (const change of [
      (run: TestRun) => openAsWorker(run, { count: 1, key: "stored-beside", capacity: 1 }),
      (run: TestRun) => run.object.end("closed"),
    ]) {
      const run = await openSlow();
      await openStored(run, "stored-changed");
      await change(run);
      expect(await isInTime(run)).toBe(true);
    }
  });

  it("has an alarm in time if many others are in flight, too", async () => {
    const run = await openRun({ max_parallel: LATE_CALLS_MAX + 1 });
    for (let opened = 0; opened < LATE_CALLS_MAX; opened += 1) await openStored(run, "stored-many");
    expect(await isLate(run)).toBe(true);
    await openStored(run, "stored-many");
    expect(await isInTime(run)).toBe(true);
  });

  it("and that is lost is made again by a lane, at once after the next turn of the run", async () => {
    const run = await openSlow();
    await openStored(run, "stored-lost");
    skipTime(LEASE_TTL_MS);
    await run.query({ prompt: "next", model: "up/key/stored-next" });
    expect(await alarmOf(run)).toBeLessThanOrEqual(Date.now());
    await untilMadeAgain(run);
  });

  it("and that is lost is made again after the alarm at the latest, even in a run that is not used any more", async () => {
    const run = await openSlow();
    await openStored(run, "stored-latest");
    skipTime(LOST_CALL_MS);
    await untilMadeAgain(run);
  });

  /** Rings the run's alarm, whose time has come for the test alone, until a lane has made the call. */
  async function untilMadeAgain(run: TestRun): Promise<void> {
    await runDurableObjectAlarm(run.object);
    await expect
      .poll(() => run.object.results(1, 0), { timeout: 20_000 })
      .toMatchObject([{ state: "completed", attempts: 2 }]);
    await expectAtRest(run);
  }
});
