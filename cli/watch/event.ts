/**
 * Parses a line of a run's log into the parts that `npm run watch` shows. Every text passes through `printable` here, so that no
 * escape sequence can reach the terminal.
 */
import { z } from "zod";
import { labelsIn, stepText, type CallLabels } from "../../src/labels.ts";
import { isRecord } from "../../src/text/json/record.ts";
import { nameInGroup } from "../../src/log/picture/group.ts";
import { printable } from "../text/printable.ts";

const text = z.string().transform(printable);
const optionalText = text.nullish().transform((value) => value ?? null);
const time = z.string().transform(Date.parse).pipe(z.number());

/** How deep the run is below the root of its tree. */
const depth = z.int().nonnegative().catch(0);
const envelope = { seq: z.int().positive(), ts: time, parallel_group_id: optionalText, depth };
const call = { index: z.int().nonnegative().nullable(), call_id: optionalText };
const attempt = { ...call, attempt: z.int().positive(), upstream: text, model: text };
const money = z.object({ usd: z.number() });

const known = z.discriminatedUnion("event_type", [
  z.object({
    ...envelope,
    event_type: z.literal("run_opened"),
    name: optionalText,
    limits: z.object({ usd: z.number().nullable() }),
  }),
  z.object({
    ...envelope,
    event_type: z.literal("group_started"),
    count: z.int().nonnegative(),
    effective_parallel: z.int().nonnegative(),
  }),
  z.object({ ...envelope, ...attempt, event_type: z.literal("attempt_started") }),
  z.object({
    ...envelope,
    ...attempt,
    event_type: z.literal("attempt_ended"),
    latency_ms: z.number(),
    charged: money,
    outcome: text,
  }),
  z.object({
    ...envelope,
    ...call,
    event_type: z.literal("retry_scheduled"),
    attempt: z.int().positive(),
    delay_ms: z.number(),
    code: text,
  }),
  z.object({
    ...envelope,
    event_type: z.literal("throttled"),
    upstream: text,
    cause: optionalText,
    retry_after_ms: z.number(),
  }),
  z.object({
    ...envelope,
    ...call,
    event_type: z.literal("slot_completed"),
    status: z.enum(["completed", "failed", "cancelled"]),
    attempts: z.int().nonnegative(),
    code: optionalText,
    message: optionalText,
    model: optionalText,
    usage: z.object({ cost: z.number() }).nullish(),
    timestamps: z.object({ llm_call_start: time.nullable(), llm_call_end: time.nullable() }),
  }),
  z.object({
    ...envelope,
    event_type: z.literal("slots_cancelled"),
    count: z.int().nonnegative(),
    status: z.enum(["cancelled", "failed"]),
    code: text,
    message: optionalText,
  }),
  z.object({ ...envelope, ...call, event_type: z.literal("slot_skipped"), code: text, message: text }),
  z.object({
    ...envelope,
    event_type: z.literal("group_completed"),
    count: z.int().nonnegative(),
    status: z.enum(["completed", "partial", "failed", "cancelled", "escalated"]),
    execution_ms: z.number(),
    cost: z.number(),
    speedup: z.number(),
    completed: z.int().nonnegative(),
    failed: z.int().nonnegative(),
    cancelled: z.int().nonnegative(),
  }),
  z.object({
    ...envelope,
    ...call,
    event_type: z.literal("budget_refused"),
    code: text,
    dimension: text,
    limit: z.number(),
    spent: z.number(),
    needed: z.number(),
  }),
  z.object({ ...envelope, ...call, event_type: z.literal("escalated"), tier: optionalText, code: text, message: text }),
  z.object({
    ...envelope,
    ...call,
    event_type: z.literal("overrun"),
    upstream: text,
    model: text,
    reserved: money,
    charged: money,
  }),
  z.object({
    ...envelope,
    event_type: z.literal("tool_called"),
    tool: text,
    code: optionalText,
    latency_ms: z.number(),
  }),
  z.object({ ...envelope, event_type: z.literal("child_opened"), child_run_id: text, reserved: money }),
  z.object({ ...envelope, event_type: z.literal("child_closed"), child_run_id: text, spent: money }),
  z.object({ ...envelope, event_type: z.literal("credit_lost"), charged: money }),
  z.object({ ...envelope, event_type: z.literal("run_closed"), status: text }),
]);

const line = z.object({ ...envelope, event_type: z.string() });

const clients = z.object({
  step: z.union([z.number(), text]).nullish().catch(null),
  hasError: z.unknown().optional(),
  output: z.unknown().optional(),
  code: z.unknown().optional(),
  reasoning: z.unknown().optional(),
  /** The beginning of its text, of an event that is too large to be sent to followers. */
  head: z.unknown().optional(),
});

/** An event of the gateway; one of a call has its labels. */
type Known = z.infer<typeof known> & CallLabels;
type Envelope = { seq: number; ts: number; parallel_group_id: string | null; depth: number };

/** A client's own event, by its name; `excerpt` is the beginning of its text. */
type ClientEvent = Envelope & {
  event_type: "client";
  name: string;
  step: string | null;
  hasError: boolean;
  excerpt: string;
};

/** An event of a known type without the expected fields, probably from another version. */
type UnreadableEvent = Envelope & { event_type: "unreadable"; name: string; fault: string };

/** `ts` and other times are epoch ms; money is in USD. */
export type WatchEvent = Known | ClientEvent | UnreadableEvent;

export type EventOf<Type extends WatchEvent["event_type"]> = Extract<WatchEvent, { event_type: Type }>;

const KNOWN_TYPES: ReadonlySet<string> = new Set(known.options.map((option) => option.shape.event_type.value));

/** The name of a call in its group: its index, or its id if it is a single call. */
export function callKey({ index, call_id: callId }: { index: number | null; call_id: string | null }): string {
  return nameInGroup({ index, callId });
}

/** The step that a run has come to by an event: that of a call that starts, or of a client's event; null = it names none. */
export function stepOfRun(event: WatchEvent): string | null {
  if (event.event_type === "client") return event.step;
  const begins =
    event.event_type === "attempt_started" || (event.event_type === "slot_completed" && event.attempts === 0);
  return begins && event.step !== undefined ? stepText(event.step, event.steps) : null;
}

/** Parses one line; null if the text is not a line of a run's log. */
export function parseEvent(text: string): WatchEvent | null {
  const json = parseJson(text);
  const base = line.safeParse(json);
  if (!base.success) return null;
  const { event_type: type, ...facts } = base.data;
  if (!KNOWN_TYPES.has(type)) return clientEvent(facts, type, json);
  const parsed = known.safeParse(json);
  if (parsed.success) return { ...parsed.data, ...(isRecord(json) ? labelsIn(json, printable) : {}) };
  const issue = parsed.error.issues[0];
  const fault = printable(issue === undefined ? "" : `${issue.path.join(".")}: ${issue.message}`);
  return { ...facts, event_type: "unreadable", name: type, fault };
}

function clientEvent(facts: Envelope, type: string, json: unknown): ClientEvent {
  const sent = clients.safeParse(json).data;
  const texts = [sent?.output, sent?.code, sent?.reasoning, sent?.head].filter((value) => typeof value === "string");
  return {
    ...facts,
    event_type: "client",
    name: printable(type),
    step: sent?.step == null ? null : String(sent.step),
    hasError: sent?.hasError === true,
    excerpt: texts.map(printable).find((text) => text !== "") ?? "",
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
