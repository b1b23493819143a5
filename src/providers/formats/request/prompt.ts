/** Reads the fields that hold the prompt, in each protocol's own form, and notes what bounds its tokens. */
import { valueEnd } from "../../../text/json/grammar.ts";
import {
  firstElement,
  kindAt,
  member,
  nextElement,
  type JsonMember,
  type JsonObject,
  type Kind,
} from "../../../text/json/scan.ts";
import { readContent } from "./content-parts.ts";
import { SPENDS_PROMPT } from "./field-table.ts";
import { hasValue, noteForm, readFields } from "./fields.ts";
import { EMBEDDING_INPUT, ITEMS, MESSAGE } from "./inner-fields.ts";
import { noteUnreservable, objectAt, refuse, shortName, textOf, type ScanContext } from "./scan-context.ts";

/** `messages` of chat completions and of Anthropic's messages. */
export function readMessages(scan: ScanContext, messages: JsonMember): void {
  readObjects(scan, messages, (message, field) => {
    readRole(scan, message, field);
    readFields(scan, message, MESSAGE, field);
    const content = member(message, "content");
    if (content !== null) readContent(scan, content, `${field}.content`);
    // The blocks of an earlier answer, which are sent in place of the content.
    const blocks = member(message, "content_blocks");
    if (blocks?.kind === "array") readContent(scan, blocks, `${field}.content_blocks`);
    else if (blocks !== null && blocks.kind !== "null") noteForm(scan, `${field}.content_blocks`, "a list of blocks");
  });
}

/** A message has a role; an element without one may be anything that an upstream resolves. */
function readRole(scan: ScanContext, message: JsonObject, field: string): void {
  const role = member(message, "role");
  if (role?.kind === "text" && hasValue(scan.bytes, role)) return;
  const why = "It has no role, so it is no message, and nothing bounds its tokens; expected one such as user.";
  noteUnreservable(scan, { field: `${field}.role`, why, spends: SPENDS_PROMPT, allowedBy: null });
}

/** `system` of Anthropic's messages: a text or blocks; counts as one message. */
export function readSystem(scan: ScanContext, system: JsonMember): void {
  if (system.kind === "null") return;
  scan.messageCount += 1;
  readContent(scan, system, system.name);
}

/** `instructions` of the Responses API; counts as one message. */
export function readInstructions(scan: ScanContext, instructions: JsonMember): void {
  if (instructions.kind === "text") scan.messageCount += 1;
  else if (instructions.kind !== "null") refuse(scan, instructions.name, "expected a text or null");
}

/** `input` of the Responses API: a text, or items: messages, tool calls and their results. */
export function readItems(scan: ScanContext, input: JsonMember): void {
  if (input.kind === "null") return;
  if (input.kind === "text") scan.messageCount += 1;
  else readObjects(scan, input, (item, field) => readItem(scan, item, field));
}

/** Items with content, and its field. */
const CONTENT_OF: ReadonlyMap<string, string> = new Map([
  ["message", "content"],
  ["function_call_output", "output"],
  ["custom_tool_call_output", "output"],
]);

function readItem(scan: ScanContext, item: JsonObject, field: string): void {
  const typeField = member(item, "type");
  const type = typeField === null ? "message" : (textOf(scan, typeField) ?? "");
  const table = ITEMS.get(type);
  if (table !== undefined) readFields(scan, item, table, field);
  const contentName = CONTENT_OF.get(type);
  const content = contentName === undefined ? null : member(item, contentName);
  const isSaid = type !== "message" || !hasValue(scan.bytes, member(item, "id")) || hasValue(scan.bytes, content);
  if (contentName !== undefined && content !== null && content.kind !== "null" && isSaid) {
    if (type === "message") readRole(scan, item, field);
    return readContent(scan, content, `${field}.${contentName}`);
  }
  if (table !== undefined && contentName === undefined && (type !== "reasoning" || isSent(scan, item))) return;
  const why = "The item's length is not known here: it names what the upstream holds, or is of an unknown kind.";
  noteUnreservable(scan, { field, why, spends: SPENDS_PROMPT, allowedBy: `input.${shortName(type)}` });
}

