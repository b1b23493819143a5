import { describe, expect, it } from "vitest";
import { zeroAmounts } from "../../../../src/run/money/ledger.ts";
import { cancelGroup, cancelSlot, stopAttempts } from "../../../../src/run/steps/cancel.ts";
import { drainGroup } from "../../../../src/run/steps/end-slot.ts";
import { expireLeases, heartbeat, holdLease, loseAttempts, settle } from "../../../../src/run/steps/settle.ts";
import { LEASE_TTL_MS } from "../../../../src/limits.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import type { Reason } from "../../../../src/errors.ts";
import { alike, failure, makeTarget, success, TestEngine } from "../../../support/engine.ts";

const STOPPED: Reason = { reason: "cancelled", message: "by the test" };
const attemptOf = (seq: number, index: number, attempt = 1): string => `${slotIdOf(seq, index)}.${attempt}`;

describe("a group that is cancelled", () => {
  it("ends at once: queued, delayed and running slots are cancelled, ended slots stay as they are", () => {
    const engine = new TestEngine({ width: 3, random: () => 0.5 });
    const group = engine.open(alike(5));
    engine.startAll(0);
    settle(engine.state, attemptOf(1, 0), success(), 10);
    settle(engine.state, attemptOf(1, 1), failure("transient"), 10);
    cancelGroup(engine.state, group, STOPPED, 20);
    expect(group.counts).toMatchObject({ completed: 1, cancelled: 4, queued: 0, running: 0, failed: 0 });
    expect([group.status, group.endedAtMs, engine.state.attempts.size]).toEqual(["cancelled", 20, 0]);
    expect(engine.startAll(60_000)).toEqual([]);
  });

  it("charges the reservations of the attempts that it gave up, and frees all others", () => {
    const engine = new TestEngine({ limits: { usd: 10_000 }, width: 2 });
    const group = engine.open(alike(3));
    engine.startAll(0);
    engine.state.takeWrites();
    cancelGroup(engine.state, group, STOPPED, 20);
    const reserved = { usd: 300, calls: 1, prompt_tokens: 100, completion_tokens: 100, new_tokens: 200 };
    expect(engine.state.ledger.reserved).toEqual(zeroAmounts());
    expect([engine.state.ledger.spent.usd, engine.state.ledger.spent.calls]).toEqual([
      2 * reserved.usd,
      2 * reserved.calls,
    ]);
    const { slots, groups } = engine.state.takeWrites();
    expect(slots).toMatchObject([
      { state: "cancelled", attempts: 1, costNanoUsd: 300, estimated: true, latencyMs: 20, reason: STOPPED },
      { state: "cancelled", attempts: 1, costNanoUsd: 300, estimated: true, latencyMs: 20, reason: STOPPED },
    ]);
    expect(groups).toEqual([group]);
  });

  it("charges what was seen of streams where an abort costs that, once their executors have reported it", () => {
    const targets = [makeTarget({ abortCost: "seen" })];
    const engine = new TestEngine({ limits: { usd: 10_000 }, width: 2, targets });
    const group = engine.open(alike(3));
    engine.startAll(0);
    cancelGroup(engine.state, group, STOPPED, 20);
    expect(engine.state.givenUp.takeOfLanes()).toEqual(new Map([[0, [attemptOf(1, 0), attemptOf(1, 1)]]]));
    expect([group.status, group.counts.queued, engine.startAll(20)]).toEqual(["running", 0, []]);
    const facts = { class: "unknown", reason: STOPPED, answered: false, retryAfterMs: null, latencyMs: 30 } as const;
    const seen = { promptTokens: 10, completionTokens: 2 };
    settle(engine.state, attemptOf(1, 0), { kind: "failure", ...facts, seen }, 30);
    settle(engine.state, attemptOf(1, 1), { kind: "failure", ...facts }, 30);
    expect([group.status, group.counts.cancelled]).toEqual(["cancelled", 3]);
    const { spent, reserved } = engine.state.ledger;
    // Less than the reservations of 300 each, of which that of the attempt without a stream stays.
    expect([spent.usd > 300, spent.usd < 600, reserved.usd]).toEqual([true, true, 0]);
  });

  it("charges the reservation of an aborted attempt whose executor never reports", () => {
    const engine = new TestEngine({ limits: { usd: 10_000 }, targets: [makeTarget({ abortCost: "seen" })] });
    const group = engine.open(alike(1));
    engine.startAll(0);
    cancelGroup(engine.state, group, STOPPED, 20);
    expireLeases(engine.state, LEASE_TTL_MS + 1);
    expect([group.done, engine.state.ledger.spent.usd, engine.startAll(LEASE_TTL_MS + 1)]).toEqual([true, 300, []]);
  });

  it("notes for each lane which of its attempts must stop, and none of another group", () => {
    const engine = new TestEngine();
    const group = engine.open(alike(3));
    engine.open(alike(1));
    engine.turn([2, 2], 0);
    cancelGroup(engine.state, group, STOPPED, 20);
    expect([...engine.state.givenUp.takeOfLanes()]).toEqual([
      [0, [attemptOf(1, 0), attemptOf(1, 1)]],
      [1, [attemptOf(1, 2)]],
    ]);
    expect([...engine.state.attempts.keys()]).toEqual([attemptOf(2, 0)]);
  });

  it("is not changed by answers that its lanes report later", () => {
    const engine = new TestEngine({ limits: { usd: 10_000 } });
    const group = engine.open(alike(1));
    engine.startAll(0);
    cancelGroup(engine.state, group, STOPPED, 20);
    expect(settle(engine.state, attemptOf(1, 0), success({ promptTokens: 1 }), 30)).toBeNull();
    expect([group.status, engine.state.ledger.spent.usd]).toEqual(["cancelled", 300]);
  });

  it("does not affect single calls, and frees its permits for the next", () => {
    const engine = new TestEngine({ width: 2 });
    const group = engine.open(alike(2));
    engine.call("own", 0);
    engine.turn([1], 0);
    cancelGroup(engine.state, group, STOPPED, 20);
    expect([...engine.state.attempts.keys()]).toEqual(["own.1"]);
    engine.call("next", 20);
    expect(engine.startAll(20)).toEqual(["next"]);
  });

  it("stays as it is if it had ended", () => {
    const engine = new TestEngine();
    const group = engine.open(alike(1));
    engine.startAll(0);
    settle(engine.state, attemptOf(1, 0), success(), 10);
    engine.state.takeWrites();
    cancelGroup(engine.state, group, STOPPED, 20);
    expect([group.status, group.drained, group.endedAtMs]).toEqual(["completed", null, 10]);
    expect(engine.state.takeWrites()).toEqual({ shards: [], apart: [], slots: [], groups: [], credits: null });
  });

  it("keeps its reason if it had stopped by itself, and gives up what still ran", () => {
    const engine = new TestEngine({ width: 1 });
    const group = engine.open(alike(2));
    engine.startAll(0);
    const deadline = { reason: "deadline_exceeded", deadlineMs: 5 } as const;
    drainGroup(engine.state, group, { state: "failed", reason: deadline, cause: "deadline" }, 5);
    cancelGroup(engine.state, group, STOPPED, 20);
    expect([group.drained?.reason, group.counts.failed, group.endedAtMs]).toEqual([deadline, 2, 20]);
    expect(engine.state.givenUp.takeOfLanes().get(0)).toEqual([attemptOf(1, 0)]);
  });
});

