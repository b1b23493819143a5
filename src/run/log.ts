/**
 * The event log of a run: its events, numbered without gaps. An event is as durable as the change that it reports, and
 * costs no row of its own: until there are many, the newest events are the tail of a shard's row that is written anyway.
 */
import type { Amounts, Limits } from "./money/ledger.ts";
import { cappedOf } from "./money/capped.ts";
import type { FailureClass, FallbackCause, Outcome, SpanContent, StopReason } from "../call.ts";
import type { Dimension, Reason } from "../errors.ts";
import type { GateReason } from "../gate/wire.ts";
import type { CallLabels } from "../labels.ts";
import { LOG_TAIL_CHARS_MAX, LOG_TAIL_EVENTS_MAX } from "../limits.ts";
import type { TraceContext } from "../trace-context.ts";
import { round, type Group, type HeldQuote, type GroupMetrics, type GroupStatus, type Saved } from "./group/group.ts";
import type { AttemptInFlight } from "./leases/shard.ts";
import { indexOf } from "./queue/slot.ts";
import type { WindowGroup } from "./leases/concurrency-window.ts";

/**
 * Which call an event is about: a slot by its index in its group, or a single call by its id. `itemId`: the client's id of a slot, which
 * readers of the log get and no row of it has. The same is true of the labels of a slot; rows have those of a single call.
 */
export type CallName = { index: number | null; callId: string | null; itemId?: string } & CallLabels;

/** The final states that `slot_completed` reports. */
export type EndStatus = "completed" | "failed" | "cancelled";

type Usage = { promptTokens: number; completionTokens: number; costNanoUsd: number };

/** What an attempt of the run was refused with, or what calls wait for at the gate. */
export type ThrottleCause = "rate_limited" | "overloaded" | StopReason | GateReason;

/** Amounts are in the ledger's units: `usd` in nano-USD. */
export type RunEvent =
  | { event: "run_opened"; name: string | null; limits: Limits; maxParallel: number }
  | { event: "run_closed"; status: "closed" | "cancelled" | "expired" }
  /** The instance of the gateway that held credit was lost: what it had not reported is charged. */
  | { event: "credit_lost"; charged: Amounts }
  | { event: "child_opened"; childRunId: string; reserved: Amounts }
  | { event: "child_closed"; childRunId: string; spent: Amounts }
  /**
   * `tasks`: of a graph, how many it has; absent = its slots do not depend on each other. `retryOf`: the group whose calls it makes once more that did not
   * complete; absent = none.
   */
  | { event: "group_started"; count: number; effectiveParallel: number; tasks?: number; retryOf?: string }
  /** The group's quote is above `confirmOver` of its run: it waits for its confirmation. */
  | { event: "confirmation_awaited"; quote: HeldQuote }
  | { event: "group_confirmed" }
  /** The budget does not cover the group's next attempt; `reason` says which part of it. */
  | { event: "group_paused"; reason: Reason }
  | { event: "group_resumed"; pausedMs: number }
  | {
      event: "group_completed";
      count: number;
      status: GroupStatus;
      metrics: GroupMetrics;
      costNanoUsd: number;
      completed: number;
      failed: number;
      cancelled: number;
      /** Calls of a graph that conditions have skipped; absent = none. */
      skipped?: number;
      /** Of a group whose early stop was met; `shadow`: it ran on. */
      saved?: Saved & { shadow: boolean };
    }
  /** `route`: the name that the call asked for; `fallback`: why the attempt is not at an earlier target of it. */
  | ({
      event: "attempt_started";
      reserved: Amounts;
      queuedMs: number;
      route?: string;
      fallback?: FallbackCause;
      /** It was started beside an attempt that is slow. */
      hedge?: true;
    } & Attempt)
  | ({
      event: "attempt_ended";
      outcome: "success" | FailureClass;
      reason: Reason | null;
      cappedBy?: "budget";
      latencyMs: number;
      estimated: boolean;
      charged: Amounts;
      /** Of a single call: its client's trace, without the state, which the call's own event has. */
      trace?: Pick<TraceContext, "parent">;
      /** Absent unless content is exported. */
      content?: SpanContent;
    } & Attempt)
  /** `reason` null = the attempt did not fail: its answer ended at a learned cap. */
  | ({ event: "retry_scheduled"; attempt: number; delayMs: number; reason: Reason | null } & CallName)
  /**
   * Attempts wait at a gate from now on: one of the run's own has met a limit, or the gate makes all runs wait. Without
   * gate and cause: a rate limit.
   */
  | { event: "throttled"; upstream: string; gate?: string; cause?: ThrottleCause; retryAfterMs: number }
  | ({
      event: "slot_completed";
      status: EndStatus;
      attempts: number;
      reason: Reason | null;
      model: string | null;
      finishReason: string | null;
      cappedBy?: "budget";
      /** It ended with a recorded answer. */
      replayed?: true;
      usage: Usage;
      startedAtMs: number | null;
      endedAtMs: number;
      /** Of a single call: its client's trace. */
      trace?: TraceContext;
    } & CallName)
  | { event: "slots_cancelled"; count: number; status: "cancelled" | "failed"; reason: Reason }
  /** A call of a graph does not start, because of what its task depends on. */
  | ({ event: "slot_skipped"; reason: Reason } & CallName)
  | ({ event: "budget_refused"; reason: Reason } & CallName)
  /**
   * A call of the most important tier has failed, and nothing answers for it. `undecided`: the votes of the group decide nothing
   * instead; absent = a call has failed.
   */
  | ({ event: "escalated"; reason: Reason; undecided?: true } & CallName)
  | ({ event: "overrun"; dimensions: Dimension[]; reserved: Amounts; charged: Amounts } & Attempt)
  | ({ event: "tool_called" } & ToolReport)
  /**
   * The client's own event, as the JSON object it sent. `bytes`: `json` has only what followers get of a large event, which has so many bytes;
   * absent = `json` is the whole event.
   */
  | { event: "client"; json: string; bytes?: number };

