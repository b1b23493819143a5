/**
 * What a run tells of itself: one event per thing that happened, numbered without gaps. Events are gathered during a turn
 * and written with it, so a line is as durable as what it tells; only the start of an attempt may wait for the next row,
 * for its lease holds the same facts and tells it again after a crash.
 */
import type { Amounts, Limits } from "../budget/ledger.ts";
import type { FailureClass, Outcome } from "../call.ts";
import type { Dimension, Reason } from "../errors.ts";
import { round, type Group, type GroupMetrics, type GroupStatus } from "./group.ts";
import type { AttemptInFlight } from "./shard.ts";
import { indexOf } from "./slot.ts";
import type { WindowGroup } from "./window.ts";

/** Which call an event is about: a place in its group, or a single call. */
export type CallName = { index: number | null; callId: string | null };

type Usage = { promptTokens: number; completionTokens: number; costNanoUsd: number };

/** Amounts are in the ledger's units: `usd` in nano-USD. */
export type RunEvent =
  | { event: "run_opened"; name: string | null; limits: Limits; maxParallel: number }
  | { event: "run_closed"; status: "closed" | "cancelled" | "expired" }
  | { event: "child_opened"; childRunId: string; reserved: Amounts }
  | { event: "child_closed"; childRunId: string; spent: Amounts }
  | { event: "group_started"; count: number; effectiveParallel: number }
  | {
      event: "group_completed";
      count: number;
      status: GroupStatus;
      metrics: GroupMetrics;
      costNanoUsd: number;
      completed: number;
      failed: number;
      cancelled: number;
    }
  | ({ event: "attempt_started"; reserved: Amounts; queuedMs: number } & Attempt)
  | ({
      event: "attempt_ended";
      outcome: "success" | FailureClass;
      reason: Reason | null;
      latencyMs: number;
      estimated: boolean;
      charged: Amounts;
    } & Attempt)
  | ({ event: "retry_scheduled"; attempt: number; delayMs: number; reason: Reason } & CallName)
  | { event: "throttled"; upstream: string; retryAfterMs: number }
  | ({
      event: "slot_completed";
      status: "completed" | "failed" | "cancelled";
      attempts: number;
      reason: Reason | null;
      model: string | null;
      finishReason: string | null;
      usage: Usage;
      startedAtMs: number | null;
      endedAtMs: number;
    } & CallName)
  | { event: "slots_cancelled"; count: number; status: "cancelled" | "failed"; reason: Reason }
  | ({ event: "budget_refused"; reason: Reason } & CallName)
  | ({ event: "overrun"; dimensions: Dimension[]; reserved: Amounts; charged: Amounts } & Attempt)
  | ({ event: "tool_called" } & ToolReport)
  /** The client's own event, as the JSON object it sent. */
  | { event: "client"; json: string };

/** What a tool call came to; `reason` null = it gave a result. */
export type ToolReport = {
  tool: string;
  reason: Reason | null;
  /** The tool's own HTTP status; null where none arrived. */
  status: number | null;
  latencyMs: number;
  /** Size of the answer that was read; 0 where none was kept. */
  bytes: number;
  attempts: number;
};

type Attempt = CallName & { attempt: number; upstream: string; model: string };

/** How events name an attempt's call. A single call's id is the attempt's without the number. */
export function callName(
  { slotId, attemptId }: Pick<AttemptInFlight, "slotId" | "attemptId">,
  group: Group | undefined,
): CallName {
  if (slotId === null) return { index: null, callId: attemptId.slice(0, attemptId.lastIndexOf(".")) };
  return group === undefined ? { index: indexOf(slotId), callId: null } : slotName(group, slotId);
}

/** How events name a slot: a single call that is stored as a group is still a single call, and has the group's id. */
export function slotName({ header }: Group, slotId: number): CallName {
  return header.single === null ? { index: indexOf(slotId), callId: null } : { index: null, callId: header.id };
}

/** The event of an attempt's end. */
export function attemptEnd(
  name: Attempt,
  { outcome, charged, estimated }: { outcome: Outcome; charged: Amounts; estimated: boolean },
): RunEvent {
  const ended =
    outcome.kind === "success"
      ? { outcome: "success" as const, reason: null }
      : { outcome: outcome.class, reason: outcome.reason };
  const { latencyMs } = outcome;
  return { event: "attempt_ended", ...name, ...ended, latencyMs, estimated, charged };
}

/** What a single call's end is told to be. */
export type CallResult = {
  status: "completed" | "failed";
  reason: Reason | null;
  model: string | null;
  finishReason: string | null;
};

/** How a single call ends with this outcome. */
export function resultOf(outcome: Outcome): CallResult {
  return outcome.kind === "success"
    ? { status: "completed", reason: null, model: outcome.model, finishReason: outcome.finishReason }
    : { status: "failed", reason: outcome.reason, model: null, finishReason: null };
}

/** The event of a group's end. */
export function groupEnd(group: Group, endedAtMs: number): RunEvent {
  const { status, costNanoUsd } = group;
  const { completed, failed, skipped, cancelled } = group.counts;
  const ended = { completed, failed, cancelled: cancelled + skipped };
  const { count } = group.header;
  return { event: "group_completed", count, status, metrics: group.metrics(endedAtMs), costNanoUsd, ...ended };
}

/** The same for single calls that came together. */
export function windowEnd(group: WindowGroup): RunEvent {
  const { members: count, completed, failed, costNanoUsd, sequentialMs, peakParallel } = group;
  const wallMs = group.endedAtMs - group.openedAtMs;
  const metrics: GroupMetrics = {
    wall_ms: wallMs,
    sequential_ms: sequentialMs,
    speedup: wallMs === 0 ? 1 : round(sequentialMs / wallMs),
    peak_parallel: peakParallel,
    success_rate: round(completed / count),
  };
  const status = failed === 0 ? "completed" : completed > 0 ? "partial" : "failed";
  return { event: "group_completed", count, status, metrics, costNanoUsd, completed, failed, cancelled: 0 };
}

/** How events name an attempt. */
export function attemptName(lease: AttemptInFlight, group: Group | undefined): Attempt {
  const { upstream, model } = lease.target;
  return { ...callName(lease, group), attempt: lease.attempt, upstream, model };
}

/** An event with its time and the parallel group it belongs to. */
export type LoggedEvent = { atMs: number; group: string | null } & RunEvent;

/** Events on their way to storage; the last of them has the number `lastSeq`. */
export type LogWrite = { lastSeq: number; events: LoggedEvent[] };

export class RunLog {
  /** Number of the newest event, written or not. */
  lastSeq: number;
  #pending: LoggedEvent[] = [];
  #urgent = false;

  /** @param lastSeq Number of the last event in storage; 0 = none. */
  constructor(lastSeq: number) {
    this.lastSeq = lastSeq;
  }

  /** Adds an event; returns its number. */
  add(event: RunEvent, group: string | null, nowMs: number): number {
    this.#pending.push({ atMs: nowMs, group, ...event });
    this.#urgent ||= event.event !== "attempt_started";
    this.lastSeq += 1;
    return this.lastSeq;
  }

  /** Events wait to be written. */
  get pending(): boolean {
    return this.#pending.length > 0;
  }

  /** Some of them hold what no other row does. */
  get urgent(): boolean {
    return this.#urgent;
  }

  /** Everything that waits, to be written in one transaction with what it tells; null for nothing. */
  take(): LogWrite | null {
    if (this.#pending.length === 0) return null;
    const events = this.#pending;
    this.#pending = [];
    this.#urgent = false;
    return { lastSeq: this.lastSeq, events };
  }
}
