import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NO_LIMITS } from "../../../src/run/money/ledger.ts";
import { drainGroup } from "../../../src/run/steps/end-slot.ts";
import { emitGroupStarted } from "../../../src/run/steps/enqueue.ts";
import {
  eventsAfter,
  readTail,
  RunLog,
  type LoggedEvent,
  type RunEvent,
  type TailEvent,
} from "../../../src/run/log.ts";
import { settle } from "../../../src/run/steps/settle.ts";
import { slotIdOf } from "../../../src/run/queue/slot.ts";
import type { Reason } from "../../../src/errors.ts";
import { LOG_TAIL_CHARS_MAX, LOG_TAIL_EVENTS_MAX } from "../../../src/limits.ts";
import { alike, failure, makeHeader, success, TestEngine } from "../../support/engine.ts";

const FIRST = slotIdOf(1, 0);
const RESERVED = { usd: 300, calls: 1, prompt_tokens: 100, completion_tokens: 100, new_tokens: 200 };
const NOTHING = { usd: 0, calls: 0, prompt_tokens: 0, completion_tokens: 0, new_tokens: 0 };
const STOPPED: Reason = { reason: "cancelled", message: "by the test" };
const CLOSED = { event: "run_closed", status: "closed" } as const;
const STARTED = {
  event: "attempt_started",
  index: 0,
  callId: null,
  attempt: 1,
  upstream: "acme",
  model: "gpt-x",
  reserved: RESERVED,
  queuedMs: 0,
} as const;

/** The events of an engine since the last call. */
function eventsOf({ state }: TestEngine): LoggedEvent[] {
  return state.log.take()?.events ?? [];
}

function names(events: readonly LoggedEvent[]): string[] {
  return events.map(({ event }) => event);
}

/** The caps are small, so that a reader can check what attempts reserve. */
function engineOf(options: ConstructorParameters<typeof TestEngine>[0] = {}): TestEngine {
  return new TestEngine({ limits: { usd: 1_000_000 }, ...options });
}

describe("a run's log", () => {
  it("numbers events from the one after the last in storage, without gaps", () => {
    const log = new RunLog(41);
    expect(log.lastSeq).toBe(41);
    expect([log.add(CLOSED, null, 5), log.add(CLOSED, "pg-1", 6)]).toEqual([42, 43]);
    expect(log.take()).toEqual({
      lastSeq: 43,
      events: [
        { atMs: 5, group: null, ...CLOSED },
        { atMs: 6, group: "pg-1", ...CLOSED },
      ],
      texts: [],
    });
    expect(log.add(CLOSED, null, 7)).toBe(44);
  });

  it("has clients' events with the JSON that was made before: the turn makes none of their texts", () => {
    const log = new RunLog(0);
    const json = JSON.stringify({ event_type: "note", output: `"\\n\u2028 ${"x".repeat(1_000)}` });
    log.add(CLOSED, null, 4);
    log.addClient(json, JSON.stringify(json), "pg-1", 5);
    const write = log.take();
    const text = write?.texts[1] ?? "";
    expect([write?.texts[0], JSON.parse(text)]).toEqual([undefined, write?.events[1]]);
    expect(write?.events[1]).toEqual({ atMs: 5, group: "pg-1", event: "client", json });
    // In a tail, too.
    log.addClient(json, JSON.stringify(json), null, 6);
    const { tail } = log.write({ carrier: 7, asRows: false });
    expect(readTail((tail ?? "").split("\n"))).toEqual([[3, { atMs: 6, group: null, event: "client", json }]]);
  });

  it("returns each event once, and null without one", () => {
    const log = new RunLog(0);
    expect([log.take(), log.pending, log.urgent]).toEqual([null, false, false]);
    log.add(CLOSED, null, 5);
    expect([log.pending, log.urgent]).toEqual([true, true]);
    log.take();
    expect([log.take(), log.pending, log.urgent]).toEqual([null, false, false]);
  });

  it("delays the start of an attempt, which its lease implies, and no other event", () => {
    const log = new RunLog(0);
    log.add(STARTED, null, 5);
    expect([log.pending, log.urgent]).toEqual([true, false]);
    log.add(CLOSED, null, 6);
    log.add(STARTED, null, 7);
    expect(log.urgent).toBe(true);
    expect(names(log.take()?.events ?? [])).toEqual(["attempt_started", "run_closed", "attempt_started"]);
    log.add(STARTED, null, 8);
    expect(log.urgent).toBe(false);
  });
});

