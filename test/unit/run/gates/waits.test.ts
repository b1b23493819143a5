/** What waits at a gate: it counts no attempt, blocks nothing else, and ends with its deadline or a bound. */
import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../../src/call.ts";
import { expireQueued } from "../../../../src/run/steps/deadline.ts";
import { nextReadyMs, sleepsAtGates } from "../../../../src/run/steps/next-ready.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import type { GroupHeader } from "../../../../src/run/group/group.ts";
import { slotIdOf, type SlotFacts } from "../../../../src/run/queue/slot.ts";
import {
  dueExchanges,
  dueLeaves,
  gateChanged,
  granted,
  sampled,
  unreached,
} from "../../../../src/run/steps/exchange.ts";
import { isRetryable } from "../../../../src/errors.ts";
import {
  GATE_ATTEMPTS_MAX,
  GATE_FREE_PERMITS,
  GATE_SLEEP_DEADLINE_MS,
  KEY_PROBE_MS,
  RETRY_AFTER_MAX_MS,
  STOPPED_FIRST_WAIT_MS,
  STOPPED_WAIT_MS,
  TIMER_MS_MAX,
} from "../../../../src/limits.ts";
import { alike, failure, makeTarget, success, TestEngine } from "../../../support/engine.ts";
import { makeChunk, makeGrant, makeStopped } from "../../../support/gate-grants.ts";

const WHO = { run: "run_1", instance: "i", weight: 1 };

/** The failure of a key that is not valid. */
const STOP: Outcome = {
  ...{ kind: "failure", class: "rejected", answered: true, retryAfterMs: null, latencyMs: 1, stop: "invalid_key" },
  reason: { reason: "upstream_error", upstream: "acme", status: 401, message: "no such key", retryable: false },
};

/** Ends every attempt in flight. */
function settleAll({ state }: TestEngine, outcome: Outcome, nowMs: number): void {
  for (const attemptId of [...state.attempts.keys()]) settle(state, attemptId, outcome, nowMs);
}

/** Exchanges all that is due. */
function exchange({ state }: TestEngine, grant: Parameters<typeof granted>[2], nowMs: number): string[] {
  const due = dueExchanges(state, WHO, nowMs);
  for (const { gate } of due) granted(state, gate, grant, nowMs);
  return due.map(({ gate }) => gate);
}

const gated = (options: ConstructorParameters<typeof TestEngine>[0] = {}): TestEngine =>
  new TestEngine({ hasGates: true, random: () => 0.5, ...options });

