import { describe, expect, it } from "vitest";
import { GateClient } from "../../../../src/run/gates/gate-client.ts";
import type { GateGrant } from "../../../../src/gate/wire.ts";
import {
  GATE_FREE_PERMITS,
  GATE_GAP_MS,
  GATE_REPLY_MS_MAX,
  GATE_REPORT_MS_MAX,
  GATE_RUN_TTL_MS,
  KEY_PROBE_MS,
} from "../../../../src/limits.ts";
import { makeChunk, makeGrant, makeStopped } from "../../../support/gate-grants.ts";

const TOKENS = { input: 10, all: 100 };
const WHO = { run: "run_1", instance: "i", weight: 1 };
const NOBODY = { waiting: 0, tokensPerCall: 0 };
const CLASSES = { interactive: NOBODY, standard: NOBODY, batch: NOBODY };

function gateOf(): GateClient {
  return new GateClient({ maxInFlight: 512, isShared: true });
}

function report(gate: GateClient, nowMs: number, waiting = 0) {
  return gate.report(WHO, { classes: CLASSES, demand: { waiting }, lent: 0 }, nowMs);
}

/** A gate that has replied to its first report with this grant. */
function granted(grant: GateGrant, nowMs = 0): GateClient {
  const gate = gateOf();
  report(gate, nowMs);
  gate.granted(grant, nowMs);
  return gate;
}

/** How many attempts start one after the other, until one must wait. */
function startAll(gate: GateClient, nowMs: number, most = 1_000): number {
  let started = 0;
  for (; started < most && gate.waitOf(nowMs) === null; started++) gate.started(TOKENS, nowMs);
  return started;
}

describe("a gate that has not replied", () => {
  it("lets the free allowance start at once, leased credit included, and the rest wait for the reply", () => {
    const gate = gateOf();
    expect(gate.waitOf(0, GATE_FREE_PERMITS)).toEqual({ reason: "width", readyAtMs: null });
    expect(startAll(gate, 0)).toBe(GATE_FREE_PERMITS);
    gate.ended();
    expect(startAll(gate, 0)).toBe(1);
  });

  it("is asked once something is in flight or waits, and not before", () => {
    const gate = gateOf();
    expect(gate.exchangeAtMs({ waiting: 0 }, 0)).toBeNull();
    expect(gate.exchangeAtMs({ waiting: 1 }, 0)).toBeLessThanOrEqual(0);
    gate.started(TOKENS, 0);
    expect(gate.exchangeAtMs({ waiting: 0 }, 0)).toBeLessThanOrEqual(0);
    report(gate, 0);
    expect(gate.exchangeAtMs({ waiting: 1 }, 1_000)).toBeNull();
  });
});

describe("the room that a gate counts", () => {
  it("is what is left of its permits and of the requests of its chunk, and nothing while calls wait", () => {
    expect(granted(makeGrant()).roomAt(0)).toBe(Infinity);
    const wide = granted(makeChunk({ permits: 5, requests: 4 }));
    expect([wide.roomAt(0), wide.roomAt(0, 2)]).toEqual([4, 3]);
    expect(startAll(wide, 0, 2)).toBe(2);
    expect(wide.roomAt(0)).toBe(2);
    wide.ended();
    expect(wide.roomAt(0)).toBe(2);
    expect(startAll(wide, 0)).toBe(2);
    expect(wide.roomAt(0)).toBe(0);
    expect(granted(makeChunk({ permits: 5, waitMs: 10 })).roomAt(9)).toBe(0);
  });

  it("is never less than what it lets start, in its first allowance and after its grant", () => {
    const gate = granted(makeChunk({ permits: 3, ttlMs: 1_000 }));
    expect(gate.roomAt(1_000)).toBeGreaterThanOrEqual(startAll(gate, 1_000));
    const fresh = gateOf();
    expect(fresh.roomAt(0)).toBeGreaterThanOrEqual(startAll(fresh, 0));
  });
});

describe("an open gate", () => {
  it("has no limit, and is asked again only after the time that it names", () => {
    const gate = granted(makeGrant({ nextInMs: 10_000 }));
    expect(startAll(gate, 0, 500)).toBe(500);
    expect(gate.isQuiet(9_999)).toBe(true);
    expect(gate.exchangeAtMs({ waiting: 5 }, 9_999)).toBe(10_000);
    expect(gate.isQuiet(10_000)).toBe(false);
  });

  it("is like one that has not replied once its grant is over", () => {
    const gate = granted(makeGrant({ ttlMs: 60_000 }));
    expect(startAll(gate, 59_999, 500)).toBe(500);
    expect(gate.waitOf(60_000)).toEqual({ reason: "width", readyAtMs: null });
  });
});

