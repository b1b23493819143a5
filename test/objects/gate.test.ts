/** The gate object: what it stores, and how often. What it decides is tested in test/unit/gate. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { GateObject } from "../../src/index.ts";
import { LatencySketch } from "../../src/gate/latency-sketch.ts";
import type { GateFailure, RateSample } from "../../src/gate/wire.ts";
import { gateReport } from "../support/gate-report.ts";
import { evict } from "../support/objects-direct.ts";

const QUOTA: GateFailure = {
  class: "stopped",
  stop: "insufficient_quota",
  hintMs: null,
  count: 1,
  ageMs: 0,
  message: "the quota is used up",
};

function gateNamed(name: string): DurableObjectStub<GateObject> {
  return env.GATES.getByName(name);
}

/** Rows that the object's statements have written since the last time, by SQLite's own count. */
function changesOf(gate: DurableObjectStub<GateObject>): Promise<number> {
  return runInDurableObject(gate, (_, { storage }) =>
    Number(storage.sql.exec("SELECT total_changes() AS changes").one()["changes"]),
  );
}

describe("a gate object", () => {
  it("keeps a stop, its reason and its time over a restart, until an operator resumes", async () => {
    const gate = gateNamed("gate-stop");
    await gate.exchange(gateReport("run", 1, { failures: [QUOTA], waiting: 3 }));
    const { epoch } = await gate.status();
    await evict(gate);
    const after = await gate.status();
    expect(after.epoch).not.toBe(epoch);
    expect(after).toMatchObject({ class: "stopped", runs: 0 });
    expect(after.stop).toMatchObject({ reason: "insufficient_quota", message: "the quota is used up" });
    expect(await gate.exchange(gateReport("run", 2, { epoch, waiting: 3 }))).toMatchObject({ requests: 0, permits: 0 });
    expect([await gate.resume(), await gate.resume()]).toEqual([true, false]);
    await evict(gate);
    expect(await gate.status()).toMatchObject({ class: "open", stop: null });
  });

  it("keeps the width that it has found, and grants no more than is reported for a while after a restart", async () => {
    const gate = gateNamed("gate-width");
    // The while is five seconds, which a busy machine may take from one call to the next.
    const clock = vi.spyOn(Date, "now").mockReturnValue(Date.now());
    onTestFinished(() => clock.mockRestore());
    const failures = [{ ...QUOTA, class: "rate_limited" as const, stop: null, count: 20 }];
    const before = await gate.exchange(gateReport("a", 1, { failures, inFlight: 20, waiting: 100, permits: null }));
    expect(before.permits).toBeGreaterThan(1);
    const { width } = await gate.status();
    await evict(gate);
    expect(await gate.status()).toMatchObject({ class: "shrunk", width });
    // A newcomer may not have what runs that have not reported yet may hold; those keep what they have.
    expect(await gate.exchange(gateReport("b", 1, { waiting: 100 }))).toMatchObject({ permits: 0 });
    const held = before.permits ?? 0;
    const again = gateReport("a", 2, { epoch: before.epoch, inFlight: held, permits: held, waiting: 100 });
    // Half of the width: the other half is for the newcomer, once the run has ended so many calls.
    expect((await gate.exchange(again)).permits).toBe(Math.floor(held / 2));
  });

  it("knows after a restart how long calls take, so that a new run learns it with its first grant", async () => {
    const gate = gateNamed("gate-latency");
    const durations = new LatencySketch();
    durations.add(2_000, 100);
    const models = [{ model: "m", whole: durations.durations(), ttfb: [] }];
    const before = await changesOf(gate);
    const latency = { meanMs: 2_000, models };
    const { epoch } = await gate.exchange(gateReport("a", 1, { inFlight: 2, succeeded: 100, latency }));
    for (let number = 2; number < 20; number++)
      await gate.exchange(gateReport("a", number, { epoch, inFlight: 2, succeeded: 100 * number, latency }));
    // A row a minute at most, even on a machine that takes one or two for this.
    expect((await changesOf(gate)) - before).toBeLessThanOrEqual(6);
    await evict(gate);
    expect((await gate.exchange(gateReport("b", 1, { waiting: 1 }))).latency).toMatchObject([{ model: "m" }]);
  });

  it("writes nothing for exchanges, however many, while nothing moves", async () => {
    const gate = gateNamed("gate-rows");
    const sample = (remaining: number): RateSample => ({
      ageMs: 0,
      requests: { limit: 10_000, remaining, resetMs: null, windowMs: 60_000 },
    });
    const before = await changesOf(gate);
    for (let number = 1; number <= 200; number++) {
      const counters = { started: { requests: number * 10, tokens: 0 }, succeeded: number * 10 };
      const { requests } = await gate.exchange(gateReport("run", number, { ...counters, samples: [sample(9_000)] }));
      expect(number === 1 || requests === null || requests > 0).toBe(true);
    }
    // 2,000 calls: a row of figures per 30 s at most.
    expect((await changesOf(gate)) - before).toBeLessThanOrEqual(4);
  });

  it("uses the settings of its upstream, whichever of its keys it is of", async () => {
    const failures = [{ ...QUOTA, class: "overloaded" as const, stop: null, count: 20 }];
    const report = gateReport("a", 1, { failures, inFlight: 20, waiting: 100, permits: null });
    expect(await gateNamed("adaptive-off").exchange(report)).toMatchObject({ permits: null });
    expect(await gateNamed("adaptive-off#KEY").exchange(report)).toMatchObject({ permits: null });
    expect((await gateNamed("not-configured").exchange(report)).permits).toBeLessThanOrEqual(20);
  });
});
