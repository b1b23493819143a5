/** Every way in which a slot of a group can end, through one table: its row, its events, its group, its followers. */
import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../../src/call.ts";
import { cancelGroup, cancelSlot } from "../../../../src/run/steps/cancel.ts";
import { expireQueued } from "../../../../src/run/steps/deadline.ts";
import { drainGroup, endDrainedSlots, endSlot } from "../../../../src/run/steps/end-slot.ts";
import type { Group } from "../../../../src/run/group/group.ts";
import type { LoggedEvent } from "../../../../src/run/log.ts";
import { freshRecord, type SlotRecord } from "../../../../src/run/group/record.ts";
import { expireLeases, settle } from "../../../../src/run/steps/settle.ts";
import { indexOf, slotIdOf, type SlotState } from "../../../../src/run/queue/slot.ts";
import type { Reason } from "../../../../src/errors.ts";
import { LEARNED_ANSWERS_MIN, LEASE_TTL_MS } from "../../../../src/limits.ts";
import { failure, makeTarget, success, TestEngine } from "../../../support/engine.ts";

const SLOT = slotIdOf(1, 0);
const STOPPED: Reason = { reason: "cancelled", message: "by the test" };
const NO = { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 };
const OTHER = { id: "pg-0000000000000-000002" };
const EQUAL = { dedupeKey: "k" };
const AT_MS = 5_000;
const DEADLINE_MS = AT_MS;
const LATE = { reason: "deadline_exceeded", deadlineMs: DEADLINE_MS } as const;

type Run = { engine: TestEngine; group: Group };
type Options = ConstructorParameters<typeof TestEngine>[0];
type Rules = Parameters<TestEngine["open"]>[1];

/** Group 1 with the slot that ends, 1:0, and another that is never started, 1:1, at an upstream that takes one attempt. */
function fresh(rules: Rules = {}, options: Options = {}): Run {
  const engine = new TestEngine({ width: 1, limits: { usd: 1_000 }, ...options });
  return { engine, group: engine.open([EQUAL, { priority: 0 }], rules) };
}

/** The same with 1:0 in flight, and the equal slot 2:0 that follows it. */
function running(rules: Rules = {}, options: Options = {}): Run {
  const run = fresh(rules, options);
  expect(run.engine.startAll(0)).toEqual(["1:0"]);
  run.engine.open([EQUAL], OTHER);
  run.engine.state.setWidth(2);
  run.engine.state.queue.remove((seq, id) => seq === 1 && id === slotIdOf(1, 1));
  expect(run.engine.startAll(0)).toEqual([]);
  run.engine.state.queue.push({ groupSeq: 1, upstream: "acme", priority: 0, queuedAtMs: 0 }, slotIdOf(1, 1));
  run.engine.state.setWidth(1);
  return run;
}

/** The same with 1:0 waiting for a retry. */
function tried(rules: Rules = {}, options: Options = {}, outcome: Outcome = failure("transient", 60_000)): Run {
  const run = running(rules, options);
  settle(run.engine.state, `${SLOT}.1`, outcome, 10);
  expect(run.group.stateOf(0)).toBe("queued");
  return run;
}

/** The same with 1:0 following 2:0, which is in flight. */
function following(rules: Rules = {}): Run {
  const engine = new TestEngine({ width: 1, limits: { usd: 1_000 } });
  engine.open([EQUAL], { ...OTHER, seq: 2 });
  expect(engine.startAll(0)).toEqual(["2:0"]);
  engine.state.setWidth(2);
  const group = engine.open([EQUAL], { ...rules, seq: 1 });
  expect(engine.startAll(0)).toEqual([]);
  return { engine, group };
}

/** With 1:0 waiting for its retry, after an answer that ended at a learned cap. */
function cutShort(rules: Rules = {}): Run {
  const engine = new TestEngine({ width: 2, limits: { usd: 9_000 } });
  const lease = { target: makeTarget(), capTokens: null, capKind: "default" } as const;
  for (let at = 0; at < LEARNED_ANSWERS_MIN; at++) {
    engine.state.learnedCaps.learn(success({ completionTokens: 10 }), lease);
  }
  const group = engine.open([{ ...EQUAL, maxTokens: null }, { priority: 0 }], rules);
  const [assignment] = engine.turn([1], 0).assignments;
  expect(assignment?.lease.capKind).toBe("learned");
  const cut = { ...success({ promptTokens: 10, completionTokens: 64 }), finishReason: "length" };
  settle(engine.state, `${SLOT}.1`, cut, 10);
  return { engine, group };
}

