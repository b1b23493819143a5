/** What queued slots wait for: one cause for each, the same in the sums of a group and slot by slot. */
import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../../src/call.ts";
import type { Group } from "../../../../src/run/group/group.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import type { Target } from "../../../../src/run/leases/shard.ts";
import { indexOf } from "../../../../src/run/queue/slot.ts";
import { dueExchanges, granted } from "../../../../src/run/steps/exchange.ts";
import { blockedGates } from "../../../../src/run/steps/blocked.ts";
import { waitsBySlot, waitsOf } from "../../../../src/run/steps/waiting-for.ts";
import { GATE_FREE_PERMITS, KEY_PROBE_MS } from "../../../../src/limits.ts";
import { alike, failure, makeTarget, success, TestEngine } from "../../../support/engine.ts";
import { makeChunk } from "../../../support/gate-grants.ts";

const STOP: Outcome = {
  ...{ kind: "failure", class: "rejected", answered: true, retryAfterMs: null, latencyMs: 1, stop: "invalid_key" },
  reason: { reason: "upstream_error", upstream: "acme", status: 401, message: "no such key", retryable: false },
};

const waits = ({ state }: TestEngine, group: Group, nowMs = 0): unknown[] =>
  waitsOf(state, group, nowMs).map(({ waitingFor, slots }) => ({ ...waitingFor, slots }));

/** The slots that wait for each kind of thing, by their index. */
function kinds({ state }: TestEngine, group: Group, nowMs = 0): Record<string, number[]> {
  const byKind: Record<string, number[]> = {};
  for (const [slotId, { kind }] of waitsBySlot(state, group, nowMs)) (byKind[kind] ??= []).push(indexOf(slotId));
  return byKind;
}

function keyed(names: readonly string[]): Target {
  const [first, ...others] = names.map((key) => makeTarget({ gate: `acme#${key}`, key }));
  if (first === undefined) throw new Error("no key");
  return { ...first, choices: [{ targets: [first, ...others], on: null }] };
}

