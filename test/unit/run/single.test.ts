/** Single calls at the run object's door, with an engine behind it and no object around it. */
import { describe, expect, it } from "vitest";
import type { AcquireReply, AcquireRequest } from "../../../durable-objects/run/rpc.ts";
import { acquire, settleSingle, withdraw } from "../../../durable-objects/run/single.ts";
import { WaitingCalls } from "../../../durable-objects/run/waiting.ts";
import { restoreLease, restoreShard } from "../../../src/engine/restore.ts";
import { expireLeases } from "../../../src/engine/settle.ts";
import { storedShard, type StoredShard, type Target } from "../../../src/engine/shard.ts";
import type { EngineState } from "../../../src/engine/state.ts";
import { sumTotals } from "../../../src/engine/totals.ts";
import type { Reason } from "../../../src/errors.ts";
import { DIRECT_CALLS_MAX, LEASE_TTL_MS } from "../../../src/limits.ts";
import { makeFacts, makeTarget, success, TestEngine } from "../../support/engine.ts";

const LIMITS = { usd: 10_000 };

function asking(callId: string, fields: Partial<AcquireRequest> = {}): AcquireRequest {
  const facts = makeFacts({ maxTokens: 40, timeoutMs: 5_000 });
  const first = { attempt: 1, delayMs: 0, deadlineMs: null, onLost: "retry", parallelGroupId: null } as const;
  return { callId, facts, ...first, ...fields };
}

/** The door of a run with this engine; what was answered is written down. */
function doorOf(engine: TestEngine, resolved: Target | Reason = makeTarget({ timeoutMs: 9_000 })) {
  const singles = new WaitingCalls();
  const core = { state: engine.state, singles, resolve: () => resolved, remainingNanoUsd: null };
  const told: AcquireReply[] = [];
  const ask = (request: AcquireRequest, nowMs: number): void =>
    acquire(core, request, (reply) => void told.push(reply), nowMs);
  return { core, told, ask };
}

/** Permits that were given, which the run object would have told by now. */
function grant(engine: TestEngine, { singles }: { singles: WaitingCalls }, nowMs: number): void {
  for (const callId of engine.startAll(nowMs)) singles.answer(callId, { ok: "wait" });
}

function singleCallsCounted(state: EngineState): number {
  return sumTotals([...state.shards.values()].map(({ totals }) => totals)).singleCalls;
}

const GIVEN = {
  ok: true,
  lease: { attemptId: "a.1", attempt: 1, upstream: "acme", model: "gpt-x", capTokens: 40, timeoutMs: 5_000 },
  queuedMs: 7,
  remainingNanoUsd: null,
};

describe("a call that asks for its permit", () => {
  it("waits in the queue, once, however often it asks", () => {
    const engine = new TestEngine();
    const { core, told, ask } = doorOf(engine);
    ask(asking("a"), 0);
    ask(asking("a"), 5);
    expect([engine.state.calls.size, core.singles.size, told]).toEqual([1, 1, []]);
    expect(engine.startAll(5)).toEqual(["a"]);
  });

  it("is refused where its model goes nowhere, and waits for nothing", () => {
    const engine = new TestEngine();
    const { told, ask } = doorOf(engine, { reason: "model_not_found", model: "m" });
    ask(asking("a"), 0);
    expect([told, engine.state.calls.size]).toMatchObject([[{ ok: false, reason: { reason: "model_not_found" } }], 0]);
  });

  it("is refused where as many wait as may, to come again", () => {
    const engine = new TestEngine();
    const { core, told, ask } = doorOf(engine);
    for (let each = 1; each < DIRECT_CALLS_MAX; each++) core.singles.add(`call ${each}`, () => undefined, 0);
    ask(asking("last"), 0);
    expect([told, core.singles.size]).toEqual([[], DIRECT_CALLS_MAX]);
    ask(asking("one more"), 0);
    expect(told).toMatchObject([{ ok: false, reason: { reason: "overloaded", retryAfterMs: 1_000 } }]);
  });

  it("gives up its place and is told to, if its client has left", () => {
    const engine = new TestEngine();
    const { core, told, ask } = doorOf(engine);
    ask(asking("a"), 0);
    withdraw(core, "a", 5);
    expect([told, engine.startAll(5), core.singles.size]).toEqual([[{ ok: "wait" }], [], 0]);
  });
});

describe("a call whose permit was lost on its way", () => {
  /** It was given its permit at 7 and asks again at 20,000. */
  function lost() {
    const engine = new TestEngine({ limits: LIMITS });
    const door = doorOf(engine);
    door.ask(asking("a"), 0);
    grant(engine, door.core, 7);
    door.told.length = 0;
    return { engine, ...door };
  }

  it("is given the same when it asks again, with a fresh term", () => {
    const { engine, told, ask } = lost();
    ask(asking("a"), 20_000);
    expect(told).toEqual([GIVEN]);
    expect(expireLeases(engine.state, 7 + LEASE_TTL_MS)).toBe(0);
    expect(expireLeases(engine.state, 20_000 + LEASE_TTL_MS)).toBe(1);
  });

  it("starts, counts and ends once: in the log, in the window and in the totals", () => {
    const { engine, core, ask } = lost();
    ask(asking("a"), 20);
    settleSingle(core, "a.1", success({ promptTokens: 3 }), 30);
    const { state } = engine;
    expect(state.log.take()?.events.map(({ event }) => event)).toEqual([
      "attempt_started",
      "attempt_ended",
      "slot_completed",
    ]);
    expect([state.window.current?.members, singleCallsCounted(state), state.ledger.spent.calls]).toEqual([1, 1, 1]);
  });

  it("is given it by the next instance too, as it was", () => {
    const { engine } = lost();
    const again = new TestEngine({ limits: LIMITS });
    for (const shard of engine.state.takeWrites().shards) {
      const stored: StoredShard = JSON.parse(JSON.stringify(storedShard(shard)));
      const restored = restoreShard(again.state, shard.id, stored);
      for (const lease of stored.leases) restoreLease(again.state, restored, lease, makeTarget(), 50);
    }
    const { told, ask } = doorOf(again);
    ask(asking("a"), 60);
    expect([told, singleCallsCounted(again.state), again.state.attempts.size]).toEqual([[GIVEN], 1, 1]);
  });

  it("waits anew if that attempt has ended meanwhile", () => {
    const { engine, told, ask } = lost();
    expireLeases(engine.state, 7 + LEASE_TTL_MS);
    ask(asking("a", { attempt: 2 }), 40_000);
    expect([told, engine.startAll(40_000)]).toEqual([[], ["a"]]);
  });
});

describe("what a single call's Worker is told of its end", () => {
  it("is what it cost; and nothing twice", () => {
    const engine = new TestEngine({ limits: LIMITS });
    const { core, ask } = doorOf(engine);
    ask(asking("a"), 0);
    engine.startAll(0);
    const outcome = success({ promptTokens: 3, completionTokens: 4 });
    const settled = { costNanoUsd: 11, promptTokens: 3, completionTokens: 4, estimated: false, retryInMs: null };
    expect(settleSingle(core, "a.1", outcome, 10)).toMatchObject({ known: true, ...settled });
    expect(settleSingle(core, "a.1", outcome, 11)).toMatchObject({ known: false, costNanoUsd: 0, promptTokens: 0 });
  });
});
