/** The run's log on the wire: one JSON object per event, with the names that programs in the field read. */
import { DIMENSIONS, NO_LIMITS, type Amounts, type Limits } from "../run/money/ledger.ts";
import { usdOf } from "../run/money/money.ts";
import type { HeldQuote, Saved } from "../run/group/group.ts";
import { VOTE_UNDECIDED, type CallName, type LoggedEvent, type RunEvent, type ThrottleCause } from "../run/log.ts";
import { toWire, type Reason } from "../errors.ts";
import type { GateReason } from "../gate/wire.ts";
import { labelsOf } from "../labels.ts";
import { FOLLOWED_EVENT_CHARS_MAX, TEXT_HEAD_CHARS } from "../limits.ts";

/** What every line of a run repeats. */
export type RunName = { id: string; parentId: string | null; depth: number };

/** An event ready to be sent: its number, its type, its line; and as the log has it. */
export type EventLine = { seq: number; type: string; json: string; event: LoggedEvent };

/** The events of a stored row, which ends with event number `last`: one JSON text per line. */
export function eventLines(row: { last: number; lines: string }, run: RunName): EventLine[] {
  const stored = row.lines.split("\n");
  return stored.map((line, place) => {
    // Written by this gateway from its own events.
    const event: LoggedEvent = JSON.parse(line);
    return eventLine(event, row.last - stored.length + 1 + place, run);
  });
}

function eventLine(event: LoggedEvent, seq: number, run: RunName): EventLine {
  const ts = new Date(event.atMs).toISOString();
  const place = { seq, ts, run_id: run.id, parent_run_id: run.parentId };
  const level = { depth: run.depth };
  const client = event.event === "client" ? clientText(event) : null;
  if (client !== null) {
    const { type, group = JSON.stringify(event.group), step, rest } = client;
    const begin = JSON.stringify(place).slice(0, -1);
    const json = `${begin},"parallel_group_id":${group},"depth":${run.depth},"step":${step},"event_type":"${type}"${rest}`;
    return { seq, type, json, event };
  }
  const own = event.event === "client" ? clientFacts(event, seq, run) : { event_type: event.event, ...factsOf(event) };
  // Spread first so that every line begins with them, and last so that no client's event can override them.
  const line = { ...place, parallel_group_id: event.group, ...level, step: null, ...own, ...place, ...level };
  return { seq, type: line.event_type, json: JSON.stringify(line), event };
}

type ClientsOwn = Extract<RunEvent, { event: "client" }>;

/** How the JSON of a client's event begins, as the gateway writes it: the fields that a line has at its own places. */
const CLIENT_HEAD =
  /^\{"event_type":"(?<type>[a-z][a-z0-9_]{0,63})"(?:,"parallel_group_id":(?<group>null|"[\w-]{1,64}"))?(?:,"step":(?<step>null|\d{1,16}))?(?=[,}])/;
/** Names of a line's first fields, as keys. JSON escapes the quotes of a text, so no text contains one. */
const PLACE_KEYS = ["seq", "ts", "run_id", "parent_run_id", "parallel_group_id", "depth", "step", "event_type"].map(
  (name) => `"${name}":`,
);

/**
 * A client's event as text that goes into its line as it is: a large event is neither parsed nor written anew for each of its readers. Null
 * if it must be: a field of it could be one of the line's own.
 */
function clientText({ json, bytes }: ClientsOwn): { type: string; group?: string; step: string; rest: string } | null {
  const head = CLIENT_HEAD.exec(json);
  const type = head?.groups?.["type"];
  if (bytes !== undefined || head === null || type === undefined) return null;
  const rest = json.slice(head[0].length);
  if (PLACE_KEYS.some((key) => rest.includes(key))) return null;
  const { group, step = "null" } = head.groups ?? {};
  return { type, ...(group === undefined ? {} : { group }), step, rest };
}

/** A client's event was parsed when it arrived; its name is not one of the gateway's own events. */
function clientFacts({ json, bytes }: ClientsOwn, seq: number, run: RunName): { event_type: string } {
  const facts: { event_type: string } = JSON.parse(json);
  const reference = bytes === undefined ? {} : { bytes, event_url: `/runs/${run.id}/log?after=${seq - 1}&limit=1` };
  return { ...facts, ...reference };
}

