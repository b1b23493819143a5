/** The parts of a gate, one by one. */
import { describe, expect, it } from "vitest";
import { EMPTY_MEMORY, shouldStore, type GateMemory } from "../../../src/gate/memory.ts";
import { Pace } from "../../../src/gate/pace.ts";
import { Penalty } from "../../../src/gate/penalty.ts";
import { RateBucket } from "../../../src/gate/rate-bucket.ts";
import { waterLevel, type Demand } from "../../../src/gate/runs/share.ts";
import type { PenaltySettings } from "../../../src/gate/settings.ts";
import { Started } from "../../../src/gate/started.ts";
import { Stop } from "../../../src/gate/stop.ts";
import { Tickets } from "../../../src/gate/runs/tickets.ts";
import { AdaptiveWidth } from "../../../src/gate/width.ts";
import {
  GATE_PROBE_DELAYS_MS,
  GATE_HOLD_STORE_MS,
  GATE_STORE_EVERY_MS,
  GATE_STORE_WIDTH_EVERY_MS,
  GATE_WIDTH_FORGET_MS,
  GATE_WIDTH_PROBE_MS,
  GATE_WIDTH_REST_MS,
} from "../../../src/limits.ts";

const MINUTE_MS = 60_000;
const amount = (requests: number) => ({
  requests,
  tokens: requests * 100,
  inputTokens: requests * 40,
  outputTokens: requests * 60,
});

describe("Started", () => {
  it("knows what had been started by a time, evenly between two reports", () => {
    const started = new Started(0);
    started.add(amount(10), 0, 1_000, 1_000);
    started.add(amount(20), 1_000, 3_000, 3_000);
    expect(started.by("requests", 1_000)).toBe(10);
    expect(started.by("requests", 2_000)).toBe(20);
    expect(started.by("tokens", 3_000)).toBe(3_000);
    expect(started.by("requests", 9_000)).toBe(30);
    expect(started.by("requests", -1)).toBe(0);
  });

  it("spreads a late report over the time that it is of", () => {
    const started = new Started(0);
    for (let atMs = 1_000; atMs <= 4_000; atMs += 1_000) started.add(amount(1), atMs - 1_000, atMs, atMs);
    // Another run reports what it has started in the first two seconds.
    started.add(amount(8), 0, 2_000, 4_050);
    expect(started.by("requests", 1_000)).toBe(5);
    expect(started.by("requests", 2_000)).toBe(10);
    expect(started.by("requests", 4_050)).toBe(12);
  });
});