describe("a rate limit with a hint", () => {
  it("counts no attempt of a slot: its other failures are still max_attempts", () => {
    const engine = gated({ targets: [makeTarget({ attemptsMax: 2 })] });
    const group = engine.open(alike(1));
    let nowMs = 0;
    for (let each = 0; each < 5; each++) {
      expect(engine.startAll(nowMs)).toHaveLength(1);
      settleAll(engine, failure("rate_limited", 1_000), nowMs);
      exchange(engine, makeGrant(), nowMs);
      nowMs += 5_000;
    }
    for (const counts of [0, 1]) {
      expect(engine.startAll(nowMs)).toHaveLength(1);
      settleAll(engine, failure("transient"), nowMs);
      expect(group.counts.failed).toBe(counts);
      nowMs += 20_000;
    }
    expect(group.attempts[0]).toBe(7);
  });

  it("fails a slot after a bound", () => {
    const engine = gated();
    const group = engine.open(alike(1));
    let attempts = 0;
    for (let nowMs = 0; !group.done && attempts < 100; nowMs += 5_000) {
      attempts += engine.startAll(nowMs).length;
      settleAll(engine, failure("rate_limited", 1_000), nowMs);
      exchange(engine, makeGrant(), nowMs);
    }
    expect([attempts, group.counts.failed]).toEqual([GATE_ATTEMPTS_MAX, 1]);
  });

  it("counts for a call that its client waits for without a deadline, and not for one with a deadline", () => {
    for (const [deadlineMs, attempts] of [
      [null, 3],
      [3_600_000, GATE_ATTEMPTS_MAX],
    ] as const) {
      const engine = gated();
      let made = 0;
      let uncounted = 0;
      for (let nowMs = 0; ; nowMs += 5_000) {
        made += 1;
        engine.call("c", nowMs, { attempt: made, deadlineMs, uncounted });
        expect(engine.startAll(nowMs + 1)).toEqual(["c"]);
        const settled = settle(engine.state, `c.${made}`, failure("rate_limited", 1_000), nowMs + 1);
        uncounted = settled?.uncounted ?? 0;
        exchange(engine, makeGrant(), nowMs + 1);
        if (settled?.retryInMs == null) break;
      }
      expect(made).toBe(attempts);
    }
  });

  it("without a hint counts for a call without a deadline, but not at a shrunk gate while the call is young", () => {
    for (const [gateClass, youngMs, attempts] of [
      ["open", 3_600_000, 3],
      ["shrunk", 3_600_000, GATE_ATTEMPTS_MAX],
      // Its attempts start at 0 s, 5 s and 10 s and fail 1 ms later: the first two use up none, the three others all.
      ["shrunk", 5_002, 5],
      ["shrunk", 5_001, 4],
    ] as const) {
      const engine = gated();
      engine.state.upstreams.add(makeTarget());
      let made = 0;
      let uncounted = 0;
      for (let nowMs = 0; ; nowMs += 5_000) {
        made += 1;
        engine.call("c", nowMs, { attempt: made, uncounted, waitsForWidthUntilMs: youngMs });
        if (made === 1) exchange(engine, makeGrant({ class: gateClass }), nowMs);
        expect(engine.startAll(nowMs + 1)).toEqual(["c"]);
        const settled = settle(engine.state, `c.${made}`, failure("rate_limited"), nowMs + 1);
        uncounted = settled?.uncounted ?? 0;
        exchange(engine, makeGrant({ class: gateClass }), nowMs + 1);
        if (settled?.retryInMs == null) break;
      }
      expect([gateClass, youngMs, made]).toEqual([gateClass, youngMs, attempts]);
    }
  });

  it("lets slots of other upstreams go first, however early the waiting ones came", () => {
    const engine = gated({ targets: [makeTarget(), makeTarget({ upstream: "other" })] });
    engine.open([{ modelIndex: 0 }, ...alike(3, { modelIndex: 0, priority: 4 }), ...alike(2, { modelIndex: 1 })]);
    engine.state.upstreams.add(makeTarget()).cool(10_000, "requests_per_minute");
    expect(engine.startAll(0)).toEqual(["1:4", "1:5"]);
  });
});

