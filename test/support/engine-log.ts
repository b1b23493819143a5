/**
 * The invariants of a run's log, read in order over all restarts: from its rows, and from the tail that the rows of shards
 * have until a reader looks. What is in neither would be lost in a crash.
 */
import assert from "node:assert/strict";
import { addAmounts, zeroAmounts } from "../../src/run/money/ledger.ts";
import type { GroupHeader } from "../../src/run/group/group.ts";
import type { CallName, LoggedEvent } from "../../src/run/log.ts";
import { slotIdOf } from "../../src/run/queue/slot.ts";
import type { RunUnderTest } from "./engine-run.ts";

type EventOf<E extends LoggedEvent["event"]> = Extract<LoggedEvent, { event: E }>;

export class LogAudit {
  readonly #run: RunUnderTest;
  #rows = 0;
  /** Number of the last event in the rows of the log, and of the last that was read. */
  #rowsSeq = 0;
  #lastSeq = 0;
  readonly #events: LoggedEvent[] = [];
  /** Calls that completed with the outcome of an equal one. */
  shared = 0;
  readonly #charged = zeroAmounts();
  /** Attempts whose start is in the log, and those whose end is. */
  readonly #started = new Set<string>();
  readonly #ended = new Set<string>();
  /** Ends of calls, by name. */
  readonly #calls = new Map<string, EventOf<"slot_completed">>();
  /** Slots that ended in one event of their group, by its id. */
  readonly #dropped = new Map<string, number>();
  readonly #groups = new Map<string, { count: number; startSeq: number; end: EventOf<"group_completed"> | null }>();
  /** Calls whose ends have a group, by its id; and when those that have none were, by number. */
  readonly #grouped = new Map<string, number>();
  #ungrouped: number[] = [];

  constructor(run: RunUnderTest) {
    this.#run = run;
  }

