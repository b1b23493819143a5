/**
 * Whether bytes are JSON, and where they stop being JSON: as strict as `JSON.parse` behind a strict UTF-8 decoder, without
 * the copies of either. A body of 32 MB, decoded and parsed, would not fit an isolate beside its own bytes.
 *
 * UTF-8 is validated too: an upstream that reads a broken byte as U+FFFD makes three bytes of one, and the bytes of a
 * prompt are what bounds its tokens.
 */
import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
} from "./grammar.ts";

/** The index of the first byte that is not JSON (the length, if the bytes end too early), and what was expected there. */
export type JsonFault = { at: number; expected: string };

/** Deepest nesting read. Parsers of upstreams give up at about a thousand levels; a bound keeps hostile bodies cheap. */
export const JSON_LEVELS_MAX = 1_000;

/** The container at each depth. Reused by each check in one piece: its content means nothing between two. */
const enclosingAtOnce = new Uint8Array(JSON_LEVELS_MAX + 1);
const OBJECT = 1;
const ARRAY = 2;

/**
 * Notes the first `max` members of the top-level object, four indexes each: of the quote before the key, behind the quote after it, of the
 * first byte of the value, and behind its last byte.
 */
export type Marks = { readonly at: number[]; readonly max: number };

/** The first fault; null if the bytes are one JSON value. One pass, no recursion, no copies. */
export function jsonFault(bytes: Uint8Array, marks: Marks = { at: [], max: 0 }): JsonFault | null {
  const check = checking(bytes, marks, { sliceBytes: Infinity, enclosing: enclosingAtOnce });
  for (;;) {
    const step = check.next();
    if (step.done === true) return step.value;
  }
}

/**
 * The same, with a pause behind each `sliceBytes`, also within a string: other work of the isolate goes on between them. White space and
 * digits in a row are read in one piece, which takes a nanosecond for each.
 */
export function jsonFaultInSlices(
  bytes: Uint8Array,
  sliceBytes: number,
  marks: Marks = { at: [], max: 0 },
): Generator<void, JsonFault | null, void> {
  return checking(bytes, marks, { sliceBytes, enclosing: new Uint8Array(JSON_LEVELS_MAX + 1) });
}

function* checking(
  bytes: Uint8Array,
  { at: marks, max }: Marks,
  { sliceBytes, enclosing }: { sliceBytes: number; enclosing: Uint8Array },
): Generator<void, JsonFault | null, void> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const slice: Slice = { end: sliceBytes, pausedAt: 0 };
  let depth = 0;
  let at = skipSpace(bytes, 0);
  for (;;) {
    // A value begins at `at`.
    if (at >= slice.end) {
      slice.end = at + sliceBytes;
      yield;
    }
    const first = bytes[at];
    if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
      if (depth === JSON_LEVELS_MAX) return { at, expected: `at most ${JSON_LEVELS_MAX} levels of nesting` };
      depth += 1;
      enclosing[depth] = first === OPEN_OBJECT ? OBJECT : ARRAY;
      at = skipSpace(bytes, at + 1);
      if (first === OPEN_ARRAY && bytes[at] !== CLOSE_ARRAY) continue;
    } else {
      let end = scalarEnd(bytes, view, at, slice);
      while (end === PAUSED) end = stringEnd(bytes, view, yield* resumed(slice, sliceBytes), slice);
      if (end < 0) return valueFault(bytes, at, ~end);
      at = end;
    }
    // At `at`: behind the value, or at the bracket that closes an empty container, or at the first key of an object.
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
    let keyEnd = bytes[at] === QUOTE ? stringEnd(bytes, view, at + 1, slice) : NO_KEY;
    while (keyEnd === PAUSED) keyEnd = stringEnd(bytes, view, yield* resumed(slice, sliceBytes), slice);
    if (keyEnd === NO_KEY) return { at, expected: begun ? "a key in double quotes or }" : "a key in double quotes" };
    if (keyEnd < 0) return stringFault(bytes, ~keyEnd);
    const colon = skipSpace(bytes, keyEnd);
    if (bytes[colon] !== COLON) return { at: colon, expected: ":" };
    const value = skipSpace(bytes, colon + 1);
    if (depth === 1 && marks.length < max * 4) marks.push(at, keyEnd, value);
    at = value;
  }
}