describe("a gate that makes calls wait", () => {
  it("makes the first turn report, and lets the rest of a wide group start when it has replied", () => {
    const engine = gated();
    engine.open(alike(GATE_FREE_PERMITS + 24));
    expect(engine.startAll(0)).toHaveLength(GATE_FREE_PERMITS);
    const [due, ...others] = dueExchanges(engine.state, WHO, 0);
    expect(others).toEqual([]);
    expect(due).toMatchObject({ gate: "acme", report: { ...WHO, number: 1, inFlight: GATE_FREE_PERMITS } });
    expect(due?.report.classes).toEqual({
      interactive: { waiting: 0, tokensPerCall: 0 },
      standard: { waiting: 24, tokensPerCall: 123, inputTokensPerCall: 23 },
      batch: { waiting: 0, tokensPerCall: 0 },
    });
    expect(dueExchanges(engine.state, WHO, 1)).toEqual([]);
    granted(engine.state, "acme", makeGrant(), 2);
    expect(engine.startAll(2)).toHaveLength(24);
    expect(dueExchanges(engine.state, WHO, 3)).toEqual([]);
  });

  it("sorts what waits into classes", () => {
    const engine = gated();
    engine.state.upstreams.add(makeTarget()).cool(10_000, "requests_per_minute");
    engine.open(alike(2));
    engine.open(alike(3), { background: true });
    engine.open(alike(1), { single: "alone" });
    engine.call("c", 0);
    engine.startAll(0);
    const classes = dueExchanges(engine.state, WHO, 0)[0]?.report.classes;
    expect([classes?.interactive.waiting, classes?.standard.waiting, classes?.batch.waiting]).toEqual([2, 2, 3]);
  });

  it("gives chunks, and is asked again when time alone makes it due", () => {
    const engine = gated({ targets: [makeTarget({ maxInFlight: 512 })] });
    engine.open(alike(100));
    engine.startAll(0);
    expect(exchange(engine, makeChunk({ requests: 5, nextInMs: 700 }), 10)).toEqual(["acme"]);
    expect(engine.startAll(10)).toHaveLength(5);
    expect(nextReadyMs(engine.state, 10)).toBe(710);
    expect(exchange(engine, makeChunk({ requests: 0, nextInMs: 900, wakeInMs: 4_000 }), 710)).toEqual(["acme"]);
    expect([engine.startAll(710), nextReadyMs(engine.state, 710)]).toEqual([[], 4_710]);
    // What happens anyway exchanges sooner.
    expect(exchange(engine, makeChunk({ requests: 3 }), 1_610)).toEqual(["acme"]);
    expect(engine.startAll(1_610)).toHaveLength(3);
  });

  it("lets a run sleep that has its reply and no work before its alarm, and not while a reply is on its way", () => {
    const engine = gated();
    const group = engine.open(alike(100));
    engine.startAll(0);
    expect(sleepsAtGates(engine.state, 0)).toBe(false);
    exchange(engine, makeChunk({ requests: 0, nextInMs: 900, wakeInMs: 1_000 + TIMER_MS_MAX }), 10);
    expect(group.counts.queued).toBe(100 - GATE_FREE_PERMITS);
    expect(sleepsAtGates(engine.state, 10)).toBe(true);
    // An exchange is due with this turn, then its reply is awaited.
    expect(sleepsAtGates(engine.state, 910)).toBe(false);
    expect(dueExchanges(engine.state, WHO, 910)).toHaveLength(1);
    expect(sleepsAtGates(engine.state, 915)).toBe(false);
    granted(engine.state, "acme", makeChunk({ requests: 0, nextInMs: 900, wakeInMs: TIMER_MS_MAX }), 920);
    expect(sleepsAtGates(engine.state, 920)).toBe(false);
  });

  it("gives what is due at once to a group whose deadline is near", () => {
    const engine = gated();
    engine.open(alike(100), { deadlineMs: GATE_SLEEP_DEADLINE_MS });
    engine.startAll(0);
    exchange(engine, makeChunk({ requests: 0, nextInMs: 900, wakeInMs: 4_000 }), 10);
    expect(nextReadyMs(engine.state, 10)).toBe(910);
  });

  it("is not said in the log twice: the failure that the run has met is there", () => {
    const engine = gated();
    engine.open(alike(1));
    engine.startAll(0);
    settleAll(engine, failure("rate_limited"), 10);
    exchange(engine, makeChunk({ class: "shrunk", reason: "width", permits: 1 }), 200);
    const throttled = (engine.state.log.take()?.events ?? []).filter(({ event }) => event === "throttled");
    expect(throttled).toMatchObject([{ cause: "rate_limited" }]);
  });

  it("is left when a batch is over: what it holds is for others, and what comes later asks first", () => {
    const engine = gated();
    engine.open(alike(100));
    engine.startAll(0);
    exchange(engine, makeChunk({ permits: 80 }), 10);
    expect(dueLeaves(engine.state, WHO, 11)).toEqual([]);
    while (engine.state.attempts.size > 0) {
      settleAll(engine, success(), 20);
      engine.startAll(20);
    }
    expect([dueLeaves(engine.state, WHO, 21), dueLeaves(engine.state, WHO, 22)]).toMatchObject([
      [{ gate: "acme", last: { ...WHO, number: 2, inFlight: 0 } }],
      [],
    ]);
    engine.open(alike(1));
    expect(engine.startAll(23)).toEqual([]);
    exchange(engine, makeChunk(), 200);
    expect(engine.startAll(200)).toHaveLength(1);
  });

  it("is left by single calls too where it limits the width: two runs that call now and then share one permit", () => {
    const engine = gated();
    engine.call("c", 0);
    engine.startAll(0);
    exchange(engine, makeChunk({ class: "shrunk", reason: "width", permits: 1 }), 10);
    expect(dueLeaves(engine.state, WHO, 11)).toEqual([]);
    settleAll(engine, success(), 20);
    expect([dueLeaves(engine.state, WHO, 21), dueLeaves(engine.state, WHO, 22)]).toMatchObject([
      [{ gate: "acme", last: { ...WHO, number: 2, inFlight: 0 } }],
      [],
    ]);
    engine.call("d", 23);
    expect(engine.startAll(23)).toEqual([]);
    exchange(engine, makeChunk({ class: "shrunk", reason: "width", permits: 1 }), 200);
    expect(engine.startAll(200)).toHaveLength(1);
  });

  it("is not left by calls that follow each other, if a rate alone limits it", () => {
    const engine = gated();
    engine.call("c", 0);
    engine.startAll(0);
    exchange(engine, makeChunk({ requests: 2 }), 10);
    settleAll(engine, success(), 20);
    expect(dueLeaves(engine.state, WHO, 21)).toEqual([]);
  });

  it("is left with its permits while all of its calls wait for a Retry-After", () => {
    const engine = gated();
    engine.call("c", 0);
    engine.startAll(0);
    exchange(engine, makeChunk({ permits: 2, waitMs: 900 }), 10);
    settleAll(engine, success(), 20);
    const [left] = dueLeaves(engine.state, WHO, 21);
    // What it says at last includes how its attempts have ended.
    expect(left).toMatchObject({ gate: "acme", last: { number: 2, succeeded: 1, inFlight: 0 } });
    expect(left?.last).not.toHaveProperty("meter");
    engine.call("d", 22);
    expect(engine.startAll(1_000)).toEqual([]);
  });

  it("says so in the log, with the cause", () => {
    const engine = gated();
    engine.open(alike(1));
    engine.startAll(0);
    exchange(engine, makeChunk({ reason: "tokens_per_minute", waitMs: 1_500 }), 5);
    gateChanged(engine.state, "acme", makeStopped(), 10);
    const throttled = (engine.state.log.take()?.events ?? []).filter(({ event }) => event === "throttled");
    expect(throttled).toMatchObject([
      { upstream: "acme", gate: "acme", cause: "tokens_per_minute", retryAfterMs: 1_500 },
      { upstream: "acme", gate: "acme", cause: "stopped", retryAfterMs: 2_000 },
    ]);
  });

  it("is not logged after the run's last call has ended, but with the first exchange for later calls", () => {
    const engine = gated();
    const causes = () =>
      (engine.state.log.take()?.events ?? []).map((event) => ("cause" in event ? event.cause : null));
    const paced = makeChunk({ reason: "requests_per_minute", waitMs: 1_500 });
    engine.open(alike(1));
    engine.startAll(0);
    const [due] = dueExchanges(engine.state, WHO, 5);
    settleAll(engine, success(), 6);
    granted(engine.state, due?.gate ?? "", paced, 7);
    gateChanged(engine.state, "acme", makeStopped(), 8);
    expect(causes()).not.toContainEqual(expect.any(String));
    engine.open(alike(1));
    exchange(engine, makeStopped(), 1_000);
    expect(causes()).toContain("stopped");
  });

  it("is given the headers that executors have seen", () => {
    const engine = gated();
    engine.open(alike(1));
    engine.startAll(0);
    sampled(
      engine.state,
      {
        acme: { ageMs: 7, requests: { limit: 60, remaining: 5, resetMs: null, windowMs: 60_000 } },
        gone: { ageMs: 1 },
      },
      10,
    );
    expect(dueExchanges(engine.state, WHO, 20)[0]?.report.samples).toMatchObject([{ ageMs: 17 }]);
  });

  it("stops no run when it is gone, and shares again when it is back", () => {
    const engine = gated();
    engine.open(alike(100));
    engine.startAll(0);
    dueExchanges(engine.state, WHO, 0);
    unreached(engine.state, "acme", 5);
    expect(engine.startAll(5)).toHaveLength(100 - GATE_FREE_PERMITS);
    expect(dueExchanges(engine.state, WHO, 5)).toEqual([]);
    expect(exchange(engine, makeChunk({ permits: 1 }), 2_000)).toEqual(["acme"]);
  });
});

