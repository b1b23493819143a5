/**
 * The beginning of a relayed request that its client has marked for its provider's cache, read from its bytes. Calls of a run with the
 * same one share it: one of them writes it, and the others wait for that, as for a context.
 */
import type { Endpoint, SharedPrefix } from "../../../call.ts";
import { PREFIX_BYTES_MIN, PREFIX_BYTES_PER_TOKEN, SCAN_SLICE_BYTES } from "../../../limits.ts";
import type { Sliced } from "../../../text/bytes/slices.ts";
import { valueEnd } from "../../../text/json/grammar.ts";
import {
  firstElement,
  kindAt,
  member,
  nextElement,
  readObject,
  type JsonObject,
  type JsonValue,
} from "../../../text/json/scan.ts";
import { CACHE_MARKS, PrefixDigest } from "./prefix-digest.ts";

/** The fields of a request before its messages, in the order in which providers cache them. */
const BEFORE_MESSAGES: Partial<Record<Endpoint, readonly string[]>> = {
  chat: ["tools", "functions", "response_format"],
  messages: ["tools", "system"],
};

/** `isMarked`: the prompt is to be cached up to the end of this piece. */
type Piece = { start: number; end: number; isMarked: boolean };

/**
 * The prefix up to the first mark that is far enough from the beginning: what follows it may be the call's own. Null = there is no
 * such mark, or this endpoint has none. Nothing behind that mark is read.
 */
export function* markedBeginning(
  endpoint: Endpoint,
  bytes: Uint8Array,
  object: JsonObject,
): Sliced<SharedPrefix | null> {
  const digest = new PrefixDigest();
  let length = 0;
  for (const { start, end, isMarked } of piecesOf(endpoint, bytes, object)) {
    for (let from = start; from < end; from += SCAN_SLICE_BYTES) {
      if (from > start) yield;
      digest.addBytes(bytes, from, Math.min(end, from + SCAN_SLICE_BYTES));
    }
    digest.endPart(end - start);
    length += end - start;
    if (!isMarked || length < PREFIX_BYTES_MIN) continue;
    return { key: `own_${digest.name()}`, tokens: Math.floor(length / PREFIX_BYTES_PER_TOKEN), own: true };
  }
  return null;
}

/** What the prompt of a request consists of, piece by piece. */
function* piecesOf(endpoint: Endpoint, bytes: Uint8Array, object: JsonObject): Generator<Piece> {
  const before = BEFORE_MESSAGES[endpoint];
  if (before === undefined) return;
  for (const name of before) {
    const field = member(object, name);
    if (field !== null) yield* blocksOf(bytes, field);
    // Fields are kept apart, whether they are there or not.
    yield { start: 0, end: 0, isMarked: false };
  }
  const messages = member(object, "messages");
  if (messages?.kind !== "array") return;
  for (const { start } of elementsOf(bytes, messages)) {
    const message = kindAt(bytes, start) === "object" ? readObject(bytes, start) : null;
    if (message === null) return;
    for (const field of message.members) {
      if (field.name !== "content") yield { start: field.keyStart, end: field.end, isMarked: false };
    }
    const content = member(message, "content");
    if (content !== null) yield* blocksOf(bytes, content);
  }
}

/** The blocks of a list, or a text as one. */
function* blocksOf(bytes: Uint8Array, value: JsonValue): Generator<Piece> {
  if (value.kind !== "array") return yield { start: value.start, end: value.end, isMarked: false };
  for (const { start, end } of elementsOf(bytes, value)) {
    const block = kindAt(bytes, start) === "object" ? readObject(bytes, start) : null;
    const isMarked = block !== null && CACHE_MARKS.some((mark) => member(block, mark)?.kind === "object");
    yield { start, end, isMarked };
  }
}

function* elementsOf(bytes: Uint8Array, { start }: JsonValue): Generator<Pick<JsonValue, "start" | "end">> {
  for (let at = firstElement(bytes, start); at !== -1;) {
    const end = valueEnd(bytes, at);
    yield { start: at, end };
    at = nextElement(bytes, end);
  }
}