/** Where a slice ends, and where in a string the last one has. */
type Slice = { end: number; pausedAt: number };

/** A string goes on behind the slice. No string ends so early: its quotes are before its end. */
const PAUSED = 0;
/** There is no quote where a key was expected. */
const NO_KEY = 1;

/** Begins the next slice. Where its string goes on. */
function* resumed(slice: Slice, sliceBytes: number): Generator<void, number, void> {
  yield;
  slice.end = slice.pausedAt + sliceBytes;
  return slice.pausedAt;
}

const NEWLINE = 0x0a;

/**
 * Describes the fault by line and column, both from 1, and byte, from 0. The column counts characters. Quotes one
 * printable character at most.
 */
export function describeFault(bytes: Uint8Array, { at, expected }: JsonFault): string {
  let line = 1;
  let column = 1;
  for (let before = 0; before < at; before++) {
    const byte = bytes[before] ?? 0;
    if (byte === NEWLINE) {
      line += 1;
      column = 1;
    } else if (!isContinuation(byte)) {
      column += 1;
    }
  }
  return `is not JSON: ${foundAt(bytes, at)} at line ${line}, column ${column} (byte ${at}); expected ${expected}`;
}

function foundAt(bytes: Uint8Array, at: number): string {
  const byte = bytes[at];
  if (byte === undefined) return "the text ends";
  const isShown = (byte > 0x20 && byte < 0x7f) || byte === NEWLINE || byte === 0x09 || byte === 0x0d;
  if (isShown) return `found ${JSON.stringify(wordAt(bytes, at))}`;
  return `found the byte 0x${byte.toString(16).padStart(2, "0")}`;
}

/** The word that begins at a byte, such as NaN or None, or one character: these are what programs write instead of JSON. */
function wordAt(bytes: Uint8Array, at: number): string {
  const text = new TextDecoder("latin1").decode(bytes.subarray(at, at + NO_JSON_CHARS_MAX));
  return NO_JSON_WORDS.find((word) => text.startsWith(word)) ?? text.slice(0, 1);
}

/** Values of Python and JavaScript that JSON does not have. No other text of a body is quoted: it may be secret. */
const NO_JSON_WORDS = ["NaN", "Infinity", "-Infinity", "None", "True", "False", "undefined"];
const NO_JSON_CHARS_MAX = Math.max(...NO_JSON_WORDS.map(({ length }) => length));

function valueFault(bytes: Uint8Array, start: number, at: number): JsonFault {
  if (bytes[start] === QUOTE) return stringFault(bytes, at);
  if (at > start) return { at, expected: "a number" };
  let before = at - 1;
  while (SPACE.includes(bytes[before] ?? -1)) before -= 1;
  return { at, expected: bytes[before] === OPEN_ARRAY ? "a value or ]" : "a value" };
}

/** JSON's white space. */
const SPACE: readonly number[] = [0x20, NEWLINE, 0x0d, 0x09];

function stringFault(bytes: Uint8Array, at: number): JsonFault {
  const byte = bytes[at];
  if (byte === undefined) return { at, expected: 'a closing "' };
  if (byte < 0x20) return { at, expected: "control characters in texts to be escaped" };
  return { at, expected: byte >= 0x80 ? "well-formed UTF-8" : "a valid escape after the backslash" };
}

// ── Scalars ── each function returns the index behind what it reads, or the complement (`~`) of the index of the fault.
// The view shows the same bytes: reading four at once is several times faster.

function scalarEnd(bytes: Uint8Array, view: DataView, at: number, slice: Slice): number {
  switch (bytes[at]) {
    case QUOTE:
      return stringEnd(bytes, view, at + 1, slice);
    case 0x74:
      return at + 4 <= bytes.length && view.getUint32(at) === 0x74727565 ? at + 4 : ~at;
    case 0x6e:
      return at + 4 <= bytes.length && view.getUint32(at) === 0x6e756c6c ? at + 4 : ~at;
    case 0x66:
      return at + 5 <= bytes.length && view.getUint32(at + 1) === 0x616c7365 ? at + 5 : ~at;
    default:
      return numberEnd(bytes, at);
  }
}

