/** Which fields of an answer that is one JSON body tell something to the gateway, and what they tell. */
import type { Usage } from "../call.ts";
import { readAnthropicUsage } from "./anthropic-usage.ts";
import { OPEN_OBJECT, QUOTE } from "./json-bytes.ts";
import type { Endpoint } from "./json-request.ts";
import { isRecord } from "./record.ts";
import { nameIn } from "./sse-reader.ts";
import { readResponsesUsage } from "./sse-usage.ts";
import { readUsage } from "./usage.ts";

/** What an answer says of itself. */
export type AnswerFacts = {
  /** Null where it is absent, impossible, or larger than `USAGE_BYTES_MAX`. */
  usage: Usage | null;
  /** In the upstream's words, cut to `NAME_CHARS_MAX`, as are the reason and the id. */
  model: string | null;
  /** Of a response its status, or in what it is incomplete. */
  finishReason: string | null;
  id: string | null;
  /** Whether the body reports an error in place of an answer, or of its rest. */
  hasError: boolean;
};

/** The text of a field's value as it was written, or its first `FIELD_BYTES_MAX` bytes; by the field's name. */
export type AnswerFields = ReadonlyMap<string, Uint8Array>;

/** Largest usage that is read, bytes: a hundred times the longest seen in the field. */
export const USAGE_BYTES_MAX = 64 * 1024;

/** How much of any other field is read, bytes: names are a hundred characters, each written in six bytes at most. */
export const FIELD_BYTES_MAX = 4 * 1024;

/** The fields of the first choice carry this before their name. */
export const CHOICE_PREFIX = "choice.";

const COMMON = ["model", "id", "error", "object"];
const OF_CHOICES = ["choice.finish_reason", "choice.error"];

/** Fields that are read of an answer besides its `usage`: top-level ones, and those of the first of the `choices`. */
export const ANSWER_FIELDS: Readonly<Record<Endpoint, readonly string[]>> = {
  chat: [...COMMON, ...OF_CHOICES],
  completions: [...COMMON, ...OF_CHOICES],
  embeddings: COMMON,
  responses: [...COMMON, "status", "incomplete_details"],
  messages: [...COMMON, "stop_reason"],
};

/** Lenient, because a broken character in a field is the client's to judge. */
const utf8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/** Reads the usage of an answer from its text; null where that is no usage. */
export function usageIn(endpoint: Endpoint, json: Uint8Array): Usage | null {
  const usage = json.length > USAGE_BYTES_MAX ? null : parsed(json);
  switch (endpoint) {
    case "chat":
    case "completions":
      return readUsage(usage);
    case "embeddings":
      return readEmbeddingsUsage(usage);
    case "responses":
      return readResponsesUsage(usage);
    case "messages":
      return readAnthropicUsage(usage);
  }
}

/** Nothing is completed, so that count may be absent; some upstreams name the total only. */
function readEmbeddingsUsage(usage: unknown): Usage | null {
  if (!isRecord(usage)) return null;
  const promptTokens = usage["prompt_tokens"] ?? usage["total_tokens"];
  return readUsage({ ...usage, prompt_tokens: promptTokens, completion_tokens: usage["completion_tokens"] ?? 0 });
}

/** What the other fields tell. */
export function factsIn(endpoint: Endpoint, fields: AnswerFields, usage: Usage | null): AnswerFacts {
  const finishReason = finishReasonIn(endpoint, fields);
  return { usage, model: name(fields, "model"), finishReason, id: name(fields, "id"), hasError: isError(fields) };
}

function finishReasonIn(endpoint: Endpoint, fields: AnswerFields): string | null {
  switch (endpoint) {
    case "chat":
    case "completions":
      return name(fields, "choice.finish_reason");
    case "embeddings":
      return null;
    case "responses": {
      const details = value(fields, "incomplete_details");
      return nameIn(isRecord(details) ? details["reason"] : null) ?? name(fields, "status");
    }
    case "messages":
      return name(fields, "stop_reason");
  }
}

/**
 * An error is an object or words; null, false, an empty text are none. A response that failed says why in the same
 * field, but it is a whole answer of its protocol. (`status` is read of responses only.)
 */
function isError(fields: AnswerFields): boolean {
  if (name(fields, "object") === "error" || fields.get("choice.error")?.[0] === OPEN_OBJECT) return true;
  if (name(fields, "status") === "failed") return false;
  const [first, second] = fields.get("error") ?? [];
  return first === OPEN_OBJECT || (first === QUOTE && second !== QUOTE);
}

function name(fields: AnswerFields, field: string): string | null {
  return nameIn(value(fields, field));
}

function value(fields: AnswerFields, field: string): unknown {
  const json = fields.get(field);
  return json === undefined ? undefined : parsed(json);
}

function parsed(json: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(json));
  } catch {
    return undefined;
  }
}
