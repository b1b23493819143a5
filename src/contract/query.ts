/** `POST /query`: one call. */
import { z } from "@hono/zod-openapi";
import type { ParsedCall, Place } from "./call.ts";
import { parseCall, parseSettings, SETTINGS_DEFAULT } from "./call.ts";
import type { Parsed } from "./errors.ts";
import { invalid, zodReason } from "./errors.ts";
import { callSettingsFields, contentFields, deadlineField, outcomeFields } from "./fields.ts";

/** The request as documented. */
export const queryBody = z
  .strictObject({ ...contentFields, ...callSettingsFields, ...deadlineField, ...outcomeFields })
  .openapi("Query");

/** Tokens and cost of a call or a group, USD. */
export const usageDocument = z
  .object({
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    total_tokens: z.int(),
    cost: z.number(),
  })
  .openapi("Usage");

/** The answer: `text`, `result` and `response` are the same string, under the names that clients in the field read. */
export const queryReply = z
  .object({
    id: z.string(),
    text: z.string(),
    result: z.string(),
    response: z.string(),
    model: z.string(),
    usage: usageDocument,
    attempts: z.int(),
    latency_ms: z.number(),
    queued_ms: z.number(),
    parallel_group_id: z.string().nullable(),
    finish_reason: z.string().nullable(),
  })
  .openapi("QueryReply");
export type QueryReply = z.infer<typeof queryReply>;

const asNamed: Place = (field) => field;

/** A call with what bears on it as a whole. */
export type QueryRequest = ParsedCall & {
  /** How long it may be queued, ms; null = as long as it takes. */
  deadlineMs: number | null;
  onLost: "retry" | "fail";
  dedupe: boolean;
};

/** A parsed JSON body as a call, or the first reason to refuse it. `place` tells what its sender calls a field. */
export function parseQuery(value: unknown, place = asNamed): Parsed<QueryRequest> {
  const read = queryBody.safeParse(value);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const settings = parseSettings(read.data, SETTINGS_DEFAULT, place);
  if (!settings.ok) return settings;
  const { deadline_ms, on_lost, dedupe } = read.data;
  const rules = { deadlineMs: deadline_ms ?? null, onLost: on_lost ?? "retry", dedupe: dedupe ?? false };
  return withRules(parseCall(read.data, settings.value, place), rules);
}

/** A `text/plain` body as a call: the text is the prompt. */
export function parsePromptText(text: string): Parsed<QueryRequest> {
  if (text === "") return invalid(null, "empty body; expected the prompt as text");
  const rules = { deadlineMs: null, onLost: "retry", dedupe: false } as const;
  return withRules(parseCall({ prompt: text }, SETTINGS_DEFAULT, asNamed), rules);
}

function withRules(call: Parsed<ParsedCall>, rules: Omit<QueryRequest, keyof ParsedCall>): Parsed<QueryRequest> {
  return call.ok ? { ok: true, value: { ...call.value, ...rules } } : call;
}