/** The result of a tool call; `reason` null = it succeeded. */
export type ToolReport = {
  tool: string;
  reason: Reason | null;
  /** The HTTP status of the tool's response; null if none arrived. */
  status: number | null;
  latencyMs: number;
  /** Size of the response body that was read; 0 if it was discarded. */
  bytes: number;
  attempts: number;
};

type Attempt = CallName & { attempt: number; upstream: string; model: string };

/** The name of an attempt's call in events. A single call's id is the id of its attempt without the number. */
export function callName(
  { slotId, attemptId, labels }: Pick<AttemptInFlight, "slotId" | "attemptId" | "labels">,
  group: Group | undefined,
): CallName {
  if (slotId === null) return { index: null, callId: callIdOf(attemptId), ...labels };
  return group === undefined ? { index: indexOf(slotId), callId: null } : slotName(group, slotId);
}

/** The single call that an attempt belongs to. */
export function callIdOf(attemptId: string): string {
  return attemptId.slice(0, attemptId.lastIndexOf("."));
}

/** The number of an attempt within its call. */
export function attemptNumberOf(attemptId: string): number {
  return Number(attemptId.slice(attemptId.lastIndexOf(".") + 1));
}

/**
 * The name of a slot in events. A single call that is stored as a group is named like a single call, by the group's id.
 */
export function slotName({ header }: Group, slotId: number): CallName {
  if (header.single === null) return { index: indexOf(slotId), callId: null };
  return { index: null, callId: header.id, ...header.step };
}

/** The event of an attempt's end. */
export function attemptEnd(
  name: Attempt,
  {
    outcome,
    charged,
    estimated,
    trace,
    content,
  }: {
    outcome: Outcome;
    charged: Amounts;
    estimated: boolean;
    trace: TraceContext | undefined;
    content: SpanContent | undefined;
  },
): RunEvent {
  const ended =
    outcome.kind === "success"
      ? { outcome: "success" as const, reason: null }
      : { outcome: outcome.class, reason: outcome.reason };
  const { latencyMs } = outcome;
  const details = {
    ...(trace === undefined ? {} : { trace: { parent: trace.parent } }),
    ...(content === undefined ? {} : { content }),
  };
  return { event: "attempt_ended", ...name, ...ended, ...cappedOf(outcome), latencyMs, estimated, charged, ...details };
}

/** The result of a single call, as its `slot_completed` reports it. */
export type CallResult = {
  status: "completed" | "failed";
  reason: Reason | null;
  model: string | null;
  finishReason: string | null;
  cappedBy?: "budget";
  replayed?: true;
};

/** The result of a single call whose last attempt has this outcome. */
export function callResult(outcome: Outcome): CallResult {
  return outcome.kind === "success"
    ? {
        status: "completed",
        reason: null,
        model: outcome.model,
        finishReason: outcome.finishReason,
        ...cappedOf(outcome),
      }
    : { status: "failed", reason: outcome.reason, model: null, finishReason: null };
}

/** The event of a slot's or a single call's end. */
export function slotEnd(
  name: CallName,
  result: Omit<CallResult, "status"> & { status: EndStatus; attempts: number },
  usage: Usage,
  times: { startedAtMs: number | null; endedAtMs: number },
  trace?: TraceContext,
): RunEvent {
  const traced = trace === undefined ? {} : { trace };
  return { event: "slot_completed", ...name, ...result, usage, ...times, ...traced };
}

