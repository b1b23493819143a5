import { describe, expect, it } from "vitest";
import { cancelGroup } from "../../../../src/run/steps/cancel.ts";
import { expireQueued } from "../../../../src/run/steps/deadline.ts";
import { SingleFlight, type Follower } from "../../../../src/run/leases/single-flight.ts";
import { cancelQueuedSlot, drainGroup } from "../../../../src/run/steps/end-slot.ts";
import { endCall, endCalls } from "../../../../src/run/steps/end-call.ts";
import { enqueueSlots, type Equals } from "../../../../src/run/steps/enqueue.ts";
import { expireLeases, settle } from "../../../../src/run/steps/settle.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import type { Reason } from "../../../../src/errors.ts";
import type { GroupHeader } from "../../../../src/run/group/group.ts";
import { LEASE_TTL_MS } from "../../../../src/limits.ts";
import { alike, failure, makeFacts, makeHeader, success, TestEngine } from "../../../support/engine.ts";

const FIRST = slotIdOf(1, 0);
const STOPPED: Reason = { reason: "cancelled", message: "by the test" };
const EQUAL = { dedupeKey: "k" };

/** Two equal slots of one group, the first of which runs. */
function pair(options: ConstructorParameters<typeof TestEngine>[0] = {}, fields: Pick<GroupHeader, "rules"> = {}) {
  const engine = new TestEngine(options);
  const group = engine.open(alike(2, EQUAL), fields);
  expect(engine.startAll(0)).toEqual(["1:0"]);
  return { engine, group, state: engine.state };
}

/** An equal single call runs as "lead" and another waits as "wait". */
function singles(options: ConstructorParameters<typeof TestEngine>[0] = {}, deadlineMs: number | null = null) {
  const engine = new TestEngine(options);
  engine.call("lead", 0, EQUAL);
  engine.call("wait", 0, { ...EQUAL, deadlineMs });
  expect(engine.startAll(0)).toEqual(["lead"]);
  return { engine, state: engine.state };
}

describe("single flight", () => {
  const follower = (id: number): Follower => {
    const bucket = { groupSeq: 1, upstream: "acme", priority: 2, queuedAtMs: 0 } as const;
    return { bucket, id, call: null };
  };

  it("accepts followers only while another call leads", () => {
    const flights = new SingleFlight();
    expect(flights.follow("k", "a", follower(1))).toBe(false);
    flights.lead("k", "a");
    expect([flights.follow("k", "a", follower(1)), flights.follow("other", "b", follower(2))]).toEqual([false, false]);
    expect(flights.follow("k", "b", follower(2))).toBe(true);
    expect(flights.end("a")).toEqual([follower(2)]);
    expect([flights.end("a"), flights.follow("k", "b", follower(2))]).toEqual([[], false]);
  });

  it("has one leader per key: a later one neither takes over nor ends it", () => {
    const flights = new SingleFlight();
    flights.lead("k", "a");
    flights.follow("k", "b", follower(2));
    flights.lead("k", "c");
    expect(flights.end("c")).toEqual([]);
    expect(flights.end("a")).toEqual([follower(2)]);
  });

  it("removes followers that are stopped, and keeps the others in their order", () => {
    const flights = new SingleFlight();
    flights.lead("k", "a");
    for (const id of [1, 2, 3, 4]) flights.follow("k", `slot ${id}`, follower(id));
    expect(flights.remove(({ id }) => id % 2 === 0)).toEqual([follower(2), follower(4)]);
    expect(flights.end("a")).toEqual([follower(1), follower(3)]);
  });
});