describe("RateBucket", () => {
  const sample = (remaining: number, limit = 600) => ({ limit, remaining, resetMs: null, windowMs: MINUTE_MS });
  const follow = (bucket: RateBucket, remaining: number, nowMs: number, started = { atSample: 0, now: 0 }) =>
    bucket.follow(sample(remaining), 0, { started, isExact: true }, nowMs);

  it("refills continuously, up to its limit", () => {
    const bucket = RateBucket.from(sample(100), 0);
    follow(bucket, 100, 0);
    expect(bucket.status(0).remaining).toBe(100);
    expect(bucket.status(10_000)).toEqual({ limit: 600, remaining: 200, resetMs: 40_000 });
    expect(bucket.status(600_000).remaining).toBe(600);
  });

  it("takes what was started since a sample from what the sample says", () => {
    const bucket = RateBucket.from(sample(100), 0);
    bucket.follow(sample(100), 1_000, { started: { atSample: 5, now: 25 }, isExact: true }, 10_000);
    // 100 a second ago, 10 refilled, 20 started.
    expect(bucket.status(10_000).remaining).toBe(90);
  });

  it("ignores a sample that is older than one that it has followed", () => {
    const bucket = RateBucket.from(sample(100), 0);
    follow(bucket, 100, 5_000);
    bucket.follow(sample(600), 1_000, { started: { atSample: 0, now: 0 }, isExact: true }, 5_000);
    expect(bucket.status(5_000).remaining).toBe(100);
  });

  it("never grants more than is left after what is granted already", () => {
    const bucket = RateBucket.from(sample(100), 0);
    follow(bucket, 100, 0);
    expect(bucket.available(0, 0)).toBeLessThan(100);
    expect(bucket.available(0, 0)).toBeGreaterThan(90);
    expect(bucket.available(100, 0)).toBe(0);
    expect(bucket.waitFor(1, 100, 0)).toBeGreaterThan(100);
  });

  it("learns what the provider counts for what the runs call a token", () => {
    const bucket = RateBucket.from(sample(50_000, 60_000), 0);
    let started = 0;
    for (let second = 0; second <= 60; second++) {
      // The runs say 3,000 a second, the provider counts 1,000, which is its refill: the level stays.
      const counts = { started: { atSample: started, now: started }, isExact: false };
      bucket.follow(sample(50_000, 60_000), 0, counts, second * 1_000);
      started += 3_000;
    }
    expect(bucket.factor).toBeCloseTo(1 / 3, 1);
  });

  it("learns it from what answers have used where its headers show nothing, and does not take what a full bucket loses for it", () => {
    const bucket = RateBucket.from(sample(0, 600_000), 0);
    let started = 0;
    for (let second = 0; second <= 20; second++) {
      // Hardly anything is ever left of what is enforced second by second.
      const counts = { started: { atSample: started, now: started }, isExact: false };
      bucket.follow(sample(200, 600_000), 0, counts, second * 1_000);
      bucket.expect(600, 160);
      started += 160;
      if (second === 0) expect(bucket.factor).toBeCloseTo(3.75, 6);
    }
    expect(bucket.factor).toBeLessThanOrEqual(3.75 * 1.5);
  });

  it("holds no more than its headers say it will be full with, or than it was full with after a pause", () => {
    const named = RateBucket.from(sample(9_400, 600_000), 0);
    const counts = { started: { atSample: 0, now: 0 }, isExact: false };
    named.follow({ ...sample(9_400, 600_000), resetMs: 60 }, 0, counts, 0);
    expect(named.available(0, 60_000)).toBeLessThanOrEqual(10_000);
    const silent = RateBucket.from(sample(400, 600_000), 0);
    silent.follow(sample(400, 600_000), 0, counts, 0);
    expect(silent.available(0, 10_000)).toBeGreaterThan(90_000);
    silent.follow(sample(10_000, 600_000), 0, counts, 10_000);
    expect(silent.available(0, 30_000)).toBeLessThanOrEqual(10_000);
    // What is there shows that it holds more.
    silent.follow(sample(50_000, 600_000), 0, counts, 31_000);
    expect(silent.available(0, 31_000)).toBeGreaterThan(40_000);
  });

  it("is in no deeper debt than the time that a rejection names", () => {
    const bucket = RateBucket.from(sample(100), 0);
    bucket.follow(sample(100), 0, { started: { atSample: 0, now: 0 }, isExact: true }, 0);
    bucket.start(500, 0);
    expect(bucket.waitFor(1, 0, 0)).toBeGreaterThan(40_000);
    bucket.rejected(2_000, 0);
    expect(bucket.waitFor(1, 0, 0)).toBeLessThanOrEqual(15_000);
  });

  it("is empty after a restart, and refills", () => {
    const bucket = new RateBucket({ limit: 600, windowMs: MINUTE_MS, factor: 1 }, 0, 0);
    expect(bucket.available(0, 0)).toBe(0);
    expect(bucket.available(0, 10_000)).toBeGreaterThan(90);
  });
});