  /** Reads what has been written since the last time. */
  check(): void {
    const { state, rows, books } = this.#run;
    for (const { last, events } of rows.logRows(this.#rows)) {
      this.#rows += 1;
      this.#rowsSeq += events.length;
      assert.equal(last, this.#rowsSeq, "a row is named by its last event");
      this.#readFrom(last - events.length, events);
    }
    this.#readFrom(this.#rowsSeq, rows.logTail());
    assert.deepEqual(this.#charged, books.charged.spent, "what ended attempts were charged is what the run has spent");
    const open = this.#started.size - this.#ended.size;
    // The first one, the run's opening, is in the settings until another is stored.
    const storedSeq = Math.max(1, this.#lastSeq);
    assert.equal(state.log.lastSeq, storedSeq, "every event is stored with the turn that emits it");
    assert.equal(open, state.attempts.size, "what started and has not ended is in flight");
  }

  /** After everything has ended and was written. */
  checkOver(): void {
    const { rows, books } = this.#run;
    this.check();
    assert.equal(this.#started.size, this.#ended.size, "every attempt ends");
    for (const callId of books.callsEnded) assert(this.#calls.has(callId), `the log has no end of ${callId}`);
    for (const { stored } of rows.groups.all()) {
      if (stored.header.single === null) this.#groupOver(stored.header);
      else this.#slotOver(stored.header, 0, stored.header.id);
    }
    this.#windowsOver();
  }

  /** Every group of single calls has ended, or its window is still open; its end counts the ends of its calls. */
  #windowsOver(): void {
    const { state, rows } = this.#run;
    const groups = new Set([...rows.groups.all()].map(({ stored }) => stored.header.id));
    const open = new Set(state.window.stored.map(({ id }) => id));
    for (const [id, { startSeq, end }] of this.#groups) {
      if (groups.has(id) || open.has(id)) continue;
      assert(end !== null, `the log has no end of the group ${id} of single calls`);
      const calls = this.#grouped.get(id) ?? 0;
      // The first of them may have ended before the second announced the group.
      const early = this.#ungrouped.some((seq) => seq < startSeq) ? 1 : 0;
      assert(end.count === calls || end.count === calls + early, `the end of ${id} counts ${end.count}, not ${calls}`);
      assert.equal(end.completed + end.failed, end.count, `all calls of ${id} have ended`);
    }
  }

  /** Reads events that follow number `after`. Those that were in a tail before must still be the same. */
  #readFrom(after: number, events: readonly LoggedEvent[]): void {
    for (const [at, event] of events.entries()) {
      const seq = after + at + 1;
      if (seq <= this.#lastSeq) {
        assert.deepEqual(event, this.#events[seq - 1], `event ${seq} stays what it was`);
        continue;
      }
      this.#lastSeq = seq;
      this.#events.push(event);
      this.#read(event);
    }
  }

  #read(event: LoggedEvent): void {
    switch (event.event) {
      case "attempt_started":
        return this.#once(this.#started, attemptKey(event));
      case "attempt_ended": {
        const key = attemptKey(event);
        assert(this.#started.has(key), `${key} ends but never started`);
        this.#once(this.#ended, key);
        addAmounts(this.#charged, event.charged);
        return;
      }
      case "slot_completed": {
        const key = callKey(event);
        assert(!this.#calls.has(key), `${key} ends twice`);
        this.#calls.set(key, event);
        if (event.group === null) this.#ungrouped.push(this.#lastSeq);
        else this.#grouped.set(event.group, (this.#grouped.get(event.group) ?? 0) + 1);
        if (event.status === "completed" && event.startedAtMs === null) this.#shared(event);
        return;
      }
      case "slots_cancelled": {
        const group = event.group ?? "";
        this.#dropped.set(group, (this.#dropped.get(group) ?? 0) + event.count);
        return;
      }
      case "group_started":
        assert(event.group !== null && !this.#groups.has(event.group), `group ${event.group} starts twice`);
        this.#groups.set(event.group, { count: event.count, startSeq: this.#lastSeq, end: null });
        return;
      case "group_completed": {
        const group = this.#groups.get(event.group ?? "");
        assert(group !== undefined, `group ${event.group} ends but never started`);
        assert.equal(group.end, null, `group ${event.group} ends twice`);
        group.end = event;
        return;
      }
    }
  }

  /** A call that completed without an attempt: with the outcome of an equal call. */
  #shared({ attempts, usage }: EventOf<"slot_completed">): void {
    this.shared += 1;
    if (attempts === 0) assert.equal(usage.costNanoUsd, 0, "a shared answer costs nothing");
  }

  #once(known: Set<string>, key: string): void {
    assert(!known.has(key), `${key} is in the log twice`);
    known.add(key);
  }

  /** Every slot has one end, in an event of its own or with others; the group's end adds them up. */
  #groupOver(header: GroupHeader): void {
    const { id, seq, count } = header;
    const logged = this.#groups.get(id);
    assert.equal(logged?.count, count, `the log has the start of group ${seq}`);
    const ended = { completed: 0, failed: 0, cancelled: 0 };
    let costNanoUsd = 0;
    let alone = 0;
    for (let index = 0; index < count; index++) {
      const state = this.#slotOver(header, index, `${id}#${index}`);
      if (this.#calls.has(`${id}#${index}`)) alone += 1;
      ended[state] += 1;
      costNanoUsd += this.#run.books.slotCost.get(slotIdOf(seq, index)) ?? 0;
    }
    assert.equal(alone + (this.#dropped.get(id) ?? 0), count, `the log has one end of each slot of group ${seq}`);
    const { completed, failed, cancelled, costNanoUsd: loggedNanoUsd } = logged?.end ?? {};
    assert.deepEqual({ completed, failed, cancelled }, ended, `the end of group ${seq} counts its slots`);
    assert.equal(loggedNanoUsd, costNanoUsd, `the end of group ${seq} has its cost`);
  }

  /** The event of a slot agrees with its row. Returns its final state. */
  #slotOver({ seq, single }: GroupHeader, index: number, key: string): "completed" | "failed" | "cancelled" {
    const { rows } = this.#run;
    const event = this.#calls.get(key);
    const row = rows.slot(slotIdOf(seq, index));
    if (event === undefined) {
      const drained = rows.result(seq)?.drained?.state;
      assert(single === null && row === null && drained !== undefined, `the log has no end of ${key}`);
      return drained;
    }
    const { status, attempts, usage } = event;
    if (row !== null)
      assert.deepEqual([status, attempts], [row.state, row.attempts], `the event of ${key} agrees with its row`);
    assert.equal(usage.costNanoUsd, row?.costNanoUsd ?? 0, `the event of ${key} has its cost`);
    return status;
  }
}

/** A call's name: its group and index, or its own id. */
function callKey({ index, callId, group }: CallName & { group: string | null }): string {
  assert((index === null) !== (callId === null), "a call has an index or an id");
  return callId ?? `${group}#${index}`;
}

function attemptKey(event: CallName & { group: string | null; attempt: number }): string {
  return `${callKey(event)}.${event.attempt}`;
}
