/** Bursts after a silence: whatever a gate knows of its key, calls that have room there do not wait for it. */
import { describe, expect, it } from "vitest";
import { Gate } from "../../../src/gate/gate.ts";
import { EMPTY_MEMORY, shouldStore } from "../../../src/gate/memory.ts";
import type { GateSettings } from "../../../src/gate/settings.ts";
import type { GateFailure } from "../../../src/gate/wire.ts";
import { GATE_PERMITS_STORE_EVERY_MS, GATE_TTL_MS, GATE_WIDTH_FORGET_MS } from "../../../src/limits.ts";
import { seeded } from "../../support/engine.ts";
import { concurrencyLimited } from "../../support/gate-providers.ts";
import { gateReport } from "../../support/gate-report.ts";
import { Sleeper } from "../../support/gate-sleeper.ts";

const LATENCY_MS = 300;
const BURSTS = 200;

/** How long the first answer of each burst of ten took, in order, ms. */
function firstAnswers(run: Sleeper, bursts: number, seed: number): number[] {
  const random = seeded(seed);
  return Array.from({ length: bursts }, () => run.burst(10, 5_000 + random() * 55_000)).toSorted((a, b) => a - b);
}

describe.each([1, 7, 99_991])("200 bursts of ten calls, each after 5 to 60 s of silence (seed %d)", (seed) => {
  it("are answered in the time of a call and 100 ms at p99, at an open key", () => {
    const run = new Sleeper({ provider: concurrencyLimited(() => 64), calls: 10, latencyMs: LATENCY_MS });
    run.runUntil(60_000);
    const times = firstAnswers(run, BURSTS, seed);
    expect(times[Math.ceil(BURSTS * 0.99) - 1]).toBeLessThanOrEqual(LATENCY_MS + 100);
  });

  it(
    "are answered so at a key that was shrunk: by the instance of the gate that knows it, and by the next",
    { tags: ["slow"] },
    () => {
      let capacity = 4;
      const run = new Sleeper({ provider: concurrencyLimited(() => capacity), calls: 100, latencyMs: LATENCY_MS });
      run.runUntil(60_000);
      expect(run.gate.classAt(run.nowMs)).toBe("shrunk");
      const times: number[] = [];
      for (let burst = 0; burst < BURSTS; burst++) {
        // The width is forgotten after two minutes without a rejection: another provider's hiccup limits it again.
        if (run.gate.classAt(run.nowMs) !== "shrunk") {
          run.burst(100, 1_000);
          burst -= 1;
          continue;
        }
        times.push(...firstAnswers(run, 1, seed + burst));
      }
      const sorted = times.toSorted((a, b) => a - b);
      expect(sorted[Math.ceil(BURSTS * 0.99) - 1]).toBeLessThanOrEqual(LATENCY_MS + 100);
      capacity = 64;
      for (let at = 0; at < 40; at++) run.burst(10, 8_000);
      expect(run.gate.classAt(run.nowMs)).toBe("open");
    },
  );
});

describe("an instance of a gate that begins with a width", () => {
  const rejected: GateFailure = { class: "rate_limited", stop: null, hintMs: null, count: 30, ageMs: 0, message: null };
  const settings: GateSettings = { adaptive: { mode: "aimd" }, maxInFlight: 512 };
  const shrunk = (): Gate => {
    const gate = new Gate(settings, 1, EMPTY_MEMORY, 0);
    const report = { failures: [rejected], inFlight: 10, permits: null, waiting: 100 };
    gate.exchange(gateReport("a", 1, report), 0);
    return gate;
  };
  const restarted = (gate: Gate, nowMs: number): Gate => new Gate(settings, 2, structuredClone(gate.memory()), nowMs);

  it("gives nothing while grants of the last one may be valid, and what is free once they are over", () => {
    const memory = shrunk().memory();
    expect(memory.permitsUntilMs).toBeLessThanOrEqual(GATE_TTL_MS + GATE_PERMITS_STORE_EVERY_MS);
    expect(restarted(shrunk(), 1_000).exchange(gateReport("b", 1, { waiting: 9 }), 1_000).permits).toBe(0);
    const later = GATE_TTL_MS + GATE_PERMITS_STORE_EVERY_MS;
    expect(restarted(shrunk(), later).exchange(gateReport("b", 1, { waiting: 9 }), later).permits).toBeGreaterThan(8);
    // A row of an earlier version says nothing of it.
    const earlier = new Gate(settings, 2, { ...memory, permitsUntilMs: null }, later);
    expect(earlier.exchange(gateReport("b", 1, { waiting: 9 }), later).permits).toBe(0);
  });

  it("stores how long permits are valid once in some seconds", () => {
    const gate = shrunk();
    const stored = gate.memory();
    const after = (nowMs: number) => ({ nowMs, storedMs: 0 });
    expect(shouldStore(EMPTY_MEMORY, stored, after(0))).toBe(true);
    gate.exchange(gateReport("a", 2, { inFlight: 10, permits: 10, waiting: 50 }), GATE_PERMITS_STORE_EVERY_MS - 1);
    expect(shouldStore(stored, gate.memory(), after(GATE_PERMITS_STORE_EVERY_MS - 1))).toBe(false);
    gate.exchange(gateReport("a", 3, { inFlight: 10, permits: 10, waiting: 50 }), GATE_PERMITS_STORE_EVERY_MS + 1);
    expect(shouldStore(stored, gate.memory(), after(GATE_PERMITS_STORE_EVERY_MS + 1))).toBe(true);
  });

  it("forgets the width after the same time as one that never slept: calls were answered, and none was rejected", () => {
    const gate = restarted(shrunk(), GATE_WIDTH_FORGET_MS);
    const answered = { succeeded: 3, started: { requests: 3, tokens: 0 } };
    expect(gate.exchange(gateReport("b", 1, { ...answered, inFlight: 1 }), GATE_WIDTH_FORGET_MS).class).toBe("open");
  });
});