function numberEnd(bytes: Uint8Array, start: number): number {
  let at = bytes[start] === 0x2d ? start + 1 : start;
  if (bytes[at] === 0x30) at += 1;
  else {
    const digits = at;
    at = skipDigits(bytes, at);
    if (at === digits) return ~at;
  }
  if (bytes[at] === 0x2e) {
    const digits = at + 1;
    at = skipDigits(bytes, digits);
    if (at === digits) return ~at;
  }
  if (bytes[at] === 0x65 || bytes[at] === 0x45) {
    const sign = bytes[at + 1];
    const digits = sign === 0x2b || sign === 0x2d ? at + 2 : at + 1;
    at = skipDigits(bytes, digits);
    if (at === digits) return ~at;
  }
  return at;
}

function skipDigits(bytes: Uint8Array, from: number): number {
  let at = from;
  for (; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte < 0x30 || byte > 0x39) break;
  }
  return at;
}

/** Reads a string whose content goes on at `from`, and its closing quote; `PAUSED` if the slice ends before. */
function stringEnd(bytes: Uint8Array, view: DataView, from: number, slice: Slice): number {
  const { length } = bytes;
  const end = Math.min(length, slice.end);
  let at = from;
  while (at < end) {
    // Four bytes at once while none is a quote, a backslash, a control character or beyond ASCII: such a byte sets a sign bit.
    while (at + 4 <= end) {
      const four = view.getInt32(at);
      const quote = (four ^ 0x22222222) - 0x01010101;
      const backslash = (four ^ 0x5c5c5c5c) - 0x01010101;
      if (((four | (four - 0x20202020) | quote | backslash) & 0x80808080) !== 0) break;
      at += 4;
    }
    const byte = bytes[at] ?? QUOTE;
    if (byte === QUOTE) return at < length ? at + 1 : ~length;
    if (byte < 0x20) return ~at;
    if (byte === BACKSLASH) {
      const next = escapeEnd(bytes, at);
      if (next < 0) return next;
      at = next;
    } else if (byte < 0x80) at += 1;
    for (let lead = bytes[at] ?? 0; lead >= 0x80 && at < end; lead = bytes[at] ?? 0) {
      const next = sequenceEnd(bytes, at, lead);
      if (next < 0) return next;
      at = next;
    }
  }
  if (at >= length) return ~length;
  slice.pausedAt = at;
  return PAUSED;
}

function escapeEnd(bytes: Uint8Array, at: number): number {
  switch (bytes[at + 1]) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return at + 2;
    case 0x75:
      for (let digit = at + 2; digit < at + 6; digit++) {
        if (!isHex(bytes[digit] ?? 0)) return digit < bytes.length ? ~at : ~bytes.length;
      }
      return at + 6;
    case undefined:
      return ~bytes.length;
    default:
      return ~at;
  }
}

function isHex(byte: number): boolean {
  const letter = byte | 0x20;
  return (byte >= 0x30 && byte <= 0x39) || (letter >= 0x61 && letter <= 0x66);
}

/** UTF-8 beyond ASCII: no overlong forms, no surrogates, nothing above U+10FFFF. */
function sequenceEnd(bytes: Uint8Array, at: number, lead: number): number {
  const second = bytes[at + 1] ?? 0;
  if (lead >= 0xc2 && lead <= 0xdf) return isContinuation(second) ? at + 2 : ~at;
  const third = bytes[at + 2] ?? 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const low = lead === 0xe0 ? 0xa0 : 0x80;
    const high = lead === 0xed ? 0x9f : 0xbf;
    return second >= low && second <= high && isContinuation(third) ? at + 3 : ~at;
  }
  if (lead < 0xf0 || lead > 0xf4) return ~at;
  const low = lead === 0xf0 ? 0x90 : 0x80;
  const high = lead === 0xf4 ? 0x8f : 0xbf;
  const rest = isContinuation(third) && isContinuation(bytes[at + 3] ?? 0);
  return second >= low && second <= high && rest ? at + 4 : ~at;
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}