describe("a chunk", () => {
  it("has so many permits, which attempts in flight hold", () => {
    const gate = granted(makeChunk({ class: "shrunk", reason: "width", permits: 3 }));
    expect(startAll(gate, 0)).toBe(3);
    expect(gate.waitOf(0)).toEqual({ reason: "width", readyAtMs: null });
    gate.ended();
    expect(startAll(gate, 0)).toBe(1);
    expect(gate.waitOf(0, 0)).not.toBeNull();
  });

  it("has so many requests, which ended attempts do not give back; what starts after its report counts", () => {
    const gate = gateOf();
    gate.started(TOKENS, 0);
    report(gate, 0);
    gate.started(TOKENS, 1);
    gate.granted(makeChunk({ requests: 3, nextInMs: 800 }), 5);
    expect(startAll(gate, 5)).toBe(2);
    for (let each = 0; each < 4; each++) gate.ended();
    expect(gate.waitOf(6)).toEqual({ reason: "requests_per_minute", readyAtMs: 805 });
  });

  it("has so many tokens; its first attempt may be larger than that, the others wait", () => {
    const gate = granted(makeChunk({ reason: "tokens_per_minute", tokens: 250 }));
    expect(startAll(gate, 0)).toBe(2);
    expect(gate.waitOf(0)).toEqual({ reason: "tokens_per_minute", readyAtMs: 1_000 });
    const small = granted(makeChunk({ tokens: 1 }));
    expect(startAll(small, 0)).toBe(1);
    const empty = granted(makeChunk({ tokens: 0 }));
    expect(startAll(empty, 0)).toBe(0);
  });

  it("may begin later: then calls know when", () => {
    const gate = granted(makeChunk({ waitMs: 2_300 }), 100);
    expect(gate.waitOf(2_399)).toEqual({ reason: "requests_per_minute", readyAtMs: 2_400 });
    expect(gate.waitOf(2_400)).toBeNull();
  });

  it("lets nothing start once it is over, until the gate has replied again", () => {
    const gate = granted(makeChunk({ permits: 9, ttlMs: 5_000 }));
    expect(gate.waitOf(4_999)).toBeNull();
    expect(gate.waitOf(5_000)).toEqual({ reason: "requests_per_minute", readyAtMs: null });
    expect(gate.exchangeAtMs({ waiting: 1 }, 5_000)).toBeLessThanOrEqual(5_000);
  });

  it("is replaced by one that the gate sends by itself, and the run exchanges at once", () => {
    const gate = granted(makeGrant());
    gate.changed(makeChunk({ permits: 0, nextInMs: 0 }), 500);
    expect(gate.waitOf(500)).toEqual({ reason: "requests_per_minute", readyAtMs: null });
    expect(gate.exchangeAtMs({ waiting: 1 }, 500)).toBeLessThanOrEqual(500);
    expect(gate.isQuiet(500)).toBe(false);
  });

  it("is renewed before its time when half of it is used and more waits, or attempts begin to wait", () => {
    const gate = granted(makeChunk({ reason: null, requests: 4, nextInMs: 1_000 }));
    gate.started(TOKENS, 200);
    expect(gate.exchangeAtMs({ waiting: 9 }, 200)).toBe(1_000);
    gate.started(TOKENS, 200);
    expect(gate.exchangeAtMs({ waiting: 9 }, 200)).toBeLessThanOrEqual(200);
    expect(gate.exchangeAtMs({ waiting: 0 }, 200)).toBe(1_000);
    const narrow = granted(makeChunk({ permits: 1 }));
    narrow.started(TOKENS, 200);
    expect(narrow.exchangeAtMs({ waiting: 2 }, 200)).toBeLessThanOrEqual(200);
  });

  it("that was all there was is not renewed before its time, however much of it is used", () => {
    const gate = gateOf();
    report(gate, 0, 9);
    gate.granted(makeChunk({ requests: 4, nextInMs: 1_000 }), 0);
    startAll(gate, 200);
    expect(gate.exchangeAtMs({ waiting: 9 }, 200)).toBe(1_000);
  });
});