describe("a single call that waits at a gate", () => {
  it("is refused with 429 as soon as its deadline cannot be met", () => {
    const engine = gated();
    engine.state.upstreams.add(makeTarget()).cool(10_000, "requests_per_minute");
    engine.call("early", 0, { deadlineMs: 10_000 });
    engine.call("late", 0, { deadlineMs: 9_999 });
    const late = expireQueued(engine.state, null, 0);
    expect(late.map(({ call }) => call.callId)).toEqual(["late"]);
    expect(late[0]?.reason).toMatchObject({ reason: "upstream_rate_limited", upstream: "acme", retryAfterMs: 10_000 });
  });

  it("without a deadline waits as long as a Retry-After is obeyed", () => {
    const engine = gated();
    engine.state.upstreams.add(makeTarget()).cool(RETRY_AFTER_MAX_MS + 1, "requests_per_minute");
    engine.call("c", 0);
    expect(expireQueued(engine.state, null, 0)).toMatchObject([{ reason: { reason: "upstream_rate_limited" } }]);
    engine.call("d", 1);
    expect(expireQueued(engine.state, null, 1)).toEqual([]);
  });

  it("is sent with a key that does not work, and gets the upstream's error at once, unless it names a deadline", () => {
    const engine = gated();
    engine.call("first", 0);
    engine.startAll(0);
    expect(settle(engine.state, "first.1", STOP, 1)?.retryInMs).toBeNull();
    engine.call("patient", 2, { deadlineMs: 600_000, priority: 0 });
    expect([expireQueued(engine.state, null, 2), engine.startAll(2)]).toEqual([[], []]);
    engine.call("second", 3);
    expect([expireQueued(engine.state, null, 3), engine.startAll(3)]).toEqual([[], ["second"]]);
    expect(settle(engine.state, "second.1", STOP, 4)?.retryInMs).toBeNull();
    expect(engine.startAll(5)).toEqual([]);
  });
});