const endOf = (outcome: Outcome) => (run: Run) => void settle(run.engine.state, `${SLOT}.1`, outcome, AT_MS);
const cancelAll = ({ engine, group }: Run) => cancelGroup(engine.state, group, STOPPED, AT_MS);
const cancelOne = ({ engine, group }: Run) => cancelSlot(engine.state, group, 0, STOPPED, AT_MS);
const expire = ({ engine }: Run) => void expireQueued(engine.state, null, AT_MS);
/** Leaves less of the budget than one attempt needs, and dispatches what is queued. */
function refuse({ engine }: Run): void {
  const { ledger } = engine.state;
  ledger.restoreSpent({ usd: 1_000, calls: 0, prompt_tokens: 0, completion_tokens: 0, new_tokens: 0 });
  engine.state.setWidth(1);
  engine.turn([1], 100_000);
}

type Way = {
  from: () => Run;
  act: (run: Run) => void;
  state: SlotState;
  /** Fields of the slot's own row; null = its end follows from its group's row. */
  row: Partial<SlotRecord> | null;
  /** The events of its end, in their order. */
  events: Partial<LoggedEvent>[];
  /** Why its group stopped with it, or before it. */
  drained?: "cancel" | "abort" | "deadline";
  /** What became of the equal slot that followed it; `refused`: requeued, and refused in the same turn. */
  followers?: "shared" | "requeued" | "refused";
};

const completed = { event: "slot_completed", index: 0, status: "completed" } as const;
const failed = { event: "slot_completed", index: 0, status: "failed" } as const;
const cancelled = { event: "slot_completed", index: 0, status: "cancelled" } as const;
const ONCE = { attempts: 1, startedAtMs: 0 };
const NEVER = { attempts: 0, startedAtMs: null, usage: NO };
const RETRIED = { attempts: 1, startedAtMs: null };

