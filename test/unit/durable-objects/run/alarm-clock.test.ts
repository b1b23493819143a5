import { describe, expect, it } from "vitest";
import {
  AlarmClock,
  nextAlarmMs,
  type AlarmState,
  type AlarmTimes,
} from "../../../../durable-objects/run/alarm-clock.ts";
import {
  EXECUTOR_LEASE_MS,
  FOUND_LEASE_TTL_MS,
  LEASE_TTL_MS,
  LOST_CALL_MS,
  NOTIFY_RETRY_MS,
} from "../../../../src/limits.ts";

const NOW = 1_000_000;
const EXPIRY = NOW + 3_600_000;
/** The alarm that fires now may be the one whose handler runs. */
const SOON = NOW + 1;

const IDLE: AlarmState = {
  expiresAtMs: EXPIRY,
  hasWork: false,
  hasGroups: false,
  leaseEndMs: null,
  readyAtMs: null,
  lapseAtMs: null,
  mayLookLate: false,
  childDueMs: null,
  uploadDueMs: null,
  toolPermitEndMs: null,
  mustCallOthers: false,
  isReservationInDoubt: false,
  exportDelayMs: null,
  webhookDelayMs: null,
  deleteAtMs: null,
  owesMeters: false,
};

function next(run: Partial<AlarmState>, times: Partial<AlarmTimes> = {}): number | null {
  return nextAlarmMs({ ...IDLE, ...run }, { armedMs: null, requestedMs: null, retryAtMs: null, ...times }, NOW);
}

describe("the next alarm of a run", () => {
  it("is the expiry of an idle run; a run that has ended and is not to be deleted has none", () => {
    expect(next({})).toBe(EXPIRY);
    expect(next({ expiresAtMs: null })).toBe(null);
  });

  it("is the first of everything that is due", () => {
    expect(next({ hasWork: true, leaseEndMs: NOW + 70_000, childDueMs: NOW + 60_000 })).toBe(NOW + 60_000);
    expect(next({ uploadDueMs: NOW + 5, childDueMs: NOW + 60_000 })).toBe(NOW + 5);
    expect(next({ expiresAtMs: null, toolPermitEndMs: NOW + 7 })).toBe(NOW + 7);
    expect(next({ readyAtMs: NOW + 8, lapseAtMs: NOW + 9 })).toBe(NOW + 8);
    expect(next({ readyAtMs: NOW + 9, lapseAtMs: NOW + 8 })).toBe(NOW + 8);
    expect(next({ expiresAtMs: null, deleteAtMs: NOW + 9 })).toBe(NOW + 9);
  });

  it("tells gates what they may not know of, late: the next call tells them sooner", () => {
    expect(next({ owesMeters: true })).toBe(NOW + LOST_CALL_MS);
  });

  it("is one lease's term away if groups are open without any lease: their lanes may be lost", () => {
    expect(next({ hasWork: true })).toBe(NOW + LEASE_TTL_MS);
  });

  it("is one lease's term away while groups are open, however long the leases of executors with a socket last", () => {
    const leaseEndMs = NOW + EXECUTOR_LEASE_MS;
    expect(next({ hasWork: true, hasGroups: true, leaseEndMs })).toBe(NOW + LEASE_TTL_MS);
    expect(next({ hasWork: true, hasGroups: true, leaseEndMs: NOW + 1 })).toBe(NOW + 1);
    expect(next({ hasWork: true, hasGroups: false, leaseEndMs })).toBe(leaseEndMs);
    // What a restart waits for after the alarm must also pass within the minute.
    expect(LEASE_TTL_MS + FOUND_LEASE_TTL_MS + NOTIFY_RETRY_MS).toBeLessThanOrEqual(60_000);
  });

  it("is late for single calls whose loss nobody waits for, and is not set again for each", () => {
    const calls = { hasWork: true, mayLookLate: true, leaseEndMs: NOW + LEASE_TTL_MS };
    expect(next(calls)).toBe(NOW + LOST_CALL_MS);
    expect(next(calls, { armedMs: NOW + LOST_CALL_MS - 20_000 })).toBe(null);
    expect(next({ ...calls, mayLookLate: false }, { armedMs: NOW + LOST_CALL_MS })).toBe(NOW + LEASE_TTL_MS);
    expect(next({ ...calls, expiresAtMs: NOW + 60_000 })).toBe(NOW + 60_000);
  });

  it("is at once if others must be called, and a retry's delay away if a reservation is in doubt", () => {
    expect(next({ mustCallOthers: true })).toBe(SOON);
    expect(next({ isReservationInDoubt: true })).toBe(NOW + NOTIFY_RETRY_MS);
  });

  it("leaves an alarm that is early enough, for setting it costs a row", () => {
    expect(next({ uploadDueMs: NOW + 500_000 }, { armedMs: NOW + 400_000 })).toBe(null);
    expect(next({ uploadDueMs: NOW + 300_000 }, { armedMs: NOW + 400_000 })).toBe(NOW + 300_000);
  });

  it("does not visit the leases while the alarm is nearer than the end of any new lease", () => {
    const run: AlarmState = {
      ...IDLE,
      hasWork: true,
      get leaseEndMs(): number | null {
        throw new Error("the leases were visited");
      },
    };
    const times = { armedMs: NOW + LEASE_TTL_MS, requestedMs: null, retryAtMs: null };
    expect(nextAlarmMs(run, times, NOW)).toBe(null);
    expect(() => nextAlarmMs(run, { ...times, armedMs: NOW + LEASE_TTL_MS + 1 }, NOW)).toThrow("visited");
  });

  it("is set anew however near it is if something falls due before it, and left if not", () => {
    expect(next({ readyAtMs: NOW + 3 }, { armedMs: NOW + 10 })).toBe(NOW + 3);
    expect(next({ readyAtMs: NOW + 10 }, { armedMs: NOW + 10 })).toBe(null);
  });

  it("is set anew however near it is if others must be called or the run is to be deleted", () => {
    expect(next({ mustCallOthers: true }, { armedMs: NOW + 10 })).toBe(SOON);
    expect(next({ mustCallOthers: true }, { armedMs: SOON })).toBe(null);
    expect(next({ expiresAtMs: null, deleteAtMs: NOW + 3 }, { armedMs: NOW + 10 })).toBe(NOW + 3);
  });

  it("waits for the retry after jobs failed, unless it is requested", () => {
    const retryAtMs = NOW + NOTIFY_RETRY_MS;
    expect(next({ mustCallOthers: true }, { retryAtMs })).toBe(retryAtMs);
    expect(next({ childDueMs: NOW - 1 }, { retryAtMs })).toBe(retryAtMs);
    expect(next({ uploadDueMs: retryAtMs + 1 }, { retryAtMs })).toBe(retryAtMs + 1);
    expect(next({ mustCallOthers: true }, { retryAtMs, requestedMs: NOW })).toBe(SOON);
  });

  it("is the start of an export, unless an alarm is set that is near enough", () => {
    expect(next({ exportDelayMs: 5_000 })).toBe(NOW + 5_000);
    expect(next({ webhookDelayMs: 5_000 })).toBe(NOW + 5_000);
    // A webhook does not wait for an alarm that is only near.
    expect(next({ webhookDelayMs: 5_000 }, { armedMs: NOW + LEASE_TTL_MS })).toBe(NOW + 5_000);
    expect(next({ exportDelayMs: 5_000 }, { armedMs: NOW + LEASE_TTL_MS + 1 })).toBe(NOW + 5_000);
    expect(next({ exportDelayMs: 5_000 }, { armedMs: NOW + LEASE_TTL_MS })).toBe(null);
  });

  it("is never the present millisecond, which may be that of the alarm that fires now, nor a part of one", () => {
    expect(next({}, { requestedMs: NOW })).toBe(SOON);
    expect(next({ readyAtMs: NOW - 5 })).toBe(SOON);
    expect(next({ readyAtMs: NOW + 0.5 })).toBe(SOON);
    expect(next({ readyAtMs: NOW + 7.25 })).toBe(NOW + 8);
  });

  it("is a requested time if nothing is due before it", () => {
    expect(next({}, { requestedMs: NOW + 10 })).toBe(NOW + 10);
    expect(next({ uploadDueMs: NOW + 5 }, { requestedMs: NOW + 10 })).toBe(NOW + 5);
    expect(next({}, { requestedMs: NOW + 10, armedMs: NOW + 10 })).toBe(null);
  });
});