describe("copies of a queued slot", () => {
  const bucket = { groupSeq: 1, upstream: "acme", priority: 2, queuedAtMs: 0 } as const;
  const copy = (id: number): Follower => ({ bucket, id, call: null });

  it("follow it when it leads, and whom it follows", () => {
    const flights = new SingleFlight();
    for (const id of [2, 3]) flights.addCopy("1", bucket, id);
    flights.lead("k", "1");
    flights.addCopy("4", bucket, 5);
    expect(flights.follow("k", "4", copy(4))).toBe(true);
    expect(flights.end("1")).toEqual([copy(2), copy(3), copy(4), copy(5)]);
  });

  it("are passed on to the first of them if it ends before that, one after the other", () => {
    const flights = new SingleFlight();
    for (const id of [2, 3, 4]) flights.addCopy("1", bucket, id);
    expect([flights.passOn("1"), flights.passOn("1"), flights.passOn("2")]).toEqual([copy(2), null, copy(3)]);
    flights.lead("k", "3");
    expect(flights.end("3")).toEqual([copy(4)]);
  });

  it("can be removed, those that have been passed on too", () => {
    const flights = new SingleFlight();
    for (const id of [2, 3, 4]) flights.addCopy("1", bucket, id);
    flights.passOn("1");
    expect(flights.remove(({ id }) => id === 3)).toEqual([copy(3)]);
    expect([flights.passOn("2"), flights.passOn("4")]).toEqual([copy(4), null]);
  });
});

describe("equal slots of a batch", () => {
  it("are decided when it is opened: one is queued for all, so that none is sent again, however narrow the run", () => {
    const engine = new TestEngine({ width: 1 });
    const group = engine.open([EQUAL, {}, EQUAL, EQUAL]);
    expect(engine.state.queue.readyCount).toBe(2);
    expect(engine.startAll(0)).toEqual(["1:0"]);
    settle(engine.state, `${FIRST}.1`, success(), 10);
    expect(group.counts).toMatchObject({ completed: 3, queued: 1 });
    expect(engine.startAll(20)).toEqual(["1:1"]);
  });

  it("are decided over all of its pages", () => {
    const engine = new TestEngine({ width: 1 });
    const group = engine.state.openGroup(makeHeader({ seq: 1, count: 3 }));
    const equals: Equals = new Map();
    for (let page = 0; page < 3; page++) enqueueSlots(engine.state, group, page, [makeFacts(EQUAL)], equals);
    expect(engine.state.queue.readyCount).toBe(1);
  });

  it("do not wait for one of another priority", () => {
    const engine = new TestEngine({ width: 1 });
    engine.open([EQUAL, { ...EQUAL, priority: 4 }]);
    expect(engine.state.queue.readyCount).toBe(2);
  });

  it("share the outcome of an equal call in flight that another one leads", () => {
    const engine = new TestEngine({ width: 2 });
    engine.call("lead", 0, EQUAL);
    expect(engine.startAll(0)).toEqual(["lead"]);
    const group = engine.open(alike(3, EQUAL));
    expect(engine.startAll(0)).toEqual([]);
    settle(engine.state, "lead.1", success(), 10);
    expect(group.counts).toMatchObject({ completed: 3 });
  });

  it("go on with the next of them if the one that is queued for all is cancelled", () => {
    const engine = new TestEngine();
    const group = engine.open(alike(3, EQUAL));
    cancelQueuedSlot(engine.state, group, FIRST, STOPPED, 5);
    expect(engine.startAll(10)).toEqual(["1:1"]);
    settle(engine.state, `${FIRST + 1}.1`, success(), 20);
    expect(group.counts).toMatchObject({ completed: 2, cancelled: 1 });
  });

  it("end with their group before any of them has started", () => {
    const engine = new TestEngine();
    const group = engine.open(alike(3, EQUAL));
    cancelGroup(engine.state, group, STOPPED, 5);
    expect([group.status, group.counts.cancelled, engine.state.queue.readyCount]).toEqual(["cancelled", 3, 0]);
    expect(engine.startAll(10)).toEqual([]);
  });

  it("are each refused if nothing can be paid, and each once", () => {
    const engine = new TestEngine({ limits: { usd: 1 } });
    const group = engine.open(alike(50, EQUAL));
    for (let turn = 0; group.counts.queued > 0 && turn < 60; turn++) {
      engine.startAll(turn);
      engine.state.turnShare.renew();
    }
    expect(group.counts).toMatchObject({ failed: 50, queued: 0 });
    const ends = engine.state.log.take()?.events.filter(({ event }) => event === "slot_completed");
    expect(ends).toHaveLength(50);
  });

  it("follow a leader in flight that an earlier instance of the run has started", () => {
    const engine = new TestEngine({ width: 1 });
    engine.state.singleFlight.lead("k", String(FIRST));
    const group = engine.state.openGroup(makeHeader({ seq: 1, count: 3 }));
    group.step(0, "running", 0);
    enqueueSlots(engine.state, group, 0, [makeFacts(EQUAL), makeFacts(EQUAL), makeFacts(EQUAL)]);
    expect(engine.state.queue.readyCount).toBe(0);
    expect(engine.state.singleFlight.end(String(FIRST)).map(({ id }) => id)).toEqual([FIRST + 1, FIRST + 2]);
  });
});