const WAYS: Record<string, Way> = {
  "completed by its attempt": {
    from: running,
    act: endOf(success({ promptTokens: 40 })),
    state: "completed",
    row: { attempts: 1, text: "ok", costNanoUsd: 40 },
    events: [{ ...completed, ...ONCE, usage: { ...NO, promptTokens: 40, costNanoUsd: 40 } }],
    followers: "shared",
  },
  "failed by its attempt": {
    from: running,
    act: endOf(failure("rejected")),
    state: "failed",
    row: { attempts: 1, model: null },
    events: [{ ...failed, ...ONCE }],
    followers: "shared",
  },
  "failed by its attempt, which aborts its group": {
    from: () => running({ rules: { onError: "abort" } }),
    act: endOf(failure("rejected")),
    state: "failed",
    row: { attempts: 1 },
    events: [
      { ...failed, ...ONCE },
      { event: "slots_cancelled", count: 1, status: "cancelled" },
    ],
    drained: "abort",
    followers: "shared",
  },
  "failed because its executor was lost": {
    from: () => running({ onLost: "fail" }),
    act: ({ engine }) => void expireLeases(engine.state, LEASE_TTL_MS),
    state: "failed",
    row: { attempts: 1, estimated: true, costNanoUsd: 300 },
    events: [{ ...failed, ...ONCE }],
    followers: "shared",
  },
  "refused for its budget": {
    from: fresh,
    act: refuse,
    state: "failed",
    row: { attempts: 0, costNanoUsd: 0 },
    events: [
      { event: "budget_refused", index: 0 },
      { ...failed, ...NEVER },
    ],
  },
  "refused for its budget at its retry": {
    from: tried,
    act: refuse,
    state: "failed",
    row: { attempts: 1, costNanoUsd: 0 },
    events: [
      { event: "budget_refused", index: 0 },
      { ...failed, ...RETRIED },
    ],
    followers: "refused",
  },
  "refused, which aborts its group": {
    from: () => fresh({ rules: { onError: "abort" } }),
    act: refuse,
    state: "failed",
    row: { attempts: 0 },
    events: [
      { event: "budget_refused", index: 0 },
      { ...failed, ...NEVER },
      { event: "slots_cancelled", count: 1 },
    ],
    drained: "abort",
  },
  "refused because its model is not configured": {
    from: () => fresh({}, { targets: [null] }),
    act: ({ engine }) => void engine.turn([1], AT_MS),
    state: "failed",
    row: { attempts: 0, reason: { reason: "model_not_found", model: "" } },
    events: [{ ...failed, ...NEVER }],
  },
  "cancelled by itself before it started": {
    from: fresh,
    act: cancelOne,
    state: "cancelled",
    row: { attempts: 0, reason: STOPPED },
    events: [{ ...cancelled, ...NEVER }],
  },
  "cancelled by itself before its retry": {
    from: tried,
    act: cancelOne,
    state: "cancelled",
    row: { attempts: 1, reason: STOPPED },
    events: [{ ...cancelled, ...RETRIED }],
    followers: "requeued",
  },
  "cancelled by itself in flight": {
    from: running,
    act: cancelOne,
    state: "cancelled",
    row: { attempts: 1, reason: STOPPED, estimated: true },
    events: [{ ...cancelled, ...ONCE }],
    followers: "requeued",
  },
  "cancelled by itself while it follows another": {
    from: following,
    act: cancelOne,
    state: "cancelled",
    row: { attempts: 0, reason: STOPPED },
    events: [{ ...cancelled, ...NEVER }],
  },
  "cancelled with its group before it started": {
    from: fresh,
    act: cancelAll,
    state: "cancelled",
    row: null,
    events: [{ event: "slots_cancelled", count: 2, status: "cancelled", reason: STOPPED }],
    drained: "cancel",
  },
  "cancelled with its group before its retry": {
    from: tried,
    act: cancelAll,
    state: "cancelled",
    row: { attempts: 1, reason: STOPPED },
    events: [
      { ...cancelled, ...RETRIED },
      { event: "slots_cancelled", count: 1 },
    ],
    drained: "cancel",
    followers: "requeued",
  },
  "cancelled with its group in flight": {
    from: running,
    act: cancelAll,
    state: "cancelled",
    row: { attempts: 1, reason: STOPPED, estimated: true },
    events: [
      { event: "slots_cancelled", count: 1 },
      { ...cancelled, ...ONCE },
    ],
    drained: "cancel",
    followers: "requeued",
  },
  "cancelled with its group while it follows another": {
    from: following,
    act: cancelAll,
    state: "cancelled",
    row: null,
    events: [{ event: "slots_cancelled", count: 1, reason: STOPPED }],
    drained: "cancel",
  },
  "expired before it started": {
    from: () => fresh({ deadlineMs: DEADLINE_MS }),
    act: expire,
    state: "failed",
    row: null,
    events: [{ event: "slots_cancelled", count: 2, status: "failed", reason: LATE }],
    drained: "deadline",
  },
  "expired before its retry": {
    from: () => tried({ deadlineMs: DEADLINE_MS }),
    act: expire,
    state: "failed",
    row: { attempts: 1, reason: LATE },
    events: [
      { ...failed, ...RETRIED, reason: LATE },
      { event: "slots_cancelled", count: 1, status: "failed" },
    ],
    drained: "deadline",
    followers: "requeued",
  },
  "expired with an answer that a learned cap cut": {
    from: () => cutShort({ deadlineMs: DEADLINE_MS }),
    act: expire,
    state: "completed",
    row: { attempts: 1, text: "ok", cappedBy: "budget", reason: null, notBeforeMs: null },
    events: [
      { ...completed, ...RETRIED, cappedBy: "budget" },
      { event: "slots_cancelled", count: 1, status: "failed", reason: LATE },
    ],
    drained: "deadline",
  },
  "cancelled with an answer that a learned cap cut": {
    from: cutShort,
    act: cancelAll,
    state: "cancelled",
    row: { attempts: 1, text: null, model: null, finishReason: null, costNanoUsd: 138 },
    events: [
      { ...cancelled, ...RETRIED },
      { event: "slots_cancelled", count: 1 },
    ],
    drained: "cancel",
  },
  "completed with the outcome of an equal slot": {
    from: following,
    act: ({ engine }) => void settle(engine.state, `${slotIdOf(2, 0)}.1`, success({ promptTokens: 40 }), AT_MS),
    state: "completed",
    row: { attempts: 0, text: "ok", costNanoUsd: 0 },
    events: [{ ...completed, ...NEVER, model: "gpt-x-2026" }],
  },
  "failed with the outcome of an equal slot, which aborts its group": {
    from: () => following({ rules: { onError: "abort" } }),
    act: ({ engine }) => void settle(engine.state, `${slotIdOf(2, 0)}.1`, failure("rejected"), AT_MS),
    state: "failed",
    row: { attempts: 0, costNanoUsd: 0 },
    events: [{ ...failed, ...NEVER }],
  },
  "ended after a restart, with its group that was stopped before": {
    from: fresh,
    act: ({ engine, group }) => {
      engine.state.queue.remove(() => true);
      group.drain({ state: "cancelled", reason: STOPPED, cause: "cancel" });
      endDrainedSlots(engine.state, group, AT_MS);
    },
    state: "cancelled",
    row: null,
    events: [],
    drained: "cancel",
  },
  skipped: {
    from: fresh,
    act: ({ engine, group }) => {
      engine.state.queue.remove((_, id) => id === SLOT);
      endSlot(engine.state, group, { ...freshRecord(SLOT), state: "skipped" }, {}, AT_MS);
    },
    state: "skipped",
    row: { attempts: 0 },
    events: [],
  },
};

