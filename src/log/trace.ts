/**
 * A run's log as a trace in Chrome's JSON format (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU),
 * which ui.perfetto.dev opens: one process per parallel group, one track per call with its attempts inside, counters of
 * calls in flight and of dollars. Times are in microseconds since 1970.
 */
import { usdOf } from "../run/money/money.ts";
import { VOTE_UNDECIDED, type CallName, type LoggedEvent } from "../run/log.ts";
import { toWire, type Reason } from "../errors.ts";
import { CHILDREN_OPEN_MAX, GROUPS_OPEN_MAX, PICTURE_CALLS_MAX } from "../limits.ts";
import type { Call } from "./picture/call.ts";
import { RunPicture, type Bounds, type Change } from "./picture/picture.ts";

/** One object of `traceEvents`. `b` and `e` begin and end a span, `i` is an instant, `C` a counter, `M` metadata. */
export type TraceEvent = {
  ph: "b" | "e" | "i" | "C" | "M";
  name: string;
  pid: number;
  tid: number;
  ts: number;
  cat?: string;
  /** Spans of one category, process and id form a track; the inner end before the outer. */
  id?: string;
  /** Reach of an instant: the process. */
  s?: "p";
  args?: Record<string, unknown>;
};

/** The process of the run itself: counters, and calls that belong to no group. */
const RUN_PID = 1;
const CALL = "call";
const GROUP = "group";
const TOOL = "tool";

const BOUNDS: Bounds = { calls: PICTURE_CALLS_MAX, groups: GROUPS_OPEN_MAX, children: CHILDREN_OPEN_MAX };

/**
 * Turns the events of a log into those of a trace, in the log's order. It remembers only what has begun and has not ended.
 * Spans that are open when the log ends have no end: viewers draw them to the end of the trace.
 */
export class Trace {
  readonly #picture = new RunPicture(() => ({}), BOUNDS);
  readonly #groups = new Map<string, number>();
  /** The process of a call is that of its first event: a single call keeps its own even if a later attempt joins a group. */
  readonly #calls = new WeakMap<Call, number>();
  #lastPid = RUN_PID;
  #hasName = false;

  /** @param runId Names the trace's first process. */
  readonly #runId: string;
  constructor(runId: string) {
    this.#runId = runId;
  }

