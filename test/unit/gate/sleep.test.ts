/** What waiting for a gate costs: exchanges, and time in which the run's object is awake. Before it slept, it was awake for all of it. */
import { describe, expect, it } from "vitest";
import type { GateGrant } from "../../../src/gate/wire.ts";
import { concurrencyLimited, openaiLike } from "../../support/gate-providers.ts";
import { Sleeper, type SleeperPlan } from "../../support/gate-sleeper.ts";

function finished(plan: SleeperPlan): Sleeper {
  const run = new Sleeper(plan);
  run.runUntil(3_600_000);
  expect(run.completed).toBe(plan.calls);
  return run;
}

/** A grant as a gate of an earlier version gives it. */
function withoutWake(grant: GateGrant): GateGrant {
  const earlier = { ...grant };
  delete earlier.wakeInMs;
  return earlier;
}

describe("a run of 200 calls at a key of 60 requests a minute", () => {
  // 60 start at once, and the others one a second.
  const plan = (latencyMs: number): SleeperPlan => ({ provider: openaiLike(60, 1e9), calls: 200, latencyMs });

  it.each([
    { latencyMs: 2_000, exchangesMax: 90, awakeMsMax: 8_000 },
    { latencyMs: 20_000, exchangesMax: 60, awakeMsMax: 5_000 },
  ])(
    "exchanges $exchangesMax times and is awake for $awakeMsMax ms at most, if calls take $latencyMs ms",
    ({ latencyMs, exchangesMax, awakeMsMax }) => {
      const run = finished(plan(latencyMs));
      expect(run.exchanges).toBeLessThanOrEqual(exchangesMax);
      expect(run.awakeMs).toBeLessThanOrEqual(awakeMsMax);
    },
  );

  it("ends as soon as the key allows: its last call does not wait for others", () => {
    expect(finished(plan(2_000)).nowMs).toBeLessThanOrEqual((140_000 + 2_000) * 1.05);
  });

  // With the larger width all start at once, and most are rejected before anything of the limit is known.
  it.each([64, 512])("does not sleep while a deadline is near: what is due starts (width %i)", (width) => {
    const run = new Sleeper({ ...plan(2_000), width, deadlineMs: 30_000 });
    run.runUntil(40_000);
    const late = run.startedMs.filter((atMs) => atMs > 1_000);
    expect(late.length).toBeGreaterThanOrEqual(24);
    const pauses = late.slice(1).map((atMs, at) => atMs - (late[at] ?? 0));
    expect(Math.max(...pauses.slice(3))).toBeLessThanOrEqual(1_500);
  });

  it("exchanges when the grant says, if the gate names no other time to wake up", () => {
    const run = finished({ ...plan(2_000), asGranted: withoutWake });
    expect(run.nowMs).toBeLessThanOrEqual((140_000 + 2_000) * 1.05);
    expect(run.awakeMs).toBeGreaterThan(60_000);
  });
});

describe("a run of 100 single calls that arrive at once at a key of 60 requests a minute, four at a time", () => {
  it("exchanges once for each call that waits, and ends as soon as the key allows", () => {
    const provider = openaiLike(60, 1e9);
    const run = finished({ provider, calls: 100, latencyMs: 200, width: 4, areSingle: true });
    // 60 start without waiting, and the others one a second.
    expect(run.exchanges).toBeLessThanOrEqual(40 + 10);
    expect(run.nowMs).toBeLessThanOrEqual((40_000 + 200) * 1.05);
  });
});

describe("a run at a key that lets a call through every ten seconds", () => {
  it("looks every five seconds, so that its gate stays in memory, and is awake for hardly any of them", () => {
    const run = finished({ provider: openaiLike(6, 1e9), calls: 40, latencyMs: 2_000 });
    expect(run.exchanges).toBeLessThanOrEqual(110);
    expect(run.awakeMs).toBeLessThanOrEqual(4_000);
    expect(run.nowMs).toBeLessThanOrEqual((340_000 + 2_000) * 1.05);
  });
});

describe("a run at a server that takes eight calls at a time, each of 20 s", () => {
  it("is awake for a tenth of the time, and uses the server as well", () => {
    const run = finished({ provider: concurrencyLimited(() => 8), calls: 200, latencyMs: 20_000, width: 64 });
    expect(run.nowMs).toBeLessThanOrEqual((200 / 8) * 20_000 * 1.05);
    expect(run.awakeMs).toBeLessThanOrEqual(run.nowMs / 10);
    expect(run.exchanges).toBeLessThanOrEqual(300);
  });
});

describe("a run whose own width makes its calls wait, at an open gate", () => {
  it("exchanges beside its calls, and sleeps between them", () => {
    const run = finished({ provider: concurrencyLimited(() => 1_000), calls: 200, latencyMs: 20_000, width: 8 });
    expect(run.exchanges).toBeLessThanOrEqual(30);
    expect(run.alarms).toBe(0);
    expect(run.awakeMs).toBeLessThanOrEqual(1_000);
  });
});
