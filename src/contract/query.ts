/** `POST /query`: one call. */
import * as z from "zod";
import { SETTINGS_DEFAULT, callSettingsFields, parseSettings, type FieldPath } from "./call-options.ts";
import type { ParsedCall } from "./call.ts";
import { parseCall } from "./call.ts";
import type { Parsed } from "./errors.ts";
import { invalid, zodReason } from "./errors.ts";
import { PresentFields } from "./present-fields.ts";
import { stepsDocument } from "./steps/cascade.ts";
import { sampledFields } from "./steps/samples.ts";
import { toolUseFields } from "./steps/tool-use.ts";
import { replayedFlag } from "./replay.ts";
import { strictFields } from "./strict-fields.ts";
import {
  answeredBy,
  answerJson,
  answerParts,
  callRulesFields,
  cappedBy,
  contentFields,
  ONE_CONTENT,
  rulesOf,
  type SentRules,
} from "./fields.ts";
import { atFirstUse } from "../at-first-use.ts";

/** The request as documented. */
export const queryBody = atFirstUse(() =>
  strictFields({ ...contentFields(), ...callSettingsFields(), ...callRulesFields() }).meta({
    id: "Query",
    ...ONE_CONTENT,
  }),
);

type QueryField = keyof ReturnType<typeof queryBody>["shape"];
const presentFields = atFirstUse(
  () => new PresentFields(queryBody(), (mask: { [Name in QueryField]?: true }) => queryBody().pick(mask)),
);

/** Tokens and cost of a call or a group, USD. */
export const usageDocument = atFirstUse(() =>
  z
    .object({
      prompt_tokens: z.int(),
      completion_tokens: z.int(),
      total_tokens: z.int(),
      cost: z.number(),
      cached_tokens: z.int().optional().meta({
        description: "Prompt tokens read from the provider's cache; absent: none, or the provider does not say",
      }),
      reasoning_tokens: z
        .int()
        .optional()
        .meta({ description: "Completion tokens that were reasoning; absent: none, or the provider does not say" }),
      cache_write_tokens: z.int().optional().meta({ description: "Prompt tokens written to it" }),
      saved_usd: z
        .number()
        .optional()
        .meta({ description: "What that saved, or batches of the provider; below 0 if cache writes cost more" }),
    })
    .meta({ id: "Usage" }),
);

/** The answer: `text`, `result` and `response` are the same string, under the names that clients in the field read. */
export const queryReply = atFirstUse(() =>
  z
    .object({
      id: z.string(),
      text: z.string(),
      result: z.string(),
      response: z.string(),
      model: z.string(),
      usage: usageDocument(),
      attempts: z.int(),
      latency_ms: z.number(),
      queued_ms: z.number(),
      parallel_group_id: z.string().nullable(),
      finish_reason: z.string().nullable(),
      json: answerJson(),
      ...answerParts(),
      capped_by: cappedBy(),
      upstream: answeredBy(),
      steps: stepsDocument(),
      ...sampledFields(),
      ...toolUseFields(),
      replayed: replayedFlag(),
    })
    .meta({ id: "QueryReply" }),
);
export type QueryReply = z.infer<ReturnType<typeof queryReply>>;

const asNamed: FieldPath = (field) => field;

/** A call with its rules. */
export type QueryRequest = ParsedCall & SentRules;

/** A parsed JSON body as a call, or the first reason to refuse it. `path` maps a field to its name in the request. */
export function parseQuery(value: unknown, path = asNamed): Parsed<QueryRequest> {
  const read = presentFields().safeParse(value);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const settings = parseSettings(read.data, SETTINGS_DEFAULT, path);
  if (!settings.ok) return settings;
  return withRules(parseCall(read.data, settings.value, path), rulesOf(read.data));
}

/** A `text/plain` body as a call: the text is the prompt. */
export function parsePromptText(text: string): Parsed<QueryRequest> {
  if (text === "") return invalid(null, "is empty; expected the prompt as text");
  return withRules(parseCall({ prompt: text }, SETTINGS_DEFAULT, asNamed), rulesOf({}));
}

function withRules(call: Parsed<ParsedCall>, rules: SentRules): Parsed<QueryRequest> {
  return call.ok ? { ok: true, value: { ...call.value, ...rules } } : call;
}