describe("the tail of a run's log", () => {
  const CARRIED = { carrier: 7, asRows: false };
  const eventsIn = (tail: string | null): TailEvent[] => readTail(tail?.split("\n") ?? []);
  const closedAt = (atMs: number) => ({ atMs, group: null, ...CLOSED });

  it("has all events that no row of the log has, whenever a shard's row can carry it", () => {
    const log = new RunLog(41);
    log.add(CLOSED, null, 1);
    const first = log.write(CARRIED);
    expect(first.rows).toBeNull();
    expect(eventsIn(first.tail)).toEqual([[42, closedAt(1)]]);
    expect([log.urgent, log.pending]).toEqual([false, true]);
    log.add(CLOSED, null, 2);
    expect(eventsIn(log.write(CARRIED).tail)).toEqual([
      [42, closedAt(1)],
      [43, closedAt(2)],
    ]);
    // Without news, too: the row that had it may be the one that is written.
    expect(eventsIn(log.write(CARRIED).tail)).toHaveLength(2);
  });

  it("has in part what no stored tail has, also after a restart, and is whole again where its row is", () => {
    const part = { ...CARRIED, isPart: true };
    const log = new RunLog(3, [closedAt(2), closedAt(3)]);
    expect(log.write(part)).toEqual({ rows: null, tail: null });
    log.add(CLOSED, null, 4);
    expect(eventsIn(log.write(CARRIED).tail).map(([seq]) => seq)).toEqual([4, 5, 6]);
    log.add(CLOSED, null, 5);
    const chars = log.newTailChars;
    const { tail } = log.write(part);
    expect(eventsIn(tail)).toEqual([[7, closedAt(5)]]);
    expect([chars, log.newTailChars]).toEqual([`${tail}\n`.length, 0]);
    log.add(CLOSED, null, 6);
    expect(eventsIn(log.write(part).tail)).toEqual([[8, closedAt(6)]]);
    expect(eventsIn(log.write(CARRIED).tail).map(([seq]) => seq)).toEqual([4, 5, 6, 7, 8]);
    log.add(CLOSED, null, 7);
    log.write({ carrier: 7, asRows: true, isPart: true });
    log.add(CLOSED, null, 8);
    expect(eventsIn(log.write(part).tail)).toEqual([[10, closedAt(8)]]);
  });

  it("has only what no other row has, and what its own row had", () => {
    const log = new RunLog(0);
    const seqsIn = (tail: string | null): number[] => eventsIn(tail).map(([seq]) => seq);
    const writeWith = (carrier: number): number[] => {
      log.add(CLOSED, null, 1);
      return seqsIn(log.write({ carrier, asRows: false }).tail);
    };
    expect([writeWith(0), writeWith(1), writeWith(0), writeWith(2)]).toEqual([[1], [2], [1, 3], [4]]);
    // Written in a turn whose events another one carries.
    expect([0, 1, 2, 3].map((shard) => seqsIn(log.tailOf(shard)))).toEqual([[1, 3], [2], [4], []]);
    log.write({ carrier: 1, asRows: true });
    expect([log.tailOf(0), log.tailOf(1)]).toEqual([null, null]);
    expect(writeWith(0)).toEqual([5]);
  });

  it("is found again whole after any turns, wherever the object stops", () => {
    const turn = fc.record({
      events: fc.nat(4),
      shards: fc.uniqueArray(fc.nat(4), { maxLength: 3 }),
      kind: fc.constantFrom("rows of shards", "rows of shards", "a call", "a reader", "a restart"),
    });
    const property = fc.property(fc.array(turn, { maxLength: 60 }), (turns) => {
      let log = new RunLog(0);
      let rowsSeq = 0;
      const rows = new Map<number, string | null>();
      let calls: (string | null)[] = [];
      const found = (): LoggedEvent[] => eventsAfter(rowsSeq, [...rows.values(), ...calls].map(eventsIn));
      let written = 0;
      for (const [atMs, { events, shards, kind }] of turns.entries()) {
        if (kind === "a restart") log = new RunLog(rowsSeq, found());
        for (let event = 0; event < events; event++) log.add(CLOSED, null, atMs);
        const [carrier] = shards;
        const isPart = kind === "a call" && carrier !== undefined;
        const wrote = log.write({ carrier: carrier ?? null, asRows: kind === "a reader", isPart });
        if (wrote.rows !== null) rowsSeq = wrote.rows.lastSeq;
        if (isPart) calls.push(wrote.tail);
        else {
          for (const shard of shards) rows.set(shard, shard === carrier ? wrote.tail : log.tailOf(shard));
          // Once shards are written to their rows, what calls have of them is older.
          if (carrier !== undefined) calls = [];
        }
        // A turn without a carrier makes rows of what is urgent.
        written = log.lastSeq;
        expect(rowsSeq + found().length).toBe(written);
        expect(new RunLog(rowsSeq, found()).lastSeq).toBe(written);
      }
    });
    fc.assert(property, { numRuns: 300 });
  });

  it("becomes rows of the log for a reader, and is empty then", () => {
    const log = new RunLog(0);
    log.add(CLOSED, null, 1);
    log.write(CARRIED);
    log.add(CLOSED, null, 2);
    const { rows, tail } = log.write({ carrier: 7, asRows: true });
    const texts = [JSON.stringify(closedAt(1))];
    expect(rows).toEqual({ lastSeq: 2, events: [closedAt(1), closedAt(2)], texts });
    expect(tail).toBeNull();
    expect(log.write(CARRIED)).toEqual({ rows: null, tail: null });
    log.add(CLOSED, null, 3);
    expect(eventsIn(log.write(CARRIED).tail)).toEqual([[3, closedAt(3)]]);
  });

  it("cannot take events without a carrier: they become rows at once, unless a lease has the same facts", () => {
    const log = new RunLog(0);
    log.add(STARTED, null, 1);
    expect(log.write({ carrier: null, asRows: false })).toEqual({ rows: null, tail: null });
    log.add(CLOSED, null, 2);
    const { rows } = log.write({ carrier: null, asRows: false });
    expect([rows?.lastSeq, names(rows?.events ?? [])]).toEqual([2, ["attempt_started", "run_closed"]]);
  });

  it("becomes rows once it has the most events that it may have, and not before", () => {
    const log = new RunLog(0);
    for (let at = 1; at < LOG_TAIL_EVENTS_MAX; at++) log.add(CLOSED, null, at);
    expect(log.write(CARRIED).rows).toBeNull();
    log.add(CLOSED, null, LOG_TAIL_EVENTS_MAX);
    const { rows, tail } = log.write(CARRIED);
    expect([rows?.events.length, tail]).toEqual([LOG_TAIL_EVENTS_MAX, null]);
    // The text of each is that of its own event, whichever tail it was in first.
    expect(rows?.texts.map((text) => JSON.parse(text ?? "") as LoggedEvent)).toEqual(rows?.events);
  });

  it("becomes rows once it has the most characters that it may have, and not before", () => {
    const log = new RunLog(0);
    const half: RunEvent = { event: "client", json: "x".repeat(LOG_TAIL_CHARS_MAX / 2 - 100) };
    log.add(half, null, 1);
    log.add(half, null, 2);
    const { rows, tail } = log.write(CARRIED);
    expect([rows, tail === null ? 0 : tail.length > LOG_TAIL_CHARS_MAX - 200]).toEqual([null, true]);
    log.add({ event: "client", json: "x".repeat(200) }, null, 3);
    expect(log.write(CARRIED).rows?.events).toHaveLength(3);
  });

  it("is found again after a restart: the newest tail has what older ones have, and rows have what was older", () => {
    const log = new RunLog(0);
    const tails: TailEvent[][] = [];
    for (const atMs of [1, 2, 3]) {
      log.add(CLOSED, null, atMs);
      tails.unshift(eventsIn(log.write(CARRIED).tail));
    }
    expect(eventsAfter(0, tails)).toEqual([closedAt(1), closedAt(2), closedAt(3)]);
    expect(eventsAfter(2, tails)).toEqual([closedAt(3)]);
    expect(eventsAfter(3, tails)).toEqual([]);
    const restarted = new RunLog(0, eventsAfter(0, tails));
    expect([restarted.lastSeq, restarted.urgent, restarted.pending]).toEqual([3, false, true]);
    expect(restarted.add(CLOSED, null, 4)).toBe(4);
    expect(eventsIn(restarted.write(CARRIED).tail).map(([seq]) => seq)).toEqual([1, 2, 3, 4]);
  });
});

