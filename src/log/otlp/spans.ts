/**
 * A run's log as OpenTelemetry spans: the run, its groups, their calls and the attempts of these. Each span is made from the
 * event that ends it, which knows when it began: so nothing is remembered between two events, and a restart loses no span.
 * Attempts follow the conventions for generative AI (https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/).
 *
 * What a client asks for with a `traceparent` is in the client's trace: the span of its call, group or run is a child of the
 * client's, as that of any server is, and has a link to the span of the run that it would be a child of otherwise.
 */
import { usdOf } from "../../run/money/money.ts";
import type { SpanContent } from "../../call.ts";
import type { CallName, LoggedEvent } from "../../run/log.ts";
import { OTLP_TEXT_CHARS_MAX } from "../../limits.ts";
import { attemptKey, type TraceContext } from "../../trace-context.ts";
import { callIdOf, callTitle, codeOf } from "../trace.ts";

/** What spans repeat of their run. */
export type TracedRun = {
  id: string;
  parentId: string | null;
  name: string | null;
  createdAtMs: number;
  /** Where in a trace its client has opened it; absent = in none. */
  trace?: TraceContext;
  /** The same of its parent. */
  parentTrace?: TraceContext;
  /** The same of a stored group, by its id; null = in none, or the id is of a group of single calls. */
  traceOfGroup: (groupId: string) => TraceContext | null;
  /** The id of an attempt as its executor has it. */
  attemptIdOf: (attempt: CallName & { group: string | null; attempt: number }) => string;
};

/** The value of an attribute. A whole number is one, an amount of USD is not. */
export type AttributeValue = string | boolean | readonly string[] | { int: number } | { double: number };

export type SpanKind = "internal" | "client";

/** A span whose ids are still names within the run. */
export type NamedSpan = {
  key: string;
  /** null = it is the run's. */
  parentKey: string | null;
  /** Its client's trace; null = it is in the run's. */
  client: TraceContext | null;
  /** Whether it is what the client has asked for, rather than a part of that. */
  isAsked: boolean;
  name: string;
  kind: SpanKind;
  startMs: number;
  endMs: number;
  attributes: Record<string, AttributeValue>;
  /** The code of its failure; null = it did not fail. */
  errorCode: string | null;
};

/** The key of a run's own span. */
export const RUN_KEY = "run";

type Ended<Name extends LoggedEvent["event"]> = Extract<LoggedEvent, { event: Name }>;

/** The span that an event ends; null if it ends none. */
export function spanEndedBy(event: LoggedEvent, run: TracedRun): NamedSpan | null {
  switch (event.event) {
    case "attempt_ended":
      return attemptSpan(event, run);
    case "slot_completed":
      return callSpan(event, run);
    case "group_completed":
      return groupSpan(event, run);
    case "run_closed":
      return runSpan(event, run);
    default:
      return null;
  }
}

/** The trace of a stored group, which its slots share; a single call that is stored as a group has the group's id. */
function sharedTrace({ group, callId }: LoggedEvent & CallName, run: TracedRun): TraceContext | null {
  const id = callId ?? group;
  return id === null ? null : run.traceOfGroup(id);
}

function attemptSpan(event: Ended<"attempt_ended">, run: TracedRun): NamedSpan {
  const { attempt, upstream, model, outcome, latencyMs, estimated, charged, atMs } = event;
  const errorCode = outcome === "success" ? null : (codeOf(event.reason) ?? outcome);
  // What an attempt with an unknown end is charged is its reservation, which says nothing about tokens used.
  const usage = {
    "gen_ai.usage.input_tokens": { int: charged.prompt_tokens },
    "gen_ai.usage.output_tokens": { int: charged.completion_tokens },
  };
  return {
    key: attemptKey(run.attemptIdOf(event)),
    parentKey: `call ${callIdOf(event)}`,
    client: event.trace ?? sharedTrace(event, run),
    isAsked: false,
    name: cut(`chat ${model}`),
    kind: "client",
    startMs: atMs - latencyMs,
    endMs: atMs,
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": cut(upstream),
      "gen_ai.request.model": cut(model),
      ...(estimated ? {} : usage),
      "fanout.attempt": { int: attempt },
      "fanout.outcome": outcome,
      "fanout.cost_usd": { double: usdOf(charged.usd) },
      "fanout.estimated": estimated,
      ...contentOf(event.content),
    },
    errorCode,
  };
}

/** Prompts and answers, where the operator exports them; they are bounded where they are made. */
function contentOf({ system, input, output }: SpanContent = {}): Record<string, string> {
  return {
    ...(system === undefined ? {} : { "gen_ai.system_instructions": system }),
    ...(input === undefined ? {} : { "gen_ai.input.messages": input }),
    ...(output === undefined ? {} : { "gen_ai.output.messages": output }),
  };
}

function callSpan(event: Ended<"slot_completed">, run: TracedRun): NamedSpan {
  const { status, attempts, model, finishReason, usage, startedAtMs, endedAtMs, index, callId } = event;
  const answered = model === null ? {} : { "gen_ai.response.model": cut(model) };
  const finished = finishReason === null ? {} : { "gen_ai.response.finish_reasons": [cut(finishReason)] };
  return {
    key: `call ${callIdOf(event)}`,
    parentKey: groupKey(event.group),
    client: event.trace ?? sharedTrace(event, run),
    isAsked: callId !== null,
    name: cut(callTitle({ index, callId })),
    kind: "internal",
    // A call that ended without an attempt has no length.
    startMs: startedAtMs ?? endedAtMs,
    endMs: endedAtMs,
    attributes: {
      "fanout.status": status,
      "fanout.attempts": { int: attempts },
      "fanout.replayed": event.replayed === true,
      "fanout.cost_usd": { double: usdOf(usage.costNanoUsd) },
      ...answered,
      ...finished,
    },
    errorCode: status === "completed" ? null : (codeOf(event.reason) ?? status),
  };
}

function groupSpan(event: Ended<"group_completed">, run: TracedRun): NamedSpan {
  const { status, count, completed, failed, cancelled, costNanoUsd, metrics, atMs } = event;
  return {
    key: groupKey(event.group),
    parentKey: RUN_KEY,
    client: event.group === null ? null : run.traceOfGroup(event.group),
    isAsked: true,
    name: "group",
    kind: "internal",
    startMs: atMs - metrics.wall_ms,
    endMs: atMs,
    attributes: {
      "fanout.group.id": cut(event.group ?? ""),
      "fanout.status": status,
      "fanout.group.calls": { int: count },
      "fanout.group.completed": { int: completed },
      "fanout.group.failed": { int: failed },
      "fanout.group.cancelled": { int: cancelled },
      "fanout.cost_usd": { double: usdOf(costNanoUsd) },
    },
    errorCode: status === "failed" ? status : null,
  };
}

function runSpan(event: Ended<"run_closed">, run: TracedRun): NamedSpan {
  return {
    key: RUN_KEY,
    parentKey: null,
    client: run.trace ?? null,
    isAsked: true,
    name: "run",
    kind: "internal",
    startMs: run.createdAtMs,
    endMs: event.atMs,
    attributes: { "fanout.status": event.status, ...(run.name === null ? {} : { "fanout.run.name": cut(run.name) }) },
    errorCode: null,
  };
}

function groupKey(group: string | null): string {
  return group === null ? RUN_KEY : `group ${group}`;
}

function cut(text: string): string {
  return text.length <= OTLP_TEXT_CHARS_MAX ? text : text.slice(0, OTLP_TEXT_CHARS_MAX).toWellFormed();
}
