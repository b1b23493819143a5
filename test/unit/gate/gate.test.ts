import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LatencyChanges } from "../../../src/run/gates/latency-changes.ts";
import { Gate } from "../../../src/gate/gate.ts";
import { EMPTY_MEMORY } from "../../../src/gate/memory.ts";
import type { GateSettings, PenaltySettings } from "../../../src/gate/settings.ts";
import type { GateFailure, GateGrant, RateSample } from "../../../src/gate/wire.ts";
import { GATE_NEXT_MAX_MS, GATE_RUN_TTL_MS, GATE_TTL_MS, RETRY_AFTER_MAX_MS } from "../../../src/limits.ts";
import { gateReport } from "../../support/gate-report.ts";

const SETTINGS: GateSettings = { adaptive: { mode: "aimd" }, maxInFlight: 512 };
const PENALTY: PenaltySettings = {
  weights: { rateLimited: 2, overloaded: 1.5, timeout: 1, schemaViolation: 0.5 },
  decay: "linear",
  maxPenalty: 3,
  decayMs: 480_000,
};
const newGate = (settings = SETTINGS) => new Gate(settings, 7, EMPTY_MEMORY, 0);

function failure(fields: Partial<GateFailure>): GateFailure {
  return { class: "rate_limited", stop: null, hintMs: null, count: 1, ageMs: 0, message: null, ...fields };
}

const QUOTA = failure({ class: "stopped", stop: "insufficient_quota", message: "quota" });

function requestsLeft(remaining: number, limit = 600): RateSample {
  return { ageMs: 0, requests: { limit, remaining, resetMs: null, windowMs: 60_000 } };
}

describe("a gate of which nothing is known", () => {
  it("is open, and limits nothing: what is queued waits for something else", () => {
    const gate = newGate();
    const grant = gate.exchange(gateReport("a", 1, { waiting: 1_000 }), 0);
    expect(grant).toMatchObject({ epoch: 7, class: "open", reason: null, permits: null, requests: null, tokens: null });
    expect(grant).toMatchObject({ waitMs: 0, stop: null });
    expect(gate.status(0)).toMatchObject({ class: "open", width: null, waiting: 0, runs: 1, buckets: {} });
  });

  it("is asked seldom once answers have shown that the provider names no limits", () => {
    const gate = newGate();
    expect(gate.exchange(gateReport("a", 1, { inFlight: 3 }), 0).nextInMs).toBeLessThan(1_000);
    const answered = { started: { requests: 20, tokens: 0 }, succeeded: 20, inFlight: 3 };
    expect(gate.exchange(gateReport("a", 2, answered), 500).nextInMs).toBe(10_000);
  });

  it("is asked once a minute by a run that calls once or twice at a time, from its first call on", () => {
    const gate = newGate();
    expect(gate.exchange(gateReport("a", 1, { inFlight: 2 }), 0).nextInMs).toBe(60_000);
    expect(gate.exchange(gateReport("b", 1, { inFlight: 1, waiting: 2 }), 0).nextInMs).toBeLessThan(1_000);
  });

  it("reports to a new run how long the calls of all runs take, and one that exchanges often no more", () => {
    const gate = newGate();
    const answered = (latencyMs: number): void => news.answered({ model: "m", latencyMs });
    const news = new LatencyChanges();
    for (let latencyMs = 100; latencyMs <= 2_000; latencyMs += 100) answered(latencyMs);
    const first = gate.exchange(gateReport("a", 1, { inFlight: 8, succeeded: 20, latency: news.reported }), 0);
    const [told] = first.latency ?? [];
    expect(first.latency).toHaveLength(1);
    expect(Math.abs((told?.p50Ms ?? 0) - 1_000)).toBeLessThanOrEqual(50);
    expect(Math.abs((told?.p95Ms ?? 0) - 1_900)).toBeLessThanOrEqual(95);
    expect(gate.exchange(gateReport("b", 1, { waiting: 8 }), 10).latency).toEqual(first.latency);
    const failed = { epoch: 7, waiting: 8, failures: [failure({ count: 50 })], inFlight: 50 };
    expect(gate.exchange(gateReport("b", 2, failed), 30)).not.toHaveProperty("latency");
  });

  it("counts nothing again of a run that it had forgotten", () => {
    const gate = newGate();
    const limit = { limit: 100, resetMs: null, windowMs: 60_000 };
    const { epoch } = gate.exchange(gateReport("a", 1, { started: { requests: 90, tokens: 0 } }), 0);
    gate.leave("a", Infinity, null, 0);
    const samples = [{ ageMs: 0, requests: { ...limit, remaining: 90 } }];
    gate.exchange(gateReport("b", 1, { samples }), 120_000);
    gate.exchange(gateReport("a", 2, { epoch, started: { requests: 91, tokens: 0 } }), 120_001);
    expect(gate.status(120_002).buckets.requests?.remaining).toBe(90);
  });
});