describe("a group in the log", () => {
  it("has its start, each attempt's start and end, each slot's end, and its end, in this order", () => {
    const engine = engineOf({ width: 2 });
    const group = engine.open(alike(2), { openedAtMs: 900 });
    emitGroupStarted(engine.state, group, 900);
    engine.startAll(1_000);
    settle(engine.state, `${FIRST + 1}.1`, success({ promptTokens: 40, completionTokens: 7 }, 200), 1_200);
    settle(engine.state, `${FIRST}.1`, failure("rejected", null, 300), 1_300);
    const { id } = group.header;
    const attempt = (index: number) => ({ index, callId: null, attempt: 1, upstream: "acme", model: "gpt-x" });
    const { reason } = group.drained ?? failureReason();
    expect(eventsOf(engine)).toEqual([
      { atMs: 900, group: id, event: "group_started", count: 2, effectiveParallel: 2 },
      { atMs: 1_000, group: id, event: "attempt_started", ...attempt(0), reserved: RESERVED, queuedMs: 100 },
      { atMs: 1_000, group: id, event: "attempt_started", ...attempt(1), reserved: RESERVED, queuedMs: 100 },
      {
        atMs: 1_200,
        group: id,
        event: "attempt_ended",
        ...attempt(1),
        outcome: "success",
        reason: null,
        latencyMs: 200,
        estimated: false,
        charged: { usd: 54, calls: 1, prompt_tokens: 40, completion_tokens: 7, new_tokens: 47 },
      },
      {
        atMs: 1_200,
        group: id,
        event: "slot_completed",
        index: 1,
        callId: null,
        status: "completed",
        attempts: 1,
        reason: null,
        model: "gpt-x-2026",
        finishReason: "stop",
        usage: { promptTokens: 40, completionTokens: 7, costNanoUsd: 54 },
        startedAtMs: 1_000,
        endedAtMs: 1_200,
      },
      {
        atMs: 1_300,
        group: id,
        event: "attempt_ended",
        ...attempt(0),
        outcome: "rejected",
        reason,
        latencyMs: 300,
        estimated: false,
        charged: { ...NOTHING, calls: 1 },
      },
      {
        atMs: 1_300,
        group: id,
        event: "slot_completed",
        index: 0,
        callId: null,
        status: "failed",
        attempts: 1,
        reason,
        model: null,
        finishReason: null,
        usage: { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 },
        startedAtMs: 1_000,
        endedAtMs: 1_300,
      },
      {
        atMs: 1_300,
        group: id,
        event: "group_completed",
        count: 2,
        status: "partial",
        metrics: { wall_ms: 400, sequential_ms: 500, speedup: 1.25, peak_parallel: 2, success_rate: 0.5 },
        costNanoUsd: 54,
        completed: 1,
        failed: 1,
        cancelled: 0,
      },
    ]);
  });

  it("reports the least of its count, its concurrency and its run's width as its parallelism", () => {
    const widthTold = (width: number, concurrency: number): unknown => {
      const engine = engineOf({ width });
      emitGroupStarted(engine.state, engine.open(alike(5), { concurrency }), 0);
      return eventsOf(engine).map((event) => (event.event === "group_started" ? event.effectiveParallel : event));
    };
    expect([widthTold(9, 9), widthTold(9, 3), widthTold(2, 3)]).toEqual([[5], [3], [2]]);
  });

  it("reports a retry with its delay and reason, and throttling with the upstream's Retry-After", () => {
    const engine = engineOf({ random: () => 0.5 });
    engine.open(alike(1));
    engine.startAll(0);
    engine.state.log.take();
    settle(engine.state, `${FIRST}.1`, failure("rate_limited", 2_000), 10);
    const events = eventsOf(engine);
    expect(names(events)).toEqual(["attempt_ended", "throttled", "retry_scheduled"]);
    expect(events[1]).toMatchObject({ upstream: "acme", retryAfterMs: 2_000 });
    expect(events[2]).toMatchObject({ index: 0, callId: null, attempt: 2, delayMs: 2_400, ...failureReason() });
  });

  it("reports a budget refusal, and the failure of its slot", () => {
    const engine = engineOf({ limits: { usd: 0 } });
    engine.open(alike(1));
    engine.startAll(0);
    const events = eventsOf(engine);
    expect(names(events)).toEqual(["budget_refused", "slot_completed", "group_completed"]);
    expect(events[0]).toMatchObject({ index: 0, callId: null, reason: { reason: "budget_exhausted" } });
    expect(events[1]).toMatchObject({ status: "failed", attempts: 0, startedAtMs: null });
  });

  it("reports a model that is not configured as a failed slot, not as a budget refusal", () => {
    const engine = engineOf({ targets: [null] });
    engine.open(alike(1));
    engine.startAll(0);
    expect(names(eventsOf(engine))).toEqual(["slot_completed", "group_completed"]);
  });

  it("reports an overrun in the dimensions with a limit, with the reservation and the charge", () => {
    const engine = engineOf();
    engine.open(alike(1));
    engine.startAll(0);
    engine.state.log.take();
    settle(engine.state, `${FIRST}.1`, success({ promptTokens: 100, completionTokens: 101 }), 10);
    expect(eventsOf(engine)[1]).toMatchObject({
      event: "overrun",
      index: 0,
      dimensions: ["usd"],
      reserved: { usd: 300 },
      charged: { usd: 302 },
    });
  });

  it("reports slots that were stopped before their first attempt in one event, and all others one by one", () => {
    const engine = engineOf({ width: 2 });
    const group = engine.open(alike(4));
    engine.startAll(0);
    settle(engine.state, `${FIRST}.1`, failure("transient"), 10);
    engine.state.log.take();
    drainGroup(engine.state, group, { state: "cancelled", reason: STOPPED, cause: "cancel" }, 20);
    const events = eventsOf(engine);
    expect(names(events).toSorted()).toEqual(["slot_completed", "slots_cancelled"]);
    expect(events).toContainEqual({
      atMs: 20,
      group: group.header.id,
      event: "slots_cancelled",
      count: 2,
      status: "cancelled",
      reason: STOPPED,
    });
    expect(events).toContainEqual(
      expect.objectContaining({ event: "slot_completed", index: 0, status: "cancelled", attempts: 1, reason: STOPPED }),
    );
  });
});

