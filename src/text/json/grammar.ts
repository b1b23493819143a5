/**
 * The grammar of JSON over bytes: where strings, scalars and containers end. It follows their form only and looks for no
 * faults, so it takes bytes that were validated, or bytes that it does no harm to misread. What is validated strictly is
 * in `validate.ts`.
 */
export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_ARRAY = 0x5b;
export const BACKSLASH = 0x5c;
export const CLOSE_ARRAY = 0x5d;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;

/** The index of the first byte at or after `from` that is not JSON white space; the length if there is none. */
export function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  for (; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
  }
  return at;
}

/**
 * Bytes of a string that are compared one by one before `indexOf` searches for the quote. Keys and words end sooner than
 * one call of it costs; of 8, 16, 24, 32, 64 and more bytes, 16 was the fastest for chat bodies and for batches.
 */
const SHORT_STRING_BYTES = 16;

/**
 * The index of the closing quote of a string whose content continues at `from`. If the bytes end first, the result is
 * their length, or one more if they end in a backslash, which escapes the first byte of the next chunk.
 */
export function closingQuote(bytes: Uint8Array, from: number): number {
  const { length } = bytes;
  let at = from;
  for (;;) {
    for (const shortEnd = Math.min(at + SHORT_STRING_BYTES, length); at < shortEnd; at++) {
      const byte = bytes[at];
      if (byte === QUOTE) return at;
      if (byte === BACKSLASH) at += 1;
    }
    if (at >= length) return at;
    const quote = bytes.indexOf(QUOTE, at);
    const end = quote === -1 ? length : quote;
    let escapes = end;
    while (escapes > at && bytes[escapes - 1] === BACKSLASH) escapes -= 1;
    // An odd number of backslashes: the last of them escapes what follows.
    const isEscaped = (end - escapes) % 2 === 1;
    if (quote === -1) return isEscaped ? length + 1 : length;
    if (!isEscaped) return quote;
    at = quote + 1;
  }
}

/** Finds the ends of values, one after another, also of values that arrive in chunks. Any depth costs the same: a counter. */
export class ValueSkipper {
  /** Brackets that are open. */
  #depth = 0;
  #inString = false;
  /** In a number, `true`, `false` or `null`. */
  #inScalar = false;

  get isOpen(): boolean {
    return this.#depth > 0 || this.#inString || this.#inScalar;
  }

  /** Begins a value by its first byte. An open bracket begins a container that is already entered. */
  open(first: number | undefined): void {
    this.#inString = first === QUOTE;
    this.#depth = first === OPEN_OBJECT || first === OPEN_ARRAY ? 1 : 0;
    this.#inScalar = !this.#inString && this.#depth === 0;
  }

  /**
   * Continues at `from`, behind the first byte or at the start of the next chunk. Returns the index behind the value,
   * which is then no longer open; if the chunk ends first, its length, or one more as `closingQuote` does.
   */
  skip(chunk: Uint8Array, from: number): number {
    if (this.#inScalar) return this.#skipScalar(chunk, from);
    let at = from;
    if (this.#inString) {
      at = closingQuote(chunk, at);
      if (at >= chunk.length) return at;
      this.#inString = false;
      at += 1;
    }
    return this.#depth === 0 ? at : this.#skipContainer(chunk, at);
  }

  #skipContainer(chunk: Uint8Array, from: number): number {
    const { length } = chunk;
    const view = new DataView(chunk.buffer, chunk.byteOffset, length);
    let depth = this.#depth;
    let at = from;
    while (depth > 0 && at < length) {
      // Four bytes at once while they are of numbers, commas and white space: all of them are below 0x40, as is a quote.
      for (; at + 4 <= length; at += 4) {
        const four = view.getInt32(at);
        const quote = four ^ 0x22222222;
        if (((four & 0x40404040) | ((quote - 0x01010101) & 0x80808080)) !== 0) break;
      }
      if (at === length) break;
      const byte = chunk[at];
      at += 1;
      if (byte === QUOTE) {
        at = closingQuote(chunk, at) + 1;
        if (at > length) {
          this.#inString = true;
          at -= 1;
        }
      } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth += 1;
      else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth -= 1;
    }
    this.#depth = depth;
    return at;
  }

  /** A scalar that is not a string ends before white space, a comma or a closing bracket. */
  #skipScalar(chunk: Uint8Array, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0;
      if (byte > 0x20 && byte !== COMMA && byte !== CLOSE_OBJECT && byte !== CLOSE_ARRAY) continue;
      this.#inScalar = false;
      return at;
    }
    return chunk.length;
  }
}

/** Reused by each call of `valueEnd`, which leaves nothing open. */
const wholeValues = new ValueSkipper();

/** The index behind the value that begins at `start`; the length if it does not end. */
export function valueEnd(bytes: Uint8Array, start: number): number {
  wholeValues.open(bytes[start]);
  return Math.min(wholeValues.skip(bytes, start + 1), bytes.length);
}

/** Indexes of one member: around the content of its key, and of the first byte of its value. */
export type MemberStart = { keyStart: number; keyEnd: number; valueStart: number };

/** The member whose key is next at or after `from`, also in bytes that are not validated; null if no member is. */
export function nextMember(bytes: Uint8Array, from: number): MemberStart | null {
  const quote = skipSpace(bytes, from);
  if (bytes[quote] !== QUOTE) return null;
  const keyEnd = closingQuote(bytes, quote + 1);
  const colon = skipSpace(bytes, keyEnd + 1);
  if (bytes[colon] !== COLON) return null;
  return { keyStart: quote + 1, keyEnd, valueStart: skipSpace(bytes, colon + 1) };
}