/** A line of the log as followers get it: a large event of a client is cut to its facts and the beginning of its text. */
export function followedLine(line: string): string {
  if (line.length <= FOLLOWED_EVENT_CHARS_MAX) return line;
  // Written by this gateway from its own events.
  const event: LoggedEvent = JSON.parse(line);
  if (event.event !== "client") return line;
  const sent: ClientEventHead = JSON.parse(event.json);
  const { event_type, step, hasError } = sent;
  const text = [sent.output, sent.code, sent.reasoning].find((each) => typeof each === "string" && each !== "");
  const head = text?.slice(0, TEXT_HEAD_CHARS).toWellFormed();
  const bytes = new TextEncoder().encode(event.json).length;
  return JSON.stringify({ ...event, json: JSON.stringify({ event_type, step, hasError, head }), bytes });
}

/** Of a client's event what a reference to it repeats. */
type ClientEventHead = {
  event_type: string;
  step?: number | null;
  hasError?: boolean;
  output?: string | null;
  code?: string | null;
  reasoning?: string | null;
};

function factsOf(event: Exclude<RunEvent, { event: "client" }>): object {
  switch (event.event) {
    case "run_opened":
      return { name: event.name, limits: shown(event.limits), max_parallel: event.maxParallel };
    case "run_closed":
      return { status: event.status };
    case "child_opened":
      return { child_run_id: event.childRunId, reserved: shown(event.reserved) };
    case "child_closed":
      return { child_run_id: event.childRunId, spent: shown(event.spent) };
    case "credit_lost":
      return { charged: shown(event.charged), estimated: true };
    case "group_started":
      return startedFacts(event);
    case "confirmation_awaited":
      return { quote: heldQuoteJson(event.quote) };
    case "group_confirmed":
      return {};
    case "group_paused":
      return budgetFacts(event.reason);
    case "group_resumed":
      return { paused_ms: event.pausedMs };
    case "group_completed":
      return groupFacts(event);
    case "attempt_started":
      return {
        ...attempt(event),
        ...{ route: event.route, fallback: event.fallback, hedge: event.hedge },
        ...{ queued_ms: event.queuedMs, reserved: shown(event.reserved) },
      };
    case "attempt_ended":
      return attemptFacts(event);
    case "retry_scheduled":
      return retryFacts(event);
    case "throttled":
      return throttleFacts(event);
    case "slot_completed":
      return slotFacts(event);
    case "slots_cancelled": {
      const { code, message } = toWire(event.reason).error;
      return { count: event.count, status: event.status, code, message };
    }
    case "slot_skipped":
      return skippedFacts(event);
    case "budget_refused":
      return { ...call(event), ...budgetFacts(event.reason) };
    case "escalated":
      return escalationFacts(event);
    case "tool_called": {
      const { tool, status, latencyMs: latency_ms, bytes, attempts } = event;
      return { tool, ok: event.reason === null, status, code: codeOf(event.reason), latency_ms, bytes, attempts };
    }
    case "overrun": {
      const { dimensions, reserved, charged } = event;
      return { ...attempt(event), dimensions, reserved: shown(reserved), charged: shown(charged) };
    }
  }
}

function startedFacts({ count, effectiveParallel, tasks, retryOf }: Extract<RunEvent, { event: "group_started" }>) {
  return { count, effective_parallel: effectiveParallel, tasks, retry_of: retryOf };
}

function attemptFacts(event: Extract<RunEvent, { event: "attempt_ended" }>): object {
  const { outcome, latencyMs: latency_ms, estimated } = event;
  const code = codeOf(event.reason);
  const upstream_code = upstreamCodeOf(event.reason);
  const ended = { outcome, code, upstream_code, capped_by: event.cappedBy, latency_ms, estimated };
  return { ...attempt(event), ...ended, charged: shown(event.charged) };
}

function retryFacts(event: Extract<RunEvent, { event: "retry_scheduled" }>): object {
  const code = codeOf(event.reason) ?? CAP_TOO_LOW;
  return { ...call(event), attempt: event.attempt, delay_ms: event.delayMs, code };
}

function skippedFacts(event: Extract<RunEvent, { event: "slot_skipped" }>): object {
  const { code, message } = toWire(event.reason).error;
  return { ...call(event), code, message };
}

/** The figures of a budget that does not cover an attempt. */
function budgetFacts(reason: Reason): object {
  const { code, dimension, limit, spent, reserved, needed } = toWire(reason).error;
  return { code, dimension, limit, spent, reserved, needed };
}

function escalationFacts(event: Extract<RunEvent, { event: "escalated" }>): object {
  const { code, message } = toWire(event.reason).error;
  return event.undecided === true
    ? { ...call(event), tier: null, code: VOTE_UNDECIDED, message }
    : { ...call(event), tier: "P0", code, message };
}

