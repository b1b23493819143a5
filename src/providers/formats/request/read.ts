/**
 * Reads the facts of a request that admission needs from its bytes. Values that an upstream refuses at no cost are left to
 * the upstream; fields that are not in the tables are noted, for limits to refuse.
 */
import type { Endpoint, ImageFacts, UnreservableField } from "../../../call.ts";
import type { Reason } from "../../../errors.ts";
import {
  CHOICES_MAX,
  MAX_TOKENS_MAX,
  NAME_CHARS_MAX,
  LARGE_BODY_BYTES_MIN,
  SCAN_SLICE_BYTES,
  SLICE_CHARS_MAX,
  SCANNED_VALUES_MAX,
  TEXT_LOOK_BYTES_MAX,
  TEXT_LOOK_BYTES_MIN,
} from "../../../limits.ts";
import { atOnce, type Sliced } from "../../../text/bytes/slices.ts";
import { JSON_LEVELS_MAX } from "../../../text/json/validate.ts";
import { excessInSlices } from "../../../text/json/depth.ts";
import { jsonNormalisedGrowth } from "../../../text/tokens/normalised-bytes.ts";
import { countingJsonTokens } from "../../../text/tokens/text-bound.ts";
import {
  member,
  numberOf,
  scanObject,
  scanObjectInSlices,
  type JsonMember,
  type JsonObject,
} from "../../../text/json/scan.ts";
import { bareTextBytes } from "./bare.ts";
import { BETA_HEADER, unlistedBetas } from "./betas.ts";
import { SPENDS_COMPLETION } from "./field-table.ts";
import { readFields } from "./fields.ts";
import { readInstructions, readItems, readMessages, readPrompts, readSystem } from "./prompt.ts";
import { CAP_SPELLINGS, REQUEST_FIELDS, type CapSpelling } from "./request-fields.ts";
import {
  booleanOf,
  countOf,
  mergeUnreservable,
  newScan,
  noteUnreservable,
  objectAt,
  refuse,
  shortName,
  textOf,
  TWICE,
  type ScanContext,
} from "./scan-context.ts";
import { thinkingBudgets, unboundedThoughts, type ThinkingBudget } from "./thinking.ts";
import { readTools } from "./tools.ts";

/** The result of reading a request: a value, or the reason to refuse it. */
export type Parsed<T> = { ok: true; value: T } | { ok: false; reason: Reason };

export type { Endpoint };

/** A completion cap as the client wrote it; `maxTokens` null = the field is present without a cap. */
export type AskedCap = { field: CapSpelling; maxTokens: number | null };

export type RequestFacts = {
  endpoint: Endpoint;
  /** The model as the client named it; null = the default. */
  model: string | null;
  stream: boolean;
  /** Whether the client requested the usage of a stream of chat or text completions. */
  includeUsage: boolean;
  /** Whether embeddings were requested as base64. */
  base64: boolean;
  /** The smallest cap of each completion that the client set, in tokens; null = no cap. */
  maxTokens: number | null;
  /** Every field with a cap, in any spelling, as the client wrote it. */
  caps: readonly AskedCap[];
  /** Completions that may be made, each up to the cap: choices or candidates, times prompts. 0 for embeddings. */
  completions: number;
  /**
   * Bytes of the request without media data and token numbers, plus the bytes that normalising can add; of a bare request only those
   * of its text. They bound the tokens of everything that is read as text.
   */
  promptBytes: number;
  /** A tighter upper bound of those tokens, from a scan of the bytes; null = one token a byte. */
  textTokensMax: number | null;
  /** Prompt tokens that the bytes do not bound: sent as numbers, or added by the provider. */
  promptTokenIds: number;
  messageCount: number;
  /** Whether its prompt is one message of plain text, around which the template is always the same: see `bareTextBytes`. */
  isBare: boolean;
  mediaParts: number;
  /** What is known of those images, by size and detail. */
  images: readonly ImageFacts[];
  fileParts: number;
  /** Whether tools are sent. */
  tools: boolean;
  /** The most expensive cache lifetime that is marked; null = no mark. */
  cacheTtl: "5m" | "1h" | null;
  /** The service tier as the client named it, `fast` if set by `speed`; null = not set. */
  serviceTier: string | null;
  /** Fields for which a run must refuse the request if it limits a dimension that they spend. */
  unbounded: readonly UnreservableField[];
  /** Budgets of thoughts. `readRequest` notes those that the cap does not bound. */
  budgets: readonly ThinkingBudget[];
  /** The ranges of the top-level object, for `rewriteRequest`. */
  object: JsonObject;
};

