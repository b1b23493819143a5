/** The fields of a JSON answer that the gateway reads, and the facts that they report. */
import type { Usage } from "../../../call.ts";
import { readAnthropicUsage } from "../usage/anthropic.ts";
import { nextMember, OPEN_OBJECT, QUOTE, skipSpace } from "../../../text/json/grammar.ts";
import { shortText, spells } from "../../../text/json/key.ts";
import type { Endpoint } from "../../../call.ts";
import { tryParse } from "../../../text/json/parse.ts";
import { isRecord } from "../../../text/json/record.ts";
import { nameIn } from "../stream/family.ts";
import { readResponsesUsage } from "../usage/responses.ts";
import { readUsage, withServiceTier } from "../usage/usage.ts";

/** What an answer reports. */
export type AnswerFacts = {
  /** Null if it is missing, impossible, or larger than `USAGE_BYTES_MAX`. */
  usage: Usage | null;
  /** In the upstream's words, cut to `NAME_CHARS_MAX`, as are the reason and the id. */
  model: string | null;
  /** Of a response, its status or the reason why it is incomplete. */
  finishReason: string | null;
  id: string | null;
  /** Whether the body reports an error in place of an answer, or of its rest. */
  hasError: boolean;
};

/** The bytes of each field's value, or its first `FIELD_BYTES_MAX` bytes, by the field's name. */
export type AnswerFields = ReadonlyMap<string, Uint8Array>;

/** Largest usage that is read, bytes: a hundred times the longest one seen. */
export const USAGE_BYTES_MAX = 64 * 1024;

/** How much of any other field is read, bytes: names are a hundred characters, each written in six bytes at most. */
export const FIELD_BYTES_MAX = 4 * 1024;

/** Prefix of the names of the first choice's fields. */
export const CHOICE_PREFIX = "choice.";

/** Messages name the tier in their usage instead. */
const TIER = "service_tier";
const COMMON = ["model", "id", "error", "object"];
const OF_CHOICES = ["choice.finish_reason", "choice.error"];

/** Fields that are read besides `usage`: top-level ones, and those of the first of the `choices`. */
export const ANSWER_FIELDS: Readonly<Record<Endpoint, readonly string[]>> = {
  chat: [...COMMON, TIER, ...OF_CHOICES],
  completions: [...COMMON, TIER, ...OF_CHOICES],
  embeddings: COMMON,
  responses: [...COMMON, TIER, "status", "incomplete_details"],
  messages: [...COMMON, "stop_reason"],
};

/** Lenient, because a broken character is for the client to judge. */
const utf8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/** Reads the usage of an answer from its bytes; null if it is missing or impossible. */
export function usageIn(endpoint: Endpoint, json: Uint8Array): Usage | null {
  const usage = json.length > USAGE_BYTES_MAX ? null : tryParse(utf8.decode(json));
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

/** Embeddings complete nothing, so that count may be missing; some upstreams report the total only. */
function readEmbeddingsUsage(usage: unknown): Usage | null {
  if (!isRecord(usage)) return null;
  const promptTokens = usage["prompt_tokens"] ?? usage["total_tokens"];
  return readUsage({ ...usage, prompt_tokens: promptTokens, completion_tokens: usage["completion_tokens"] ?? 0 });
}

/** The facts that the other fields report. */
export function factsIn(endpoint: Endpoint, fields: AnswerFields, read: Usage | null): AnswerFacts {
  const finishReason = finishReasonIn(endpoint, fields);
  const usage = read === null ? null : withServiceTier(read, value(fields, TIER));
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
 * An error is an object or a text that is not empty. A failed response holds its reason in the same field, but it is a whole
 * answer of its protocol. (`status` is read of responses only.)
 */
function isError(fields: AnswerFields): boolean {
  if (name(fields, "object") === "error" || fields.get("choice.error")?.[0] === OPEN_OBJECT) return true;
  if (name(fields, "status") === "failed") return false;
  return isErrorValue(fields.get("error") ?? NOTHING);
}

const NOTHING = new Uint8Array(0);

/** Whether the value of a field named `error` reports one, by its first two bytes. */
function isErrorValue([first, second]: Uint8Array): boolean {
  return first === OPEN_OBJECT || (first === QUOTE && second !== QUOTE);
}

const BYTE_ORDER_MARK = 0xef;

/**
 * Whether a body that begins with these bytes is not an answer: its first member reports an error (routers put nothing
 * before it), or it is not a JSON object, like a page of HTML.
 */
export function beginsAsFailure(head: Uint8Array): boolean {
  const start = skipSpace(head, head[0] === BYTE_ORDER_MARK ? 3 : 0);
  if (start >= head.length) return false;
  if (head[start] !== OPEN_OBJECT) return true;
  const first = nextMember(head, start + 1);
  if (first === null) return false;
  const { keyStart, keyEnd, valueStart } = first;
  if (spells(head, keyStart, keyEnd, "error")) return isErrorValue(head.subarray(valueStart));
  return spells(head, keyStart, keyEnd, "object") && spells(head, valueStart, valueStart + ERROR.length, ERROR);
}

const ERROR = '"error"';

function name(fields: AnswerFields, field: string): string | null {
  return nameIn(value(fields, field));
}

function value(fields: AnswerFields, field: string): unknown {
  const json = fields.get(field);
  if (json === undefined) return undefined;
  const last = json.length - 1;
  const isText = last > 0 && json[0] === QUOTE && json[last] === QUOTE;
  // Most are names, which repeat.
  return (isText ? shortText(json, 1, last) : null) ?? tryParse(utf8.decode(json));
}
