/** `on_exhausted: "pause"`: slots that the budget does not cover wait for a higher limit, whatever happens to the object. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Ledger, NO_LIMITS } from "../../../../src/run/money/ledger.ts";
import { CallPageBuilder, readFacts } from "../../../../src/run/queue/call-page.ts";
import { cancelSlot } from "../../../../src/run/steps/cancel.ts";
import { expireQueued } from "../../../../src/run/steps/deadline.ts";
import { dispatch, startableGroup } from "../../../../src/run/steps/dispatch.ts";
import { enqueueSlots } from "../../../../src/run/steps/enqueue.ts";
import type { Group } from "../../../../src/run/group/group.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { EngineState, type EngineDeps } from "../../../../src/run/state.ts";
import { demandAt } from "../../../../src/run/steps/waiting.ts";
import { shortOf } from "../../../../src/run/steps/paused.ts";
import { waitsOf } from "../../../../src/run/steps/waiting-for.ts";
import { alike, failure, makeFacts, makeHeader, makeTarget, success, TestEngine } from "../../../support/engine.ts";
import { settingsOf } from "../../../support/engine-opening.ts";
import { Rows } from "../../../support/engine-rows.ts";

const PAUSE = { onExhausted: "pause" } as const;

/** Settles everything in flight, at the whole reservation. */
function settleAll({ state }: Pick<TestEngine, "state">, nowMs: number): void {
  for (const id of state.attempts.keys()) settle(state, id, success(null), nowMs);
}

function setCalls({ state }: Pick<TestEngine, "state">, calls: number): void {
  expect(state.ledger.setLimits({ ...state.ledger.limits, calls })).toBeNull();
}

function dimensionOf({ state }: TestEngine, { paused }: Group): string | null {
  return paused === null ? null : shortOf(state, paused);
}

const eventsOf = ({ state }: TestEngine): string[] =>
  (state.log.take()?.events ?? []).map(({ event }) => event).filter((event) => event.startsWith("group_"));

/** A group of four calls on a budget of two, which are spent. */
function spent(fields: Parameters<TestEngine["open"]>[1] = PAUSE): { engine: TestEngine; group: Group } {
  const engine = new TestEngine({ limits: { calls: 2 } });
  const group = engine.open(alike(4), fields);
  expect(engine.startAll(0)).toEqual(["1:0", "1:1"]);
  settleAll(engine, 1);
  expect(engine.startAll(2)).toEqual([]);
  return { engine, group };
}

describe("a group that pauses", () => {
  it("keeps its slots when the budget is used up, and one that does not fails them", () => {
    expect(spent().group.counts).toMatchObject({ completed: 2, queued: 2, failed: 0 });
    expect(spent({}).group.counts).toMatchObject({ completed: 2, queued: 0, failed: 2 });
  });

  it("says which dimension it waits for, and occupies no executor", () => {
    const { engine, group } = spent();
    const waits = [{ waitingFor: { kind: "budget", dimension: "calls", isExhausted: true }, slots: 2 }];
    expect(waitsOf(engine.state, group, 3)).toEqual(waits);
    expect(group.startableSlots).toBe(0);
    expect(demandAt(engine.state, "acme").standard.waiting).toBe(0);
    expect(startableGroup(engine.state, 3)).toBeNull();
  });

  it("continues once the limit covers its next call, not before, and without an executor that waits", () => {
    const { engine, group } = spent();
    setCalls(engine, 2);
    engine.turn([], 5);
    expect(group.paused).not.toBeNull();
    setCalls(engine, 3);
    engine.turn([], 6);
    expect(group.paused).toBeNull();
    expect(startableGroup(engine.state, 6)).toBe(1);
    expect(engine.startAll(7)).toEqual(["1:2"]);
    settleAll(engine, 8);
    engine.startAll(9);
    expect(dimensionOf(engine, group)).toBe("calls");
    expect(eventsOf(engine)).toEqual(["group_paused", "group_resumed", "group_paused"]);
  });

  it("waits for a dimension that is short beside the one that was raised", () => {
    const engine = new TestEngine({ limits: { calls: 1, completion_tokens: 150 } });
    const group = engine.open(alike(2), PAUSE);
    engine.startAll(0);
    settleAll(engine, 1);
    engine.startAll(2);
    setCalls(engine, 2);
    engine.startAll(3);
    expect(dimensionOf(engine, group)).toBe("completion_tokens");
  });

  it("never has an answer that the budget caps: a call waits for its whole cap", () => {
    const open = (fields: object): string[] => {
      const engine = new TestEngine({ limits: { completion_tokens: 99 } });
      engine.open(alike(1), fields);
      return engine.startAll(0);
    };
    expect(open({})).toEqual(["1:0"]);
    expect(open(PAUSE)).toEqual([]);
  });

  it("does not wait for settlements of others as if it were paused", () => {
    const engine = new TestEngine({ limits: { completion_tokens: 150 } });
    const group = engine.open(alike(2), PAUSE);
    expect(engine.startAll(0)).toEqual(["1:0"]);
    expect(group.paused).toBeNull();
    settle(engine.state, [...engine.state.attempts.keys()][0] ?? "", success({ completionTokens: 10 }), 1);
    expect(engine.startAll(2)).toEqual(["1:1"]);
  });

  it("leaves what is left to groups and calls that cost less", () => {
    const engine = new TestEngine({ limits: { completion_tokens: 50 } });
    engine.open(alike(2), PAUSE);
    engine.open([{ maxTokens: 20 }]);
    engine.call("call-1", 0, { maxTokens: 20 });
    expect(engine.startAll(0)).toEqual(["call-1", "2:0"]);
  });

  it("ends at its deadline with the figures of the budget", () => {
    const { engine, group } = spent({ ...PAUSE, deadlineMs: 50 });
    expireQueued(engine.state, null, 49);
    expect(group.counts.queued).toBe(2);
    expireQueued(engine.state, null, 50);
    expect(group.counts).toMatchObject({ queued: 0, failed: 2 });
    expect(group.drained?.reason).toMatchObject({ reason: "budget_exhausted", dimension: "calls", limit: 2, spent: 2 });
  });

  it("fails slots that an equal share of the budget does not cover: no higher limit raises the share", () => {
    const share = { ...NO_LIMITS, completion_tokens: 1 };
    const engine = new TestEngine({ limits: { completion_tokens: 500 } });
    const group = engine.open(alike(1), { ...PAUSE, share });
    engine.startAll(0);
    expect(group.counts.failed).toBe(1);
  });

  it("continues with what the budget covers if the call is cancelled that it does not cover", () => {
    const engine = new TestEngine({ limits: { completion_tokens: 50 } });
    const group = engine.open([{ maxTokens: 100 }, { maxTokens: 20 }], PAUSE);
    expect(engine.startAll(0)).toEqual([]);
    cancelSlot(engine.state, group, 0, { reason: "cancelled", message: "by the test" }, 1);
    expect(engine.turn([], 2).hasResumed).toBe(true);
    expect(engine.startAll(3)).toEqual(["1:1"]);
  });

  it("holds back a retry, too", () => {
    const engine = new TestEngine({ limits: { calls: 1 } });
    const group = engine.open(alike(1), PAUSE);
    engine.startAll(0);
    settle(engine.state, [...engine.state.attempts.keys()][0] ?? "", failure("transient"), 1);
    expect(engine.startAll(100_000)).toEqual([]);
    expect([group.counts.queued, dimensionOf(engine, group)]).toEqual([1, "calls"]);
    setCalls(engine, 2);
    expect(engine.startAll(100_001)).toEqual(["1:0"]);
  });
});