describe("the alarm of an instance", () => {
  /** An alarm, and the times that it was set to. */
  function makeClock(): { clock: AlarmClock; set: number[] } {
    const set: number[] = [];
    return { clock: new AlarmClock((atMs) => set.push(atMs)), set };
  }

  it("keeps the earlier of two times for which it was requested, in either order, and is set no more often", () => {
    const { clock, set } = makeClock();
    clock.arm(IDLE, NOW, NOW + 500);
    clock.arm(IDLE, NOW, NOW + 900);
    expect(set).toEqual([NOW + 500]);
    clock.arm(IDLE, NOW, NOW);
    clock.arm(IDLE, NOW, NOW + 500);
    clock.arm(IDLE, NOW);
    expect(set).toEqual([NOW + 500, SOON]);
  });

  it("fires once for a request: what is due next is set anew", () => {
    const { clock, set } = makeClock();
    clock.arm(IDLE, NOW, NOW + 5);
    clock.fired();
    clock.arm(IDLE, NOW + 5);
    expect(set).toEqual([NOW + 5, EXPIRY]);
  });

  it("waits for the retry of jobs that have failed, though it was set to fire at once meanwhile, unless it is requested again", () => {
    const { clock, set } = makeClock();
    const mustCall = { ...IDLE, mustCallOthers: true };
    clock.fired();
    clock.arm(mustCall, NOW);
    clock.failed(NOW + NOTIFY_RETRY_MS);
    clock.arm(mustCall, NOW);
    clock.arm(mustCall, NOW + 1);
    expect(set).toEqual([SOON, NOW + NOTIFY_RETRY_MS]);
    clock.arm(mustCall, NOW + 1, NOW + 1);
    expect(set.at(-1)).toBe(NOW + 2);
  });

  it("leaves an alarm that an earlier instance has set if that is early enough", () => {
    const { clock, set } = makeClock();
    clock.restored(NOW + 400);
    clock.arm(IDLE, NOW, NOW + 400);
    expect(set).toEqual([]);
    clock.arm(IDLE, NOW, NOW + 300);
    clock.restored(NOW + 900);
    clock.arm(IDLE, NOW, NOW + 800);
    expect(set).toEqual([NOW + 300]);
  });
});