/** Why a group escalates without a failure. */
export const VOTE_UNDECIDED = "vote_undecided";

/** The event of a vote that decides nothing. Whoever does not look at `undecided` shows the reason. */
export const UNDECIDED: Extract<RunEvent, { event: "escalated" }> = {
  event: "escalated",
  index: null,
  callId: null,
  reason: { reason: "cancelled", message: "the votes of the group decide nothing" },
  undecided: true,
};

/** The event of a group's end. */
export function groupEnd(group: Group, endedAtMs: number): RunEvent {
  const { status } = group;
  const { costNanoUsd } = group.usage;
  const { completed, failed, skipped, cancelled } = group.counts;
  const unmet = group.graph?.frontier.unmetSlots ?? 0;
  const ended = { completed, failed, cancelled: cancelled + skipped - unmet, ...(unmet > 0 && { skipped: unmet }) };
  const { presentSlots: count } = group;
  const stop = group.saved === null ? {} : { saved: { ...group.saved, shadow: group.isShadow } };
  // No reader of the log is shown them, and its rows are written.
  const { latency_ms: _latency, queued_ms: _queued, ...metrics } = group.metrics(endedAtMs);
  return { event: "group_completed", count, status, metrics, costNanoUsd, ...ended, ...stop };
}

/** The event of the end of a group of single calls. */
export function windowEnd(group: WindowGroup): RunEvent {
  const { members: count, completed, failed, costNanoUsd, sequentialMs, peakParallel } = group;
  const wallMs = group.endedAtMs - group.openedAtMs;
  const metrics: GroupMetrics = {
    wall_ms: wallMs,
    sequential_ms: sequentialMs,
    speedup: wallMs === 0 ? 1 : round(sequentialMs / wallMs),
    peak_parallel: peakParallel,
    // After a restart that has found none of its calls it has none.
    success_rate: count === 0 ? 0 : round(completed / count),
  };
  const status = failed === 0 ? "completed" : completed > 0 ? "partial" : "failed";
  return { event: "group_completed", count, status, metrics, costNanoUsd, completed, failed, cancelled: 0 };
}

/** The name of an attempt in events. */
export function attemptName(lease: AttemptInFlight, group: Group | undefined): Attempt {
  const { upstream, model } = lease.target;
  return { ...callName(lease, group), attempt: lease.attempt, upstream, model };
}

/** An event with its time and the parallel group it belongs to. */
export type LoggedEvent = { atMs: number; group: string | null } & RunEvent;

/**
 * Events to be stored as rows of the log; the last of them has the number `lastSeq`. `texts`: those that are JSON already, at their places:
 * what a tail has had, and clients' own.
 */
export type LogWrite = { lastSeq: number; events: LoggedEvent[]; texts: readonly (string | undefined)[] };

/** What a turn writes of the log: rows of it, or the tail of the shard's row that carries it; null = nothing. */
export type LogWrites = { rows: LogWrite | null; tail: string | null };

/** An event of a tail, with its number. */
export type TailEvent = [seq: number, event: LoggedEvent];

/** The events of a tail, which has one line for each. */
export function readTail(lines: readonly string[]): TailEvent[] {
  return lines.map((line) => JSON.parse(line) as TailEvent);
}

/**
 * The events that no row of the log has, from the tails of all shards: each of them is in one of them at least, and some may be in rows of
 * the log, too.
 */
export function eventsAfter(lastSeq: number, tails: Iterable<readonly TailEvent[]>): LoggedEvent[] {
  const events = new Map<number, LoggedEvent>();
  for (const tail of tails) for (const [seq, event] of tail) if (seq > lastSeq) events.set(seq, event);
  return [...events].sort(([a], [b]) => a - b).map(([, event]) => event);
}

/** Events of what other rows store: of a run's opening its settings, of an attempt's start its lease. They may wait for a later row. */
const KNOWN_OTHERWISE: ReadonlySet<RunEvent["event"]> = new Set(["run_opened", "attempt_started"]);

export class RunLog {
  #lastSeq: number;
  /** Events that are in no row of the log, oldest first. */
  #pending: LoggedEvent[];
  /** How many of them have a line, first the `#restored` ones, which an earlier instance has stored in tails. */
  #tailEvents = 0;
  #restored: number;
  /**
   * The lines of events that are in tails, by the shard whose row has them. A row is written with every turn, so it has only what no other
   * row has.
   */
  readonly #homed = new Map<number, string>();
  /** Lines of events in tails that the next row takes over: those of an earlier instance, and those in rows of calls. */
  #stray = "";
  /** Lines of events that no stored tail has. */
  #fresh = "";
  /** Events as JSON, for the rows of the log, at their places in `#pending`. */
  #texts: (string | undefined)[] = [];
  #tailChars = 0;
  #urgent = false;

