import { describe, expect, it } from "vitest";
import type { CreditReport } from "../../../../../src/run/credit.ts";
import {
  CREDIT_AFTER_CALLS,
  CREDIT_CALLS_KEPT_MAX,
  CREDIT_HANDOVER_MS,
  CREDIT_IDLE_MS,
  CREDIT_REPORT_CALLS,
  CREDIT_REPORT_MS,
  CREDIT_TTL_MS,
  WINDOW_SLIDES_MAX,
} from "../../../../../src/limits.ts";
import type { Permit, SingleSettlement } from "../../../../../src/objects/methods/calls.ts";
import { InstanceCredits, type CreditRun } from "../../../../../src/objects/clients/credit/credits.ts";
import { makeFacts, makeTarget, success } from "../../../../support/engine.ts";

const TERMS = {
  granted: { usd: 10_000_000, calls: null, prompt_tokens: null, completion_tokens: null, new_tokens: null },
  permits: 8,
  learned: {},
  remainingNanoUsd: 1_000_000,
};
const RULES = { models: [], defaultModel: null, unpriced: "refuse" } as const;
const WINDOW_MS = 50;

/** An instance with a clock of the test's, and a run object that grants credit and records what it is told. */
function makeInstance() {
  let nowMs = 1_000_000;
  let timers: { atMs: number; resolve: () => void }[] = [];
  const credits = new InstanceCredits({
    now: () => nowMs,
    wait: (ms) => new Promise((resolve) => timers.push({ atMs: nowMs + ms, resolve })),
    random: () => 0.5,
    newId: () => "credit",
  });
  const requests: string[][] = [];
  const reports: CreditReport[] = [];
  const settled: SingleSettlement[] = [];
  const object = { isUnreachable: false, isRecalling: false, settles: true, settlementsWait: false };
  const run: CreditRun = {
    runId: "run",
    openCredit: async ({ upstreams }) => {
      requests.push(upstreams);
      return Promise.resolve({ terms: TERMS, rules: { ...RULES, models: [] }, windowMs: WINDOW_MS });
    },
    reportCredit: async (report) => {
      if (object.isUnreachable) return Promise.reject(new Error("unreachable"));
      reports.push(report);
      const told = object.settles ? { settles: true as const } : {};
      if (report.returns) return Promise.resolve({ ...told, kind: "ended" });
      if (object.isRecalling) return Promise.resolve({ ...told, kind: "recalled" });
      return Promise.resolve({ ...told, kind: "continue", terms: TERMS, remainingNanoUsd: TERMS.remainingNanoUsd });
    },
    settlementsWait: () => object.settlementsWait,
    settle: (settlement) => settled.push(settlement),
  };
  /** What requests do after their reply. A request that the platform ends is one whose timers are forgotten. */
  const waitUntil = (promise: Promise<unknown>): void => void promise;
  const advance = async (ms: number): Promise<void> => {
    for (const untilMs = nowMs + ms; nowMs < untilMs;) {
      nowMs += 10;
      const due = timers.filter(({ atMs }) => atMs <= nowMs);
      timers = timers.filter(({ atMs }) => atMs > nowMs);
      for (const { resolve } of due) resolve();
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  /** The instance stands still: its timers are late. */
  const stall = async (ms: number): Promise<void> => {
    nowMs += ms - 10;
    await advance(10);
  };
  let count = 0;
  const start = (ageMs = 0) => {
    count += 1;
    const call = { callId: `call${count}`, ageMs, facts: makeFacts({ maxTokens: 40 }), onLost: "retry" } as const;
    return credits.start(run, { ...call, targetOf: () => makeTarget() }, waitUntil);
  };
  const permit = (): void => {
    const lease = { attemptId: "a.1", upstream: "acme", model: "gpt-x", capTokens: 40, timeoutMs: 1 };
    const reserved = { usd: 180, calls: 1, prompt_tokens: 100, completion_tokens: 40, new_tokens: 140 };
    const granted: Permit = { lease, queuedMs: 0, reserved, parallelGroupId: null, windowOpenedAtMs: nowMs };
    credits.permitted(run, granted, waitUntil);
  };
  const killRequests = (): void => void (timers = []);
  return { credits, run, requests, reports, settled, object, advance, stall, start, permit, killRequests };
}

type Instance = ReturnType<typeof makeInstance>;

/** An instance that has credit, past the run object's window. */
async function withCredit(): Promise<Instance> {
  const instance = makeInstance();
  for (let calls = 0; calls < CREDIT_AFTER_CALLS; calls++) instance.permit();
  await instance.advance(WINDOW_MS);
  return instance;
}

const callIds = (reports: CreditReport[]): string[][] => reports.map(({ calls }) => calls.map(({ callId }) => callId));

describe("an instance of the gateway", () => {
  it("requests credit after several calls within a second, for the upstreams that it called", async () => {
    const { requests, permit, advance, start } = makeInstance();
    for (let calls = 1; calls < CREDIT_AFTER_CALLS; calls++) permit();
    await advance(CREDIT_IDLE_MS + 10);
    permit();
    await advance(10);
    expect([requests, start()]).toEqual([[], null]);
    for (let calls = 1; calls < CREDIT_AFTER_CALLS; calls++) permit();
    await advance(10);
    expect(requests).toEqual([["acme"]]);
  });

  it("starts calls inside its credit once the run object's coalescing window is over", async () => {
    const { permit, advance, start } = makeInstance();
    for (let calls = 0; calls < CREDIT_AFTER_CALLS; calls++) permit();
    await advance(WINDOW_MS - 10);
    expect(start()).toBeNull();
    await advance(10);
    // The call before keeps the window open.
    expect(start()).toBeNull();
    await advance(WINDOW_MS);
    expect(start()).toMatchObject({ lease: { attemptId: "call3.1", capTokens: 40 } });
  });

  it("starts no call inside its credit that its Worker got within the run object's window", async () => {
    const { permit, advance, start } = makeInstance();
    for (let calls = 0; calls < CREDIT_AFTER_CALLS; calls++) permit();
    await advance(WINDOW_MS + 20);
    expect([start(21), start(20)]).toMatchObject([null, null]);
    // Both keep the window open.
    await advance(WINDOW_MS);
    expect([start(1), start(0)]).toMatchObject([null, null]);
    await advance(WINDOW_MS);
    expect(start(0)).not.toBeNull();
  });

  it("starts no call inside its credit that arrives with one that the run object has been asked for", async () => {
    const { credits, permit, advance, start } = makeInstance();
    for (let calls = 0; calls < CREDIT_AFTER_CALLS; calls++) permit();
    // Its permit, which says that it has opened a window, is on its way.
    expect(credits.place("run", 0)).toBeNull();
    await advance(WINDOW_MS - 10);
    expect(start()).toBeNull();
    await advance(WINDOW_SLIDES_MAX * WINDOW_MS);
    expect(credits.place("run", 0)).toBeNull();
    await advance(10);
    expect([start(), start(20)]).toEqual([null, null]);
    await advance(WINDOW_MS);
    expect(start()).not.toBeNull();
    expect(credits.place("run", 0)).not.toBeNull();
  });

  it("starts calls inside its credit although calls keep arriving, once the window has slid as far as it may", async () => {
    const { permit, advance, start } = makeInstance();
    for (let calls = 0; calls < CREDIT_AFTER_CALLS; calls++) permit();
    const steps = (WINDOW_SLIDES_MAX * WINDOW_MS) / 10;
    for (let step = 1; step < steps; step++) {
      await advance(10);
      expect(start()).toBeNull();
    }
    await advance(10);
    expect(start()).not.toBeNull();
  });

  it("puts a call that came late into the window in which its Worker got it, whoever starts it", async () => {
    const { credits, advance, start } = await withCredit();
    const first = start();
    await advance(WINDOW_MS - 10);
    expect(start()?.group).toBe(first?.group);
    await advance(WINDOW_MS);
    // The window slid to now. These came 10 ms ago, and waited where the instance stood still.
    expect(start(10)?.group).toBe(first?.group);
    expect(credits.place("run", 10)?.group).toBe(first?.group);
    await advance(WINDOW_SLIDES_MAX * WINDOW_MS);
    expect(start()?.group).not.toBe(first?.group);
  });

  it("lets in what arrived while it stood still before it reports, and the run object waits for the rest", async () => {
    const { reports, advance, stall, start } = await withCredit();
    await advance(CREDIT_REPORT_MS - WINDOW_MS + 20);
    start();
    await advance(CREDIT_REPORT_MS - 20);
    await stall(500);
    expect(reports).toEqual([]);
    const lateMs = CREDIT_REPORT_MS - 20 + 500 - 30;
    start(lateMs);
    await advance(10);
    // What came with the late call may take as long as a window.
    const seen = reports.flatMap(({ calls }) => calls.map(({ callId, label }) => [callId, label?.closesInMs]));
    expect(seen).toEqual([
      ["call1", WINDOW_MS - 10],
      ["call2", WINDOW_MS - 10],
    ]);
  });

  it("puts no call into a window that it has reported as over, however late it is", async () => {
    const { reports, advance, start } = await withCredit();
    const first = start();
    await advance(CREDIT_REPORT_MS);
    expect(callIds(reports)).toEqual([["call1"]]);
    expect(start(CREDIT_REPORT_MS - 10)?.group).not.toBe(first?.group);
  });

  it("reports calls in time: those in flight as attempts of the run, and the others with their outcome", async () => {
    const { credits, reports, settled, advance, start } = await withCredit();
    const [first, second] = [start(), start()];
    credits.end("run", { attemptId: first?.lease.attemptId ?? "", outcome: success(), stored: null });
    await advance(CREDIT_REPORT_MS);
    expect(callIds(reports)).toEqual([["call1", "call2"]]);
    expect(reports[0]?.calls.map(({ ended }) => ended?.outcome.kind ?? null)).toEqual(["success", null]);
    const settlement = { attemptId: second?.lease.attemptId ?? "", outcome: success(), stored: null };
    expect([credits.end("run", settlement), settled]).toEqual([null, []]);
  });

  it("reports early, and each call once, when there are many: none is the run object's to start meanwhile", async () => {
    const { credits, run, reports, advance, start } = await withCredit();
    const call = () => {
      const started = start();
      credits.end("run", { attemptId: started?.lease.attemptId ?? "", outcome: success(), stored: null });
      return started;
    };
    for (let calls = 0; calls < CREDIT_REPORT_CALLS - 1; calls++) expect(call()).not.toBeNull();
    expect(reports).toEqual([]);
    for (let calls = 0; calls < 10; calls++) expect(call()).not.toBeNull();
    expect(reports.map(({ calls }) => calls.length)).toEqual([CREDIT_REPORT_CALLS]);
    await advance(10);
    await credits.giveBack(run);
    const ids = callIds(reports).flat();
    expect([ids.length, new Set(ids).size]).toEqual([CREDIT_REPORT_CALLS + 9, CREDIT_REPORT_CALLS + 9]);
  });

  it("keeps a bounded number of calls while the run object cannot be reached", async () => {
    const { credits, object, reports, advance, start } = await withCredit();
    object.isUnreachable = true;
    const call = () => {
      const started = start();
      credits.end("run", { attemptId: started?.lease.attemptId ?? "", outcome: success(), stored: null });
      return started;
    };
    for (let calls = 0; calls < CREDIT_CALLS_KEPT_MAX; calls++) expect(call()).not.toBeNull();
    expect(call()).toBeNull();
    object.isUnreachable = false;
    await advance(2 * CREDIT_REPORT_MS);
    expect(call()).not.toBeNull();
    expect(callIds(reports).flat()).toHaveLength(CREDIT_CALLS_KEPT_MAX);
  });

  it("settles what has ended while its start was being reported", async () => {
    const { credits, run, settled, start } = await withCredit();
    const attemptId = start()?.lease.attemptId ?? "";
    const reporting = credits.flush(run);
    expect(credits.end("run", { attemptId, outcome: success(), stored: null })).toMatchObject({ charge: { calls: 1 } });
    await reporting;
    expect(settled.map((settlement) => settlement.attemptId)).toEqual([attemptId]);
  });

  it("takes settlements along with its reports once the run object is known to read them, while a request reports", async () => {
    const { credits, object, reports, advance, start, killRequests } = await withCredit();
    expect(credits.takesSettlements("another")).toBe(false);
    start();
    expect(credits.takesSettlements("run")).toBe(false);
    await advance(CREDIT_REPORT_MS);
    expect([credits.takesSettlements("run"), reports.length]).toEqual([true, 1]);
    // There is nothing else to report.
    object.settlementsWait = true;
    await advance(CREDIT_REPORT_MS);
    expect(callIds(reports)).toEqual([["call1"], []]);
    object.settles = false;
    await advance(CREDIT_REPORT_MS);
    expect([credits.takesSettlements("run"), reports.length]).toEqual([false, 3]);
    object.settles = true;
    await advance(CREDIT_REPORT_MS);
    expect([credits.takesSettlements("run"), reports.length]).toEqual([true, 4]);
    killRequests();
    await advance(CREDIT_HANDOVER_MS);
    expect([credits.takesSettlements("run"), reports.length]).toEqual([false, 4]);
  });

  it("takes no settlements along once its credit is about to be returned", async () => {
    const { credits, advance, start } = await withCredit();
    start();
    await advance(CREDIT_REPORT_MS);
    expect(credits.takesSettlements("run")).toBe(true);
    credits.stop("run");
    expect(credits.takesSettlements("run")).toBe(false);
  });

  it("returns its credit after a second without a call", async () => {
    const { credits, reports, advance, start } = await withCredit();
    const attemptId = start()?.lease.attemptId ?? "";
    credits.end("run", { attemptId, outcome: success(), stored: null });
    await advance(CREDIT_IDLE_MS - CREDIT_REPORT_MS);
    expect(credits.has("run")).toBe(true);
    await advance(2 * CREDIT_REPORT_MS);
    expect([credits.has("run"), reports.at(-1)?.returns]).toEqual([false, true]);
  });

  it("returns it at once for a request that reads the run, and starts nothing meanwhile", async () => {
    const { credits, run, reports, start } = await withCredit();
    start();
    const returning = credits.giveBack(run);
    expect(start()).toBeNull();
    await returning;
    expect([credits.has("run"), callIds(reports)]).toEqual([false, [["call1"]]]);
  });

  it("returns it when the run recalls it", async () => {
    const { credits, object, reports, advance, start } = await withCredit();
    start();
    object.isRecalling = true;
    await advance(3 * CREDIT_REPORT_MS);
    expect([credits.has("run"), reports.map(({ returns }) => returns)]).toEqual([false, [false, true]]);
  });

  it("starts nothing more after its upstream has limited a call's rate, and returns its credit", async () => {
    const { credits, advance, start } = await withCredit();
    start();
    credits.stop("run");
    expect(start()).toBeNull();
    await advance(2 * CREDIT_REPORT_MS);
    expect(credits.has("run")).toBe(false);
  });

  it("lets another request report if the one that did is gone", async () => {
    const { reports, advance, start, killRequests } = await withCredit();
    start();
    killRequests();
    await advance(CREDIT_HANDOVER_MS);
    start();
    await advance(CREDIT_REPORT_MS);
    expect(callIds(reports)).toEqual([["call1", "call2"]]);
  });

  it("starts nothing once the run may have charged its credit, and forgets it", async () => {
    const { credits, object, advance, start } = await withCredit();
    start();
    object.isUnreachable = true;
    await advance(CREDIT_TTL_MS / 2 + 10);
    expect([start(), credits.has("run")]).toEqual([null, true]);
    await advance(CREDIT_TTL_MS);
    expect(credits.has("run")).toBe(false);
  });
});