describe("single calls in the log", () => {
  it("are named by their own id, and by their coalescing group once there is one", () => {
    const engine = engineOf();
    engine.call("a.b", 0);
    engine.startAll(0);
    engine.call("c", 10);
    engine.startAll(10);
    settle(engine.state, "a.b.1", success(), 90);
    settle(engine.state, "c.1", success(), 100);
    engine.state.emitWindows(100);
    const events = eventsOf(engine);
    expect(events.map(({ event, group }) => [event, group !== null])).toEqual([
      ["attempt_started", false],
      ["attempt_started", true],
      ["attempt_ended", true],
      ["slot_completed", true],
      ["attempt_ended", true],
      ["slot_completed", true],
      ["group_started", true],
      ["group_completed", true],
    ]);
    expect(events[0]).toMatchObject({ index: null, callId: "a.b", attempt: 1 });
    expect(events[6]).toMatchObject({ count: 2, effectiveParallel: 2 });
    expect(events[3]).toMatchObject({ index: null, callId: "a.b", status: "completed", startedAtMs: 0, endedAtMs: 90 });
    expect(events[7]).toMatchObject({ count: 2, status: "completed", completed: 2, failed: 0, cancelled: 0 });
    expect(new Set(events.slice(1).map(({ group }) => group)).size).toBe(1);
  });

  it("end once, under one name, after a failure and a retry", () => {
    const engine = engineOf();
    engine.call("a", 0);
    engine.startAll(0);
    const first = settle(engine.state, "a.1", failure("transient"), 10);
    engine.call("a", 10, { attempt: 2, parallelGroupId: first?.parallelGroupId ?? null });
    engine.startAll(10);
    settle(engine.state, "a.2", success({ promptTokens: 3 }), 20);
    const ends = eventsOf(engine).filter(({ event }) => event === "slot_completed");
    expect(ends).toMatchObject([{ callId: "a", attempts: 2, usage: { promptTokens: 3, costNanoUsd: 3 } }]);
  });

  it("are reported as failed without an attempt if they are refused", () => {
    const engine = engineOf({ limits: { usd: 0 } });
    engine.call("poor", 0);
    engine.startAll(5);
    const events = eventsOf(engine);
    expect(names(events)).toEqual(["budget_refused", "slot_completed"]);
    expect(events[1]).toMatchObject({ index: null, callId: "poor", status: "failed", attempts: 0, startedAtMs: null });
  });

  it("end their group as partial if some of them fail, and as failed if all do", () => {
    const statusOf = (...ends: boolean[]): unknown => {
      const engine = engineOf();
      ends.forEach((_, place) => engine.call(String(place), 0));
      engine.startAll(0);
      ends.forEach((ok, place) => settle(engine.state, `${place}.1`, ok ? success() : failure("rejected"), 60));
      engine.state.emitWindows(60);
      return eventsOf(engine).flatMap((event) => (event.event === "group_completed" ? [event.status] : []));
    };
    expect([statusOf(true, true), statusOf(true, false), statusOf(false, false), statusOf(true)]).toEqual([
      ["completed"],
      ["partial"],
      ["failed"],
      [],
    ]);
  });
});