describe("a single call that is stored as a group of one", () => {
  const stored = (engine: TestEngine, header: Partial<GroupHeader> = {}, facts: Partial<SlotFacts> = {}) =>
    engine.open([facts], { single: "alone", ...header });

  it("uses up no attempt by a 429 of a key whose width is limited, until it is as old as its timeout", () => {
    for (const [gateClass, timeoutMs, attempts] of [
      ["open", 3_600_000, 3],
      ["shrunk", 3_600_000, GATE_ATTEMPTS_MAX],
      // Its attempts start at 0 s, 5 s and 10 s and fail 1 ms later: the first two use up none, the three others all.
      ["shrunk", 5_002, 5],
      ["shrunk", 5_001, 4],
    ] as const) {
      const engine = gated({ targets: [makeTarget({ timeoutMs: 3_600_000 })] });
      const group = stored(engine, {}, { timeoutMs });
      for (let nowMs = 0; !group.done && (group.attempts[0] ?? 0) < 100; nowMs += 5_000) {
        if (nowMs === 0) engine.state.upstreams.add(makeTarget());
        exchange(engine, makeGrant({ class: gateClass }), nowMs);
        engine.startAll(nowMs);
        settleAll(engine, failure("rate_limited"), nowMs + 1);
        exchange(engine, makeGrant({ class: gateClass }), nowMs + 1);
      }
      expect([gateClass, timeoutMs, group.attempts[0]]).toEqual([gateClass, timeoutMs, attempts]);
      expect(group.counts.failed).toBe(1);
    }
  });

  it("is refused with 429 as soon as its deadline cannot be met", () => {
    const engine = gated();
    engine.state.upstreams.add(makeTarget()).cool(10_000, "width");
    const [early, late] = [stored(engine, { deadlineMs: 10_000 }), stored(engine, { deadlineMs: 9_999 })];
    expireQueued(engine.state, null, 0);
    expect([early.done, late.done]).toEqual([false, true]);
    const reason = { reason: "upstream_rate_limited", upstream: "acme", retryAfterMs: 10_000 };
    expect(late.drained?.reason).toMatchObject(reason);
  });

  it("without a deadline waits as long as a Retry-After is obeyed", () => {
    const engine = gated();
    engine.state.upstreams.add(makeTarget()).cool(RETRY_AFTER_MAX_MS + 1, "requests_per_minute");
    const group = stored(engine);
    expireQueued(engine.state, null, 1);
    expect(group.done).toBe(false);
    expireQueued(engine.state, null, 0);
    expect(group.drained?.reason).toMatchObject({ reason: "upstream_rate_limited" });
  });

  it("is sent with a key that does not work, and gets the upstream's error at once, unless it names a deadline", () => {
    const engine = gated();
    const first = stored(engine);
    engine.startAll(0);
    settleAll(engine, STOP, 1);
    expect([first.done, first.attempts[0]]).toEqual([true, 1]);
    const patient = stored(engine, { deadlineMs: 600_000 }, { priority: 0 });
    expireQueued(engine.state, null, 2);
    expect([patient.done, engine.startAll(2)]).toEqual([false, []]);
    const second = stored(engine);
    expireQueued(engine.state, null, 3);
    expect(engine.startAll(3)).toEqual([`${second.header.seq}:0`]);
    settleAll(engine, STOP, 4);
    expect([second.done, patient.done, engine.startAll(5)]).toEqual([true, false, []]);
  });

  it("ends at once if its key stops working while it waits", () => {
    const engine = gated({ width: 1 });
    engine.call("first", 0);
    engine.startAll(0);
    const group = stored(engine);
    settleAll(engine, STOP, 1);
    expireQueued(engine.state, null, 1);
    expect(group.drained?.reason).toMatchObject({ reason: "upstream_error", upstreamCode: "invalid_key" });
    expect(nextReadyMs(engine.state, 1)).not.toBe(1);
  });
});