  /**
   * @param lastSeq Number of the last event in the rows of the log; 0 = none.
   * @param events Those after it, which are in the tail of a shard's row.
   */
  constructor(lastSeq: number, events: readonly LoggedEvent[] = []) {
    this.#lastSeq = lastSeq + events.length;
    this.#pending = [...events];
    this.#restored = events.length;
  }

  /** Number of the newest event, written or not. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Adds an event; returns its number. */
  add(event: RunEvent, group: string | null, nowMs: number): number {
    this.#pending.push({ atMs: nowMs, group, ...event });
    this.#urgent ||= !KNOWN_OTHERWISE.has(event.event);
    this.#lastSeq += 1;
    return this.#lastSeq;
  }

  /** Adds a client's event whose JSON is also there as a string of JSON, `quoted`: megabytes of them are not written as JSON in one turn. */
  addClient(json: string, quoted: string, group: string | null, nowMs: number): number {
    const place = `{"atMs":${nowMs},"group":${JSON.stringify(group)}`;
    this.#texts[this.#pending.length] = `${place},"event":"client","json":${quoted}}`;
    return this.add({ event: "client", json }, group, nowMs);
  }

  /** True if events are in no row of the log, where readers look. */
  get pending(): boolean {
    return this.#pending.length > 0;
  }

  /** The settings are about to change: the run's opening, which they tell until then, must be written with them. */
  keepOpening(): void {
    this.#urgent ||= this.#pending[0]?.event === "run_opened";
  }

  /** True if events are unwritten that report what no row stores. */
  get urgent(): boolean {
    return this.#urgent;
  }

  /** Characters of the events that no stored tail has, a line each. */
  get newTailChars(): number {
    this.#extendTail();
    return this.#fresh === "" ? 0 : this.#fresh.length + 1;
  }

  /**
   * What to write of the log with the rows of a turn. `carrier`: the shard among them that takes the returned tail; null = they include
   * none. `isPart`: the row of a call takes it, and the shard's own, with its tail, remains. `asRows`: whether a reader waits for the
   * events, so that they must be rows of the log. Any other shard among the rows keeps the tail that `tailOf` returns afterwards.
   */
  write({ carrier, asRows, isPart = false }: { carrier: number | null; asRows: boolean; isPart?: boolean }): LogWrites {
    if (asRows || (carrier === null && this.#urgent)) return { rows: this.take(), tail: null };
    if (carrier === null || !this.pending) return { rows: null, tail: null };
    this.#extendTail();
    if (this.#tailEvents >= LOG_TAIL_EVENTS_MAX || this.#tailChars >= LOG_TAIL_CHARS_MAX)
      return { rows: this.take(), tail: null };
    this.#urgent = false;
    const fresh = this.#fresh;
    this.#fresh = "";
    if (isPart) {
      this.#stray = joined(this.#stray, fresh);
      return { rows: null, tail: fresh === "" ? null : fresh };
    }
    const tail = joined(joined(this.#homed.get(carrier) ?? "", this.#stray), fresh);
    this.#stray = "";
    if (tail !== "") this.#homed.set(carrier, tail);
    return { rows: null, tail: tail === "" ? null : tail };
  }

  /** The tail of a shard that a turn writes, and that did not carry its events: those that no other row has; null = none. */
  tailOf(shard: number): string | null {
    return this.#homed.get(shard) ?? null;
  }

  /** All events that no row of the log has, to be written as such; null if there are none. */
  take(): LogWrite | null {
    if (this.#pending.length === 0) return null;
    const events = this.#pending;
    const texts = this.#texts;
    this.#pending = [];
    this.#texts = [];
    this.#homed.clear();
    this.#stray = "";
    this.#fresh = "";
    this.#tailEvents = 0;
    this.#restored = 0;
    this.#tailChars = 0;
    this.#urgent = false;
    return { lastSeq: this.#lastSeq, events, texts };
  }

  /** Each event is turned into text once, although a tail is written with every turn. */
  #extendTail(): void {
    const firstSeq = this.#lastSeq - this.#pending.length + 1;
    for (let at = this.#tailEvents; at < this.#pending.length; at++) {
      const text = (this.#texts[at] ??= JSON.stringify(this.#pending[at]));
      const line = `[${firstSeq + at},${text}]`;
      this.#tailChars += line.length;
      if (at < this.#restored) this.#stray = joined(this.#stray, line);
      else this.#fresh = joined(this.#fresh, line);
    }
    this.#tailEvents = this.#pending.length;
  }
}

/** Lines, and more of them. */
function joined(lines: string, more: string): string {
  if (lines === "" || more === "") return lines + more;
  return `${lines}\n${more}`;
}