/** The family's own caps: an invalid value is refused. In another server's spelling it may mean "no cap". */
const CAPS_OF_FAMILY: Readonly<Record<Endpoint, readonly CapSpelling[]>> = {
  chat: ["max_tokens", "max_completion_tokens"],
  completions: ["max_tokens"],
  embeddings: [],
  responses: ["max_output_tokens"],
  messages: ["max_tokens"],
};

/** The required field of each endpoint. */
const REQUIRED: Readonly<Record<Endpoint, string | null>> = {
  chat: "messages",
  completions: null,
  embeddings: "input",
  responses: null,
  messages: "messages",
};

/**
 * Reads a request of an endpoint. A `\uXXXX` escape has more bytes than its character, even with the bytes that normalising
 * adds, so the bytes as sent bound the tokens of the decoded text too.
 */
export function readRequest(endpoint: Endpoint, bytes: Uint8Array): Parsed<RequestFacts> {
  return atOnce(requestReading(endpoint, bytes));
}

/** The same in slices. */
export function* requestReading(endpoint: Endpoint, bytes: Uint8Array): Sliced<Parsed<RequestFacts>> {
  const read = yield* readBody(endpoint, bytes, REQUIRED[endpoint]);
  if (!read.ok) return read;
  const { budgets, maxTokens, unbounded } = read.value;
  const value = { ...read.value, unbounded: withThoughts(unbounded, budgets, maxTokens) };
  const textBytes = bareTextBytes(endpoint, bytes, value.object);
  if (textBytes !== null) {
    value.isBare = true;
    // Without the JSON around the text, and the fields that are not read.
    value.promptBytes -= bytes.length - textBytes;
  }
  return { ok: true, value };
}

/** The facts of a request with a header that names beta features. */
export function withBetas(facts: RequestFacts, names: string): RequestFacts {
  if (names === "") return facts;
  const scan = newScan(new Uint8Array());
  for (const entry of unlistedBetas(names, BETA_HEADER)) noteUnreservable(scan, entry);
  return { ...facts, unbounded: mergeUnreservable(facts.unbounded, scan.unbounded) };
}

function withThoughts(
  unbounded: readonly UnreservableField[],
  budgets: readonly ThinkingBudget[],
  maxTokens: number | null,
): readonly UnreservableField[] {
  return budgets.length === 0 ? unbounded : mergeUnreservable(unbounded, unboundedThoughts(budgets, maxTokens));
}

/**
 * Reads a part of a chat completion: only its messages, or only its other fields. Its `budgets` are for the caller to compare
 * with the cap, which may be in another part.
 */
export function readChatPart(bytes: Uint8Array): Parsed<RequestFacts> {
  return atOnce(chatPartReading(bytes));
}

/** The same in slices. */
export function chatPartReading(bytes: Uint8Array): Sliced<Parsed<RequestFacts>> {
  return readBody("chat", bytes, null);
}

/** What a body may have that is scanned; deeper ones are refused where they are read. */
const SCANNED = { levelsMax: JSON_LEVELS_MAX, valuesMax: SCANNED_VALUES_MAX, sliceBytes: SCAN_SLICE_BYTES };

