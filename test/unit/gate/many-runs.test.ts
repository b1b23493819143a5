/** Thousands of runs at one key: what they get of it, and what an exchange costs. */
import { describe, expect, it } from "vitest";
import { Gate } from "../../../src/gate/gate.ts";
import { EMPTY_MEMORY } from "../../../src/gate/memory.ts";
import type { GateSettings } from "../../../src/gate/settings.ts";
import type { GateFailure } from "../../../src/gate/wire.ts";
import {
  GATE_EXCHANGE_EVERY_MS,
  GATE_RUNS_MAX,
  GATE_UNKNOWN_IN_FLIGHT_MAX,
  GATE_VISITS_MAX,
} from "../../../src/limits.ts";
import { MANY_CALLS } from "../../support/busy-machine.ts";
import { seeded } from "../../support/engine.ts";
import { concurrencyLimited, openaiLike } from "../../support/gate-providers.ts";
import { gateReport } from "../../support/gate-report.ts";
import { World, type RunPlan } from "../../support/gate-world.ts";

const SETTINGS: GateSettings = { adaptive: { mode: "aimd" }, maxInFlight: 512 };
const RUNS = 5_000;
/** Runs that an exchange may look at: once for what has expired, and once in some exchanges for the water level of the permits. */
const VISITS_MAX = 3 * GATE_VISITS_MAX;

/** Runs that all begin within a second. */
const plans = (calls: number): RunPlan[] =>
  Array.from({ length: RUNS }, (_, at) => ({ id: `r${at}`, calls, startMs: (at * 7_919) % 1_000 }));

const REJECTED: GateFailure = { class: "rate_limited", stop: null, hintMs: null, count: 30, ageMs: 0, message: null };

describe("5,000 runs at one limited key", () => {
  it(
    "use at least 0.95 of a rate, each is served within twice its fair time, and an exchange looks at few of them",
    { tags: ["slow"], ...MANY_CALLS },
    () => {
      const perSecond = 100;
      const world = new World({ provider: openaiLike(perSecond * 60, 1e9, 0), runs: plans(2) });
      world.runUntil(600_000);
      expect(world.isDone).toBe(true);
      // If all were served in turn: when each has had its first call, and its second.
      for (const call of [0, 1]) {
        const fairMs = (RUNS * (call + 1) * 1_000) / perSecond;
        expect(Math.max(...world.runs.map(({ done }) => done[call]?.atMs ?? Infinity))).toBeLessThanOrEqual(fairMs * 2);
      }
      expect(world.nowMs).toBeLessThanOrEqual((RUNS * 2 * 1_000) / perSecond / 0.95);
      expect(world.gate.visits / world.exchanges).toBeLessThanOrEqual(VISITS_MAX);
      // Each of them comes about four times a minute.
      expect(world.exchanges / (world.nowMs / 1_000)).toBeLessThanOrEqual(2 * (1_000 / GATE_EXCHANGE_EVERY_MS));
      const { rejected, sent } = world.rejectedAfter(2_000);
      expect(rejected / sent).toBeLessThanOrEqual(0.02);
    },
  );

  it(
    "use at least 0.93 of a width for calls of 0.3 s, each is served within twice its fair time, and an exchange looks at few of them",
    { tags: ["slow"], ...MANY_CALLS },
    () => {
      const width = 20;
      const world = new World({ provider: concurrencyLimited(() => width), runs: plans(1), shareIsolate: true });
      world.runUntil(600_000);
      expect(world.isDone).toBe(true);
      const fairMs = (RUNS / width) * 305;
      // Messages between runs, gate and provider take 10 ms of each call's turn.
      expect(world.nowMs).toBeLessThanOrEqual(fairMs / 0.93);
      expect(world.gate.visits / world.exchanges).toBeLessThanOrEqual(VISITS_MAX);
      expect(world.exchanges / (world.nowMs / 1_000)).toBeLessThanOrEqual(2.2 * (1_000 / GATE_EXCHANGE_EVERY_MS));
      // Those that are new share what they begin with: without that, each of the 5,000 has its first call rejected.
      expect(world.sent.filter(({ status }) => status !== 200).length).toBeLessThanOrEqual(RUNS / 4);
    },
  );

  it("use at least 0.95 of a width for calls of some seconds", { tags: ["slow"], ...MANY_CALLS }, () => {
    const width = 100;
    const [shortestMs, longestMs] = [1_000, 3_000];
    const random = seeded(5);
    const latencyMs = (): number => shortestMs + (longestMs - shortestMs) * random();
    const runs = plans(1).map((plan) => ({ ...plan, latencyMs }));
    const world = new World({ provider: concurrencyLimited(() => width), runs, shareIsolate: true });
    world.runUntil(600_000);
    expect(world.isDone).toBe(true);
    // From when the first calls have ended until no run waits any more, and the last calls end one by one.
    const [fromMs, toMs] = [5_000, 90_000];
    const capacity = (width * (toMs - fromMs)) / ((shortestMs + longestMs) / 2 + 5);
    expect(world.doneBy(toMs, fromMs) / capacity).toBeGreaterThanOrEqual(0.95);
  });

  it("that begin at once do not go on with their full width each at a key of which nothing is known", () => {
    const gate = new Gate(SETTINGS, 1, EMPTY_MEMORY, 0);
    const permits = Array.from({ length: RUNS }, (_, at) =>
      gate.exchange(gateReport(`r${at}`, 1, { waiting: 100, inFlight: 10, permits: 0 }), at / 10),
    ).map((grant) => grant.permits);
    expect(permits[0]).toBeNull();
    expect(permits.at(-1)).toBe(Math.max(1, Math.floor(GATE_UNKNOWN_IN_FLIGHT_MAX / RUNS)));
  });
});