describe("a queued slot waits for", () => {
  it.each([
    ["the width of the run", {}, { width: 2 }],
    ["the concurrency of its group", { concurrency: 2 }, {}],
    ["max_in_flight of its upstream", {}, { targets: [makeTarget({ maxInFlight: 2 })] }],
  ])("a permit: %s", (_, header, options) => {
    const engine = new TestEngine(options);
    const group = engine.open(alike(5), header);
    engine.startAll(0);
    expect(waits(engine, group)).toEqual([{ kind: "permit", slots: 3 }]);
    expect(kinds(engine, group)).toEqual({ permit: [2, 3, 4] });
  });

  it("a permit while the run is paused, though the budget would not cover it either", () => {
    const engine = new TestEngine({ limits: { calls: 1 } });
    const group = engine.open(alike(3));
    engine.startAll(0);
    engine.state.setPaused(true);
    expect(waits(engine, group)).toEqual([{ kind: "permit", slots: 2 }]);
  });

  it("the budget, in the dimension that reservations in flight hold", () => {
    const engine = new TestEngine({ limits: { completion_tokens: 150 } });
    const group = engine.open(alike(3));
    expect(engine.startAll(0)).toEqual(["1:0"]);
    expect(waits(engine, group)).toEqual([{ kind: "budget", dimension: "completion_tokens", slots: 2 }]);
    settle(engine.state, [...engine.state.attempts.keys()][0] ?? "", success({ completionTokens: 10 }), 1);
    expect(waits(engine, group, 1)).toEqual([{ kind: "permit", slots: 2 }]);
  });

  it("the call that writes its text to the provider's cache, also if that is of another group", () => {
    const cache = { mark: null, minTokens: 10, keptMs: 300_000 };
    const engine = new TestEngine({ targets: [makeTarget({ cache })] });
    const shared = { shared: { key: "ctx_book:0", tokens: 50, warmMs: 5_000 } };
    const [writer, reader] = [engine.open(alike(3, shared)), engine.open(alike(2, shared))];
    const other = engine.open(alike(2));
    expect(engine.startAll(0)).toEqual(["1:0", "3:0", "3:1"]);
    const context = { kind: "context", context: "ctx_book" };
    expect(waits(engine, writer)).toEqual([{ ...context, slots: 2 }]);
    expect(waits(engine, reader)).toEqual([{ ...context, slots: 2 }]);
    expect(waits(engine, other)).toEqual([]);
    expect(kinds(engine, reader)).toEqual({ context: [0, 1] });
    expect(waits(engine, reader, 5_000)).toEqual([{ kind: "permit", slots: 2 }]);
  });

  it("a permit, if its own concurrency bars it, while another group waits for the budget", () => {
    const engine = new TestEngine({ limits: { calls: 2 } });
    const narrow = engine.open(alike(2), { concurrency: 1 });
    const wide = engine.open(alike(3));
    engine.startAll(0);
    expect(waits(engine, narrow)).toEqual([{ kind: "permit", slots: 1 }]);
    expect(waits(engine, wide)).toEqual([{ kind: "budget", dimension: "calls", slots: 2 }]);
  });

  it("its retry, until it is due", () => {
    const engine = new TestEngine({ random: () => 0.5 });
    const group = engine.open(alike(2));
    engine.startAll(0);
    const retryInMs = settle(
      engine.state,
      [...engine.state.attempts.keys()][1] ?? "",
      failure("transient"),
      0,
    )?.retryInMs;
    expect(retryInMs).toBeGreaterThan(1);
    expect(waits(engine, group, 1)).toEqual([{ kind: "retry", readyInMs: (retryInMs ?? 0) - 1, slots: 1 }]);
    expect(kinds(engine, group, 1)).toEqual({ retry: [1] });
    expect(waits(engine, group, retryInMs ?? 0)).toEqual([{ kind: "permit", slots: 1 }]);
  });

  it("the rate of its gate, with the time when it may start", () => {
    const engine = new TestEngine({ hasGates: true, targets: [makeTarget(), makeTarget({ upstream: "other" })] });
    const group = engine.open([...alike(3, { modelIndex: 0 }), { modelIndex: 1 }]);
    engine.state.upstreams.add(makeTarget()).cool(2_300, "tokens_per_minute");
    const gate = { kind: "gate", gate: "acme", reason: "tokens_per_minute", readyInMs: 2_300 };
    expect(waits(engine, group)).toEqual([
      { ...gate, slots: 3 },
      { kind: "permit", slots: 1 },
    ]);
    expect(waitsBySlot(engine.state, group, 0).size).toBe(4);
    expect(waits(engine, group, 300)).toContainEqual({ ...gate, readyInMs: 2_000, slots: 3 });
  });

  it("the width that its gate grants, whose end nobody knows", () => {
    const engine = new TestEngine({ hasGates: true });
    const group = engine.open(alike(GATE_FREE_PERMITS + 5));
    engine.startAll(0);
    for (const { gate } of dueExchanges(engine.state, { run: "run_1", instance: "i", weight: 1 }, 0))
      granted(engine.state, gate, makeChunk({ permits: 1, reason: "width", class: "shrunk" }), 0);
    expect(waits(engine, group)).toEqual([
      { kind: "gate", gate: "acme", reason: "width", readyInMs: null, slots: group.counts.queued },
    ]);
  });

  it("its model, if that one alone is overloaded: the calls of another model of the same key start", () => {
    const targets = [makeTarget({ model: "busy" }), makeTarget({ model: "calm" })];
    const engine = new TestEngine({ hasGates: true, targets });
    const group = engine.open([...alike(3, { modelIndex: 0 }), { modelIndex: 1 }]);
    engine.state.upstreams.add(makeTarget()).models.named([{ model: "busy", waitMs: 2_000 }], 0);
    expect(engine.startAll(0)).toEqual(["1:3"]);
    const wait = { kind: "gate", gate: "acme", reason: "width", model: "busy" };
    expect(waits(engine, group, 500)).toEqual([{ ...wait, readyInMs: 1_500, slots: 3 }]);
  });

  it("a rate limit rather than its retry if it has met one", () => {
    const engine = new TestEngine({ random: () => 0.5 });
    const group = engine.open(alike(2));
    engine.startAll(0);
    const ends = [...engine.state.attempts.keys()].map((id) =>
      settle(engine.state, id, failure("rate_limited", 1_000), 0),
    );
    const gate = { kind: "gate", gate: "acme", reason: "requests_per_minute" };
    expect(waits(engine, group)).toEqual([{ ...gate, readyInMs: ends[0]?.retryInMs, slots: 2 }]);
  });
});

