/**
 * Parses a call from its content and its options: its body (`CallBody`), which is stored and sent, and its admission facts
 * (`CallFacts`). Runs once per slot of a batch, so it is written by hand: bytes are counted without copies, and a short
 * text is read once.
 */
import type { CallBody, CallFacts } from "../call.ts";
import type { ContextReference } from "../contexts/types.ts";
import type { Reason } from "../errors.ts";
import { PREFIX_BYTES_MIN, PROMPT_BYTES_MAX, SCHEMA_RETRIES_DEFAULT, TEXT_SLICE_CHARS } from "../limits.ts";
import { mergeFacts, NO_SPECIAL_FACTS } from "../providers/formats/request/call-facts.ts";
import { unboundedThoughts } from "../providers/formats/request/thinking.ts";
import type { CacheChoice } from "./contexts/cache.ts";
import { markedPrefix } from "./contexts/marked-prefix.ts";
import type { CallSettings, FieldPath } from "./call-options.ts";
import { readChatFields, sizeOf, sizeReading, type ChatFields, type TextSize } from "./chat-fields.ts";
import type { Parsed } from "./errors.ts";
import { invalid } from "./errors.ts";
import type { ContentInput } from "./fields.ts";
import { messagesFault } from "./messages.ts";
import { textFault } from "./text.ts";
import type { Sliced } from "../text/bytes/slices.ts";

/** A call ready to be stored, once the text that it refers to is found; absent = it refers to none. */
export type ParsedCall = { body: CallBody; facts: CallFacts; context?: ContextReference; cache?: CacheChoice };

/** What a call says, with its facts; several calls of a batch may have the same. `field`: the field that has it. */
export type CallContent = {
  body: Pick<CallBody, "prompt" | "messages">;
  field: keyof ContentInput;
  fields: ChatFields;
};

/** Reads the content of a call. Refuses one that is missing, given twice or malformed. */
export function readContent({ prompt, messages }: ContentInput, path: FieldPath): Parsed<CallContent> {
  if (prompt !== undefined && messages !== undefined) {
    return invalid(path("messages"), "give either prompt or messages, not both");
  }
  if (prompt !== undefined) {
    const fault = textFault(prompt);
    if (fault !== null) return invalid(path("prompt"), fault);
    return { ok: true, value: { body: { prompt }, field: "prompt", fields: promptFields(sizeOf(prompt)) } };
  }
  if (messages === undefined) {
    return invalid(path("prompt"), "is missing; expected prompt (a text) or messages (an array)");
  }
  const fault = messagesFault(messages, path);
  if (fault !== null) return fault;
  const read = readChatFields(messages, "messages", (field) => path(field ?? "messages"));
  return read.ok ? { ok: true, value: { body: { messages }, field: "messages", fields: read.value } } : read;
}

/** The same of a prompt and nothing else, in slices: for a long one. */
export function* promptReading(prompt: string, path: FieldPath): Sliced<Parsed<CallContent>> {
  const fault = textFault(prompt);
  if (fault !== null) return invalid(path("prompt"), fault);
  const size = yield* sizeReading(prompt, TEXT_SLICE_CHARS);
  return { ok: true, value: { body: { prompt }, field: "prompt", fields: promptFields(size) } };
}

/** One call under its settings. Refuses a content that is missing, given twice, malformed or too large to store. */
export function parseCall(input: ContentInput, settings: CallSettings, path: FieldPath): Parsed<ParsedCall> {
  const content = readContent(input, path);
  return content.ok ? callOf(content.value, settings, path) : content;
}

/** A content under the settings of a call. Refuses both if they are too large to store together. */
export function callOf(content: CallContent, settings: CallSettings, path: FieldPath): Parsed<ParsedCall> {
  const { fields, field } = content;
  const { systemSize, schemaSize, params } = settings;
  const settingsBytes = systemSize.jsonBytes + params.fields.jsonBytes + (schemaSize?.jsonBytes ?? 0);
  if (fields.jsonBytes + settingsBytes > PROMPT_BYTES_MAX)
    return tooLarge(path(field), fields.jsonBytes, settingsBytes);
  const body: CallBody = { ...settings.body, ...content.body };
  const facts = withOwnPrefix(factsOf(content, settings), body, settings);
  const context = settings.context === null ? {} : { context: settings.context };
  return { ok: true, value: { body, facts, ...context, ...cacheOf(settings) } };
}