describe("a run that waits", () => {
  /** A gate with a report of nine that wait, and this reply to it. */
  const waitingAt = (grant: GateGrant): GateClient => {
    const gate = gateOf();
    report(gate, 0, 9);
    gate.granted(grant, 0);
    return gate;
  };
  const short = makeChunk({ requests: 0, nextInMs: 800, wakeInMs: 4_000 });

  it("exchanges when the gate says with what it does anyway, and sleeps until it is worth waking up", () => {
    const gate = waitingAt(short);
    expect(gate.exchangeAtMs({ waiting: 9 }, 100)).toBe(800);
    expect(gate.wakeAtMs({ waiting: 9 }, 0, 100)).toBe(4_000);
    expect(gate.readyAtMs(100)).toBeNull();
  });

  it("wakes up at the one time that a gate of an earlier version names", () => {
    const earlier = makeChunk({ requests: 0, nextInMs: 800 });
    expect(waitingAt(earlier).wakeAtMs({ waiting: 9 }, 0, 100)).toBe(800);
  });

  it("does not sleep with a failure that the gate must know of, nor after a notice", () => {
    const gate = waitingAt(short);
    gate.news.failed({ class: "overloaded", stop: null, hintMs: null, message: null }, 100);
    expect(gate.wakeAtMs({ waiting: 9 }, 0, 100)).toBe(GATE_GAP_MS);
    const notified = waitingAt(short);
    notified.changed(makeChunk({ requests: 0, nextInMs: 0 }), 100);
    expect(notified.wakeAtMs({ waiting: 9 }, 0, 100)).toBe(GATE_GAP_MS);
  });

  it("wakes up by itself after a Retry-After", () => {
    const gate = waitingAt(makeChunk({ waitMs: 3_000, nextInMs: 3_000 }));
    expect(gate.readyAtMs(100)).toBe(3_000);
  });

  it("wakes up if a reply is lost together with the instance that waits for it", () => {
    const gate = waitingAt(short);
    report(gate, 4_000, 9);
    expect(gate.exchangeAtMs({ waiting: 9 }, 4_000)).toBeNull();
    expect(gate.wakeAtMs({ waiting: 9 }, 0, 4_000)).toBe(4_000 + GATE_REPLY_MS_MAX);
  });

  it("for nothing but its own calls in flight reports only before the gate forgets them, and at an open gate not at all", () => {
    const gate = waitingAt(makeChunk({ requests: 4, wakeInMs: 4_000 }));
    gate.started(TOKENS, 100);
    expect(gate.wakeAtMs({ waiting: 0 }, 0, 100)).toBe(GATE_REPORT_MS_MAX);
    expect(GATE_REPORT_MS_MAX).toBeLessThan(GATE_RUN_TTL_MS);
    const open = waitingAt(makeGrant());
    open.started(TOKENS, 100);
    expect(open.wakeAtMs({ waiting: 9 }, 0, 100)).toBeNull();
  });

  it("starts nothing before the first reply of its gate, if another instance may have waited before it", () => {
    const gate = gateOf();
    gate.waitForReply();
    expect(gate.waitOf(0)).toEqual({ reason: "width", readyAtMs: null });
    report(gate, 0, 1);
    gate.granted(makeGrant(), 5);
    expect(gate.waitOf(5)).toBeNull();
    const gone = gateOf();
    gone.waitForReply();
    report(gone, 0, 1);
    gone.unreached(0, 5);
    expect(gone.waitOf(5)).toBeNull();
  });
});

describe("a gate that cannot be reached", () => {
  it("stops no run: at a key that nobody called limited, its own limits hold", () => {
    const gate = gateOf();
    report(gate, 0);
    gate.unreached(0, 0);
    expect(startAll(gate, 0, 500)).toBe(500);
  });

  it("leaves one attempt at a time at a key that is limited, and is tried again later each time", () => {
    const gate = granted(makeChunk({ permits: 8 }));
    const delays: number[] = [];
    for (let nowMs = 0, each = 0; each < 5; each++) {
      report(gate, nowMs);
      gate.unreached(1, nowMs);
      const atMs = gate.exchangeAtMs({ waiting: 1 }, nowMs) ?? Number.NaN;
      delays.push(atMs - nowMs);
      nowMs = atMs;
    }
    expect(delays).toEqual([1_000, 2_000, 4_000, 5_000, 5_000]);
    expect(startAll(gate, 20_000)).toBe(1);
    report(gate, 20_000);
    gate.granted(makeChunk({ permits: 8 }), 20_001);
    expect(startAll(gate, 20_001)).toBe(7);
  });
});

describe("the Retry-After that another run was given", () => {
  const paced = makeGrant({ class: "paced", reason: "requests_per_minute", waitMs: 60_000, permits: 0, requests: 0 });

  it("holds although its gate cannot be reached", () => {
    const gate = granted(makeGrant());
    gate.changed(paced, 100);
    report(gate, 200);
    gate.unreached(0, 200);
    expect(gate.waitOf(60_099)).toEqual({ reason: "requests_per_minute", readyAtMs: 60_100 });
    expect(startAll(gate, 60_100)).toBe(1);
  });

  it("holds although the reply to an earlier report arrives after its notice", () => {
    const gate = granted(makeGrant());
    report(gate, 100);
    gate.changed(paced, 101);
    gate.granted(makeGrant(), 102);
    expect(gate.waitOf(102)).toEqual({ reason: "requests_per_minute", readyAtMs: 60_101 });
    expect(gate.exchangeAtMs({ waiting: 1 }, 102)).toBe(100 + GATE_GAP_MS);
    report(gate, 200);
    gate.granted(makeGrant(), 201);
    expect(gate.waitOf(201)).toBeNull();
  });
});