/** What the calls of a gate wait for after what happened there. */
const WAITS_AFTER: Readonly<Record<ThrottleCause, GateReason>> = {
  rate_limited: "requests_per_minute",
  overloaded: "requests_per_minute",
  insufficient_quota: "stopped",
  invalid_key: "stopped",
  forbidden: "stopped",
  requests_per_minute: "requests_per_minute",
  tokens_per_minute: "tokens_per_minute",
  width: "width",
  stopped: "stopped",
};

function throttleFacts(event: Extract<RunEvent, { event: "throttled" }>): object {
  const { upstream, gate = upstream, cause = "rate_limited", retryAfterMs: retry_after_ms } = event;
  const waiting_for = { gate, reason: WAITS_AFTER[cause], ready_in_ms: retry_after_ms };
  return { upstream, gate, cause, retry_after_ms, waiting_for };
}

function groupFacts(event: Extract<RunEvent, { event: "group_completed" }>): object {
  const { count, status, metrics, costNanoUsd, completed, failed, cancelled, skipped, saved } = event;
  const { wall_ms: execution_ms, sequential_ms, speedup, peak_parallel } = metrics;
  const narrowed = metrics.narrowed_by === undefined ? {} : { narrowed_by: metrics.narrowed_by };
  const measured = { execution_ms, cost: usdOf(costNanoUsd), sequential_ms, speedup, peak_parallel, ...narrowed };
  const stop = saved === undefined ? {} : { ...savedFacts(saved), shadow: saved.shadow };
  return { count, status, ...measured, completed, failed, cancelled, skipped, ...stop };
}

/** What an early stop has saved, as answers and the log show it. */
export function savedFacts(saved: Omit<Saved, "atMs">) {
  const { calls, aborted, worstNanoUsd, likelyNanoUsd, abortedNanoUsd = 0, netNanoUsd = likelyNanoUsd } = saved;
  const likely = { worst_usd: usdOf(worstNanoUsd), likely_usd: usdOf(likelyNanoUsd) };
  const saved_usd = { ...likely, net_usd: usdOf(netNanoUsd), aborted_usd: usdOf(abortedNanoUsd) };
  return { saved_calls: calls, aborted_calls: aborted, saved_usd };
}

/** What a group would cost that awaits its confirmation, as answers and the log show it. */
export function heldQuoteJson({ worstNanoUsd, likelyNanoUsd, calls }: HeldQuote) {
  return { worst_usd: usdOf(worstNanoUsd), likely_usd: usdOf(likelyNanoUsd), calls };
}

function slotFacts(event: Extract<RunEvent, { event: "slot_completed" }>): object {
  const { status, attempts, reason, model, finishReason, cappedBy, usage, startedAtMs, endedAtMs } = event;
  const { promptTokens, completionTokens, costNanoUsd } = usage;
  const error = reason === null || status === "completed" ? null : toWire(reason).error;
  return {
    ...call(event),
    status,
    attempts,
    hasError: error !== null,
    code: error?.code ?? null,
    upstream_code: upstreamCodeOf(status === "completed" ? null : reason),
    message: error?.message ?? null,
    model,
    finish_reason: finishReason,
    capped_by: cappedBy,
    replayed: event.replayed,
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
      cost: usdOf(costNanoUsd),
    },
    timestamps: {
      llm_call_start: startedAtMs === null ? null : new Date(startedAtMs).toISOString(),
      llm_call_end: startedAtMs === null ? null : new Date(endedAtMs).toISOString(),
    },
  };
}

/** Labels only where there are some: every line has a step, null. */
function call(name: CallName) {
  return { index: name.index, call_id: name.callId, item_id: name.itemId, ...labelsOf(name) };
}

function attempt(event: CallName & { attempt: number; upstream: string; model: string }) {
  return { ...call(event), attempt: event.attempt, upstream: event.upstream, model: event.model };
}

/** USD as a decimal number, the other dimensions as they are. */
function shown(amounts: Amounts | Limits): Limits {
  const wire: Limits = { ...NO_LIMITS };
  for (const dimension of DIMENSIONS) {
    const amount = amounts[dimension] ?? null;
    wire[dimension] = amount !== null && dimension === "usd" ? usdOf(amount) : amount;
  }
  return wire;
}

/** Why an attempt follows one that did not fail: no error, so no error's code. */
const CAP_TOO_LOW = "cap_too_low";

function codeOf(reason: Reason | null): string | null {
  return reason === null ? null : toWire(reason).error.code;
}

/** The provider's own name for its error; null if it gave none. */
function upstreamCodeOf(reason: Reason | null): string | null {
  return reason !== null && "upstreamCode" in reason ? (reason.upstreamCode ?? null) : null;
}
