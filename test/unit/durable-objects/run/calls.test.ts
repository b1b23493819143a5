/** Single calls of the run object, on a real engine without the object around it. */
import { describe, expect, it } from "vitest";
import type { AcquireReply, AcquireRequest } from "../../../../src/objects/methods/calls.ts";
import { acquire, acquireMany, settleSingle, withdraw } from "../../../../durable-objects/run/calls.ts";
import { WaitingCalls } from "../../../../durable-objects/run/memory/waiters.ts";
import { stopAttempts } from "../../../../src/run/steps/cancel.ts";
import { restoreLease, restoreShard } from "../../../../src/run/steps/restore.ts";
import { LOST } from "../../../../src/run/gates/retry.ts";
import { expireLeases } from "../../../../src/run/steps/settle.ts";
import { shardText, type StoredShard, type Target } from "../../../../src/run/leases/shard.ts";
import type { EngineState } from "../../../../src/run/state.ts";
import { sumTotals } from "../../../../src/run/measures/totals.ts";
import type { Outcome } from "../../../../src/call.ts";
import type { Reason } from "../../../../src/errors.ts";
import { DIRECT_CALLS_MAX, LEASE_TTL_MS } from "../../../../src/limits.ts";
import { failure, makeFacts, makeTarget, success, TestEngine } from "../../../support/engine.ts";

const LIMITS = { usd: 10_000 };

function asking(callId: string, fields: Partial<AcquireRequest> = {}): AcquireRequest {
  const facts = makeFacts({ maxTokens: 40, timeoutMs: 5_000 });
  const first = { attempt: 1, delayMs: 0, deadlineMs: null, onLost: "retry", parallelGroupId: null } as const;
  return { callId, facts, ...first, ...fields };
}

/** A run with this engine; replies are recorded. */
function callerOf(engine: TestEngine, resolved: Target | Reason = makeTarget({ timeoutMs: 9_000 })) {
  const waitingCalls = new WaitingCalls(() => undefined);
  const targets = { resolve: () => resolved };
  const run = { engine: engine.state, waitingCalls, targets, remainingNanoUsd: null, replay: null };
  const told: AcquireReply[] = [];
  const ask = (request: AcquireRequest, nowMs: number): void =>
    acquire(run, request, (reply) => void told.push(reply), nowMs);
  return { run, told, ask };
}

/** Grants permits, whose replies the run object would have sent by now. */
function grant(engine: TestEngine, { waitingCalls }: { waitingCalls: WaitingCalls }, nowMs: number): void {
  for (const callId of engine.startAll(nowMs)) waitingCalls.replyTo(callId, { ok: "wait" });
}

function singleCallsCounted(state: EngineState): number {
  return sumTotals([...state.shards.values()].map(({ totals }) => totals)).singleCalls;
}

/** 92 bytes and a message of prompt, and a cap of 40. */
const RESERVED = { usd: 180, calls: 1, prompt_tokens: 100, completion_tokens: 40, new_tokens: 140 };

const GIVEN = {
  ok: true,
  lease: {
    attemptId: "a.1",
    attempt: 1,
    upstream: "acme",
    model: "gpt-x",
    capTokens: 40,
    capKind: "client",
    timeoutMs: 5_000,
  },
  queuedMs: 7,
  reserved: RESERVED,
  parallelGroupId: null,
  windowOpenedAtMs: 0,
  remainingNanoUsd: null,
};

describe("a call that requests its permit", () => {
  it("waits in the queue once, however often the request is repeated", () => {
    const engine = new TestEngine();
    const { run, told, ask } = callerOf(engine);
    ask(asking("a"), 0);
    ask(asking("a"), 5);
    // The earlier request ends, which would be replied to by nobody.
    expect([engine.state.calls.size, run.waitingCalls.size, told]).toEqual([1, 1, [{ ok: "wait" }]]);
    expect(engine.startAll(5)).toEqual(["a"]);
  });

  it("is refused at once if its model has no target", () => {
    const engine = new TestEngine();
    const { told, ask } = callerOf(engine, { reason: "model_not_found", model: "m" });
    ask(asking("a"), 0);
    expect([told, engine.state.calls.size]).toMatchObject([[{ ok: false, reason: { reason: "model_not_found" } }], 0]);
  });

  it("is refused with Retry-After if the queue is full", () => {
    const engine = new TestEngine();
    const { run, told, ask } = callerOf(engine);
    for (let each = 1; each < DIRECT_CALLS_MAX; each++) run.waitingCalls.add(`call ${each}`, () => undefined, 0);
    ask(asking("last"), 0);
    expect([told, run.waitingCalls.size]).toEqual([[], DIRECT_CALLS_MAX]);
    ask(asking("one more"), 0);
    expect(told).toMatchObject([{ ok: false, reason: { reason: "overloaded", retryAfterMs: 1_000 } }]);
  });

  it("is removed from the queue and replied to if its client has left", () => {
    const engine = new TestEngine();
    const { run, told, ask } = callerOf(engine);
    ask(asking("a"), 0);
    withdraw(run, "a", 5);
    expect([told, engine.startAll(5), run.waitingCalls.size]).toEqual([[{ ok: "wait" }], [], 0]);
  });
});