function* readBody(endpoint: Endpoint, bytes: Uint8Array, required: string | null): Sliced<Parsed<RequestFacts>> {
  const scan = newScan(bytes);
  const isLarge = bytes.length >= LARGE_BODY_BYTES_MIN;
  const excess = isLarge ? yield* excessInSlices(bytes, SCANNED) : null;
  if (excess?.of === "values") {
    refuse(
      scan,
      null,
      `has more than ${SCANNED_VALUES_MAX} values; expected at most so many elements and fields together`,
    );
    return refused(scan);
  }
  if (isLarge) yield;
  const body = isLarge ? yield* scanObjectInSlices(bytes, SCAN_SLICE_BYTES) : scanObject(bytes);
  if (isLarge) yield;
  if (!body.ok) {
    refuse(scan, null, body.problem);
    return refused(scan);
  }
  const { object } = body;
  if (object.duplicate !== null) refuse(scan, shortName(object.duplicate), TWICE);
  if (required !== null && member(object, required) === null) refuse(scan, required, "is missing");
  const settings = settingsOf(scan, object, endpoint);
  readFields(scan, object, REQUEST_FIELDS[endpoint], "");
  let choices = 1;
  for (const field of object.members) {
    readPromptField(scan, field, endpoint);
    if (endpoint === "embeddings") continue;
    if (field.name === "tools") yield* readTools(scan, field, endpoint !== "messages");
    else if (field.name === "n" || field.name === "best_of") {
      choices = Math.max(choices, countOf(scan, field, CHOICES_MAX) ?? 1);
    }
  }
  readFunctions(scan, object);
  if (scan.refusal !== null) return refused(scan);
  if (isLarge) yield;
  const growth = yield* growthOf(bytes);
  const completions = endpoint === "embeddings" ? 0 : choices * scan.prompts;
  const counts = yield* countsOf(scan, growth, isLarge ? SLICE_CHARS_MAX : Infinity);
  return { ok: true, value: { ...settings, completions, ...counts } };
}

function refused({ refusal }: ScanContext): { ok: false; reason: Reason } {
  return { ok: false, reason: refusal ?? { reason: "invalid_request", message: "the body is refused", param: null } };
}

function settingsOf(scan: ScanContext, object: JsonObject, endpoint: Endpoint) {
  const caps = endpoint === "embeddings" ? [] : capsOf(scan, object, endpoint);
  const requested = caps.flatMap(({ maxTokens }) => (maxTokens === null ? [] : [maxTokens]));
  return {
    endpoint,
    model: modelOf(scan, member(object, "model")),
    stream: booleanOf(scan, member(object, "stream"), "stream") ?? false,
    includeUsage: includeUsageOf(scan, member(object, "stream_options")),
    base64: textOf(scan, member(object, "encoding_format")) === "base64",
    maxTokens: requested.length === 0 ? null : Math.min(...requested),
    serviceTier: tierOf(scan, object),
    caps,
    budgets: endpoint === "embeddings" ? [] : thinkingBudgets(scan.bytes, object),
    object,
  };
}

/** Anthropic's fast mode has a field and a price of its own, so it is read as a service tier. */
function tierOf(scan: ScanContext, object: JsonObject): string | null {
  const speed = textOf(scan, member(object, "speed"));
  return speed === "fast" ? speed : textOf(scan, member(object, "service_tier"));
}

/** The bytes that normalising can add to a body. */
function* growthOf(bytes: Uint8Array): Sliced<number> {
  let growth = 0;
  for (let from = 0; from < bytes.length;) {
    if (from > 0) yield;
    let to = Math.min(bytes.length, from + SCAN_SLICE_BYTES);
    // Not in the middle of a character.
    while (to < bytes.length && ((bytes[to] ?? 0) & 0xc0) === 0x80) to++;
    growth += jsonNormalisedGrowth(bytes, from, to);
    from = to;
  }
  return growth;
}

