/**
 * Reads JSON in place: objects as the byte ranges of their members, arrays element by element. A body is validated once, as
 * a whole (`scanObject`); everything else here takes ranges of validated bytes, reads no deeper than necessary, and keeps
 * no list that grows with a hostile body.
 */
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  closingQuote,
  COMMA,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
  valueEnd,
} from "./grammar.ts";
import { keyAt } from "./key.ts";
import { describeFault, jsonFault, jsonFaultInSlices, type JsonFault, type Marks } from "./validate.ts";

export type Kind = "object" | "array" | "text" | "number" | "boolean" | "null";

/** The range of a value, from its first byte to behind its last, without the white space around it. */
export type JsonValue = { kind: Kind; start: number; end: number };

/** A member of an object: its decoded name, the index of the quote before its key, and its value. */
export type JsonMember = JsonValue & { name: string; keyStart: number };

export type JsonObject = {
  start: number;
  end: number;
  /** In the order written. */
  members: readonly JsonMember[];
  /** A name that occurs more than once, or null. Parsers disagree which of its members counts. */
  duplicate: string | null;
};

/** Most members of an object that is read: far above any request's, and a bound on what a hostile object costs. */
export const JSON_MEMBERS_MAX = 1_000;

export type Scan = { ok: true; object: JsonObject } | { ok: false; problem: string };

/** Validates a whole text and reads its top-level object. A problem begins with "is not JSON" or "expected". */
export function scanObject(bytes: Uint8Array): Scan {
  const marks = newMarks();
  return scanOf(bytes, jsonFault(bytes, marks), marks);
}

/** The same of a large text, with a pause behind each `sliceBytes` that are validated. */
export function* scanObjectInSlices(bytes: Uint8Array, sliceBytes: number): Generator<void, Scan, void> {
  const marks = newMarks();
  const fault = yield* jsonFaultInSlices(bytes, sliceBytes, marks);
  // The lines before a fault are counted in one piece.
  if (fault !== null) yield;
  return scanOf(bytes, fault, marks);
}

/** One member more than the limit is marked, which shows that there are too many. */
function newMarks(): Marks {
  return { at: [], max: JSON_MEMBERS_MAX + 1 };
}

function scanOf(bytes: Uint8Array, fault: JsonFault | null, { at: marks }: Marks): Scan {
  if (fault !== null) return { ok: false, problem: describeFault(bytes, fault) };
  const start = skipSpace(bytes, 0);
  if (bytes[start] !== OPEN_OBJECT) return { ok: false, problem: "is not a JSON object" };
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

/** The problem of an object that `readObject` does not read. */
export const TOO_MANY_MEMBERS = `has more than ${JSON_MEMBERS_MAX} fields`;

/** The object that opens at `start`; null if it has more than `JSON_MEMBERS_MAX` members. */
export function readObject(bytes: Uint8Array, start: number): JsonObject | null {
  const members: JsonMember[] = [];
  let at = skipSpace(bytes, start + 1);
  while (bytes[at] !== CLOSE_OBJECT) {
    if (members.length === JSON_MEMBERS_MAX) return null;
    const keyEnd = closingQuote(bytes, at + 1);
    const name = keyAt(bytes, at + 1, keyEnd);
    // Between key and value are white space and one colon.
    const valueStart = skipSpace(bytes, skipSpace(bytes, keyEnd + 1) + 1);
    const end = valueEnd(bytes, valueStart);
    members.push({ name, keyStart: at, kind: kindAt(bytes, valueStart), start: valueStart, end });
    at = skipSpace(bytes, end);
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1);
  }
  return { start, end: at + 1, members, duplicate: duplicateOf(members) };
}

/** Up to so many members are compared in pairs: a set costs more. */
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

/** The member of that name; of several the last, which is the one that counts for `JSON.parse` and most parsers. */
export function member(object: JsonObject, name: string): JsonMember | null {
  // Many are looked for in each body: a loop makes nothing for the garbage collector.
  for (let at = object.members.length - 1; at >= 0; at -= 1) {
    const candidate = object.members[at];
    if (candidate?.name === name) return candidate;
  }
  return null;
}

/** The value at the end of a path of names through objects, starting at `object`; null if a name is missing. */
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

/** The value of a number. */
export function numberOf(bytes: Uint8Array, value: JsonValue): number {
  return Number(keyAt(bytes, value.start, value.end));
}

/** The index of the first element of the array that opens at `start`; -1 if the array is empty. */
export function firstElement(bytes: Uint8Array, start: number): number {
  const at = skipSpace(bytes, start + 1);
  return bytes[at] === CLOSE_ARRAY ? -1 : at;
}

/** The index of the element after the one that ends at `end`; -1 if that was the last. */
export function nextElement(bytes: Uint8Array, end: number): number {
  const at = skipSpace(bytes, end);
  return bytes[at] === COMMA ? skipSpace(bytes, at + 1) : -1;
}

/** The kind of the value that begins at `start`, by its first byte. */
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