describe("calls that request their permits together", () => {
  function together(engine: TestEngine, resolved?: Reason) {
    const caller = callerOf(engine, resolved);
    const replies: AcquireReply[][] = [];
    const askAll = (callIds: string[], nowMs: number): void => {
      const requests = callIds.map((callId) => asking(callId));
      acquireMany(caller.run, requests, (reply) => void replies.push(reply), nowMs);
    };
    return { ...caller, replies, askAll };
  }

  it("get their replies together and in their order, once all are decided", () => {
    const engine = new TestEngine();
    const { run, replies, askAll } = together(engine);
    askAll(["a", "b"], 0);
    run.waitingCalls.replyTo("b", { ok: false, reason: { reason: "internal", message: "b" }, remainingNanoUsd: null });
    expect(replies).toEqual([]);
    run.waitingCalls.replyTo("a", { ok: "wait" });
    expect(replies).toMatchObject([[{ ok: "wait" }, { ok: false, reason: { message: "b" } }]]);
  });

  it("wait no longer than the turn, and keep their positions in the queue", () => {
    const engine = new TestEngine();
    const { run, replies, told, ask, askAll } = together(engine);
    ask(asking("before"), 0);
    askAll(["a", "b"], 0);
    run.waitingCalls.release(0);
    expect([replies, told]).toEqual([[[{ ok: "wait" }, { ok: "wait" }]], []]);
    ask(asking("b"), 10);
    run.waitingCalls.release(10);
    expect([told, engine.startAll(10)]).toEqual([[], ["before", "a", "b"]]);
  });

  it("are refused one by one", () => {
    const engine = new TestEngine();
    const { replies, askAll } = together(engine, { reason: "model_not_found", model: "m" });
    askAll(["a", "b"], 0);
    expect(replies.map((reply) => reply.map(({ ok }) => ok))).toEqual([[false, false]]);
  });

  it("end an earlier request for the same call", () => {
    const engine = new TestEngine();
    const { replies, askAll } = together(engine);
    askAll(["a"], 0);
    askAll(["a"], 0);
    expect(replies).toEqual([[{ ok: "wait" }]]);
  });

  it("are replied to if there are none", () => {
    const { replies, askAll } = together(new TestEngine());
    askAll([], 0);
    expect(replies).toEqual([[]]);
  });
});

describe("a call whose permit was lost in its reply", () => {
  /** It was given its permit at 7 and asks again at 20,000. */
  function lost() {
    const engine = new TestEngine({ limits: LIMITS });
    const door = callerOf(engine);
    door.ask(asking("a"), 0);
    grant(engine, door.run, 7);
    door.told.length = 0;
    return { engine, ...door };
  }

  it("gets the same permit for a repeated request, with a new term", () => {
    const { engine, told, ask } = lost();
    ask(asking("a"), 20_000);
    expect(told).toEqual([GIVEN]);
    expect(expireLeases(engine.state, 7 + LEASE_TTL_MS)).toBe(0);
    expect(expireLeases(engine.state, 20_000 + LEASE_TTL_MS)).toBe(1);
  });

  it("starts, counts and ends once: in the log, in the window and in the totals", () => {
    const { engine, run, ask } = lost();
    ask(asking("a"), 20);
    settleSingle(run, { attemptId: "a.1", outcome: success({ promptTokens: 3 }), stored: null }, 30);
    const { state } = engine;
    expect(state.log.take()?.events.map(({ event }) => event)).toEqual([
      "attempt_started",
      "attempt_ended",
      "slot_completed",
    ]);
    expect([state.window.current?.members, singleCallsCounted(state), state.ledger.spent.calls]).toEqual([1, 1, 1]);
  });

  it("gets the same permit from the next instance", () => {
    const { engine } = lost();
    const again = new TestEngine({ limits: LIMITS });
    for (const shard of engine.state.takeWrites().shards) {
      const stored: StoredShard = JSON.parse(shardText(shard));
      const restored = restoreShard(again.state, shard.id, stored);
      for (const lease of stored.leases) restoreLease(again.state, restored, lease, makeTarget(), 50);
    }
    const { told, ask } = callerOf(again);
    ask(asking("a"), 60);
    // A restart forgets coalescing windows.
    const given = { ...GIVEN, windowOpenedAtMs: null };
    expect([told, singleCallsCounted(again.state), again.state.attempts.size]).toEqual([[given], 1, 1]);
  });

  it("is queued anew if that attempt has ended meanwhile", () => {
    const { engine, told, ask } = lost();
    expireLeases(engine.state, 7 + LEASE_TTL_MS);
    ask(asking("a", { attempt: 2 }), 40_000);
    expect([told, engine.startAll(40_000)]).toEqual([[], ["a"]]);
  });
});

