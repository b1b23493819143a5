/** Reads the fields that hold the prompt, in each protocol's own form: what in them bounds, or escapes, the prompt's tokens. */
import { readContent } from "./json-parts.ts";
import {
  firstElement,
  kindAt,
  member,
  nextElement,
  valueEnd,
  type JsonMember,
  type JsonObject,
  type Kind,
} from "./json-scan.ts";
import { cannotBound, objectAt, refuse, SPENDS_PROMPT, textOf, type Reading } from "./json-reading.ts";

/** `messages` of chat completions and of Anthropic's protocol. */
export function readMessages(reading: Reading, messages: JsonMember): void {
  readObjects(reading, messages, (message, field) => {
    const content = member(message, "content");
    if (content !== null) readContent(reading, content, `${field}.content`);
    // A sound that the model made earlier is named by its id; images that it made stand beside the content.
    const audio = member(message, "audio");
    if (audio !== null && audio.kind !== "null") reading.mediaParts += 1;
    const images = member(message, "images");
    if (images !== null && images.kind !== "null") reading.mediaParts += elementCount(reading.bytes, images);
  });
}

/** `system` of Anthropic's protocol: a text or blocks, one message more. */
export function readSystem(reading: Reading, system: JsonMember): void {
  if (system.kind === "null") return;
  reading.messageCount += 1;
  readContent(reading, system, system.name);
}

/** `instructions` of the Responses API, one message more. */
export function readInstructions(reading: Reading, instructions: JsonMember): void {
  if (instructions.kind === "text") reading.messageCount += 1;
  else if (instructions.kind !== "null") refuse(reading, instructions.name, "expected a text or null");
}

/** `input` of the Responses API: a text, or items that are messages, calls of tools and what these answered. */
export function readItems(reading: Reading, input: JsonMember): void {
  if (input.kind === "null") return;
  if (input.kind === "text") reading.messageCount += 1;
  else readObjects(reading, input, (item, field) => readItem(reading, item, field));
}

/** Items that are text as they stand. */
const TEXT_ITEMS = new Set(["function_call", "custom_tool_call"]);
const OUTPUT_ITEMS = new Set(["function_call_output", "custom_tool_call_output"]);

function readItem(reading: Reading, item: JsonObject, field: string): void {
  const typeField = member(item, "type");
  const type = typeField === null ? "message" : (textOf(reading, typeField) ?? "");
  if (TEXT_ITEMS.has(type)) return;
  const contentName = OUTPUT_ITEMS.has(type) ? "output" : type === "message" ? "content" : null;
  const content = contentName === null ? null : member(item, contentName);
  if (contentName !== null && content !== null && content.kind !== "null") {
    return readContent(reading, content, `${field}.${contentName}`);
  }
  // Reasoning is text where it is sent along (encrypted as a rule); by its id alone the upstream looks it up.
  const reasoning = textOf(reading, member(item, "encrypted_content"));
  if (type === "reasoning" && (reasoning !== null || member(item, "id") === null)) return;
  const why = "The item's length is not known here: it names what the upstream holds, or is of an unknown kind.";
  cannotBound(reading, { field, why, spends: SPENDS_PROMPT });
}

/** Kinds of prompts that a list may hold, all of one kind. */
const LISTED: ReadonlySet<Kind> = new Set(["text", "number", "array", "object"]);

/**
 * `prompt` of completions and `input` of embeddings: a text, numbers of tokens, or a list of either. `objects`: whether a
 * list may also hold objects, as multimodal embeddings do.
 */
export function readPrompts(reading: Reading, prompt: JsonMember, objects: boolean): void {
  if (prompt.kind === "null") return;
  if (prompt.kind === "text") return countPrompts(reading, 1);
  const { bytes } = reading;
  const expected = `expected a text, token numbers, or a list of texts${objects ? ", objects" : ""} or of token numbers`;
  if (prompt.kind !== "array") return refuse(reading, prompt.name, expected);
  let listed: Kind | null = null;
  let count = 0;
  for (let at = firstElement(bytes, prompt.start); at !== -1; count++) {
    const kind = kindAt(bytes, at);
    listed ??= kind;
    if (kind === "number" && count === 0) {
      const end = readTokens(reading, prompt.start, prompt.name);
      return end === -1 ? undefined : countPrompts(reading, 1);
    }
    if (!LISTED.has(kind) || kind !== listed || (kind === "object" && !objects)) {
      return refuse(reading, `${prompt.name}[${count}]`, expected);
    }
    if (kind === "object") reading.mediaParts += 1;
    const end = kind === "array" ? readTokens(reading, at, `${prompt.name}[${count}]`) : valueEnd(bytes, at);
    if (end === -1) return;
    at = nextElement(bytes, end);
  }
  countPrompts(reading, count);
}

function countPrompts(reading: Reading, count: number): void {
  reading.messageCount += count;
  reading.prompts = Math.max(1, count);
}

/** Reads a list of token numbers, each of which is one token. Returns where it ends, -1 where it is none. */
function readTokens(reading: Reading, start: number, field: string): number {
  const { bytes } = reading;
  let end = start + 1;
  let count = 0;
  for (let at = firstElement(bytes, start); at !== -1; count++) {
    end = valueEnd(bytes, at);
    if (!isTokenNumber(bytes, at, end)) {
      refuse(reading, `${field}[${count}]`, "expected the number of a token");
      return -1;
    }
    at = nextElement(bytes, end);
  }
  end = valueEnd(bytes, start);
  reading.promptTokenIds += count;
  reading.otherBytes += end - start;
  return end;
}

/** Digits only, and few enough for any vocabulary. */
function isTokenNumber(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start > 10) return false;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte < 0x30 || byte > 0x39) return false;
  }
  return true;
}

/** Calls `read` for each object of a list, and counts it as a message. */
function readObjects(reading: Reading, list: JsonMember, read: (object: JsonObject, field: string) => void): void {
  if (list.kind !== "array") return refuse(reading, list.name, "expected an array");
  const { bytes } = reading;
  let index = 0;
  for (let at = firstElement(bytes, list.start); at !== -1 && reading.refusal === null; index++) {
    const field = `${list.name}[${index}]`;
    const object = objectAt(reading, { kind: kindAt(bytes, at), start: at, end: at }, field);
    if (object !== null) read(object, field);
    at = nextElement(bytes, object?.end ?? valueEnd(bytes, at));
  }
  reading.messageCount += index;
}

function elementCount(bytes: Uint8Array, value: JsonMember): number {
  if (value.kind !== "array") return 1;
  let count = 0;
  for (let at = firstElement(bytes, value.start); at !== -1; at = nextElement(bytes, valueEnd(bytes, at))) count += 1;
  return count;
}
