/**
 * Reads JSON where it lies: objects as the byte ranges of their members, arrays element by element, and only the small
 * values that are asked for as values. A body is checked once as a whole (`scanObject`); everything below takes ranges
 * of checked bytes, looks no deeper than it must, and keeps no list that grows with a hostile body.
 */
import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
} from "./json-bytes.ts";
import { keyAt } from "./json-key.ts";
import { describeFault, jsonFault } from "./json-valid.ts";

export type Kind = "object" | "array" | "text" | "number" | "boolean" | "null";

/** Where a value's text lies: from its first byte to behind its last, without the white space around it. */
export type JsonValue = { kind: Kind; start: number; end: number };

/** A member of an object: its decoded name, where its key starts (at the quote), and its value. */
export type JsonMember = JsonValue & { name: string; keyStart: number };

export type JsonObject = {
  start: number;
  end: number;
  /** In the order written. */
  members: readonly JsonMember[];
  /** A name that stands more than once, or null. Parsers disagree which of them counts. */
  duplicate: string | null;
};

/** Most members of an object that is looked into: far above any request's, and a bound on what a hostile one costs. */
export const JSON_MEMBERS_MAX = 1_000;

export type Scan = { ok: true; object: JsonObject } | { ok: false; problem: string };

/** Checks a whole text strictly and reads its top-level object. A problem begins with "is not JSON" or "expected". */
export function scanObject(bytes: Uint8Array): Scan {
  const marks: number[] = [];
  // One member too many is marked, so that it is seen.
  const fault = jsonFault(bytes, marks, JSON_MEMBERS_MAX + 1);
  if (fault !== null) return { ok: false, problem: describeFault(bytes, fault) };
  const start = skipSpace(bytes, 0);
  if (bytes[start] !== OPEN_OBJECT) return { ok: false, problem: "expected a JSON object" };
  const members: JsonMember[] = [];
  for (let mark = 0; mark < marks.length; mark += 4) {
    const keyStart = marks[mark] ?? 0;
    const start = marks[mark + 2] ?? 0;
    const name = keyAt(bytes, keyStart + 1, (marks[mark + 1] ?? 0) - 1);
    members.push({ name, keyStart, kind: kindAt(bytes, start), start, end: marks[mark + 3] ?? 0 });
  }
  if (members.length > JSON_MEMBERS_MAX) return { ok: false, problem: TOO_MANY_MEMBERS };
  return {
    ok: true,
    object: { start, end: bytes.lastIndexOf(CLOSE_OBJECT) + 1, members, duplicate: duplicateOf(members) },
  };
}

/** What is said of an object that `readObject` does not read. */
export const TOO_MANY_MEMBERS = `expected at most ${JSON_MEMBERS_MAX} fields`;

/** The object that opens at `start`; null if it has more than `JSON_MEMBERS_MAX` members. */
export function readObject(bytes: Uint8Array, start: number): JsonObject | null {
  const members: JsonMember[] = [];
  let at = skipSpace(bytes, start + 1);
  while (bytes[at] !== CLOSE_OBJECT) {
    if (members.length === JSON_MEMBERS_MAX) return null;
    const keyEnd = textEnd(bytes, at);
    const name = keyAt(bytes, at + 1, keyEnd - 1);
    // Between key and value stand white space and one colon.
    const valueStart = skipSpace(bytes, skipSpace(bytes, keyEnd) + 1);
    const end = valueEnd(bytes, valueStart);
    members.push({ name, keyStart: at, kind: kindAt(bytes, valueStart), start: valueStart, end });
    at = skipSpace(bytes, end);
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1);
  }
  return { start, end: at + 1, members, duplicate: duplicateOf(members) };
}

/** Members up to which each is compared with each: a set costs more. */
const FEW_MEMBERS = 12;

function duplicateOf(members: readonly JsonMember[]): string | null {
  if (members.length > FEW_MEMBERS) {
    const names = new Set<string>();
    for (const { name } of members) {
      if (names.has(name)) return name;
      names.add(name);
    }
    return null;
  }
  for (let later = 1; later < members.length; later++) {
    const name = members[later]?.name ?? "";
    for (let earlier = 0; earlier < later; earlier++) if (members[earlier]?.name === name) return name;
  }
  return null;
}

/** The member of that name, of several the last: the one that counts for `JSON.parse` and most other parsers. */
export function member(object: JsonObject, name: string): JsonMember | null {
  return object.members.findLast((candidate) => candidate.name === name) ?? null;
}

/** The value at the end of a path of names through objects, from `object` on; null if a step leads nowhere. */
export function valueAtPath(bytes: Uint8Array, object: JsonObject, path: readonly string[]): JsonMember | null {
  let inside: JsonObject | null = object;
  let found: JsonMember | null = null;
  for (const name of path) {
    if (inside === null) return null;
    found = member(inside, name);
    if (found === null) return null;
    inside = found.kind === "object" ? readObject(bytes, found.start) : null;
  }
  return found;
}

/** Where the first element of the array that opens at `start` begins; -1 if it is empty. */
export function firstElement(bytes: Uint8Array, start: number): number {
  const at = skipSpace(bytes, start + 1);
  return bytes[at] === CLOSE_ARRAY ? -1 : at;
}

/** Where the element after the one that ends at `end` begins; -1 if that was the last. */
export function nextElement(bytes: Uint8Array, end: number): number {
  const at = skipSpace(bytes, end);
  return bytes[at] === COMMA ? skipSpace(bytes, at + 1) : -1;
}

/** Where the value that begins at `start` ends. Strings are skipped as wholes, so that their brackets do not count. */
export function valueEnd(bytes: Uint8Array, start: number): number {
  let depth = 0;
  for (let at = start; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = textEnd(bytes, at) - 1;
        break;
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        depth += 1;
        continue;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        depth -= 1;
        break;
      default:
        if (depth > 0) continue;
        return scalarEnd(bytes, at);
    }
    if (depth === 0) return at + 1;
  }
  return bytes.length;
}

/** What kind of value begins at `start`: its first byte tells. */
export function kindAt(bytes: Uint8Array, start: number): Kind {
  switch (bytes[start]) {
    case OPEN_OBJECT:
      return "object";
    case OPEN_ARRAY:
      return "array";
    case QUOTE:
      return "text";
    case 0x74:
    case 0x66:
      return "boolean";
    case 0x6e:
      return "null";
    default:
      return "number";
  }
}

/** Bytes of a string that are looked at one by one before the search for its end is left to the engine. */
const SHORT_BYTES = 128;

/** Where the string that opens at `start` ends, its closing quote included. */
function textEnd(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  for (;;) {
    for (const shortEnd = at + SHORT_BYTES; at < shortEnd; at++) {
      if (bytes[at] === BACKSLASH) at += 1;
      else if (bytes[at] === QUOTE) return at + 1;
    }
    const quote = bytes.indexOf(QUOTE, at);
    if (quote === -1) return bytes.length;
    let escapes = quote;
    while (escapes > at && bytes[escapes - 1] === BACKSLASH) escapes -= 1;
    if ((quote - escapes) % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

function scalarEnd(bytes: Uint8Array, start: number): number {
  let at = start;
  // A scalar that is no string ends before white space, a comma or a closing bracket: all other bytes are its own.
  for (; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte <= 0x20 || byte === COMMA || byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) break;
  }
  return at;
}