  /** The trace events of one event of the log. */
  eventsOf(event: LoggedEvent): TraceEvent[] {
    const named = this.#hasName ? [] : [processName(RUN_PID, this.#runId, event.atMs)];
    this.#hasName = true;
    const change = this.#picture.next(event);
    return [...named, ...this.#eventsOf(event, change)];
  }

  #eventsOf(event: LoggedEvent, change: Change<object>): TraceEvent[] {
    switch (event.event) {
      case "group_started":
        return this.#groupStarted(event);
      case "group_completed":
        return this.#groupCompleted(event);
      case "confirmation_awaited":
        return [this.#instant(event, { worst_usd: usdOf(event.quote.worstNanoUsd), calls: event.quote.calls })];
      case "group_confirmed":
        return [this.#instant(event, {})];
      case "group_paused":
        return [this.#instant(event, { code: codeOf(event.reason) })];
      case "group_resumed":
        return [this.#instant(event, { paused_ms: event.pausedMs })];
      case "attempt_started":
        return this.#attemptStarted(event, change.call);
      case "attempt_ended":
        return this.#attemptEnded(event, change);
      case "slot_completed":
        return this.#slotCompleted(event, change.call);
      case "tool_called":
        return this.#toolCalled(event);
      case "credit_lost":
        return [this.#instant(event, {}), this.#dollars(event.atMs)];
      case "child_closed":
        return [this.#instant(event, { run: event.childRunId }), this.#dollars(event.atMs)];
      case "child_opened":
        return [this.#instant(event, { run: event.childRunId, reserved_usd: usdOf(event.reserved.usd) })];
      case "retry_scheduled":
        return [this.#instant(event, { ...nameOf(event), delay_ms: event.delayMs, code: codeOf(event.reason) })];
      case "throttled":
        return [this.#instant(event, { upstream: event.upstream, retry_after_ms: event.retryAfterMs })];
      case "slots_cancelled":
        return [this.#instant(event, { count: event.count, code: codeOf(event.reason) })];
      case "escalated":
        if (event.undecided === true) return [this.#instant(event, { code: VOTE_UNDECIDED })];
        return [this.#instant(event, { ...nameOf(event), code: codeOf(event.reason) })];
      case "slot_skipped":
      case "budget_refused":
        return [this.#instant(event, { ...nameOf(event), code: codeOf(event.reason) })];
      case "overrun":
        return [this.#instant(event, { ...nameOf(event), charged_usd: usdOf(event.charged.usd) })];
      case "run_opened":
        return [this.#instant(event, { name: event.name, max_parallel: event.maxParallel })];
      case "run_closed":
        return [this.#instant(event, { status: event.status })];
      case "client":
        return [this.#clientEvent(event)];
    }
  }

  #groupStarted(event: Extract<LoggedEvent, { event: "group_started" }>): TraceEvent[] {
    const [pid, named] = this.#processOf(event.group, event.atMs);
    const args = { count: event.count, effective_parallel: event.effectiveParallel };
    return [
      ...named,
      span("b", GROUP, groupTitle(event.group), { pid, id: event.group ?? "", atMs: event.atMs, args }),
    ];
  }

  #groupCompleted(event: Extract<LoggedEvent, { event: "group_completed" }>): TraceEvent[] {
    const [pid, named] = this.#processOf(event.group, event.atMs);
    const { status, completed, failed, cancelled, costNanoUsd } = event;
    const args = { status, completed, failed, cancelled, cost_usd: usdOf(costNanoUsd), ...event.metrics };
    if (event.group !== null) this.#groups.delete(event.group);
    return [
      ...named,
      span("e", GROUP, groupTitle(event.group), { pid, id: event.group ?? "", atMs: event.atMs, args }),
    ];
  }

  #attemptStarted(event: Extract<LoggedEvent, { event: "attempt_started" }>, call: Call | null): TraceEvent[] {
    const [pid, began] = this.#processOfCall(call, event, event.atMs - event.queuedMs);
    const args = { queued_ms: event.queuedMs, reserved_usd: usdOf(event.reserved.usd) };
    const attempt = span("b", CALL, attemptTitle(event), { pid, id: callIdOf(event), atMs: event.atMs, args });
    return [...began, attempt, this.#inFlight(event.atMs), this.#dollars(event.atMs)];
  }

  #attemptEnded(event: Extract<LoggedEvent, { event: "attempt_ended" }>, change: Change<object>): TraceEvent[] {
    const { call, attempt } = change;
    const pid = call === null ? undefined : this.#calls.get(call);
    // An attempt that ended before the readable part of the log began, or twice: it has no span to end.
    if (attempt === null || pid === undefined) return [this.#dollars(event.atMs)];
    const { outcome, latencyMs: latency_ms, estimated } = event;
    const args = { outcome, code: codeOf(event.reason), latency_ms, estimated, charged_usd: usdOf(event.charged.usd) };
    const end = span("e", CALL, attemptTitle(event), { pid, id: callIdOf(event), atMs: event.atMs, args });
    return [end, this.#inFlight(event.atMs), this.#dollars(event.atMs)];
  }

  #slotCompleted(event: Extract<LoggedEvent, { event: "slot_completed" }>, call: Call | null): TraceEvent[] {
    const id = callIdOf(event);
    // A call that ends without an attempt has no beginning yet: its span has no length.
    const [pid, began] = this.#processOfCall(call, event, event.atMs);
    const { status, attempts, model, usage } = event;
    const { promptTokens: prompt_tokens, completionTokens: completion_tokens, costNanoUsd } = usage;
    const used = { prompt_tokens, completion_tokens, cost_usd: usdOf(costNanoUsd) };
    const args = { status, attempts, model, code: codeOf(event.reason), ...used };
    return [...began, span("e", CALL, callTitle(event), { pid, id, atMs: event.atMs, args })];
  }

  #toolCalled(event: Extract<LoggedEvent, { event: "tool_called" }>): TraceEvent[] {
    const [pid, named] = this.#processOf(event.group, event.atMs);
    const { tool, status, latencyMs, attempts, bytes } = event;
    const args = { status, attempts, bytes, code: codeOf(event.reason) };
    // Tool calls have no id in the log, so their track is named by tool and end time; calls that end together share one.
    const id = `${tool} ${event.atMs}`;
    const begin = span("b", TOOL, tool, { pid, id, atMs: event.atMs - latencyMs, args: {} });
    return [...named, begin, span("e", TOOL, tool, { pid, id, atMs: event.atMs, args })];
  }

  #clientEvent(event: Extract<LoggedEvent, { event: "client" }>): TraceEvent {
    // Parsed and bounded when it arrived.
    const { event_type: name, ...args }: { event_type: string } & Record<string, unknown> = JSON.parse(event.json);
    return { ...this.#instant(event, args), name };
  }

  #instant(event: LoggedEvent, args: Record<string, unknown>): TraceEvent {
    const pid = (event.group === null ? undefined : this.#groups.get(event.group)) ?? RUN_PID;
    return { ph: "i", s: "p", name: event.event, pid, tid: 0, ts: micros(event.atMs), args };
  }

  #inFlight(atMs: number): TraceEvent {
    return counter("calls in flight", atMs, { calls: this.#picture.attemptsInFlight });
  }

  #dollars(atMs: number): TraceEvent {
    return counter("USD", atMs, { spent: this.#picture.spentUsd, reserved: this.#picture.inFlightUsd });
  }

  /** The process of a group, with its name if this is its first event. */
  #processOf(group: string | null, atMs: number): [number, TraceEvent[]] {
    if (group === null) return [RUN_PID, []];
    const known = this.#groups.get(group);
    if (known !== undefined) return [known, []];
    this.#lastPid += 1;
    this.#groups.set(group, this.#lastPid);
    return [this.#lastPid, [processName(this.#lastPid, groupTitle(group), atMs)]];
  }

  /** The process of a call, with the beginning of its span if this is its first event. */
  #processOfCall(call: Call | null, event: LoggedEvent & CallName, queuedAtMs: number): [number, TraceEvent[]] {
    const known = call === null ? undefined : this.#calls.get(call);
    if (known !== undefined) return [known, []];
    const [pid, named] = this.#processOf(event.group, queuedAtMs);
    if (call !== null) this.#calls.set(call, pid);
    const begin = span("b", CALL, callTitle(event), { pid, id: callIdOf(event), atMs: queuedAtMs, args: {} });
    return [pid, [...named, begin]];
  }
}

function span(
  ph: "b" | "e",
  cat: string,
  name: string,
  { pid, id, atMs, args }: { pid: number; id: string; atMs: number; args: Record<string, unknown> },
): TraceEvent {
  return { ph, cat, name, pid, tid: 0, ts: micros(atMs), id, args };
}

function counter(name: string, atMs: number, args: Record<string, number>): TraceEvent {
  return { ph: "C", name, pid: RUN_PID, tid: 0, ts: micros(atMs), args };
}

function processName(pid: number, name: string, atMs: number): TraceEvent {
  return { ph: "M", name: "process_name", pid, tid: 0, ts: micros(atMs), args: { name } };
}

function micros(atMs: number): number {
  return atMs * 1_000;
}

function groupTitle(group: string | null): string {
  return group ?? "single calls";
}

/** What viewers show as a call's name. */
export function callTitle({ index, callId }: CallName): string {
  return index === null ? (callId ?? "call") : `call ${index}`;
}

function attemptTitle({ attempt, upstream, model }: { attempt: number; upstream: string; model: string }): string {
  return `attempt ${attempt}: ${upstream}/${model}`;
}

function nameOf({ index, callId }: CallName): object {
  return index === null ? { call_id: callId } : { index };
}

/** A call's id within the run: single calls have their own, a slot has its group and its index. */
export function callIdOf({ group, index, callId }: LoggedEvent & CallName): string {
  return callId ?? `${group} ${index}`;
}

/** The code that clients see for a reason; null = no failure. */
export function codeOf(reason: Reason | null): string | null {
  return reason === null ? null : toWire(reason).error.code;
}