describe("a group that waits at a gate", () => {
  it("fails as soon as its deadline cannot be met, with the time until it could start", () => {
    const engine = gated();
    engine.state.upstreams.add(makeTarget()).cool(10_000, "tokens_per_minute");
    const [early, late] = [engine.open(alike(2), { deadlineMs: 10_000 }), engine.open(alike(2), { deadlineMs: 9_999 })];
    expireQueued(engine.state, null, 0);
    expect([early.done, late.done, late.counts.failed]).toEqual([false, true, 2]);
    const reason = late.drained?.reason;
    expect(reason).toMatchObject({ reason: "upstream_rate_limited", upstream: "acme", retryAfterMs: 10_000 });
  });

  it("continues while one of its calls is in flight or may start elsewhere, and while nobody knows when one may", () => {
    const engine = gated({ width: 1, targets: [makeTarget(), makeTarget({ upstream: "other" })] });
    const flying = engine.open(alike(2), { deadlineMs: 1_000 });
    expect(engine.startAll(0)).toHaveLength(1);
    const elsewhere = engine.open([{ modelIndex: 0 }, { modelIndex: 1 }], { deadlineMs: 1_000 });
    engine.state.upstreams.add(makeTarget()).cool(10_000, "requests_per_minute");
    expireQueued(engine.state, null, 1);
    expect([flying.done, elsewhere.done]).toEqual([false, false]);
    settleAll(engine, success(), 2);
    expireQueued(engine.state, null, 2);
    expect([flying.done, flying.counts]).toEqual([true, expect.objectContaining({ completed: 1, failed: 1 })]);
    const narrow = gated();
    narrow.state.upstreams.add(makeTarget()).cool(10_000, "width");
    const group = narrow.open(alike(2), { deadlineMs: 1_000 });
    expireQueued(narrow.state, null, 999);
    expect(group.done).toBe(false);
  });
});

