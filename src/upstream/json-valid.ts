/**
 * Whether bytes are JSON, and where they stop being it. Strict as `JSON.parse` behind a strict UTF-8 decoder, but
 * without either's copies: a body of 32 MB decoded and parsed would not fit an isolate beside itself.
 *
 * UTF-8 is checked too: an upstream that reads a broken byte as U+FFFD makes three bytes of one, and the bytes of a
 * prompt are what bounds its tokens.
 */
import { CLOSE_ARRAY, CLOSE_OBJECT, COLON, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE, skipSpace } from "./json-bytes.ts";
import { scalarEnd, stringEnd } from "./json-scalar.ts";

/** The first byte that is not JSON (the length, if the bytes end too early), and what should have stood there. */
export type JsonFault = { at: number; expected: string };

/** Deepest nesting read. Parsers of upstreams give up at about a thousand levels; a bound keeps hostile bodies cheap. */
export const JSON_LEVELS_MAX = 1_000;

/** What encloses a place, by depth. Reused, because each check is one turn: its content means nothing between two. */
const enclosing = new Uint8Array(JSON_LEVELS_MAX + 1);
const OBJECT = 1;
const ARRAY = 2;

/**
 * Null where the bytes are one JSON value. One pass, no recursion, no copies.
 *
 * The first `marksMax` members of the top-level object are marked in `marks` on the way: four places each, from the
 * quote of the key and behind the closing one, to the first byte of the value and behind its last.
 */
export function jsonFault(bytes: Uint8Array, marks: number[] = [], marksMax = 0): JsonFault | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let depth = 0;
  let at = skipSpace(bytes, 0);
  for (;;) {
    // A value begins at `at`.
    const first = bytes[at];
    if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
      if (depth === JSON_LEVELS_MAX) return { at, expected: `at most ${JSON_LEVELS_MAX} levels of nesting` };
      depth += 1;
      enclosing[depth] = first === OPEN_OBJECT ? OBJECT : ARRAY;
      at = skipSpace(bytes, at + 1);
      if (first === OPEN_ARRAY && bytes[at] !== CLOSE_ARRAY) continue;
    } else {
      const end = scalarEnd(bytes, view, at);
      if (end < 0) return valueFault(bytes, at, ~end);
      at = end;
    }
    // It has ended at `at`, or is an empty container about to, or an object whose first key stands there.
    const begun = first === OPEN_OBJECT && bytes[at] !== CLOSE_OBJECT;
    if (!begun) {
      if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
        depth -= 1;
        at += 1;
      }
      for (;;) {
        if (depth === 1 && marks.length % 4 === 3) marks.push(at);
        at = skipSpace(bytes, at);
        if (depth === 0) return at === bytes.length ? null : { at, expected: "the end" };
        const byte = bytes[at];
        if (byte === COMMA) break;
        const inObject = enclosing[depth] === OBJECT;
        if (byte !== (inObject ? CLOSE_OBJECT : CLOSE_ARRAY)) return { at, expected: inObject ? ", or }" : ", or ]" };
        depth -= 1;
        at += 1;
      }
      at = skipSpace(bytes, at + 1);
    }
    if (enclosing[depth] === ARRAY) continue;
    const keyEnd = bytes[at] === QUOTE ? stringEnd(bytes, view, at + 1) : 0;
    if (keyEnd === 0) return { at, expected: begun ? "a key in double quotes or }" : "a key in double quotes" };
    if (keyEnd < 0) return stringFault(bytes, ~keyEnd);
    const colon = skipSpace(bytes, keyEnd);
    if (bytes[colon] !== COLON) return { at: colon, expected: ":" };
    const value = skipSpace(bytes, colon + 1);
    if (depth === 1 && marks.length < marksMax * 4) marks.push(at, keyEnd, value);
    at = value;
  }
}

const NEWLINE = 0x0a;

/** The fault in words, by line and column (from 1, in bytes), quoting one printable character at most. */
export function describeFault(bytes: Uint8Array, { at, expected }: JsonFault): string {
  let line = 1;
  let lineStart = 0;
  for (let before = 0; before < at; before++) {
    if (bytes[before] !== NEWLINE) continue;
    line += 1;
    lineStart = before + 1;
  }
  const place = `line ${line}, column ${at - lineStart + 1} (byte ${at})`;
  return `is not JSON: ${foundAt(bytes, at)} at ${place}, expected ${expected}`;
}

function foundAt(bytes: Uint8Array, at: number): string {
  const byte = bytes[at];
  if (byte === undefined) return "the text ended";
  if (byte > 0x20 && byte < 0x7f) return `found ${JSON.stringify(String.fromCharCode(byte))}`;
  return `found the byte 0x${byte.toString(16).padStart(2, "0")}`;
}

function valueFault(bytes: Uint8Array, start: number, at: number): JsonFault {
  return bytes[start] === QUOTE ? stringFault(bytes, at) : { at, expected: at === start ? "a value" : "a number" };
}

function stringFault(bytes: Uint8Array, at: number): JsonFault {
  const byte = bytes[at];
  if (byte === undefined) return { at, expected: 'a closing "' };
  if (byte < 0x20) return { at, expected: "control characters in texts to be escaped" };
  return { at, expected: byte >= 0x80 ? "well-formed UTF-8" : "a valid escape after the backslash" };
}