describe("AdaptiveWidth", () => {
  const steady = (width: AdaptiveWidth, fromMs: number, untilMs: number) => {
    for (let nowMs = fromMs; nowMs < untilMs; nowMs += 150) {
      width.succeeded({ inFlight: width.permits ?? 0, count: 10, models: [] }, 300, nowMs);
    }
  };

  it("limits nothing before the first rejection", () => {
    const width = new AdaptiveWidth();
    steady(width, 0, 10_000);
    expect(width.permits).toBeNull();
  });

  it("is halved when most calls are rejected, and lowered by a tenth by a single one", () => {
    const width = new AdaptiveWidth();
    width.rejected(40, 24, 0);
    expect(width.permits).toBe(32);
    width.count(1_000);
    width.succeeded({ inFlight: 32, count: 1_000, models: [] }, 300, GATE_WIDTH_REST_MS);
    width.rejected(1, 31, GATE_WIDTH_REST_MS);
    expect(width.permits).toBeGreaterThanOrEqual(28);
    expect(width.permits).toBeLessThanOrEqual(32);
  });

  it("counts rejections that come together as one", () => {
    const width = new AdaptiveWidth();
    width.rejected(1, 63, 0);
    const after = width.permits;
    width.rejected(1, 62, GATE_WIDTH_REST_MS - 1);
    expect(width.permits).toBe(after);
  });

  it("is not lowered by the few calls in a hundred that a provider fails as overloaded at any width", () => {
    const width = new AdaptiveWidth();
    for (let nowMs = 0; nowMs < 60_000; nowMs += 200) {
      width.count(29);
      width.rejected(1, 64, nowMs, true);
    }
    expect(width.permits).toBeNull();
    // One in five is more than its own faults.
    for (let nowMs = 60_000; nowMs < 70_000; nowMs += 200) {
      width.count(4);
      width.rejected(1, 64, nowMs, true);
    }
    expect(width.permits).toBeLessThan(64);
  });

  it("keeps one permit, without a pace, for a provider that is down: all calls fail as overloaded", () => {
    const width = new AdaptiveWidth();
    const refuse = (fromMs: number, isOverload: boolean): void => {
      for (let nowMs = fromMs; nowMs < fromMs + 20_000; nowMs += 200) width.rejected(1, 0, nowMs, isOverload);
    };
    refuse(0, true);
    expect([width.permits, width.exact, width.ratePerMs(1_000)]).toEqual([1, 1, null]);
    width.count(1);
    expect(width.ratePerMs(1_000)).toBeGreaterThan(0);
    refuse(20_200, true);
    expect(width.ratePerMs(1_000)).toBeNull();
    width.rejected(1, 0, 50_000, false);
    expect(width.ratePerMs(1_000)).toBeGreaterThan(0);
  });

  it("never falls below one permit, and then paces", () => {
    const width = new AdaptiveWidth();
    for (let nowMs = 0; nowMs < 20_000; nowMs += 200) width.rejected(1, 0, nowMs);
    expect(width.permits).toBe(1);
    expect(width.ratePerMs(1_000)).toBeGreaterThan(0);
    expect(width.ratePerMs(1_000)).toBeLessThan(1 / 1_000);
  });

  it("rises beyond its ceiling step by step while it is used, and not while it is not", () => {
    const width = new AdaptiveWidth();
    width.rejected(10, 30, 0);
    steady(width, 200, 10_000);
    const used = width.permits ?? 0;
    expect(used).toBeGreaterThan(36);
    const idle = new AdaptiveWidth();
    idle.rejected(10, 30, 0);
    const before = idle.permits;
    for (let nowMs = 200; nowMs < 10_000; nowMs += 150) {
      idle.succeeded({ inFlight: 10, count: 1, models: [] }, 300, nowMs);
    }
    expect(idle.permits).toBe(before);
    expect(GATE_WIDTH_PROBE_MS).toBeGreaterThan(GATE_WIDTH_REST_MS);
  });

  it("is forgotten when it has limited nothing for long", () => {
    const width = new AdaptiveWidth();
    width.rejected(10, 50, 0);
    width.succeeded({ inFlight: 2, count: 1, models: [] }, 300, GATE_WIDTH_FORGET_MS - 1);
    expect(width.permits).not.toBeNull();
    width.succeeded({ inFlight: 2, count: 1, models: [] }, 300, GATE_WIDTH_FORGET_MS);
    expect(width.permits).toBeNull();
  });
});