describe("attempts that are given up", () => {
  it("are those that match; those of single calls have no lane to notify", () => {
    const engine = new TestEngine({ limits: { usd: 10_000 } });
    engine.open(alike(1));
    engine.call("a", 0);
    engine.startAll(0);
    stopAttempts(engine.state, () => true, STOPPED, 50);
    expect([engine.state.attempts.size, engine.state.ledger.reserved.usd]).toEqual([0, 0]);
    expect([...engine.state.givenUp.takeOfLanes()]).toEqual([[0, [attemptOf(1, 0)]]]);
  });

  it("end with what their executors report where an abort costs that, for the reason that they were stopped", () => {
    const targets = [makeTarget({ abortCost: "seen" })];
    const engine = new TestEngine({ limits: { usd: 10_000 }, targets });
    engine.open(alike(1));
    engine.call("a", 0);
    engine.startAll(0);
    stopAttempts(engine.state, () => true, STOPPED, 50);
    stopAttempts(engine.state, () => true, STOPPED, 60);
    expect([...engine.state.givenUp.takeOfLanes()]).toEqual([[0, [attemptOf(1, 0)]]]);
    expect(engine.state.givenUp.takeOfCalls()).toEqual(["a.1"]);
    const reason = { reason: "cancelled", message: "as its executor says it" } as const;
    const facts = { class: "unknown", answered: false, retryAfterMs: null, latencyMs: 30 } as const;
    const seen = { promptTokens: 10, completionTokens: 2 };
    const charges = [attemptOf(1, 0), "a.1"].map(
      (attemptId) => settle(engine.state, attemptId, { kind: "failure", ...facts, reason, seen }, 70)?.charge.usd,
    );
    // 10 prompt tokens, and of completion tokens no more than were reserved.
    expect(charges).toEqual([210, 210]);
    expect(engine.state.takeWrites().slots).toMatchObject([{ costNanoUsd: 210, reason: STOPPED }]);
    expect([engine.state.attempts.size, engine.state.ledger.reserved.usd]).toEqual([0, 0]);
  });

  it("must stop, as their executors hear when they renew leases, and are charged in full if these are lost", () => {
    const targets = [makeTarget({ abortCost: "seen" })];
    const engine = new TestEngine({ limits: { usd: 10_000 }, targets });
    const group = engine.open(alike(1), { onLost: "retry" });
    engine.call("a", 0);
    engine.startAll(0);
    expect([heartbeat(engine.state, [attemptOf(1, 0)], 10), holdLease(engine.state, "a.1")]).toEqual([[], true]);
    stopAttempts(engine.state, () => true, STOPPED, 50);
    expect(heartbeat(engine.state, [attemptOf(1, 0)], 60)).toEqual([attemptOf(1, 0)]);
    expect(holdLease(engine.state, "a.1")).toBe(false);
    loseAttempts(engine.state, [attemptOf(1, 0), "a.1"], 70);
    expect(engine.state.takeWrites().slots).toMatchObject([{ costNanoUsd: 300, reason: STOPPED }]);
    expect([group.done, engine.state.ledger.spent.usd, engine.startAll(60_000)]).toEqual([true, 600, []]);
  });

  it("are not retried, whatever the rule for lost attempts", () => {
    const engine = new TestEngine();
    const group = engine.open(alike(1), { onLost: "retry" });
    engine.startAll(0);
    stopAttempts(engine.state, () => true, STOPPED, 50);
    expect([group.status, engine.state.queue.delayedCount]).toEqual(["failed", 0]);
  });

  it("never have a negative latency, even if clocks differ", () => {
    const engine = new TestEngine();
    engine.open(alike(1));
    engine.startAll(100);
    engine.state.takeWrites();
    stopAttempts(engine.state, () => true, STOPPED, 90);
    expect(engine.state.takeWrites().slots).toMatchObject([{ latencyMs: 0 }]);
  });

  it("free their upstream for queued slots", () => {
    const engine = new TestEngine({ targets: [makeTarget({ maxInFlight: 1 })] });
    const group = engine.open(alike(1));
    engine.open(alike(1));
    engine.startAll(0);
    cancelGroup(engine.state, group, STOPPED, 20);
    expect(engine.startAll(20)).toEqual(["2:0"]);
  });
});

