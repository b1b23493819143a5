/**
 * Splits a JSON object at its long list without parsing it: into pieces of the list, and the object without them. A large
 * body is read through these pieces, so that neither its text nor its parsed value is ever in memory as a whole.
 *
 * Bytes that are not JSON may be split anywhere, but never become JSON by it: if the envelope parses, and each piece
 * between brackets parses to at least one element (or is the only piece), then the whole parses to the same value.
 */
import { BACKSLASH, CLOSE_ARRAY, COMMA, nextMember, OPEN_ARRAY, OPEN_OBJECT, skipSpace, valueEnd } from "./grammar.ts";
import { spells } from "./key.ts";

export type SplitList = {
  /** The key of the list. */
  field: string;
  /** The bytes of the object with an empty list in place of the list. */
  envelope: Uint8Array;
  /** Runs of whole elements, with the commas between them, in order; one blank piece if there are no elements. */
  pieces: readonly Uint8Array[];
};

export type SplitOptions = {
  /** The keys of the top-level object that may hold the list. */
  fields: readonly string[];
  elementsMax: number;
  /** A piece ends with the element that makes it this large. */
  pieceBytesMin: number;
  /** Bytes that are looked at between two pauses, by whole members and elements; absent = all of them. */
  sliceBytes?: number;
};

/**
 * Finds the list. Null means that the body must be read as a whole: it has no list or more than one, the list has more
 * than `elementsMax` elements, or a key is written with escapes and may name a second list. One pass, no recursion.
 */
export function splitList(bytes: Uint8Array, options: SplitOptions): SplitList | null {
  const splitting = splittingList(bytes, options);
  for (;;) {
    const step = splitting.next();
    if (step.done === true) return step.value;
  }
}

/** The same with a pause behind each `sliceBytes`: a body may have a million short members. The bytes must not change meanwhile. */
export function* splittingList(bytes: Uint8Array, options: SplitOptions): Generator<void, SplitList | null, void> {
  let found: SplitList | null = null;
  const { sliceBytes = Infinity } = options;
  let sliceEnd = sliceBytes;
  // The envelope keeps what is before the object, a byte order mark for instance: its parser judges it.
  let at = bytes.indexOf(OPEN_OBJECT);
  if (at === -1) return null;
  do {
    const member = nextMember(bytes, at + 1);
    if (member === null) return found;
    const { keyStart, keyEnd, valueStart: start } = member;
    if (bytes.subarray(keyStart, keyEnd).includes(BACKSLASH)) return null;
    const field = options.fields.find((name) => spells(bytes, keyStart, keyEnd, name));
    let end: number;
    if (field !== undefined && bytes[start] === OPEN_ARRAY) {
      const list: Elements | null = found === null ? yield* splitElements(bytes, start + 1, options) : null;
      if (list === null) return null;
      found = { field, pieces: list.pieces, envelope: without(bytes, start + 1, list.end) };
      end = list.end + 1;
    } else {
      end = valueEnd(bytes, start);
    }
    at = skipSpace(bytes, end);
    if (at < sliceEnd) continue;
    sliceEnd = at + sliceBytes;
    yield;
  } while (bytes[at] === COMMA);
  return found;
}

type Elements = { pieces: Uint8Array[]; end: number };

/** The pieces of the list whose content starts at `start`, and the index of its closing bracket. */
function* splitElements(
  bytes: Uint8Array,
  start: number,
  { elementsMax, pieceBytesMin, sliceBytes = Infinity }: SplitOptions,
): Generator<void, Elements | null, void> {
  const pieces: Uint8Array[] = [];
  let sliceEnd = start + sliceBytes;
  let pieceStart = start;
  let at = skipSpace(bytes, start);
  for (let elements = 1; ; elements++) {
    const end = bytes[at] === CLOSE_ARRAY ? at : skipSpace(bytes, valueEnd(bytes, at));
    if (bytes[end] === CLOSE_ARRAY) {
      pieces.push(bytes.subarray(pieceStart, end));
      return { pieces, end };
    }
    if (bytes[end] !== COMMA || elements === elementsMax) return null;
    if (end - pieceStart >= pieceBytesMin) {
      pieces.push(bytes.subarray(pieceStart, end));
      pieceStart = end + 1;
    }
    at = skipSpace(bytes, end + 1);
    if (at < sliceEnd) continue;
    sliceEnd = at + sliceBytes;
    yield;
  }
}

function without(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const rest = new Uint8Array(bytes.length - (end - start));
  rest.set(bytes.subarray(0, start));
  rest.set(bytes.subarray(end), start);
  return rest;
}