describe("Penalty", () => {
  const settings = (fields: Partial<PenaltySettings>): PenaltySettings => ({
    weights: { rateLimited: 2, overloaded: 1.5, timeout: 1, schemaViolation: 0.5 },
    decay: "linear",
    maxPenalty: 100,
    decayMs: 1_000,
    ...fields,
  });

  it("divides the width by the penalty plus one", () => {
    const penalty = new Penalty(settings({}));
    expect(penalty.widthAt(0, 512)).toBeNull();
    penalty.failed({ class: "rate_limited", count: 1 }, 30, 0);
    expect([penalty.valueAt(0), penalty.widthAt(0, 512)]).toEqual([2, 10]);
    penalty.failed({ class: "overloaded", count: 1 }, 30, 0);
    penalty.failed({ class: "timeout", count: 1 }, 30, 0);
    penalty.failed({ class: "schema_violation", count: 1 }, 30, 0);
    expect([penalty.valueAt(0), penalty.widthAt(0, 512)]).toEqual([5, 5]);
    expect(penalty.widthAt(0, 12)).toBe(2);
    penalty.failed({ class: "rate_limited", count: 50 }, 30, 0);
    expect(penalty.widthAt(0, 512)).toBe(1);
  });

  it.each([
    ["linear", 8, [7, 6, 5, 4]],
    ["exponential", 8, [4, 2, 1, 0.5]],
    ["hybrid", 8, [5.6, 3.92, 2.92, 1.92]],
  ] as const)("falls with time: %s", (decay, weight, values) => {
    const penalty = new Penalty(settings({ decay, weights: { ...settings({}).weights, rateLimited: weight } }));
    penalty.failed({ class: "rate_limited", count: 1 }, 30, 0);
    for (const [index, value] of values.entries()) {
      expect(penalty.valueAt((index + 1) * 1_000 - 1)).toBeCloseTo(index === 0 ? weight : (values[index - 1] ?? 0), 6);
      expect(penalty.valueAt((index + 1) * 1_000)).toBeCloseTo(value, 6);
    }
    expect(penalty.widthAt(100_000, 512)).toBeNull();
  });

  it("has a bound", () => {
    const penalty = new Penalty(settings({ maxPenalty: 3 }));
    penalty.failed({ class: "rate_limited", count: 50 }, 40, 0);
    expect(penalty.widthAt(0, 512)).toBe(10);
  });
});

describe("Stop", () => {
  it("allows a probe after each of its delays, of which the last repeats", () => {
    const stop = new Stop({ reason: "invalid_key", sinceMs: 0, message: null }, 0);
    const taken: number[] = [];
    for (let nowMs = 0; nowMs <= 230_000; nowMs += 500) if (stop.takeProbe(nowMs)) taken.push(nowMs);
    const pauses = taken.map((nowMs, index) => nowMs - (taken[index - 1] ?? 0));
    expect(pauses.slice(0, GATE_PROBE_DELAYS_MS.length)).toEqual(GATE_PROBE_DELAYS_MS);
    expect(new Set(pauses.slice(GATE_PROBE_DELAYS_MS.length))).toEqual(new Set([GATE_PROBE_DELAYS_MS.at(-1)]));
  });
});

describe("Pace", () => {
  it("lets calls through one by one, and collects hardly any", () => {
    const pace = new Pace(1 / 1_000, 0);
    expect(pace.available(0, 0)).toBe(1);
    pace.start(1, 0);
    expect(pace.available(0, 500)).toBe(0.5);
    expect(pace.waitFor(1, 0, 500)).toBe(500);
    expect(pace.available(0, 100_000)).toBe(1);
    // What was started before there was a pace is no debt.
    pace.start(50, 100_000);
    expect(pace.waitFor(1, 0, 100_000)).toBe(2_000);
  });
});

describe("waterLevel", () => {
  const parts = (demands: readonly Demand[], total: number) => {
    const level = waterLevel(demands, total);
    return demands.map(({ wanted, weight }) => Math.min(wanted, level * weight));
  };

  it("gives in proportion to weights, and what one does not want to the others", () => {
    const demands = [
      { wanted: 100, weight: 3 },
      { wanted: 100, weight: 1 },
      { wanted: 2, weight: 4 },
    ];
    const [first, second, third] = parts(demands, 42);
    expect(first).toBeCloseTo(30, 6);
    expect(second).toBeCloseTo(10, 6);
    expect(third).toBeCloseTo(2, 6);
    expect(parts(demands, 1_000)).toEqual([100, 100, 2]);
    expect(parts([], 5)).toEqual([]);
  });
});

