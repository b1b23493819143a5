/** Skips the values of a JSON text that comes in chunks. Of nesting only the depth is known, so a deep value costs no more. */
import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from "./json-bytes.ts";

/** Skips one value after another, each opened by its first byte. */
export class ValueSkipper {
  /** Brackets that are open. */
  #depth = 0;
  #inString = false;
  /** In a number or a word. */
  #inScalar = false;

  get isOpen(): boolean {
    return this.#depth > 0 || this.#inString || this.#inScalar;
  }

  open(first: number | undefined): void {
    this.#inString = first === QUOTE;
    this.#depth = first === OPEN_OBJECT || first === OPEN_ARRAY ? 1 : 0;
    this.#inScalar = !this.#inString && this.#depth === 0;
  }

  /**
   * Skips on from `from` and returns how far it came: behind the value, which is then no longer open, or to the end of
   * the chunk, or one further as `closingQuote` does.
   */
  skip(chunk: Uint8Array, from: number): number {
    if (this.#inScalar) return this.#skipScalar(chunk, from);
    const { length } = chunk;
    let at = from;
    if (this.#inString) {
      at = closingQuote(chunk, at);
      if (at >= length) return at;
      this.#inString = false;
      at += 1;
    }
    const view = new DataView(chunk.buffer, chunk.byteOffset, length);
    let depth = this.#depth;
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

/** Bytes of a string that are looked at one by one before the search for its end is left to the engine. */
const SHORT_BYTES = 512;

/**
 * Where the string ends that goes on at `from`: at its closing quote. Where the chunk ends first, its length, and one
 * more if the next chunk's first byte belongs to a backslash that stands last.
 */
export function closingQuote(bytes: Uint8Array, from: number): number {
  const { length } = bytes;
  let at = from;
  for (;;) {
    for (const shortEnd = Math.min(at + SHORT_BYTES, length); at < shortEnd; at++) {
      const byte = bytes[at];
      if (byte === QUOTE) return at;
      if (byte === BACKSLASH) at += 1;
    }
    if (at >= length) return at;
    const quote = bytes.indexOf(QUOTE, at);
    const end = quote === -1 ? length : quote;
    let escapes = end;
    while (escapes > at && bytes[escapes - 1] === BACKSLASH) escapes -= 1;
    const isEscaped = (end - escapes) % 2 === 1;
    if (quote === -1) return isEscaped ? length + 1 : length;
    if (!isEscaped) return quote;
    at = quote + 1;
  }
}
