import { describe, expect, it } from "vitest";
import { settle } from "../../../../src/run/steps/settle.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import { dueExchanges, granted, unreached } from "../../../../src/run/steps/exchange.ts";
import { hasSheets, takeSheets } from "../../../../src/run/steps/metered.ts";
import type { GateGrant } from "../../../../src/gate/wire.ts";
import { GATE_RETRY_MAX_MS } from "../../../../src/limits.ts";
import { alike, failure, success, TestEngine } from "../../../support/engine.ts";

const WHO = { run: "run_1", instance: "i", weight: 1 };
const GRANT: GateGrant = {
  epoch: 1,
  class: "open",
  reason: null,
  permits: null,
  requests: null,
  tokens: null,
  waitMs: 0,
  ttlMs: 1,
  nextInMs: 0,
  stop: null,
};

function started(count: number) {
  const engine = new TestEngine({ limits: { usd: 1_000_000 }, hasGates: true });
  engine.open(alike(count), { openedAtMs: 900 });
  engine.startAll(1_000);
  return engine.state;
}

const attemptOf = (index: number, attempt = 1): string => `${slotIdOf(1, index)}.${attempt}`;
const callsIn = (sheet: ReturnType<typeof takeSheets>[string] | undefined): unknown =>
  sheet?.["acme/gpt-x"]?.outcomes.success?.calls;

describe("what a run has counted", () => {
  it("is each attempt with its charge, the queue time of first attempts and the latency of successes", () => {
    const state = started(2);
    settle(state, attemptOf(0), success({ promptTokens: 40, completionTokens: 7 }, 800), 1_800);
    settle(state, attemptOf(1), failure("rejected", null, 300), 1_300);
    const meter = takeSheets(state)["acme"]?.["acme/gpt-x"];
    expect(meter?.outcomes).toEqual({
      success: { calls: 1, promptTokens: 40, completionTokens: 7, costNanoUsd: 54 },
      rejected: { calls: 1, promptTokens: 0, completionTokens: 0, costNanoUsd: 0 },
    });
    expect(meter?.latency).toMatchObject({ sumMs: 800, counts: [0, 1, 0, 0, 0, 0, 0, 0] });
    expect(meter?.queue).toMatchObject({ sumMs: 200, counts: [0, 2, 0, 0, 0, 0] });
    expect(hasSheets(state)).toBe(false);
  });

  it("is in the next report, once, and once more if its reply was lost", () => {
    const state = started(3);
    const reportAt = (nowMs: number) => dueExchanges(state, WHO, nowMs)[0]?.report;
    expect(reportAt(1_000)?.meter).toBeUndefined();
    granted(state, "acme", GRANT, 1_001);
    settle(state, attemptOf(0), success(), 1_500);
    const sent = reportAt(20_000);
    expect(callsIn(sent?.meter)).toBe(1);
    settle(state, attemptOf(1), success(), 20_100);
    unreached(state, "acme", 20_200);
    const again = reportAt(20_200 + 2 * GATE_RETRY_MAX_MS);
    expect([again?.number, again?.meter]).toEqual([sent?.number, sent?.meter]);
    granted(state, "acme", GRANT, 90_000);
    expect(callsIn(reportAt(100_000)?.meter)).toBe(1);
  });

  it("is in the rows that settlements write anyway", () => {
    const state = started(1);
    state.takeWrites();
    settle(state, attemptOf(0), success(), 1_500);
    const { shards } = state.takeWrites();
    expect(shards).toHaveLength(1);
    expect(callsIn(shards[0]?.totals.meters?.["acme"])).toBe(1);
  });
});