describe("Tickets", () => {
  it("are in the order in which runs began to wait, and who has none comes after all", () => {
    const tickets = new Tickets();
    const runs = [0, 1, 2].map((): { ticket: number | null } => ({ ticket: null }));
    for (const run of runs) tickets.take(run);
    expect(runs.map((run) => tickets.placeOf(run))).toEqual([1, 2, 3]);
    expect(tickets.placeOf({ ticket: null })).toBe(4);
    const [first = { ticket: null }, second = { ticket: null }, third = { ticket: null }] = runs;
    tickets.end(first);
    expect([tickets.placeOf(second), tickets.placeOf(third)]).toEqual([1, 2]);
    tickets.take(first);
    expect([tickets.placeOf(second), tickets.placeOf(third), tickets.placeOf(first)]).toEqual([1, 2, 3]);
    // One that sleeps keeps its place.
    tickets.end(third);
    expect([tickets.placeOf(second), tickets.placeOf(first), tickets.count]).toEqual([1, 2, 2]);
  });
});

describe("what a gate stores", () => {
  const memory = (fields: Partial<GateMemory>): GateMemory => ({ ...EMPTY_MEMORY, ...fields });
  const width = (value: number) => memory({ width: { width: value, ceiling: value } });
  const bucket = (limit: number, factor = 1) => memory({ buckets: { tokens: { limit, windowMs: 60_000, factor } } });

  const NOW_MS = 1_000_000;
  const after = (sinceMs: number) => ({ nowMs: NOW_MS + sinceMs, storedMs: NOW_MS });
  const hold = (forMs: number) => memory({ waitUntilMs: NOW_MS + forMs });

  it("is a Retry-After that is long, once", () => {
    expect(shouldStore(EMPTY_MEMORY, hold(GATE_HOLD_STORE_MS - 1), after(0))).toBe(false);
    expect(shouldStore(EMPTY_MEMORY, hold(GATE_HOLD_STORE_MS), after(0))).toBe(true);
    expect(shouldStore(hold(30_000), hold(30_000 + GATE_HOLD_STORE_MS - 1), after(0))).toBe(false);
    expect(shouldStore(hold(30_000), hold(30_000 + GATE_HOLD_STORE_MS), after(0))).toBe(true);
    // One that is over says nothing about the next.
    expect(shouldStore(hold(1_000), hold(60_000), after(60_000 - GATE_HOLD_STORE_MS))).toBe(true);
    expect(shouldStore(hold(30_000), hold(30_000), after(31_000))).toBe(false);
  });

  it("is a stop at once, and that there is a width or a limit", () => {
    const stop = { reason: "insufficient_quota" as const, sinceMs: 5, message: null };
    expect(shouldStore(EMPTY_MEMORY, memory({ stop }), after(0))).toBe(true);
    expect(shouldStore(memory({ stop }), EMPTY_MEMORY, after(0))).toBe(true);
    expect(shouldStore(EMPTY_MEMORY, width(8), after(0))).toBe(true);
    expect(shouldStore(EMPTY_MEMORY, bucket(600), after(0))).toBe(true);
    expect(shouldStore(memory({ stop }), memory({ stop: { ...stop } }), after(GATE_STORE_EVERY_MS))).toBe(false);
  });

  it("is a figure that has moved, seldom", () => {
    expect(shouldStore(width(10), width(20), after(GATE_STORE_WIDTH_EVERY_MS - 1))).toBe(false);
    expect(shouldStore(width(10), width(20), after(GATE_STORE_WIDTH_EVERY_MS))).toBe(true);
    // One that has fallen at once: the next instance must not begin with what was refused.
    expect(shouldStore(width(20), width(10), after(0))).toBe(true);
    expect(shouldStore(width(20), width(18), after(0))).toBe(false);
    expect(shouldStore(width(10), width(11), after(GATE_STORE_EVERY_MS))).toBe(false);
    expect(shouldStore(bucket(600), bucket(900), after(GATE_STORE_EVERY_MS))).toBe(true);
    expect(shouldStore(bucket(600), bucket(600, 0.5), after(GATE_STORE_EVERY_MS))).toBe(true);
    expect(shouldStore(bucket(600), bucket(600, 1.1), after(GATE_STORE_EVERY_MS))).toBe(false);
  });
});