describe("a hint of a provider", () => {
  it("is one wait for everyone", () => {
    const gate = newGate();
    gate.exchange(gateReport("b", 1), 0);
    gate.exchange(gateReport("a", 1, { failures: [failure({ hintMs: 3_000, ageMs: 500 })] }), 1_000);
    for (const run of ["a", "b"]) {
      const grant = gate.exchange(gateReport(run, 2, { waiting: 5 }), 1_500);
      expect(grant).toMatchObject({ class: "paced", requests: 0, waitMs: 2_000, nextInMs: 2_000 });
    }
    expect(gate.exchange(gateReport("b", 3, { waiting: 5 }), 3_600).waitMs).toBe(0);
  });

  it("is obeyed for a bounded time", () => {
    const gate = newGate();
    gate.exchange(gateReport("a", 1, { failures: [failure({ hintMs: 86_400_000 })] }), 0);
    expect(gate.exchange(gateReport("a", 2, { waiting: 1 }), 0).waitMs).toBe(RETRY_AFTER_MAX_MS);
  });
});

describe("headers that show a limit", () => {
  it("let no more start than they leave, over all runs", () => {
    const gate = newGate();
    gate.exchange(gateReport("a", 1, { waiting: 500, samples: [requestsLeft(100)] }), 0);
    let granted = 0;
    for (const run of ["a", "b", "c", "d", "e", "f"]) {
      granted += gate.exchange(gateReport(run, 2, { waiting: 500 }), 10).requests ?? Infinity;
    }
    expect(granted).toBeGreaterThan(40);
    expect(granted).toBeLessThanOrEqual(100);
  });

  it("make a run wait for the reason that holds it", () => {
    const gate = newGate();
    const samples = [
      { ...requestsLeft(600), tokens: { limit: 60_000, remaining: 0, resetMs: null, windowMs: 60_000 } },
    ];
    const grant = gate.exchange(gateReport("a", 1, { waiting: 50, samples }), 0);
    expect(grant).toMatchObject({ class: "paced", reason: "tokens_per_minute", requests: 0 });
    expect(gate.status(0).buckets).toMatchObject({
      requests: { remaining: 600 },
      tokens: { limit: 60_000, remaining: 0 },
    });
  });

  it("count a repeated report once", () => {
    const gate = newGate();
    gate.exchange(gateReport("a", 1, { waiting: 500, samples: [requestsLeft(100)] }), 0);
    const started = { requests: 40, tokens: 4_000 };
    gate.exchange(gateReport("a", 2, { started }), 10);
    gate.exchange(gateReport("a", 2, { started }), 20);
    expect(gate.status(20).buckets.requests?.remaining).toBe(60);
  });

  it("say nothing of what another instance of the gate has seen start", () => {
    const gate = newGate();
    const counted = { started: { requests: 9_000, tokens: 0 }, epoch: 3 };
    gate.exchange(gateReport("a", 1, { ...counted, samples: [requestsLeft(100)] }), 0);
    expect(gate.status(0).buckets.requests?.remaining).toBe(100);
  });
});

describe("a rejection without a hint", () => {
  const rejected = { failures: [failure({ count: 30 })], inFlight: 10 };

  it("limits the width of all runs", () => {
    const gate = newGate();
    const grant = gate.exchange(gateReport("a", 1, { ...rejected, waiting: 100, permits: null }), 0);
    expect(grant).toMatchObject({ class: "shrunk", reason: "width", requests: null });
    expect(grant.permits).toBeLessThanOrEqual(20);
  });

  it("limits none in the mode off, and divides by the penalty in the mode penalty", () => {
    const off = newGate({ ...SETTINGS, adaptive: { mode: "off" } });
    expect(off.exchange(gateReport("a", 1, { ...rejected, waiting: 100 }), 0)).toMatchObject({ permits: null });
    const penalty = newGate({ ...SETTINGS, adaptive: { mode: "penalty", ...PENALTY } });
    const grant = penalty.exchange(gateReport("a", 1, { ...rejected, permits: null, waiting: 100 }), 0);
    // The largest penalty, 3: a quarter of the forty that were in flight.
    expect(grant.permits).toBe(10);
  });

  it("is about the rates if the headers show that they are used up", () => {
    const gate = newGate();
    const samples = [requestsLeft(0)];
    const grant = gate.exchange(gateReport("a", 1, { ...rejected, samples, waiting: 100 }), 0);
    expect(grant).toMatchObject({ class: "paced", permits: null, requests: 0 });
  });
});

