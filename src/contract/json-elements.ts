/**
 * Cuts the long list out of a JSON object without parsing it: where its elements lie, and the object without them. A
 * large body is read through these cuts, so that neither its text nor its parse is ever in memory whole.
 *
 * The scan follows strings and depth only. It may misread what is no JSON, but never makes it JSON: if the envelope
 * parses, and each piece parses between brackets to at least one element (or is the only one), then so does the whole,
 * to the same value.
 */
export type CutList = {
  /** The key of the list. */
  field: string;
  /** The bytes of the object with an empty list in the list's place. */
  envelope: Uint8Array;
  /** Runs of whole elements, with the commas between them, in order; one blank piece if there are none. */
  pieces: readonly Uint8Array[];
};

export type CutOptions = {
  /** The keys of the top-level object that may hold the list. */
  fields: readonly string[];
  elementsMax: number;
  /** A piece ends with the element that makes it so large. */
  pieceBytesMin: number;
};

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Finds the one list. Null = read the body whole: there is no list or more than one, it is too long, or a key is written
 * with escapes and may be the list's once more. Takes one pass and no recursion, whatever the bytes are.
 */
export function cutList(bytes: Uint8Array, options: CutOptions): CutList | null {
  let found: CutList | null = null;
  let depth = 0;
  let key: string | null = null;
  let keyNext = false;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE: {
        const end = stringEnd(bytes, at);
        if (depth === 1 && keyNext) {
          const written = bytes.subarray(at + 1, end);
          if (written.includes(BACKSLASH)) return null;
          key = options.fields.find((field) => spells(written, field)) ?? null;
          keyNext = false;
        }
        at = end;
        break;
      }
      case COMMA:
        if (depth === 1) keyNext = true;
        break;
      case OPEN_LIST:
        if (depth === 1 && key !== null) {
          if (found !== null) return null;
          const list = cutPieces(bytes, at + 1, options);
          if (list === null) return null;
          found = { field: key, pieces: list.pieces, envelope: without(bytes, at + 1, list.end) };
          at = list.end;
        } else depth += 1;
        break;
      case OPEN_OBJECT:
        keyNext = depth === 0;
        depth += 1;
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth -= 1;
        break;
    }
  }
  return found;
}

/** The pieces of the list whose first element starts at `start`, and where its bracket closes. */
function cutPieces(bytes: Uint8Array, start: number, { elementsMax, pieceBytesMin }: CutOptions) {
  const pieces: Uint8Array[] = [];
  let pieceStart = start;
  let commas = 0;
  let depth = 0;
  for (let at = start; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = stringEnd(bytes, at);
        break;
      case COMMA:
        if (depth > 0) break;
        commas += 1;
        if (commas >= elementsMax) return null;
        if (at - pieceStart < pieceBytesMin) break;
        pieces.push(bytes.subarray(pieceStart, at));
        pieceStart = at + 1;
        break;
      case OPEN_LIST:
      case OPEN_OBJECT:
        depth += 1;
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        if (depth === 0) {
          pieces.push(bytes.subarray(pieceStart, at));
          return { pieces, end: at };
        }
        depth -= 1;
        break;
    }
  }
  return null;
}

/** Where the string that opens at `start` closes; the end of the bytes if it does not. */
function stringEnd(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

function spells(written: Uint8Array, field: string): boolean {
  return written.length === field.length && written.every((byte, at) => byte === field.charCodeAt(at));
}

function without(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const rest = new Uint8Array(bytes.length - (end - start));
  rest.set(bytes.subarray(0, start));
  rest.set(bytes.subarray(end), start);
  return rest;
}