describe("a single call that is stored as a group", () => {
  /** The second call of its coalescing window; the first is `other`. */
  function stored() {
    const engine = engineOf();
    engine.call("other", 0);
    const { group: window, position } = engine.state.window.join(10);
    const header = makeHeader({ seq: 1, id: "pg-0000000000010-000001", single: position, openedAtMs: 10 });
    const group = engine.state.openGroup(header);
    group.joinWindow(window);
    emitGroupStarted(engine.state, group, 10);
    engine.state.queue.push({ groupSeq: 1, upstream: "acme", priority: 2, queuedAtMs: 10 }, FIRST);
    return { engine, group, window };
  }

  it("is announced with its coalescing group once that has closed, and not by itself", () => {
    const { engine, window } = stored();
    engine.state.emitWindows(59);
    expect(eventsOf(engine)).toEqual([]);
    engine.state.emitWindows(60);
    expect(eventsOf(engine)).toMatchObject([{ event: "group_started", group: window.id, count: 2 }]);
  });

  it("is named by its own id in that group, like the other calls", () => {
    const { engine, group, window } = stored();
    engine.startAll(10);
    settle(engine.state, `${FIRST}.1`, success(), 90);
    settle(engine.state, "other.1", success(), 90);
    engine.state.emitWindows(90);
    const events = eventsOf(engine).filter(({ event }) => event !== "group_started");
    expect(new Set(events.map((event) => event.group))).toEqual(new Set([window.id]));
    const own = events.filter((event) => "callId" in event && event.callId === group.header.id);
    expect(names(own)).toEqual(["attempt_started", "attempt_ended", "slot_completed"]);
    expect(own.every((event) => "index" in event && event.index === null)).toBe(true);
    expect(events.at(-1)).toMatchObject({ event: "group_completed", count: 2, completed: 2 });
  });

  it("is reported by its own name if it is stopped before its first attempt", () => {
    const { engine, group, window } = stored();
    engine.state.log.take();
    drainGroup(engine.state, group, { state: "cancelled", reason: STOPPED, cause: "cancel" }, 20);
    expect(eventsOf(engine)).toMatchObject([
      { event: "slot_completed", group: window.id, callId: group.header.id, status: "cancelled", attempts: 0 },
    ]);
    expect(window.failed).toBe(1);
  });
});

describe("a run's opening", () => {
  it("is an event like any other, with the limits of the ledger", () => {
    const log = new RunLog(0);
    const opened = { event: "run_opened", name: "n", limits: { ...NO_LIMITS, usd: 5 }, maxParallel: 8 } as const;
    expect(log.add(opened, null, 1)).toBe(1);
    expect(log.take()?.events).toEqual([{ atMs: 1, group: null, ...opened }]);
  });

  it("waits for a row that is written anyway, but not once the settings that tell it change", () => {
    const log = new RunLog(0);
    log.add({ event: "run_opened", name: null, limits: NO_LIMITS, maxParallel: 8 }, null, 1);
    expect(log.write({ carrier: null, asRows: false })).toEqual({ rows: null, tail: null });
    log.keepOpening();
    expect(log.write({ carrier: null, asRows: false }).rows).toMatchObject({ lastSeq: 1 });
    log.keepOpening();
    expect([log.urgent, log.pending]).toEqual([false, false]);
  });
});

/** The reason of `failure`. */
function failureReason(): { reason: Reason } {
  const failed = failure("transient");
  if (failed.kind !== "failure") throw new Error("a failure is none");
  return { reason: failed.reason };
}