describe("a key that does not work", () => {
  it("is what all slots wait for, also while one finds out whether it works again, and blocks the run since its stop", () => {
    const engine = new TestEngine();
    const group = engine.open(alike(4), { concurrency: 1 });
    engine.startAll(0);
    settle(engine.state, [...engine.state.attempts.keys()][0] ?? "", STOP, 5);
    const stopped = { kind: "gate", gate: "acme", reason: "stopped" };
    expect(waits(engine, group, 5)).toEqual([{ ...stopped, readyInMs: KEY_PROBE_MS, slots: 4 }]);
    const probeAtMs = 5 + KEY_PROBE_MS;
    expect(waits(engine, group, probeAtMs)).toEqual([{ ...stopped, readyInMs: null, slots: 4 }]);
    expect(engine.startAll(probeAtMs)).toHaveLength(1);
    expect(waits(engine, group, probeAtMs)).toMatchObject([{ ...stopped, slots: 3 }]);
    expect(blockedGates(engine.state)).toEqual([{ gate: "acme", reason: "invalid_key", sinceMs: 5 }]);
    settle(engine.state, [...engine.state.attempts.keys()][0] ?? "", success(), probeAtMs + 1);
    expect(waits(engine, group, probeAtMs + 1)).toEqual([{ kind: "permit", slots: 3 }]);
    expect(blockedGates(engine.state)).toEqual([]);
  });

  it("blocks no run while another key may take its calls, and is named beside it once that is stopped, too", () => {
    const engine = new TestEngine({ targets: [keyed(["A", "B"])] });
    const group = engine.open(alike(3));
    const gateOf = (key: string) => engine.state.upstreams.add(makeTarget({ gate: `acme#${key}` }));
    gateOf("A").stopped("insufficient_quota", null, 7);
    expect([blockedGates(engine.state), waits(engine, group, 8)]).toEqual([[], [{ kind: "permit", slots: 3 }]]);
    gateOf("B").stopped("forbidden", null, 9);
    expect(blockedGates(engine.state)).toEqual([
      { gate: "acme#A", reason: "insufficient_quota", sinceMs: 7 },
      { gate: "acme#B", reason: "forbidden", sinceMs: 9 },
    ]);
    expect(waits(engine, group, 10)).toMatchObject([{ kind: "gate", reason: "stopped", slots: 3 }]);
  });

  it("blocks no run that has nothing queued for it", () => {
    const engine = new TestEngine();
    engine.state.upstreams.add(makeTarget()).stopped("forbidden", null, 0);
    expect(blockedGates(engine.state)).toEqual([]);
  });
});

describe("a look at what waits", () => {
  it("sums as many slots as are queued, and shows each of them", () => {
    const engine = new TestEngine({ width: 3 });
    const group = engine.open(alike(1_000));
    engine.startAll(0);
    const sum = waitsOf(engine.state, group, 0).reduce((slots, each) => slots + each.slots, 0);
    expect([sum, waitsBySlot(engine.state, group, 0).size, group.counts.queued]).toEqual([997, 997, 997]);
  });

  it("finds nothing in a group that has ended, and leaves out slots of other groups", () => {
    const engine = new TestEngine({ width: 2 });
    const group = engine.open(alike(2));
    engine.open(alike(5));
    engine.startAll(0);
    for (const id of [...engine.state.attempts.keys()]) settle(engine.state, id, success(), 1);
    expect([waits(engine, group, 1), waitsBySlot(engine.state, group, 1).size]).toEqual([[], 0]);
  });
});