const isOfEnd = ({ event, group }: LoggedEvent) =>
  group === "pg-0000000000000-000001" && ["budget_refused", "slot_completed", "slots_cancelled"].includes(event);

describe.each(Object.entries(WAYS))("a slot that is %s", (_, way) => {
  function ended() {
    const { engine, group } = way.from();
    const { state } = engine;
    state.takeWrites();
    state.log.take();
    way.act({ engine, group });
    return { engine, group, state, writes: state.takeWrites(), events: state.log.take()?.events ?? [] };
  }

  it("has one final state, and memory keeps nothing of it", () => {
    const { group, state } = ended();
    expect(group.stateOf(0)).toBe(way.state);
    expect(group.ended.filter((index) => index === 0)).toEqual([0]);
    expect([state.tried.has(SLOT), state.queue.remove((_seq, id) => id === SLOT)]).toEqual([false, []]);
    const states = group.ended.map((index) => group.stateOf(index));
    for (const each of ["completed", "failed", "cancelled", "skipped"] as const) {
      expect(group.counts[each]).toBe(states.filter((known) => known === each).length);
    }
  });

  it("has the row and the events that belong to its end", () => {
    const { writes, events } = ended();
    const rows = writes.slots.filter(({ id }) => id === SLOT);
    expect(rows).toMatchObject(way.row === null ? [] : [{ ...way.row, state: way.state }]);
    expect(events.filter((event) => isOfEnd(event) && !isOfOther(event))).toMatchObject(way.events);
  });

  it("has its group written, and its end emitted last, when the group is stopped or was ended by it", () => {
    const { group, writes, events } = ended();
    expect(group.drained?.cause).toBe(way.drained);
    expect(writes.groups.includes(group)).toBe(group.done || group.drained !== null);
    const own = events.filter((event) => event.group === group.header.id);
    expect(own.findIndex(({ event }) => event === "group_completed")).toBe(group.done ? own.length - 1 : -1);
  });

  it("leaves its followers the outcome of its attempt, or returns them to the queue", () => {
    const { engine, state, events } = ended();
    const follower = state.groups.get(2);
    if (way.followers === "shared") expect(follower?.status).toBe(way.state);
    if (way.followers === "refused") {
      const own = events.filter(({ group }) => group === OTHER.id).map(({ event }) => event);
      expect(own).toEqual(["budget_refused", "slot_completed", "group_completed"]);
    }
    if (way.followers !== "requeued") return;
    expect(follower?.stateOf(0)).toBe("queued");
    state.ledger.setLimits({ usd: null, calls: null, prompt_tokens: null, completion_tokens: null, new_tokens: null });
    state.setWidth(2);
    expect(engine.startAll(200_000)).toContain("2:0");
  });

  it("ends its group with the last of its slots: once, with a row and a count that includes it", () => {
    const { engine, group, state } = ended();
    const isDone = group.done;
    drainGroup(state, group, { state: "cancelled", reason: STOPPED, cause: "cancel" }, 300_000);
    expect(group.done).toBe(true);
    const ends = (state.log.take()?.events ?? []).filter(
      ({ event, group: id }) => id === group.header.id && event === "group_completed",
    );
    expect(ends.length).toBe(isDone ? 0 : 1);
    expect(state.takeWrites().groups.includes(group)).toBe(!isDone);
    const counts = { ...group.counts };
    for (const attemptId of [...state.attempts.keys()]) settle(state, attemptId, success(), 300_000);
    expect(group.counts).toEqual(counts);
    expect(
      engine.state.groups
        .get(1)
        ?.ended.map((index) => indexOf(index))
        .sort(),
    ).toEqual(Array.from({ length: group.header.count }, (_each, index) => index));
  });
});

/** Events of the slot that is not under test. */
function isOfOther(event: LoggedEvent): boolean {
  return "index" in event && event.index === 1;
}

describe("a single call that is stored as a group", () => {
  it("has its own event, not its group's, when it is cancelled before it started; its row is the group's", () => {
    const engine = new TestEngine();
    const group = engine.open([{}], { single: "alone" });
    cancelGroup(engine.state, group, STOPPED, AT_MS);
    expect(engine.state.takeWrites()).toMatchObject({ slots: [], groups: [group] });
    expect(engine.state.log.take()?.events).toMatchObject([
      { event: "slot_completed", index: null, callId: group.header.id, status: "cancelled", reason: STOPPED },
    ]);
  });
});
