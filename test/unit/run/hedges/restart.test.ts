import { describe, expect, it } from "vitest";
import { restoreExtra } from "../../../../src/run/steps/hedge-spend.ts";
import { addBeside, freshRecord } from "../../../../src/run/group/record.ts";
import { requeueTried, restoreLease, restoreShard, restoreSlot } from "../../../../src/run/steps/restore.ts";
import { loseAttempts, settle } from "../../../../src/run/steps/settle.ts";
import type { StoredLease } from "../../../../src/run/leases/shard.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import { zeroTotals } from "../../../../src/run/measures/totals.ts";
import { makeHeader, makeTarget, success, TestEngine } from "../../../support/engine.ts";

const SLOT = slotIdOf(1, 0);
const FIRST = `${SLOT}.1`;
const SECOND = `${SLOT}.2`;
const AMOUNTS = { usd: 300, calls: 1, prompt_tokens: 100, completion_tokens: 100, new_tokens: 200 };
const leased = (attempt: number, more: Partial<StoredLease> = {}): StoredLease => ({
  id: `${SLOT}.${attempt}`,
  slot: SLOT,
  attempt,
  upstream: "acme",
  model: "gpt-x",
  amounts: AMOUNTS,
  startedAtMs: 500,
  queuedMs: 7,
  startSeq: 0,
  ...more,
});
const HEDGE = leased(2, { hedgeOf: FIRST });
const BESIDE = { charge: AMOUNTS, estimated: true, latencyMs: 10, queuedMs: 7 };

function restarted(leases: StoredLease[], failed: number | null = null) {
  const engine = new TestEngine({ limits: { usd: 900 } });
  const { state } = engine;
  const group = state.openGroup(makeHeader({ count: 1 }));
  const record = freshRecord(SLOT);
  if (failed !== null) {
    addBeside(record, { ...BESIDE, attempt: failed });
    restoreSlot(state, group, record, 1_000);
  }
  const hedges = { calls: 2, costNanoUsd: 50 };
  const shard = restoreShard(state, 0, { totals: { ...zeroTotals(), hedges }, leases: [] });
  for (const each of leases) restoreLease(state, shard, each, makeTarget(), 1_000);
  restoreExtra(state);
  requeueTried(state, 1_000);
  return { engine, state, group };
}

describe("a call that had two attempts in flight when its object stopped", () => {
  it.each([
    ["as they were", [leased(1), HEDGE]],
    ["in the other order", [HEDGE, leased(1)]],
  ])("has both of them after the restart, whose rows are %s, and ends once", (_, leases) => {
    const { state, group, engine } = restarted(leases);
    expect(group.counts).toMatchObject({ running: 1, queued: 0 });
    expect([group.inFlight, group.attempts[0], state.ledger.reserved.usd]).toEqual([2, 2, 600]);
    expect(engine.startAll(60_000)).toEqual([]);
    settle(state, SECOND, success({ promptTokens: 1 }, 10), 60_000);
    expect([group.done, group.inFlight]).toEqual([true, 0]);
    expect(settle(state, FIRST, success({}, 10), 60_001)).toBeNull();
    // What was reserved is the most that it costs.
    expect(state.ledger.spent.usd).toBe(301);
  });

  it("is made anew once both are lost, and stays charged for both", () => {
    const { state, group, engine } = restarted([HEDGE, leased(1)]);
    loseAttempts(state, [FIRST], 2_000);
    expect(group.stateOf(0)).toBe("running");
    loseAttempts(state, [SECOND], 2_000);
    expect(group.stateOf(0)).toBe("queued");
    expect(state.ledger.spent.usd).toBe(600);
    expect(engine.turn([1], 60_000).assignments).toMatchObject([{ lease: { attempt: 3 } }]);
  });

  it("runs on if one of them had ended before", () => {
    const { state, group } = restarted([HEDGE], 1);
    expect([group.stateOf(0), group.inFlight]).toEqual(["running", 1]);
    settle(state, SECOND, success({}, 10), 2_000);
    expect(state.unwrittenSlot(SLOT)).toMatchObject({ state: "completed", attempts: 2, costNanoUsd: 300 });
  });

  it("leaves to the hedges of its group no more than the run has left", () => {
    expect(restarted([leased(1)]).group.extra).toEqual({ calls: 2, costNanoUsd: 50 });
  });
});
