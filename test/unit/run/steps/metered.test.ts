import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../../src/call.ts";
import { expireCredits } from "../../../../src/run/steps/report-credit.ts";
import { reservationId } from "../../../../src/run/credit.ts";
import { restoreShard } from "../../../../src/run/steps/restore.ts";
import { shardText } from "../../../../src/run/leases/shard.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import { dueExchanges, granted } from "../../../../src/run/steps/exchange.ts";
import { meterAt, meteredGates, owedGates } from "../../../../src/run/steps/metered.ts";
import { METERS_RETIRE_MS, MODELS_COUNTED_MAX } from "../../../../src/limits.ts";
import { alike, failure, makeFacts, makeTarget, success, TestEngine } from "../../../support/engine.ts";
import { makeGrant } from "../../../support/gate-grants.ts";

const RUN = { id: "run_1", isFinal: false };
/** Long after every start of these tests. */
const LATER_MS = 100_000;
const WHO = { run: "run_1", instance: "i", weight: 1 };

function started(count: number, targets = [makeTarget()]) {
  const engine = new TestEngine({ limits: { usd: 1_000_000 }, hasGates: true, targets });
  engine.open(alike(count), { openedAtMs: 900 });
  engine.startAll(1_000);
  return engine.state;
}

/** The same, and the gate has replied to the first report. */
function announced(count: number) {
  const state = started(count);
  dueExchanges(state, WHO, 1_000);
  granted(state, "acme", makeGrant({ notesRun: true }), 1_001);
  return state;
}

const NOT_SENT: Outcome = {
  kind: "failure",
  class: "rejected",
  reason: { reason: "overloaded", message: "no", retryAfterMs: 1 },
  answered: false,
  unsent: true,
  retryAfterMs: null,
  latencyMs: 0,
};

const attemptOf = (index: number, attempt = 1): string => `${slotIdOf(1, index)}.${attempt}`;

describe("what a run has counted", () => {
  it("is each attempt with its charge, the queue time of first attempts and the latency of successes", () => {
    const state = started(2);
    settle(state, attemptOf(0), success({ promptTokens: 40, completionTokens: 7 }, 800), 1_800);
    settle(state, attemptOf(1), failure("rejected", null, 300), 1_300);
    const meter = meterAt(state, "acme", RUN, LATER_MS).sheet["acme/gpt-x"];
    expect(meter?.outcomes).toEqual({
      success: { calls: 1, promptTokens: 40, completionTokens: 7, costNanoUsd: 54 },
      rejected: { calls: 1, promptTokens: 0, completionTokens: 0, costNanoUsd: 0 },
    });
    expect(meter?.latency).toMatchObject({ sumMs: 800, counts: [0, 1, 0, 0, 0, 0, 0, 0] });
    expect(meter?.queue).toMatchObject({ sumMs: 200, counts: [0, 2, 0, 0, 0, 0] });
  });

  it("is all of it each time, under a number that grows with each count", () => {
    const state = started(2);
    const numbers = [meterAt(state, "acme", RUN, LATER_MS).number];
    for (const index of [0, 1]) {
      settle(state, attemptOf(index), success(), 1_500);
      numbers.push(meterAt(state, "acme", RUN, LATER_MS).number, meterAt(state, "acme", RUN, LATER_MS).number);
    }
    expect(numbers).toEqual([0, 1, 1, 2, 2]);
    expect(meterAt(state, "acme", RUN, LATER_MS).sheet["acme/gpt-x"]?.outcomes.success?.calls).toBe(2);
  });

  it("has no attempt that was not sent, and neither have the run's own figures", () => {
    const state = started(2);
    settle(state, attemptOf(0), NOT_SENT, 1_500);
    settle(state, attemptOf(1), success(), 1_500);
    expect(meterAt(state, "acme", RUN, LATER_MS).number).toBe(1);
    expect([...state.shards.values()].reduce((sum, { totals }) => sum + totals.attempts, 0)).toBe(1);
  });

  it("is in the rows that settlements write anyway, and whole after a restart", () => {
    const state = started(1);
    state.takeWrites();
    settle(state, attemptOf(0), success(), 1_500);
    const { shards } = state.takeWrites();
    expect(shards).toHaveLength(1);
    const next = new TestEngine({ hasGates: true }).state;
    for (const shard of shards) restoreShard(next, shard.id, JSON.parse(shardText(shard)));
    expect(meterAt(next, "acme", RUN, LATER_MS)).toEqual({ ...meterAt(state, "acme", RUN, LATER_MS), state: "idle" });
  });

  it("has the charge of a lost credit, and no attempt for it", () => {
    const { state } = new TestEngine({ limits: { usd: 1_000 }, hasGates: true });
    const left = { usd: 70, calls: 2, prompt_tokens: 0, completion_tokens: 0, new_tokens: 0 };
    const credit = { id: "c", granted: left, left, permits: 2, upstreams: ["acme"], reports: 0, isRecalled: false };
    state.credits.put({ ...credit, expiresAtMs: 5 });
    state.ledger.restore(reservationId("c"), left);
    expireCredits(state, 10);
    expect(meterAt(state, "acme", RUN, LATER_MS).sheet).toMatchObject({
      "acme/(other)": { outcomes: { unknown: { calls: 0, costNanoUsd: state.ledger.spent.usd } } },
    });
    expect(state.ledger.spent.usd).toBe(70);
  });

  it("counts as many models apart as its bound, the same ones whatever shard has counted them", () => {
    const targets = Array.from({ length: MODELS_COUNTED_MAX + 2 }, (_, at) => makeTarget({ model: `m${at}` }));
    const engine = new TestEngine({ hasGates: true, targets });
    engine.open(targets.map((_, modelIndex) => makeFacts({ modelIndex })));
    const { state } = engine;
    // Each of the two lanes has a shard of its own.
    engine.turn([MODELS_COUNTED_MAX + 1, 1], 1_000);
    for (const attemptId of [...state.attempts.keys()]) settle(state, attemptId, success(), 1_500);
    const names = Object.keys(meterAt(state, "acme", RUN, LATER_MS).sheet);
    expect(names).toHaveLength(MODELS_COUNTED_MAX + 1);
    expect(meterAt(state, "acme", RUN, LATER_MS).sheet["acme/(other)"]?.outcomes.success?.calls).toBe(2);
    expect(state.shards.size).toBe(2);
  });
});

