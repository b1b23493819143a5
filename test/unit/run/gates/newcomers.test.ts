/** What runs take at a gate that has not replied to them: together it is bounded, however many are new. */
import { describe, expect, it } from "vitest";
import { GateClient } from "../../../../src/run/gates/gate-client.ts";
import { Newcomers } from "../../../../src/run/gates/newcomers.ts";
import {
  GATE_FREE_PERMITS,
  GATE_KNOWN_TTL_MS,
  GATE_LIMITED_FREE_MAX,
  GATE_REPLY_MS_MAX,
  GATE_UNKNOWN_IN_FLIGHT_MAX,
} from "../../../../src/limits.ts";
import type { GateGrant } from "../../../../src/gate/wire.ts";
import { makeChunk, makeGrant, makeStopped } from "../../../support/gate-grants.ts";
import { seeded } from "../../../support/engine.ts";

const TOKENS = { input: 10, all: 100 };
const WHO = { run: "run_1", instance: "i", weight: 1 };
const NOBODY = { waiting: 0, tokensPerCall: 0 };
const CLASSES = { interactive: NOBODY, standard: NOBODY, batch: NOBODY };

/** New runs of an isolate at one gate. */
function runsOf(isolate: Newcomers, count: number): GateClient[] {
  const newRun = () => new GateClient({ maxInFlight: 512, isShared: true, newcomer: isolate.at("up") });
  return Array.from({ length: count }, newRun);
}

function startAll(gate: GateClient, nowMs: number, most = Infinity): number {
  let started = 0;
  for (; started < most && gate.waitOf(nowMs) === null; started++) gate.started(TOKENS, nowMs);
  return started;
}

function reply(gate: GateClient, grant: GateGrant, nowMs: number): void {
  gate.report(WHO, { classes: CLASSES, demand: { waiting: 1 }, lent: 0 }, nowMs);
  gate.granted(grant, nowMs);
}

/** An isolate in which a gate has told a run this. */
function toldOf(grant: GateGrant, nowMs = 0): Newcomers {
  const isolate = new Newcomers();
  const [first] = runsOf(isolate, 1);
  if (first !== undefined) reply(first, grant, nowMs);
  return isolate;
}

const taken = (runs: readonly GateClient[], nowMs: number): number =>
  runs.reduce((sum, run) => sum + startAll(run, nowMs), 0);

describe("runs that are new at a gate", () => {
  it("begin with their full part each at a key of which nothing is known, and together with that of 64 runs", () => {
    const runs = runsOf(new Newcomers(), 5_000);
    const [first, ...others] = runs;
    expect(first === undefined ? 0 : startAll(first, 0)).toBe(GATE_FREE_PERMITS);
    expect(taken(others, 0)).toBe(GATE_UNKNOWN_IN_FLIGHT_MAX - GATE_FREE_PERMITS);
  });

  it("begin with one each, and a few together, where a gate has called the key limited", () => {
    for (const grant of [makeChunk(), makeGrant({ class: "shrunk", permits: 5 }), makeStopped()]) {
      const isolate = toldOf(grant);
      const runs = runsOf(isolate, 1_000);
      expect(runs.map((run) => startAll(run, 1)).slice(0, 3)).toEqual([1, 1, 1]);
      expect(runs.reduce((sum, run) => sum + run.inFlight, 0)).toBe(GATE_LIMITED_FREE_MAX);
    }
  });

  it("begin with what the gate has left at an open key whose rate is known", () => {
    const isolate = toldOf(makeGrant({ requests: 30, newRuns: 100 }));
    expect(taken(runsOf(isolate, 1_000), 1)).toBe(100);
    expect(taken(runsOf(toldOf(makeGrant({ requests: 3, newRuns: 0 })), 1_000), 1)).toBe(GATE_LIMITED_FREE_MAX);
  });

  it("begin with their full part where the gate knows no limit", () => {
    const [run] = runsOf(toldOf(makeGrant()), 1);
    expect(run === undefined ? 0 : startAll(run, 1)).toBe(GATE_FREE_PERMITS);
  });

  it("make room for others with each attempt that ends, and once the gate has replied to them", () => {
    const isolate = toldOf(makeChunk());
    const [a, b, ...others] = runsOf(isolate, 100);
    if (a === undefined || b === undefined) throw new Error("no runs");
    expect([startAll(a, 1), startAll(b, 1)]).toEqual([1, 1]);
    taken(others, 1);
    const [late] = runsOf(isolate, 1);
    if (late === undefined) throw new Error("no run");
    expect(startAll(late, 1)).toBe(0);
    a.ended();
    expect(startAll(late, 1)).toBe(1);
    reply(b, makeChunk({ permits: 3 }), 2);
    expect(taken(runsOf(isolate, 10), 2)).toBe(1);
    // Its attempt is the gate's by now: it frees nothing more.
    b.ended();
    expect(taken(runsOf(isolate, 10), 2)).toBe(0);
  });

  it("make room if nothing is heard of them, as of runs whose objects were lost", () => {
    const isolate = toldOf(makeChunk());
    expect(taken(runsOf(isolate, 100), 1)).toBe(GATE_LIMITED_FREE_MAX);
    expect(taken(runsOf(isolate, 100), GATE_REPLY_MS_MAX)).toBe(0);
    expect(taken(runsOf(isolate, 100), 1 + GATE_REPLY_MS_MAX)).toBe(GATE_LIMITED_FREE_MAX);
  });

  it("forget what a gate has said when that is long ago, or the gate says otherwise", () => {
    const isolate = toldOf(makeChunk());
    const [run, later] = runsOf(isolate, 2);
    if (run === undefined || later === undefined) throw new Error("no runs");
    expect(startAll(later, GATE_KNOWN_TTL_MS)).toBe(GATE_FREE_PERMITS);
    reply(run, makeGrant(), 10);
    const [after] = runsOf(isolate, 1);
    expect(after === undefined ? 0 : startAll(after, 10)).toBe(GATE_FREE_PERMITS);
  });

  it("never have more in flight together than the bound, whatever happens in which order", { tags: ["slow"] }, () => {
    for (let seed = 1; seed <= 50; seed++) {
      const random = seeded(seed);
      const isolate = toldOf(makeChunk());
      const runs = runsOf(isolate, 40);
      const fresh = new Map<GateClient, number>();
      for (let nowMs = 1; nowMs < 2_000; nowMs++) {
        const run = runs[Math.floor(random() * runs.length)];
        if (run === undefined) continue;
        const own = fresh.get(run);
        if (random() < 0.6) {
          if (own !== undefined || run.inFlight === 0) fresh.set(run, (own ?? 0) + startAll(run, nowMs, 1));
        } else if (random() < 0.8 && (own ?? 0) > 0) {
          run.ended();
          fresh.set(run, (own ?? 0) - 1);
        } else if (own !== undefined) {
          // It is replaced by one that is new.
          reply(run, makeChunk(), nowMs);
          runs[runs.indexOf(run)] = runsOf(isolate, 1)[0] ?? run;
          fresh.delete(run);
        }
        const sum = [...fresh.values()].reduce((all, each) => all + each, 0);
        expect(sum, `seed ${seed}, at ${nowMs}`).toBeLessThanOrEqual(GATE_LIMITED_FREE_MAX);
      }
    }
  });
});