/** Reasoning is sent as text, usually encrypted; if only its id is sent, the upstream adds it to the prompt. */
function isSent({ bytes }: ScanContext, item: JsonObject): boolean {
  const encrypted = member(item, "encrypted_content");
  return !hasValue(bytes, member(item, "id")) || (encrypted?.kind === "text" && hasValue(bytes, encrypted));
}

/** Kinds of prompts in a list, whose elements are of one kind. */
const LISTED: ReadonlySet<Kind> = new Set(["text", "number", "array", "object"]);

/**
 * `prompt` of completions and `input` of embeddings: a text, token numbers, or a list of either. `objects`: whether a list
 * may also hold objects, as for multimodal embeddings.
 */
export function readPrompts(scan: ScanContext, prompt: JsonMember, objects: boolean): void {
  if (prompt.kind === "null") return;
  if (prompt.kind === "text") return countPrompts(scan, 1);
  const { bytes } = scan;
  const expected = `expected a text, token numbers, or a list of texts${objects ? ", objects" : ""} or of token numbers`;
  if (prompt.kind !== "array") return refuse(scan, prompt.name, expected);
  let listed: Kind | null = null;
  let count = 0;
  for (let at = firstElement(bytes, prompt.start); at !== -1; count++) {
    const kind = kindAt(bytes, at);
    listed ??= kind;
    if (kind === "number" && count === 0) {
      const end = readTokens(scan, prompt.start, prompt.name);
      return end === -1 ? undefined : countPrompts(scan, 1);
    }
    if (!LISTED.has(kind) || kind !== listed || (kind === "object" && !objects)) {
      return refuse(scan, `${prompt.name}[${count}]`, expected);
    }
    if (kind === "object") readInput(scan, at, `${prompt.name}[${count}]`);
    const end = kind === "array" ? readTokens(scan, at, `${prompt.name}[${count}]`) : valueEnd(bytes, at);
    if (end === -1) return;
    at = nextElement(bytes, end);
  }
  countPrompts(scan, count);
}

/** An input of multimodal embeddings: a text, an image, or parts of both. */
function readInput(scan: ScanContext, start: number, field: string): void {
  const input = objectAt(scan, { kind: "object", start, end: start }, field);
  if (input === null) return;
  readFields(scan, input, EMBEDDING_INPUT, field);
  const content = member(input, "content");
  if (content !== null) readContent(scan, content, `${field}.content`);
}

function countPrompts(scan: ScanContext, count: number): void {
  scan.messageCount += count;
  scan.prompts = Math.max(1, count);
}

/** Reads a list of token numbers. Returns the index behind the list; -1 if an element is not a token number. */
function readTokens(scan: ScanContext, start: number, field: string): number {
  const { bytes } = scan;
  let end = start + 1;
  let count = 0;
  for (let at = firstElement(bytes, start); at !== -1; count++) {
    end = valueEnd(bytes, at);
    if (!isTokenNumber(bytes, at, end)) {
      refuse(scan, `${field}[${count}]`, "expected the number of a token");
      return -1;
    }
    at = nextElement(bytes, end);
  }
  end = valueEnd(bytes, start);
  scan.promptTokenIds += count;
  scan.otherBytes += end - start;
  return end;
}

/** Digits only, as many as a vocabulary may need. */
function isTokenNumber(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start > 10) return false;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte < 0x30 || byte > 0x39) return false;
  }
  return true;
}

/** Calls `read` for each object of a list, and counts it as a message. */
function readObjects(scan: ScanContext, list: JsonMember, read: (object: JsonObject, field: string) => void): void {
  if (list.kind !== "array") return refuse(scan, list.name, "expected an array");
  const { bytes } = scan;
  let index = 0;
  for (let at = firstElement(bytes, list.start); at !== -1 && scan.refusal === null; index++) {
    const field = `${list.name}[${index}]`;
    const object = objectAt(scan, { kind: kindAt(bytes, at), start: at, end: at }, field);
    if (object !== null) read(object, field);
    at = nextElement(bytes, object?.end ?? valueEnd(bytes, at));
  }
  scan.messageCount += index;
}
