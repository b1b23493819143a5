/**
 * What admission must know of a request that passes through byte for byte. Only that is read: what an upstream would
 * refuse at no cost is left to it, and fields that are unknown here pass.
 */
import type { Endpoint, Unbounded } from "../call.ts";
import type { Reason } from "../errors.ts";
import { MAX_TOKENS_MAX, NAME_CHARS_MAX } from "../limits.ts";
import { readInstructions, readItems, readMessages, readPrompts, readSystem } from "./json-prompt.ts";
import {
  booleanOf,
  countOf,
  newReading,
  objectAt,
  readCacheControl,
  refuse,
  textOf,
  TWICE,
  type Reading,
} from "./json-reading.ts";
import { member, scanObject, type JsonMember, type JsonObject } from "./json-scan.ts";
import { readTools } from "./json-tools.ts";
import { readRoutedModel, readUnbounded } from "./json-unbounded.ts";

/** What reading a request ends as: its value, or why it is refused. */
export type Parsed<T> = { ok: true; value: T } | { ok: false; reason: Reason };

export type { Endpoint };

export type CapField = "max_tokens" | "max_completion_tokens" | "max_output_tokens";

/** A completion cap as it stands in the request; `maxTokens` null = the field is there and null. */
export type AskedCap = { field: CapField; maxTokens: number | null };

export type RequestFacts = {
  endpoint: Endpoint;
  /** Model as the client named it; null = the default. */
  model: string | null;
  stream: boolean;
  /** Whether the client asked for the usage of a stream of chat or text completions. */
  includeUsage: boolean;
  /** Whether embeddings are asked for as base64 text. */
  base64: boolean;
  /** The smallest cap that the client asked of each completion, in tokens; null = none asked. */
  maxTokens: number | null;
  /** Every field of this endpoint that carries a cap, as the client wrote it. */
  caps: readonly AskedCap[];
  /** Completions that may be made, each up to the cap: choices or candidates, times prompts. 0 for embeddings. */
  completions: number;
  /** Bytes of the request without data of media and token numbers: bounds the tokens of what is read as text. */
  promptBytes: number;
  /** Prompt tokens given by number, which come on top of what the bytes bound. */
  promptTokenIds: number;
  messageCount: number;
  /** Images, sounds, files and parts of unknown kinds. */
  mediaParts: number;
  /** Fields under which a run with one of the limits that they spend must refuse the request; eight or so at most. */
  unbounded: readonly Unbounded[];
  /** The top-level object as it lies in the bytes, for `rewriteRequest`. */
  object: JsonObject;
};

const CAP_FIELDS: Readonly<Record<Endpoint, readonly CapField[]>> = {
  chat: ["max_tokens", "max_completion_tokens"],
  completions: ["max_tokens"],
  embeddings: [],
  responses: ["max_output_tokens"],
  messages: ["max_tokens"],
};

/** The field without which there is nothing to ask; the others of a protocol may be left out. */
const REQUIRED: Readonly<Record<Endpoint, string | null>> = {
  chat: "messages",
  completions: null,
  embeddings: "input",
  responses: null,
  messages: "messages",
};

/** Choices or candidates of one prompt, at most: far above what upstreams allow, small enough to multiply. */
const CHOICES_MAX = 1_000;

type Counts = { n: number; bestOf: number };

/**
 * Reads a request of an endpoint. The `\uXXXX` escapes of JSON take more bytes than the text they stand for, so its
 * bytes as sent bound its tokens as they bound those of the decoded text.
 */