/** The facts with the beginning that the call's client has marked for the cache. */
function withOwnPrefix(facts: CallFacts, body: CallBody, { cache, context }: CallSettings): CallFacts {
  if (facts.cacheTtl === undefined || cache === null || context !== null) return facts;
  const prefix = markedPrefix(body);
  if (prefix === null) return facts;
  const { warmMs } = cache;
  return { ...facts, shared: { ...prefix, ...(warmMs === undefined ? {} : { warmMs }) } };
}

/** How the beginning of a call is cached that it may share: a stored text, or a system message as long as providers cache. */
function cacheOf({ cache, context, systemSize }: CallSettings): { cache?: CacheChoice } {
  const mayShare = context !== null || systemSize.textBytes >= PREFIX_BYTES_MIN;
  return cache === null || !mayShare ? {} : { cache };
}

/** A plain text has no facts but its size. */
function promptFields(size: TextSize): ChatFields {
  return {
    ...size,
    mediaParts: 0,
    maxTokens: null,
    special: NO_SPECIAL_FACTS,
    budgets: [],
    budgetField: (field) => field,
  };
}

function factsOf({ body: { messages }, fields: content }: CallContent, settings: CallSettings): CallFacts {
  const { dispatch, schemaSize } = settings;
  const { fields: paramsFields } = settings.params;
  const { schemaRetries = SCHEMA_RETRIES_DEFAULT, ...asked } = dispatch;
  const facts: CallFacts = {
    promptBytes:
      content.textBytes + settings.systemSize.textBytes + paramsFields.textBytes + (schemaSize?.textBytes ?? 0),
    messageCount: (messages?.length ?? 1) + (settings.body.system === undefined ? 0 : 1),
    mediaParts: content.mediaParts,
    ...asked,
  };
  if (schemaSize !== null) {
    // A schema that is sent in the prompt needs a system message, which the call may not have.
    facts.messageCount += 1;
    facts.schemaRetries = schemaRetries;
  }
  // A lone message may be a system message, and a template can depend on a field that the gateway does not know.
  const mayShape = messages !== undefined || settings.body.params !== undefined;
  if (!mayShape && facts.messageCount === 1) facts.isBare = true;
  const schemaTokens = schemaSize?.textTokensMax ?? 0;
  const textTokens =
    content.textTokensMax + settings.systemSize.textTokensMax + paramsFields.textTokensMax + schemaTokens;
  if (textTokens < facts.promptBytes) facts.textTokensMax = textTokens;
  // Another server's spelling of the cap.
  if (paramsFields.maxTokens !== null)
    facts.maxTokens = Math.min(dispatch.maxTokens ?? Infinity, paramsFields.maxTokens);
  const { budgets, budgetField } = paramsFields;
  const thoughts = budgets.length === 0 ? [] : unboundedThoughts(budgets, facts.maxTokens, budgetField);
  const own = thoughts.length === 0 ? paramsFields.special : mergeFacts(paramsFields.special, { unbounded: thoughts });
  if (content.special === NO_SPECIAL_FACTS && own === NO_SPECIAL_FACTS) return facts;
  return Object.assign(facts, mergeFacts(own, content.special));
}

function tooLarge(param: string, bytes: number, settingsBytes: number): { ok: false; reason: Reason } {
  const beside = settingsBytes === 0 ? "" : ` and ${settingsBytes} of system message, params and schema`;
  const what = `${param} (${bytes} bytes as JSON${beside})`;
  return { ok: false, reason: { reason: "payload_too_large", what, bytesMax: PROMPT_BYTES_MAX, param } };
}
