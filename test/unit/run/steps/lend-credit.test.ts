import { describe, expect, it, vi } from "vitest";
import { openCredit } from "../../../../src/run/steps/lend-credit.ts";
import { applyReport, expireCredits } from "../../../../src/run/steps/report-credit.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import type { CreditedCall, CreditReport } from "../../../../src/run/credit.ts";
import { CREDIT_PERMITS_MAX, CREDIT_TTL_MS, CREDITS_MAX } from "../../../../src/limits.ts";
import { makeFacts, makeTarget, success, TestEngine } from "../../../support/engine.ts";

const NEED = { usd: 180, calls: 1, prompt_tokens: 100, completion_tokens: 40, new_tokens: 140 };
/** Half of a hundredth of it covers four calls of that size, and no more. */
const LEAST_USD = 2 * 100 * 4 * NEED.usd;

function lender(options: { usd?: number; width?: number; maxInFlight?: number } = {}) {
  const { usd = LEAST_USD, width = 64, maxInFlight = 512 } = options;
  const target = makeTarget({ maxInFlight });
  const engine = new TestEngine({ limits: { usd }, width, targets: [target] });
  // The upstream is known by a call that has ended.
  engine.call("first", 0);
  engine.startAll(0);
  const open = (creditId = "c", nowMs = 0) =>
    openCredit(engine.state, { creditId, need: NEED, upstreams: ["acme"] }, nowMs);
  const report = (fields: Partial<CreditReport>, nowMs = 100) =>
    applyReport(engine.state, { creditId: "c", number: 1, calls: [], returns: false, ...fields }, () => target, nowMs);
  return { engine, state: engine.state, open, report };
}

function credited(callId: string, fields: Partial<CreditedCall> = {}): CreditedCall {
  const label = { openedAgoMs: 50, windowNumber: 1, id: null, position: "alone" } as const;
  const capped = { amounts: NEED, capTokens: 40, capKind: "client" } as const;
  const facts = makeFacts({ maxTokens: 40 });
  return { callId, facts, onLost: "retry", ...capped, startedAgoMs: 50, label, ended: null, ...fields };
}

describe("credit", () => {
  it("is half of a hundredth of what is left, and reserved", () => {
    const { state, open } = lender({ usd: 1_000_000 });
    const left = state.ledger.remaining("usd") ?? 0;
    expect(open()?.granted.usd).toBe(Math.floor(left / 100 / 2));
    expect(state.ledger.remaining("usd")).toBe(left - Math.floor(left / 100 / 2));
  });

  it("is given only if it covers several calls", () => {
    // The call in flight has reserved something of it.
    expect(lender({ usd: LEAST_USD }).open()).toBeNull();
    expect(lender({ usd: LEAST_USD + 1_000 }).open()).not.toBeNull();
  });

  it("has half of the width that nothing uses, of the upstream's calls in flight, and never more than the bound", () => {
    const usd = 10_000_000;
    expect(lender({ usd, width: 21 }).open()?.permits).toBe(10);
    expect(lender({ usd, width: 64, maxInFlight: 9 }).open()?.permits).toBe(4);
    expect(lender({ usd, width: 512 }).open()?.permits).toBe(CREDIT_PERMITS_MAX);
    expect(lender({ usd, width: 4 }).open()).toBeNull();
  });

  it("is not given while a call waits, while the run is paused, or its upstream cools down", () => {
    const usd = 10_000_000;
    const waiting = lender({ usd, width: 8 });
    for (let calls = 0; calls < 8; calls++) waiting.engine.call(`call${calls}`, 0);
    waiting.engine.startAll(0);
    expect(waiting.open()).toBeNull();
    const paused = lender({ usd });
    paused.state.setPaused(true);
    expect(paused.open()).toBeNull();
    const limited = lender({ usd });
    limited.state.upstreams.add(makeTarget()).cool(1_000, "requests_per_minute");
    expect([limited.open("c", 999), limited.open("c", 1_000) !== null]).toEqual([null, true]);
  });

  it("is given to a bounded number of instances, and to one of them once", () => {
    const { state, open } = lender({ usd: 100_000_000_000, width: 512 });
    for (let each = 0; each < CREDITS_MAX; each++) open(`c${each}`);
    expect([state.credits.size, open("one more"), open("c0")?.id]).toEqual([CREDITS_MAX, null, "c0"]);
  });

  it("keeps its permits from other calls", () => {
    const { engine, state, open } = lender({ usd: 10_000_000, width: 8 });
    expect(open()?.permits).toBe(3);
    for (let calls = 0; calls < 8; calls++) engine.call(`call${calls}`, 0);
    engine.startAll(0);
    expect([state.attempts.size, state.credits.permits]).toEqual([5, 3]);
  });
});