describe("equal calls", () => {
  it("are sent once: followers wait outside the queue, without a reservation", () => {
    const { engine, group, state } = pair({ limits: { usd: 1_000 } });
    expect([state.queue.readyCount, state.attempts.size, state.ledger.reserved.usd]).toEqual([0, 1, 300]);
    expect(group.counts).toMatchObject({ queued: 1, running: 1 });
    expect(engine.startAll(1)).toEqual([]);
  });

  it("do not wait for each other without a key, or with another", () => {
    const engine = new TestEngine();
    engine.open([{ dedupeKey: "a" }, { dedupeKey: "b" }, {}, {}]);
    expect(engine.startAll(0)).toEqual(["1:0", "1:1", "1:2", "1:3"]);
  });

  it("are sent again once the first has ended: nothing is cached", () => {
    const { engine, state } = pair();
    settle(state, `${FIRST}.1`, success(), 10);
    engine.open(alike(1, EQUAL));
    expect(engine.startAll(20)).toEqual(["2:0"]);
  });

  it("share a success and pay nothing for it", () => {
    const { group, state } = pair({ limits: { usd: 1_000 } });
    settle(state, `${FIRST}.1`, success({ promptTokens: 10 }), 10);
    expect([group.status, state.ledger.spent.usd, group.usage.costNanoUsd]).toEqual(["completed", 10, 10]);
    expect(state.takeWrites().slots).toMatchObject([
      { id: FIRST, attempts: 1, costNanoUsd: 10, text: "ok" },
      { id: FIRST + 1, state: "completed", attempts: 0, costNanoUsd: 0, text: "ok", model: "gpt-x-2026", reason: null },
    ]);
    const ends = state.log.take()?.events.filter(({ event }) => event === "slot_completed");
    expect(ends).toMatchObject([{ index: 0 }, { index: 1, attempts: 0, startedAtMs: null, usage: { costNanoUsd: 0 } }]);
    expect(state.log.take()).toBeNull();
  });

  it("share a final failure, to which each group applies its own failure rule", () => {
    const engine = new TestEngine({ width: 2 });
    const lenient = engine.open([EQUAL, {}]);
    const strict = engine.open([{ ...EQUAL, priority: 4 }, {}], { rules: { onError: "abort" } });
    expect(engine.startAll(0)).toEqual(["2:0", "1:1"]);
    settle(engine.state, `${slotIdOf(2, 0)}.1`, failure("rejected"), 10);
    expect([strict.status, strict.drained?.cause, strict.counts.cancelled]).toEqual(["failed", "abort", 1]);
    expect([lenient.status, lenient.drained, lenient.counts.failed]).toEqual(["running", null, 1]);
  });

  it("share a final failure within a group that stops at the first", () => {
    const { group, state } = pair({}, { rules: { onError: "abort" } });
    settle(state, `${FIRST}.1`, failure("rejected"), 10);
    expect([group.status, group.counts.failed, group.counts.cancelled]).toEqual(["failed", 1, 1]);
    expect([state.queue.readyCount, group.endedAtMs]).toEqual([0, 10]);
  });

  it("keep waiting for the retry of the first, and share its outcome", () => {
    const { engine, group, state } = pair({ random: () => 0.5 });
    settle(state, `${FIRST}.1`, failure("transient"), 10);
    expect(engine.startAll(409)).toEqual([]);
    expect(engine.startAll(410)).toEqual(["1:0"]);
    settle(state, `${FIRST}.2`, success(), 500);
    expect([group.status, [...group.attempts]]).toEqual(["completed", [2, 0]]);
  });

  it("replace the first if it is refused at its retry", () => {
    const { engine, group, state } = pair({ limits: { usd: 300 } });
    settle(state, `${FIRST}.1`, failure("transient"), 10);
    expect(
      state.ledger.reserve("other", { usd: 300, calls: 1, prompt_tokens: 0, completion_tokens: 0, new_tokens: 0 }),
    ).toBe(true);
    state.ledger.settle("other", { usd: 300, calls: 1, prompt_tokens: 0, completion_tokens: 0, new_tokens: 0 });
    engine.startAll(20_000);
    expect([group.status, group.counts.failed, state.queue.readyCount]).toEqual(["failed", 2, 0]);
  });

  it("replace the first if it is stopped before its retry", () => {
    const engine = new TestEngine();
    const first = engine.open(alike(1, EQUAL));
    engine.open(alike(2, EQUAL));
    engine.startAll(0);
    settle(engine.state, `${FIRST}.1`, failure("transient", 60_000), 10);
    drainGroup(engine.state, first, { state: "cancelled", reason: STOPPED, cause: "cancel" }, 20);
    expect(engine.startAll(20)).toEqual(["2:0"]);
    expect(engine.state.queue.readyCount).toBe(0);
  });

  it("replace the first if it is cancelled in flight: they do not share that end", () => {
    const engine = new TestEngine();
    const first = engine.open(alike(1, EQUAL));
    const other = engine.open(alike(1, EQUAL));
    engine.startAll(0);
    cancelGroup(engine.state, first, STOPPED, 10);
    expect([first.status, other.status]).toEqual(["cancelled", "running"]);
    expect(engine.startAll(10)).toEqual(["2:0"]);
  });

  it("share an unknown outcome only if it is final", () => {
    const { engine, group, state } = pair();
    expireLeases(state, LEASE_TTL_MS);
    expect(group.counts).toMatchObject({ queued: 2, running: 0 });
    engine.startAll(LEASE_TTL_MS);
    settle(state, `${FIRST}.2`, success(), LEASE_TTL_MS + 10);
    expect(group.status).toBe("completed");
  });

  it("wait no longer than their own deadline", () => {
    const engine = new TestEngine();
    engine.open(alike(1, EQUAL));
    const hasty = engine.open(alike(1, EQUAL), { deadlineMs: 100 });
    engine.startAll(0);
    expireQueued(engine.state, null, 99);
    expect(hasty.counts.queued).toBe(1);
    expireQueued(engine.state, null, 100);
    expect([hasty.status, hasty.drained?.cause]).toEqual(["failed", "deadline"]);
    settle(engine.state, `${FIRST}.1`, success(), 150);
    expect([hasty.counts.completed, hasty.counts.failed]).toEqual([0, 1]);
  });

  it("end with their group when it is cancelled, whichever call leads", () => {
    const engine = new TestEngine();
    const first = engine.open(alike(1, EQUAL));
    const other = engine.open(alike(1, EQUAL));
    engine.startAll(0);
    cancelGroup(engine.state, other, STOPPED, 10);
    expect([other.status, other.counts.cancelled]).toEqual(["cancelled", 1]);
    settle(engine.state, `${FIRST}.1`, success(), 20);
    expect([first.status, other.counts.completed]).toEqual(["completed", 0]);
  });
});

