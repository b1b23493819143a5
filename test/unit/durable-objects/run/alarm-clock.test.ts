import { describe, expect, it } from "vitest";
import {
  AlarmClock,
  isPressing,
  nextAlarmMs,
  type AlarmTimes,
  type Due,
} from "../../../../durable-objects/run/alarm-clock.ts";
import { LEASE_TTL_MS, NOTIFY_RETRY_MS } from "../../../../src/limits.ts";

const NOW = 1_000_000;
const EXPIRY = NOW + 3_600_000;
/** The alarm that fires now may be the one whose handler runs. */
const SOON = NOW + 1;

/** When each job of the test is due. */
type World = {
  expiresAtMs: number | null;
  lateMs: number | null;
  punctualMs: number | null;
  pressingMs: number | null;
};

const IDLE: World = { expiresAtMs: EXPIRY, lateMs: null, punctualMs: null, pressingMs: null };

const JOBS: readonly Due<World>[] = [
  { patience: "late", dueAtMs: ({ expiresAtMs }) => expiresAtMs },
  { patience: "late", dueAtMs: ({ lateMs }) => lateMs },
  { patience: "punctual", dueAtMs: ({ punctualMs }) => punctualMs },
  { patience: "pressing", dueAtMs: ({ pressingMs }) => pressingMs },
];

function next(world: Partial<World>, times: Partial<AlarmTimes> = {}): number | null {
  return nextAlarmMs(JOBS, { ...IDLE, ...world }, { armedMs: null, requestedMs: null, retryAtMs: null, ...times }, NOW);
}

describe("the next alarm of a run", () => {
  it("is the first of everything that is due; without anything there is none", () => {
    expect(next({})).toBe(EXPIRY);
    expect(next({ expiresAtMs: null })).toBe(null);
    for (const job of ["lateMs", "punctualMs", "pressingMs"] as const) {
      expect(next({ lateMs: NOW + 70, punctualMs: NOW + 70, pressingMs: NOW + 70, [job]: NOW + 60 })).toBe(NOW + 60);
    }
  });

  it("leaves an alarm that is early enough, for setting it costs a row", () => {
    expect(next({ lateMs: NOW + 500_000 }, { armedMs: NOW + 400_000 })).toBe(null);
    expect(next({ lateMs: NOW + 300_000 }, { armedMs: NOW + 400_000 })).toBe(NOW + 300_000);
  });

  it("stays for a late job, unseen, while it is nearer than the end of any new lease", () => {
    const visited: Due<World> = {
      patience: "late",
      dueAtMs: () => {
        throw new Error("the leases were visited");
      },
    };
    const times = { armedMs: NOW + LEASE_TTL_MS, requestedMs: null, retryAtMs: null };
    expect(nextAlarmMs([visited, ...JOBS], IDLE, times, NOW)).toBe(null);
    const later = { ...times, armedMs: NOW + LEASE_TTL_MS + 1 };
    expect(() => nextAlarmMs([visited, ...JOBS], IDLE, later, NOW)).toThrow("visited");
    expect(() => nextAlarmMs([visited, ...JOBS], IDLE, { ...times, requestedMs: NOW + 9 }, NOW)).toThrow("visited");
    expect(next({ lateMs: NOW + 5_000 }, { armedMs: NOW + LEASE_TTL_MS })).toBe(null);
    expect(next({ lateMs: NOW + 5_000 }, { armedMs: NOW + LEASE_TTL_MS + 1 })).toBe(NOW + 5_000);
  });

  it("is set anew for a punctual job however near it is, and left if that is not before it", () => {
    expect(next({ punctualMs: NOW + 3 }, { armedMs: NOW + 10 })).toBe(NOW + 3);
    expect(next({ punctualMs: NOW + 10 }, { armedMs: NOW + 10 })).toBe(null);
    // A punctual job that is not before the alarm makes no late one punctual.
    expect(next({ punctualMs: NOW + 10, lateMs: NOW + 5 }, { armedMs: NOW + 10 })).toBe(null);
  });

  it("is set anew for a pressing job however near it is, and then for every late one as well", () => {
    expect(next({ pressingMs: NOW }, { armedMs: NOW + 10 })).toBe(SOON);
    expect(next({ pressingMs: NOW }, { armedMs: SOON })).toBe(null);
    expect(next({ expiresAtMs: null, pressingMs: NOW + 3 }, { armedMs: NOW + 10 })).toBe(NOW + 3);
    expect(next({ pressingMs: NOW + 99, lateMs: NOW + 5 }, { armedMs: NOW + 10 })).toBe(NOW + 5);
  });

  it("waits for the retry after jobs failed, unless it is requested", () => {
    const retryAtMs = NOW + NOTIFY_RETRY_MS;
    expect(next({ pressingMs: NOW }, { retryAtMs })).toBe(retryAtMs);
    expect(next({ lateMs: NOW - 1 }, { retryAtMs })).toBe(retryAtMs);
    expect(next({ lateMs: retryAtMs + 1 }, { retryAtMs })).toBe(retryAtMs + 1);
    expect(next({ pressingMs: NOW }, { retryAtMs, requestedMs: NOW })).toBe(SOON);
  });

  it("is never the present millisecond, which may be that of the alarm that fires now, nor a part of one", () => {
    expect(next({}, { requestedMs: NOW })).toBe(SOON);
    expect(next({ punctualMs: NOW - 5 })).toBe(SOON);
    expect(next({ punctualMs: NOW + 0.5 })).toBe(SOON);
    expect(next({ punctualMs: NOW + 7.25 })).toBe(NOW + 8);
  });

  it("is a requested time if nothing is due before it", () => {
    expect(next({}, { requestedMs: NOW + 10 })).toBe(NOW + 10);
    expect(next({ lateMs: NOW + 5 }, { requestedMs: NOW + 10 })).toBe(NOW + 5);
    expect(next({}, { requestedMs: NOW + 10, armedMs: NOW + 10 })).toBe(null);
  });
});

describe("what presses", () => {
  it("is a pressing job that is due, and nothing else", () => {
    expect(isPressing(JOBS, { ...IDLE, pressingMs: NOW }, NOW)).toBe(true);
    expect(isPressing(JOBS, { ...IDLE, pressingMs: SOON }, NOW)).toBe(false);
    expect(isPressing(JOBS, { ...IDLE, lateMs: NOW, punctualMs: NOW }, NOW)).toBe(false);
  });
});

describe("the alarm of an instance", () => {
  /** An alarm, and the times that it was set to. */
  function makeClock(): { clock: AlarmClock<World>; set: number[] } {
    const set: number[] = [];
    return { clock: new AlarmClock(JOBS, (atMs) => set.push(atMs)), set };
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
    const mustCall = { ...IDLE, pressingMs: NOW };
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