describe("a key that does not work", () => {
  it("ends no slot: those in flight return to the queue, and nothing more is sent but probes", () => {
    const engine = gated({ width: 8 });
    const group = engine.open(alike(1_000));
    expect(engine.startAll(0)).toHaveLength(8);
    settleAll(engine, STOP, 10);
    expect(group.counts).toMatchObject({ queued: 1_000, running: 0, failed: 0 });
    expect(engine.startAll(10)).toEqual([]);
    const [due] = dueExchanges(engine.state, WHO, 10);
    expect(due?.report.failures).toMatchObject([
      { class: "stopped", stop: "invalid_key", count: 8, message: "no such key" },
    ]);
    granted(engine.state, "acme", makeStopped({ permits: 1, requests: 1, tokens: null }), 11);
    expect(engine.startAll(11)).toHaveLength(1);
    settleAll(engine, success(), 500);
    exchange(engine, makeGrant(), 501);
    for (let nowMs = 600; !group.done; nowMs++) {
      engine.startAll(nowMs);
      settleAll(engine, success(), nowMs);
    }
    expect(group.counts.completed).toBe(1_000);
  });

  it("makes slots wait until their deadline, and then fail with a reason that is retryable", () => {
    const engine = gated();
    const group = engine.open(alike(3), { deadlineMs: 30_000 });
    engine.startAll(0);
    settleAll(engine, STOP, 10);
    expireQueued(engine.state, null, 29_999);
    expect(group.done).toBe(false);
    expireQueued(engine.state, null, 30_000);
    expect([group.done, group.counts.failed]).toEqual([true, 3]);
    expect(isRetryable(group.drained?.reason ?? { reason: "cancelled", message: "" })).toBe(true);
  });

  it("makes slots without a deadline wait for a minute, and background work for ever", () => {
    const engine = gated();
    const group = engine.open(alike(3));
    const background = engine.open(alike(2), { background: true });
    engine.startAll(0);
    settleAll(engine, STOP, 10);
    expect(nextReadyMs(engine.state, 10)).not.toBeNull();
    expireQueued(engine.state, null, 9 + STOPPED_FIRST_WAIT_MS);
    expect(group.done).toBe(false);
    expireQueued(engine.state, null, 10 + STOPPED_FIRST_WAIT_MS);
    expect([group.done, group.counts.failed, background.done]).toEqual([true, 3, false]);
    const reason = group.drained?.reason;
    expect(reason).toMatchObject({ reason: "upstream_error", upstreamCode: "invalid_key", retryable: true });
  });

  it("makes slots of a group that has answers wait for longer", () => {
    const engine = gated();
    const group = engine.open(alike(3));
    engine.startAll(0);
    settle(engine.state, `${slotIdOf(1, 0)}.1`, success(), 5);
    settleAll(engine, STOP, 10);
    expireQueued(engine.state, null, 9 + STOPPED_WAIT_MS);
    expect(group.done).toBe(false);
    expireQueued(engine.state, null, 10 + STOPPED_WAIT_MS);
    expect([group.done, group.counts.completed, group.counts.failed]).toEqual([true, 1, 2]);
  });

  it("ends no group whose slots may start elsewhere", () => {
    const engine = gated({ targets: [makeTarget(), makeTarget({ upstream: "other" })] });
    const group = engine.open([{ modelIndex: 0 }, { modelIndex: 1 }]);
    engine.startAll(0);
    settle(engine.state, `${slotIdOf(1, 0)}.1`, STOP, 10);
    settle(engine.state, `${slotIdOf(1, 1)}.1`, failure("transient"), 10 + STOPPED_WAIT_MS);
    expireQueued(engine.state, null, 10 + STOPPED_WAIT_MS);
    expect(group.done).toBe(false);
  });

  it("is probed by another slot each time, and fails the one call that it refuses while others succeed", () => {
    const engine = new TestEngine({ width: 1 });
    const group = engine.open(alike(3));
    const refused = slotIdOf(1, 0);
    for (let nowMs = 0; !group.done && nowMs < 20 * KEY_PROBE_MS; nowMs += KEY_PROBE_MS) {
      for (const name of engine.startAll(nowMs)) {
        const [attemptId = ""] = engine.state.attempts.keys();
        settle(engine.state, attemptId, name === "1:0" ? STOP : success(), nowMs);
      }
    }
    expect([group.counts.completed, group.counts.failed, group.stateOf(0)]).toEqual([2, 1, "failed"]);
    expect(group.attempts[0]).toBe(2);
    expect(engine.state.tried.has(refused)).toBe(false);
  });

  it("is probed once a minute by a run that nobody decides for, until it works", () => {
    const engine = new TestEngine();
    const group = engine.open(alike(2));
    engine.startAll(0);
    settleAll(engine, STOP, 0);
    for (const minute of [1, 2, 3]) {
      expect(engine.startAll(minute * KEY_PROBE_MS - 1)).toEqual([]);
      expect(engine.startAll(minute * KEY_PROBE_MS)).toHaveLength(1);
      settleAll(engine, minute === 3 ? success() : STOP, minute * KEY_PROBE_MS);
    }
    expect(engine.startAll(3 * KEY_PROBE_MS)).toHaveLength(1);
    settleAll(engine, success(), 3 * KEY_PROBE_MS + 1);
    expect(group.counts.completed).toBe(2);
  });
});