describe("a stopped gate", () => {
  const stopped = () => {
    const gate = newGate();
    gate.exchange(gateReport("a", 1, { failures: [QUOTA], waiting: 9 }), 1_000);
    return gate;
  };

  it("lets nothing start but one probe at a time, for one of the runs", () => {
    const gate = stopped();
    const none = { class: "stopped", reason: "stopped", permits: 0, requests: 0 };
    expect(gate.exchange(gateReport("a", 2, { waiting: 9 }), 1_500)).toMatchObject(none);
    expect(gate.exchange(gateReport("b", 1, { waiting: 9 }), 3_000)).toMatchObject({ permits: 1, requests: 1 });
    expect(gate.exchange(gateReport("a", 3, { waiting: 9 }), 3_000)).toMatchObject({ ...none, nextInMs: 10_000 });
    expect(gate.status(3_000)).toMatchObject({
      class: "stopped",
      stop: { reason: "insufficient_quota", forMs: 2_000, message: "quota", nextProbeInMs: 10_000 },
      lastError: { class: "stopped", message: "quota" },
    });
  });

  it("gives no probe to a run that has nothing waiting", () => {
    const gate = stopped();
    expect(gate.exchange(gateReport("b", 1), 3_000)).toMatchObject({ permits: 0, requests: 0 });
    expect(gate.exchange(gateReport("a", 2, { waiting: 1 }), 3_000)).toMatchObject({ permits: 1 });
  });

  it("does not let a run that has nothing waiting ask at once for a probe that is due", () => {
    const grant = stopped().exchange(gateReport("b", 1, { inFlight: 1 }), 3_000);
    expect(grant).toMatchObject({ permits: 0, nextInMs: GATE_NEXT_MAX_MS });
  });

  it("continues when a probe succeeds, not when an earlier attempt does", () => {
    const gate = stopped();
    gate.exchange(gateReport("b", 1, { waiting: 9, succeeded: 5 }), 3_000);
    expect(gate.classAt(3_000)).toBe("stopped");
    expect(gate.exchange(gateReport("b", 2, { recovered: true, waiting: 9 }), 3_500)).toMatchObject({ class: "open" });
  });

  it("continues when an operator resumes it", () => {
    const gate = stopped();
    expect([gate.resume(), gate.resume(), gate.classAt(1_000)]).toEqual([true, false, "open"]);
  });

  it("stays stopped over a restart", () => {
    const next = new Gate(SETTINGS, 8, structuredClone(stopped().memory()), 60_000);
    expect(next.exchange(gateReport("a", 5, { epoch: 7, waiting: 1 }), 60_000)).toMatchObject({ class: "stopped" });
    expect(next.status(60_000).stop).toMatchObject({ reason: "insufficient_quota", forMs: 59_000 });
  });
});

describe("a Retry-After", () => {
  it("holds over a restart, to its end", () => {
    const gate = newGate();
    gate.exchange(gateReport("a", 1, { failures: [failure({ hintMs: 60_000 })], waiting: 5 }), 1_000);
    const next = new Gate(SETTINGS, 8, structuredClone(gate.memory()), 21_000);
    expect(next.exchange(gateReport("b", 1, { waiting: 5 }), 21_000)).toMatchObject({
      class: "paced",
      requests: 0,
      waitMs: 40_000,
      nextInMs: 40_000,
    });
    expect(next.exchange(gateReport("b", 2, { waiting: 5 }), 61_000)).toMatchObject({ waitMs: 0 });
  });

  it("that a later instance reads is no longer than the longest that is obeyed, whatever its clock says", () => {
    const memory = { ...newGate().memory(), waitUntilMs: 1e15 };
    expect(new Gate(SETTINGS, 8, memory, 0).status(0).waitMs).toBe(RETRY_AFTER_MAX_MS);
  });
});