describe("the reply to a settlement", () => {
  it("is the cost, and nothing for the second settlement", () => {
    const engine = new TestEngine({ limits: LIMITS });
    const { run, ask } = callerOf(engine);
    ask(asking("a"), 0);
    engine.startAll(0);
    const outcome = success({ promptTokens: 3, completionTokens: 4 });
    const settled = { costNanoUsd: 11, promptTokens: 3, completionTokens: 4, estimated: false, retryInMs: null };
    const settlement = { attemptId: "a.1", outcome, stored: null };
    expect(settleSingle(run, settlement, 10)).toMatchObject({ known: true, ...settled });
    expect(settleSingle(run, settlement, 11)).toMatchObject({ known: false, costNanoUsd: 0, promptTokens: 0 });
    expect(settleSingle(run, settlement, 11)).not.toHaveProperty("endedAs");
  });

  /** What its Worker reports of an attempt that the run has ended by `end`, and the reply, each time that it reports. */
  function repliesAfter(end: (state: EngineState) => void, outcome: Outcome, fields: Partial<AcquireRequest> = {}) {
    const engine = new TestEngine({ limits: LIMITS });
    const { run, ask } = callerOf(engine);
    ask(asking("a", fields), 0);
    engine.startAll(0);
    end(engine.state);
    const settlement = { attemptId: "a.1", outcome, stored: null };
    const replies = [settleSingle(run, settlement, LEASE_TTL_MS), settleSingle(run, settlement, LEASE_TTL_MS)];
    expect(engine.state.ledger.spent).toEqual(RESERVED);
    expect(replies[1]).toEqual(replies[0]);
    return replies[0];
  }
  const expire = (state: EngineState): void => void expireLeases(state, LEASE_TTL_MS);
  const STOPPED: Outcome = {
    kind: "failure",
    class: "unknown",
    reason: { reason: "cancelled", message: "stopped" },
    answered: false,
    retryAfterMs: null,
    latencyMs: 1,
  };
  const CHARGED = { known: false, costNanoUsd: 180, promptTokens: 100, completionTokens: 40, estimated: true };

  it("of an attempt whose lease has expired is that of the loss: its charge, its reason, and its retry", () => {
    const reply = repliesAfter(expire, STOPPED);
    expect(reply).toMatchObject({ ...CHARGED, endedAs: LOST });
    expect(reply?.retryInMs).not.toBeNull();
    expect(repliesAfter(expire, STOPPED, { onLost: "fail" })).toMatchObject({
      ...CHARGED,
      endedAs: LOST,
      retryInMs: null,
    });
  });

  it("of such an attempt shows the charge, but retries no failure that the Worker has seen itself, and no answer", () => {
    for (const outcome of [failure("rejected"), failure("transient"), success({})])
      expect(repliesAfter(expire, outcome)).toMatchObject({ ...CHARGED, retryInMs: null });
  });

  it("of an attempt that was given up is its charge and its reason", () => {
    const reason: Reason = { reason: "cancelled", message: "the run was cancelled" };
    const reply = repliesAfter((state) => stopAttempts(state, () => true, reason, LEASE_TTL_MS), STOPPED);
    expect(reply).toMatchObject({ ...CHARGED, endedAs: reason, retryInMs: null });
  });
});