describe("a gate that knows as many runs as it can", () => {
  /** Each waits at a key of a small width. */
  const full = (last: { waiting: number }): Gate => {
    const gate = new Gate(SETTINGS, 1, EMPTY_MEMORY, 0);
    gate.exchange(gateReport("r0", 1, { failures: [REJECTED], waiting: 10 }), 0);
    for (let at = 1; at < GATE_RUNS_MAX; at++) {
      const { waiting } = at === GATE_RUNS_MAX - 1 ? last : { waiting: 1 };
      gate.exchange(gateReport(`r${at}`, 1, { waiting }), at / 1_000);
    }
    return gate;
  };

  it("forgets none that waits, and tells a newcomer when to come back", () => {
    const gate = full({ waiting: 1 });
    const grant = gate.exchange(gateReport("late", 1, { waiting: 5 }), 20);
    expect(grant).toMatchObject({ class: "shrunk", reason: "width", permits: 0 });
    expect(grant.nextInMs).toBe(GATE_RUNS_MAX * GATE_EXCHANGE_EVERY_MS);
    expect(grant.ttlMs).toBeGreaterThan(grant.nextInMs);
    expect(gate.status(20).runs).toBe(GATE_RUNS_MAX);
    // Once one has left, it is one of them.
    gate.leave("r7", Infinity, null, 30);
    gate.exchange(gateReport("late", 2, { waiting: 5 }), 40);
    expect(gate.status(40)).toMatchObject({ runs: GATE_RUNS_MAX });
  });

  it("makes room by forgetting one that has nothing to do", () => {
    const gate = full({ waiting: 0 });
    const before = gate.status(20).waiting;
    gate.exchange(gateReport("late", 1, { waiting: 5 }), 20);
    expect(gate.status(20)).toMatchObject({ runs: GATE_RUNS_MAX, waiting: before + 5 });
  });

  it("learns from a newcomer what it has met, all the same", () => {
    const gate = full({ waiting: 1 });
    const stopped: GateFailure = { ...REJECTED, class: "stopped", stop: "insufficient_quota" };
    gate.exchange(gateReport("late", 1, { failures: [stopped] }), 20);
    expect(gate.classAt(20)).toBe("stopped");
  });
});

describe("the permits that runs hold at a narrowed key", () => {
  it("make them holders, who must learn of a Retry-After; so does what they may start", () => {
    const gate = new Gate(SETTINGS, 1, EMPTY_MEMORY, 0);
    gate.exchange(gateReport("a", 1, { failures: [REJECTED], inFlight: 10, permits: null, waiting: 9 }), 0);
    gate.exchange(gateReport("b", 1, { permits: 3 }), 10);
    gate.exchange(gateReport("c", 1), 10);
    // The one has fewer in flight than its grant lets it have, the other none at all, and the third holds nothing.
    expect(gate.holders()).toEqual(["a", "b"]);
    expect(gate.users()).toEqual(["a", "b"]);
    expect(gate.users(1)).toEqual(["a"]);
    gate.leave("b", 1, null, 20);
    expect(gate.holders()).toEqual(["a"]);
  });
});