/** The sizes of what was scanned. The look at its text is the slowest part of reading it: 33 ns a byte, at most. */
function* countsOf(scan: ScanContext, growth: number, sliceBytes: number) {
  const { bytes, otherBytes, promptTokenIds, messageCount, tools, cacheTtl, unbounded } = scan;
  const { mediaParts, images, fileParts } = scan;
  const textBytes = bytes.length - otherBytes;
  // If some bytes are not text, the scan would have to know which.
  const isLookedAt = otherBytes === 0 && textBytes >= TEXT_LOOK_BYTES_MIN && textBytes <= TEXT_LOOK_BYTES_MAX;
  const whole = { from: 0, to: bytes.length, growth, sliceBytes };
  const textTokensMax = isLookedAt ? yield* countingJsonTokens(bytes, whole) : null;
  return {
    promptBytes: textBytes + growth,
    textTokensMax,
    promptTokenIds,
    messageCount,
    isBare: false,
    mediaParts,
    images,
    fileParts,
    tools,
    cacheTtl,
    unbounded,
  };
}

function capsOf(scan: ScanContext, object: JsonObject, endpoint: Endpoint): AskedCap[] {
  const caps: AskedCap[] = [];
  for (const name of CAP_SPELLINGS) {
    const field = member(object, name);
    if (field === null) continue;
    const isOwn = CAPS_OF_FAMILY[endpoint].includes(name);
    caps.push({ field: name, maxTokens: isOwn ? countOf(scan, field, MAX_TOKENS_MAX) : foreignCap(scan, field) });
  }
  return caps;
}

/** llama.cpp's `n_predict` of -1, for instance, means no cap: it is noted, because nothing bounds the completion then. */
function foreignCap(scan: ScanContext, field: JsonMember): number | null {
  if (field.kind === "null") return null;
  const count = field.kind === "number" ? numberOf(scan.bytes, field) : Number.NaN;
  if (Number.isInteger(count) && count >= 1 && count <= MAX_TOKENS_MAX) return count;
  const why = `A cap is an integer from 1 to ${MAX_TOKENS_MAX}; without one, nothing bounds the completion.`;
  noteUnreservable(scan, { field: field.name, why, spends: SPENDS_COMPLETION });
  return null;
}

function modelOf(scan: ScanContext, field: JsonMember | null): string | null {
  if (field === null || field.kind === "null") return null;
  const model = textOf(scan, field);
  if (model !== null && model !== "" && model.length <= NAME_CHARS_MAX && isLabel(model)) return model;
  refuse(scan, "model", `expected a text of 1 to ${NAME_CHARS_MAX} characters, none of them control characters`);
  return null;
}

function isLabel(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}

function includeUsageOf(scan: ScanContext, field: JsonMember | null): boolean {
  if (field === null || field.kind === "null") return false;
  const options = objectAt(scan, field, "stream_options");
  const include = options === null ? null : member(options, "include_usage");
  return booleanOf(scan, include, "stream_options.include_usage") ?? false;
}

/** `functions` is the former name of tools. */
function readFunctions(scan: ScanContext, object: JsonObject): void {
  if (member(object, "functions")?.kind === "array") scan.tools = true;
}

function readPromptField(scan: ScanContext, field: JsonMember, endpoint: Endpoint): void {
  switch (field.name) {
    case "messages":
      // Some upstreams embed conversations; the Responses API and text completions have no messages.
      if (endpoint !== "responses" && endpoint !== "completions") readMessages(scan, field);
      break;
    case "system":
      if (endpoint === "messages") readSystem(scan, field);
      break;
    case "instructions":
      if (endpoint === "responses") readInstructions(scan, field);
      break;
    case "prompt":
      if (endpoint === "completions") readPrompts(scan, field, false);
      break;
    case "input":
      if (endpoint === "embeddings") readPrompts(scan, field, true);
      else if (endpoint === "responses") readItems(scan, field);
      break;
  }
}