describe("a gate", () => {
  it("is owed what was counted before it had noted the run, until it replies", () => {
    const state = started(2);
    settle(state, attemptOf(0), success(), 1_500);
    expect(owedGates(state)).toEqual(["acme"]);
    expect(dueExchanges(state, WHO, 1_500)).toHaveLength(1);
    granted(state, "acme", makeGrant({ notesRun: true }), 1_600);
    expect(owedGates(state)).toEqual([]);
    settle(state, attemptOf(1), success(), 1_700);
    expect(owedGates(state)).toEqual([]);
  });

  it("of an earlier version, which notes no run, is owed what was counted", () => {
    const state = started(1);
    dueExchanges(state, WHO, 1_000);
    granted(state, "acme", makeGrant(), 1_001);
    settle(state, attemptOf(0), success(), 1_500);
    expect(owedGates(state)).toEqual(["acme"]);
  });

  it("is told that a run is idle if nothing is in flight there and was for a while, and then asked before the run counts more", () => {
    const state = announced(1);
    expect(meterAt(state, "acme", RUN, LATER_MS).state).toBe("active");
    settle(state, attemptOf(0), success(), 1_500);
    expect(meterAt(state, "acme", RUN, 1_000 + METERS_RETIRE_MS - 1).state).toBe("active");
    expect(meterAt(state, "acme", RUN, 1_000 + METERS_RETIRE_MS).state).toBe("idle");
    expect(state.upstreams.get("acme")?.isAnnounced).toBe(false);
    expect(meterAt(state, "acme", { ...RUN, isFinal: true }, LATER_MS).state).toBe("ended");
  });

  it("is named as long as something was counted there, or may be", () => {
    const state = announced(1);
    expect(meteredGates(state)).toEqual(["acme"]);
    settle(state, attemptOf(0), success(), 1_500);
    meterAt(state, "acme", RUN, LATER_MS);
    expect(meteredGates(state)).toEqual(["acme"]);
    expect(meteredGates(started(1))).toEqual([]);
  });
});