const TARGET = makeTarget({ attemptsMax: 1 });
const deps: EngineDeps = { random: () => 0, factsOf: () => makeFacts(), targetOf: () => TARGET };

/** Runs a group on limits that rise by one call whenever it pauses; the object dies after each turn in `crashes`. */
function played(count: number, crashes: ReadonlySet<number>) {
  let calls = 1;
  const settings = () => settingsOf({ limits: { ...NO_LIMITS, calls }, width: 2 } as Parameters<typeof settingsOf>[0]);
  const builder = new CallPageBuilder({});
  for (let index = 0; index < count; index++) builder.add({ body: { prompt: "p" }, facts: makeFacts() });
  const page = builder.flush();
  const header = makeHeader({ count, models: builder.models, ...PAUSE });
  const rows = new Rows();
  const kept = { openKey: "open 1", detach: true, errorStyle: "bracket", named: false } as const;
  rows.putGroup({ header, defaultsJson: "{}", sealed: true, ...kept }, page === null ? [] : [page]);
  const ledger = new Ledger({ ...NO_LIMITS, calls });
  let state = new EngineState({ ledger, width: 2, windowMs: 50 }, deps);
  let group: Group | undefined = state.openGroup(header);
  enqueueSlots(state, group, 0, page === null ? [] : readFacts(page.facts, header.models));
  let [sent, pauses] = [0, 0];
  for (let turn = 0; group !== undefined && !group.done && turn < 1_000; turn++) {
    sent += dispatch(state, new Map([[0, 2]]), turn).assignments.length;
    expect(state.ledger.committed("calls")).toBeLessThanOrEqual(calls);
    for (const id of state.attempts.keys()) settle(state, id, success({}), turn);
    rows.commit(state, turn, false);
    if (crashes.has(turn)) {
      state = rows.rebuild(settings(), { ...deps, targetOfLease: () => TARGET }, turn);
      group = state.groups.get(1);
    }
    if (group?.paused == null) continue;
    pauses += 1;
    calls += 1;
    state.ledger.setLimits({ ...NO_LIMITS, calls });
  }
  return { sent, pauses, counts: rows.result(1)?.counts, paused: rows.result(1)?.paused };
}

it("sends each call once and pauses as often, wherever the object dies", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), fc.array(fc.nat(16), { maxLength: 6 }), (count, crashes) => {
      const ended = played(count, new Set(crashes));
      expect(ended).toMatchObject({ sent: count, pauses: count - 1, counts: { completed: count, failed: 0 } });
      expect(ended.paused).toBeUndefined();
    }),
  );
});