describe("a key that does not work", () => {
  it("lets nothing start, whatever the grant was, until the gate says otherwise", () => {
    const gate = granted(makeGrant());
    expect(gate.stopped("invalid_key", "no such key", 100)).toBe(true);
    expect(gate.stopped("invalid_key", "no such key", 101)).toBe(false);
    expect(gate.waitOf(KEY_PROBE_MS * 2)).toMatchObject({ reason: "stopped" });
    expect(gate.isOpen(100)).toBe(false);
    report(gate, 102);
    gate.granted(makeGrant({ nextInMs: 500 }), 103);
    expect(gate.waitOf(103)).toMatchObject({ reason: "stopped" });
    report(gate, 603);
    gate.granted(makeGrant(), 604);
    expect([gate.waitOf(604), gate.stop, gate.recoveries]).toEqual([null, null, 1]);
  });

  it("is used again with the first reply after an operator has ended the stop that the gate had reported", () => {
    const gate = granted(makeGrant());
    gate.changed(makeStopped(), 100);
    expect(gate.waitOf(100)).toMatchObject({ reason: "stopped" });
    report(gate, 200);
    gate.granted(makeGrant(), 201);
    expect(gate.waitOf(201)).toBeNull();
  });

  it("stays stopped if the gate replies to a report that was written before", () => {
    const gate = granted(makeGrant());
    report(gate, 100);
    gate.stopped("insufficient_quota", null, 101);
    gate.granted(makeGrant(), 102);
    expect(gate.waitOf(102)).toMatchObject({ reason: "stopped" });
  });

  it("is probed by one attempt at a time if the gate grants one", () => {
    const gate = granted(makeStopped({ permits: 1, requests: 1, tokens: null }));
    expect(startAll(gate, 0)).toBe(1);
    const other = granted(makeStopped({ nextInMs: 2_000 }));
    expect(other.waitOf(0)).toEqual({ reason: "stopped", readyAtMs: 2_000 });
  });

  it("is probed once a minute if no gate can be reached", () => {
    const gate = gateOf();
    gate.stopped("invalid_key", null, 0);
    report(gate, 0);
    gate.unreached(0, 0);
    expect(gate.waitOf(KEY_PROBE_MS - 1)).toEqual({ reason: "stopped", readyAtMs: KEY_PROBE_MS });
    expect(startAll(gate, KEY_PROBE_MS)).toBe(1);
    gate.ended();
    expect(startAll(gate, KEY_PROBE_MS + 1)).toBe(0);
    expect(startAll(gate, 2 * KEY_PROBE_MS)).toBe(1);
  });

  it("is sent each call whose client wants the upstream's answer at once, and nothing else with it", () => {
    const gate = granted(makeStopped());
    gate.impatient();
    gate.impatient();
    expect(startAll(gate, 0)).toBe(2);
    gate.ended();
    expect(startAll(gate, 1)).toBe(0);
  });

  it("works again when an attempt succeeds that was started since; one that was started before says nothing", () => {
    const gate = granted(makeStopped());
    gate.answered({ startedAtMs: -1, model: "m", latencyMs: 5 });
    expect(gate.stop).not.toBeNull();
    gate.answered({ startedAtMs: 10, model: "m", latencyMs: 5 });
    expect([gate.stop, gate.waitOf(15)]).toEqual([null, null]);
    expect(gate.news.isUrgent).toBe(true);
    expect(report(gate, 200)).toMatchObject({ recovered: true, succeeded: 2 });
  });
});

describe("a report", () => {
  it("counts from the begin of the instance, and numbers what happened since the last", () => {
    const gate = gateOf();
    gate.restored();
    gate.started(TOKENS, 0);
    gate.answered({ startedAtMs: 0, model: "m", latencyMs: 40 });
    const first = report(gate, 0);
    expect(first).toMatchObject({ ...WHO, number: 1, epoch: 0, inFlight: 2, permits: 0, succeeded: 1 });
    expect(first.started).toEqual({ requests: 1, tokens: 100 });
    expect(first.latency).toMatchObject({ meanMs: 40 });
    gate.granted(makeChunk({ epoch: 7, permits: 4 }), 1);
    gate.started(TOKENS, 2);
    const second = report(gate, 3);
    expect([first.sinceStartMs, second.sinceStartMs]).toEqual([0, 1]);
    expect(second).toMatchObject({ number: 2, epoch: 7, inFlight: 3, permits: 4, latency: null, succeeded: 1 });
    expect(second.started).toEqual({ requests: 2, tokens: 200 });
  });
});