describe("a slot that is cancelled", () => {
  it("never starts if it is queued, and the others of its group continue", () => {
    const engine = new TestEngine({ width: 1 });
    const group = engine.open(alike(3));
    engine.startAll(0);
    cancelSlot(engine.state, group, 1, STOPPED, 10);
    expect(group.counts).toMatchObject({ queued: 1, running: 1, cancelled: 1 });
    expect(engine.state.takeWrites().slots).toMatchObject([
      { id: slotIdOf(1, 1), state: "cancelled", reason: STOPPED },
    ]);
    settle(engine.state, attemptOf(1, 0), success(), 20);
    engine.startAll(20);
    settle(engine.state, attemptOf(1, 2), success(), 30);
    expect([group.status, group.counts.completed, group.endedAtMs]).toEqual(["partial", 2, 30]);
  });

  it("is given up if it runs: charged, not retried, and its lane is notified", () => {
    const engine = new TestEngine({ limits: { usd: 10_000 } });
    const group = engine.open(alike(2));
    engine.turn([2], 0);
    cancelSlot(engine.state, group, 0, STOPPED, 10);
    expect(group.counts).toMatchObject({ running: 1, cancelled: 1 });
    expect(engine.state.ledger.spent.usd).toBe(300);
    expect([...engine.state.givenUp.takeOfLanes()]).toEqual([[0, [attemptOf(1, 0)]]]);
    expect(engine.startAll(60_000)).toEqual([]);
  });

  it("ends its group if it was the last, and stays as it is if it has ended", () => {
    const engine = new TestEngine({ width: 1 });
    const group = engine.open(alike(2));
    engine.startAll(0);
    settle(engine.state, attemptOf(1, 0), success(), 10);
    cancelSlot(engine.state, group, 0, STOPPED, 20);
    cancelSlot(engine.state, group, 1, STOPPED, 20);
    expect([group.counts.completed, group.counts.cancelled, group.endedAtMs]).toEqual([1, 1, 20]);
  });
});