describe("equal single calls", () => {
  it("get the outcome of the first, and an event of their own end", () => {
    const { state } = singles();
    settle(state, "lead.1", success({ promptTokens: 10 }), 10);
    const shared = state.takeSharedOutcomes();
    expect(shared).toMatchObject([{ call: { callId: "wait" }, outcome: { kind: "success", text: "ok" } }]);
    expect([state.calls.size, shared[0]?.call.window?.done]).toEqual([0, true]);
    const ends = state.log.take()?.events.filter(({ event }) => event === "slot_completed");
    expect(ends).toMatchObject([
      { callId: "lead", attempts: 1, usage: { costNanoUsd: 10 } },
      { callId: "wait", attempts: 0, status: "completed", model: "gpt-x-2026", usage: { costNanoUsd: 0 } },
    ]);
  });

  it("share answers with slots of groups, both ways", () => {
    const { engine, state } = singles();
    const group = engine.open(alike(1, EQUAL));
    engine.startAll(0);
    settle(state, "lead.1", success(), 10);
    expect([group.status, state.takeSharedOutcomes().length]).toEqual(["completed", 1]);
    const other = engine.open(alike(1, EQUAL));
    engine.startAll(20);
    engine.call("late", 20, EQUAL);
    expect(engine.startAll(20)).toEqual([]);
    settle(state, `${slotIdOf(2, 0)}.1`, failure("rejected"), 30);
    expect([other.status, state.takeSharedOutcomes().at(-1)]).toMatchObject(["failed", { call: { callId: "late" } }]);
  });

  it("do not wait for a retry that only the first's Worker can request: one of them leads", () => {
    const { engine, state } = singles();
    expect(settle(state, "lead.1", failure("transient"), 10)?.retryInMs).toBe(0);
    expect(engine.startAll(10)).toEqual(["wait"]);
    engine.call("lead", 10, { ...EQUAL, attempt: 2 });
    expect(engine.startAll(10)).toEqual([]);
    settle(state, "wait.1", success(), 20);
    expect(state.takeSharedOutcomes()).toMatchObject([{ call: { callId: "lead", attempt: 2 } }]);
    const ends = state.log.take()?.events.filter(({ event }) => event === "slot_completed");
    expect(ends).toMatchObject([{ callId: "wait" }, { callId: "lead", attempts: 1, usage: { costNanoUsd: 0 } }]);
  });

  it("lead if the first is lost with its Worker", () => {
    const { engine, state } = singles();
    expireLeases(state, LEASE_TTL_MS);
    expect(engine.startAll(LEASE_TTL_MS)).toEqual(["wait"]);
  });

  it("that were withdrawn do not get the outcome of the first", () => {
    const { state } = singles();
    expect([endCall(state, "wait", STOPPED, 5), endCall(state, "wait", STOPPED, 5)]).toEqual([true, false]);
    settle(state, "lead.1", success(), 10);
    expect([state.takeSharedOutcomes(), state.calls.size]).toEqual([[], 0]);
  });

  it("wait no longer than their own deadline", () => {
    const { state } = singles({}, 100);
    expect(expireQueued(state, null, 99)).toEqual([]);
    expect(expireQueued(state, null, 100)).toMatchObject([{ call: { callId: "wait" } }]);
    settle(state, "lead.1", success(), 150);
    expect(state.takeSharedOutcomes()).toEqual([]);
  });

  it("end with their run", () => {
    const { state } = singles();
    expect(endCalls(state, STOPPED, 5).map(({ callId }) => callId)).toEqual(["wait"]);
    settle(state, "lead.1", success(), 10);
    expect([state.takeSharedOutcomes(), state.calls.size]).toEqual([[], 0]);
  });
});