describe("a report", () => {
  it("makes a call in flight an attempt of the run, with its permit and its reservation", () => {
    const { state, open, report } = lender({ usd: 10_000_000, width: 11 });
    expect(open()?.permits).toBe(5);
    const reserved = state.ledger.reserved.usd;
    expect(report({ calls: [credited("a"), credited("b")] })).toBe("continue");
    expect([...state.attempts.keys()]).toEqual(["first.1", "a.1", "b.1"]);
    // Two of the five are with the calls now; of what nothing uses then, 8 of 11, the credit has half.
    expect(state.credits.get("c")).toMatchObject({ permits: 4, reports: 1 });
    // The credit was filled again by what was taken out.
    expect(state.ledger.reserved.usd).toBeGreaterThan(reserved);
  });

  it("charges a call that has ended, and is applied once", () => {
    const { state, open, report } = lender({ usd: 10_000_000 });
    open();
    const ended = { outcome: success({ promptTokens: 3, completionTokens: 4 }), agoMs: 10 };
    for (let times = 0; times < 2; times++) expect(report({ calls: [credited("a", { ended })] })).toBe("continue");
    expect([state.ledger.spent.usd, state.ledger.spent.calls, state.attempts.size]).toEqual([11, 1, 1]);
  });

  it("is reserved anew no more often for a report of many calls than for one of a single call", () => {
    const ended = { outcome: success({ promptTokens: 3, completionTokens: 4 }), agoMs: 10 };
    const times = [1, 20].map((count) => {
      const { state, open, report } = lender({ usd: 10_000_000 });
      open();
      const released = vi.spyOn(state.ledger, "release");
      report({ calls: Array.from({ length: count }, (_, at) => credited(`c${at}`, { ended })) });
      return released.mock.calls.length;
    });
    expect(times[0]).toBeGreaterThan(0);
    expect(times[1]).toBe(times[0]);
  });

  it("tells the step of a call in each of its events", () => {
    const { state, open, report } = lender({ usd: 10_000_000 });
    open();
    state.log.take();
    const ended = { outcome: success({ promptTokens: 3, completionTokens: 4 }), agoMs: 10 };
    report({ calls: [credited("a", { ended, facts: makeFacts({ maxTokens: 40, step: 3, steps: 20 }) })] });
    const at = { callId: "a", step: 3, steps: 20 };
    expect(state.log.take()?.events.filter((event) => "callId" in event)).toMatchObject([
      { event: "attempt_started", ...at },
      { event: "attempt_ended", ...at },
      { event: "slot_completed", ...at },
    ]);
  });

  it("announces the group of a window that stays open after it once, with the calls of the next report", () => {
    const { state, open, report } = lender({ usd: 10_000_000 });
    open();
    const window = { windowNumber: 1, id: "pg-0000000000010-abcdef" };
    // The second of two calls has come 30 ms before the report: their window of 50 ms closes 20 ms after it.
    const [first, second] = [90, 30].map((startedAgoMs, at) => {
      const position = at === 0 ? ("alone" as const) : ("second" as const);
      return credited(`call${at}`, { startedAgoMs, label: { ...window, openedAgoMs: 90, closesInMs: 20, position } });
    });
    if (first === undefined || second === undefined) throw new Error("there are two calls");
    report({ calls: [first, second] }, 100);
    const begun = () => state.log.take()?.events.filter(({ event }) => event === "group_started") ?? [];
    state.emitWindows(100);
    expect(begun()).toEqual([]);
    const late = { ...window, openedAgoMs: 190, closesInMs: -40, position: "later" as const };
    report({ number: 2, calls: [credited("call2", { startedAgoMs: 90, label: late })] }, 200);
    state.emitWindows(200);
    expect(begun()).toMatchObject([{ group: window.id, count: 3 }]);
    const ends = ["call0", "call1", "call2"].map((callId) => settle(state, `${callId}.1`, success(), 300));
    expect(ends).not.toContain(null);
    state.emitWindows(300);
    const ended = state.log.take()?.events.find(({ event }) => event === "group_completed");
    // It was opened 90 ms before the first report.
    expect(ended).toMatchObject({ count: 3, metrics: { wall_ms: 290 } });
  });

  it("counts as in flight together only what was", () => {
    const { state, open, report } = lender({ usd: 10_000_000 });
    open();
    const at = (startedAgoMs: number, agoMs: number) => ({ startedAgoMs, ended: { outcome: success(), agoMs } });
    report({ calls: [credited("a", at(90, 60)), credited("b", at(60, 30)), credited("c", at(40, 10))] });
    const peaks = [...state.shards.values()].map(({ totals }) => totals.peakParallel);
    // One of them and the first call, except from 40 to 30 ms ago.
    expect(Math.max(...peaks)).toBe(3);
  });

  it("returns what is left, and a credit that was returned has ended", () => {
    const { state, open, report } = lender({ usd: 10_000_000 });
    const reserved = state.ledger.reserved.usd;
    open();
    expect([report({ returns: true }), state.ledger.reserved.usd, state.credits.permits]).toEqual([
      "ended",
      reserved,
      0,
    ]);
    expect(report({ number: 2 })).toBe("ended");
  });

  it("recalls the credit once something waits", () => {
    const { engine, state, open, report } = lender({ usd: 10_000_000, width: 8 });
    open();
    for (let calls = 0; calls < 8; calls++) engine.call(`call${calls}`, 0);
    engine.startAll(0);
    expect([report({}), state.credits.size]).toEqual(["recalled", 1]);
    expect(report({ number: 2, returns: true })).toBe("ended");
    expect(engine.startAll(200)).toEqual(["call4", "call5", "call6"]);
  });
});

describe("a credit without reports", () => {
  it("is charged when its term is over, and not before", () => {
    const { state, open } = lender({ usd: 10_000_000 });
    const granted = open()?.granted.usd ?? 0;
    const reserved = state.ledger.reserved.usd;
    expect(expireCredits(state, CREDIT_TTL_MS - 1)).toBe(0);
    expect(expireCredits(state, CREDIT_TTL_MS)).toBe(1);
    expect([state.ledger.spent.usd, state.ledger.reserved.usd]).toEqual([granted, reserved - granted]);
    expect([state.credits.size, state.mustWrite]).toEqual([0, true]);
  });
});