describe("a run that does not come back", () => {
  it("holds its permits until its grant expires, and counts in flight for a minute", () => {
    const gate = newGate();
    const rejected = { failures: [failure({ count: 10 })], inFlight: 10, permits: null, waiting: 100 };
    const width = gate.exchange(gateReport("a", 1, rejected), 0).permits ?? 0;
    expect(width).toBeGreaterThan(4);
    const grant = gate.exchange(gateReport("b", 1, { waiting: 100 }), 10);
    // The one that is left of the width, if any.
    expect(grant.permits).toBeLessThanOrEqual(1);
    const later = gate.exchange(gateReport("b", 2, { waiting: 100, permits: grant.permits }), GATE_TTL_MS + 10);
    expect(later.permits).toBeLessThanOrEqual(width);
    const last = gate.exchange(gateReport("b", 3, { waiting: 100, permits: later.permits }), GATE_RUN_TTL_MS + 10);
    expect(gate.status(GATE_RUN_TTL_MS + 10).runs).toBe(1);
    expect(last.permits).toBe(width);
  });

  it("frees everything at once when it leaves", () => {
    const gate = newGate();
    gate.exchange(gateReport("a", 1, { failures: [failure({ count: 10 })], inFlight: 10, waiting: 9 }), 0);
    gate.leave("a", Infinity, null, 0);
    expect(gate.status(0)).toMatchObject({ runs: 0, inFlight: 0, waiting: 0 });
  });

  it("has not left if its next report overtakes that it leaves", () => {
    const gate = newGate();
    gate.exchange(gateReport("a", 1), 0);
    gate.exchange(gateReport("a", 2, { inFlight: 3 }), 10);
    gate.leave("a", 1, null, 10);
    expect(gate.status(10)).toMatchObject({ runs: 1, inFlight: 3 });
    gate.leave("a", 2, null, 10);
    expect(gate.status(10)).toMatchObject({ runs: 0, inFlight: 0 });
  });

  it("takes turns with another at a width of one: whoever waits is before who comes back", () => {
    const memory = { ...EMPTY_MEMORY, width: { width: 1, ceiling: 1 } };
    const gate = new Gate(SETTINGS, 1, memory, 0);
    const permits = { a: 0, b: 0 };
    let number = 1;
    let holder: "a" | "b" | null = null;
    // Each has one call at a time; who has a permit uses it until the next step, and leaves.
    for (let nowMs = 60_000; nowMs < 90_000; nowMs += 150) {
      number += 1;
      if (holder !== null) gate.leave(holder, number, null, nowMs);
      holder = null;
      for (const run of ["a", "b"] as const) {
        const grant = gate.exchange(gateReport(run, number, { waiting: 1 }), nowMs);
        if (holder !== null || (grant.permits ?? 1) === 0 || grant.requests === 0) continue;
        permits[run] += 1;
        holder = run;
      }
    }
    expect(permits.a).toBeGreaterThan(0);
    expect(Math.abs(permits.a - permits.b)).toBeLessThanOrEqual(Math.max(2, permits.a * 0.2));
  });
});

/** A run in a random history: what it may be using is the grant that it holds, until its end. */
type Holder = { id: string; number: number; inFlight: number; grant: GateGrant | null; grantedMs: number };

describe("permits", () => {
  it("of all runs together are never more than the width, whatever the runs report and whichever replies are lost", () => {
    const step = fc.record({
      run: fc.integer({ min: 0, max: 3 }),
      elapsedMs: fc.integer({ min: 0, max: 3_000 }),
      starts: fc.integer({ min: 0, max: 40 }),
      ends: fc.integer({ min: 0, max: 40 }),
      rejected: fc.integer({ min: 0, max: 3 }),
      waiting: fc.integer({ min: 0, max: 200 }),
      isLost: fc.boolean(),
      isRestarted: fc.boolean(),
    });
    const history = fc.array(step, { minLength: 10, maxLength: 80 });
    fc.assert(
      fc.property(history, (steps) => {
        // A width of 32 is known from the start and only falls: nothing succeeds here.
        const memory = { ...EMPTY_MEMORY, width: { width: 32, ceiling: 32 } };
        let gate = new Gate(SETTINGS, 1, memory, 0);
        let epoch = 1;
        let nowMs = GATE_TTL_MS + 1;
        const runs = [0, 1, 2, 3].map((index): Holder => {
          return { id: `r${index}`, number: 0, inFlight: 0, grant: null, grantedMs: 0 };
        });
        const permitsOf = ({ grant, grantedMs }: Holder): number =>
          grant !== null && nowMs < grantedMs + grant.ttlMs ? (grant.permits ?? Infinity) : 0;
        for (const { run: index, elapsedMs, starts, ends, rejected, waiting, isLost, isRestarted } of steps) {
          nowMs += elapsedMs;
          const run = runs[index];
          if (run === undefined) continue;
          // Slower than a minute, a run would be forgotten with what it has in flight.
          for (const one of runs) one.inFlight = Math.max(0, one.inFlight - (one === run ? ends : 0));
          run.inFlight += Math.max(0, Math.min(starts, permitsOf(run) - run.inFlight));
          if (isRestarted && elapsedMs < 100) gate = new Gate(SETTINGS, ++epoch, structuredClone(gate.memory()), nowMs);
          const report = gateReport(run.id, ++run.number, {
            epoch: run.grant?.epoch ?? 0,
            waiting,
            inFlight: run.inFlight,
            permits: permitsOf(run),
            failures: rejected > 0 ? [failure({ count: rejected })] : [],
          });
          const grant = gate.exchange(report, nowMs);
          if (!isLost) Object.assign(run, { grant, grantedMs: nowMs });
          const inUse = runs.map((one) => Math.max(permitsOf(one), one.inFlight));
          const isRaised = (grant.permits ?? Infinity) > (report.permits ?? 0);
          const width = gate.status(nowMs).width ?? Infinity;
          if (isRaised && !isLost)
            expect(inUse.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(Math.max(width, 32));
        }
      }),
      { seed: 14, numRuns: 300 },
    );
  });
});