export function readRequest(endpoint: Endpoint, bytes: Uint8Array): Parsed<RequestFacts> {
  const reading = newReading(bytes);
  const scan = scanObject(bytes);
  if (!scan.ok) {
    refuse(reading, null, scan.problem);
    return refused(reading);
  }
  const { object } = scan;
  if (object.duplicate !== null) refuse(reading, object.duplicate, TWICE);
  const required = REQUIRED[endpoint];
  if (required !== null && member(object, required) === null) refuse(reading, required, "is missing");
  const facts = settingsOf(reading, object, endpoint);
  const counts: Counts = { n: 1, bestOf: 1 };
  for (const field of object.members) {
    readPromptField(reading, field, endpoint);
    readUnbounded(reading, field, endpoint === "responses");
    if (endpoint === "embeddings") continue;
    if (field.name === "tools") readTools(reading, field, endpoint !== "messages");
    else if (field.name === "n") counts.n = countOf(reading, field, CHOICES_MAX) ?? 1;
    else if (field.name === "best_of") counts.bestOf = countOf(reading, field, CHOICES_MAX) ?? 1;
  }
  if (facts.model !== null) readRoutedModel(reading, facts.model);
  readCacheControl(reading, object, "");
  if (reading.refusal !== null) return refused(reading);
  const completions = endpoint === "embeddings" ? 0 : Math.max(counts.n, counts.bestOf) * reading.prompts;
  return { ok: true, value: { ...facts, completions, ...countsOf(reading) } };
}

function refused({ refusal }: Reading): { ok: false; reason: Reason } {
  return { ok: false, reason: refusal ?? { reason: "invalid_request", message: "the body: is refused", param: null } };
}

function settingsOf(reading: Reading, object: JsonObject, endpoint: Endpoint) {
  const caps: AskedCap[] = [];
  for (const name of CAP_FIELDS[endpoint]) {
    const field = member(object, name);
    if (field !== null) caps.push({ field: name, maxTokens: countOf(reading, field, MAX_TOKENS_MAX) });
  }
  const asked = caps.flatMap(({ maxTokens }) => (maxTokens === null ? [] : [maxTokens]));
  return {
    endpoint,
    model: modelOf(reading, member(object, "model")),
    stream: booleanOf(reading, member(object, "stream"), "stream") ?? false,
    includeUsage: includeUsageOf(reading, member(object, "stream_options")),
    base64: textOf(reading, member(object, "encoding_format")) === "base64",
    maxTokens: asked.length === 0 ? null : Math.min(...asked),
    caps,
    object,
  };
}

function countsOf({ bytes, otherBytes, promptTokenIds, messageCount, mediaParts, unbounded }: Reading) {
  return { promptBytes: bytes.length - otherBytes, promptTokenIds, messageCount, mediaParts, unbounded };
}

function modelOf(reading: Reading, field: JsonMember | null): string | null {
  if (field === null || field.kind === "null") return null;
  const model = textOf(reading, field);
  if (model !== null && model !== "" && model.length <= NAME_CHARS_MAX && isLabel(model)) return model;
  refuse(reading, "model", `expected a text of 1 to ${NAME_CHARS_MAX} characters, none of them control characters`);
  return null;
}

function isLabel(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}

function includeUsageOf(reading: Reading, field: JsonMember | null): boolean {
  if (field === null || field.kind === "null") return false;
  const options = objectAt(reading, field, "stream_options");
  const include = options === null ? null : member(options, "include_usage");
  return booleanOf(reading, include, "stream_options.include_usage") ?? false;
}

function readPromptField(reading: Reading, field: JsonMember, endpoint: Endpoint): void {
  switch (field.name) {
    case "messages":
      // Some upstreams embed conversations; the Responses API and text completions know no messages.
      if (endpoint !== "responses" && endpoint !== "completions") readMessages(reading, field);
      break;
    case "system":
      if (endpoint === "messages") readSystem(reading, field);
      break;
    case "instructions":
      if (endpoint === "responses") readInstructions(reading, field);
      break;
    case "prompt":
      if (endpoint === "completions") readPrompts(reading, field, false);
      break;
    case "input":
      if (endpoint === "embeddings") readPrompts(reading, field, true);
      else if (endpoint === "responses") readItems(reading, field);
      break;
  }
}
