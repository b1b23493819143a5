/**
 * Bytes of base64 that stands in a JSON text, by their index: a reader of headers jumps over what it does not read, so that an
 * image of megabytes costs as little as a small one. Only the standard alphabet is read: decoders disagree on all else, so
 * white space, padding and other letters have no bytes.
 */
import { BACKSLASH } from "../json/grammar.ts";
import { IMAGE_ESCAPED_CHARS_MAX } from "../../limits.ts";

const SLASH = 0x2f;
const NONE = 0xff;

const SEXTETS = sextets();

function sextets(): Uint8Array {
  const table = new Uint8Array(256).fill(NONE);
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (let value = 0; value < alphabet.length; value++) table[alphabet.charCodeAt(value)] = value;
  return table;
}

export class Base64Bytes {
  readonly #text: Uint8Array;

  /** @param text What stands between the quotes, as the JSON has it. */
  constructor(text: Uint8Array) {
    this.#text = text.includes(BACKSLASH) ? withoutEscapes(text) : text;
  }

  /** The byte at an index; -1 if there is none, or it is not known. */
  at(index: number): number {
    const quad = Math.floor(index / 3) * 4;
    const place = index % 3;
    const high = this.#sextet(quad + place);
    const low = this.#sextet(quad + place + 1);
    if (high === NONE || low === NONE) return -1;
    return ((high << (2 + 2 * place)) | (low >> (4 - 2 * place))) & 0xff;
  }

  /** An unsigned number of `count` bytes, the first of which counts most; -1 if a byte is missing. */
  big(index: number, count: number): number {
    return this.#number(count, (at) => this.at(index + at));
  }

  /** The same with the last byte counting most. */
  little(index: number, count: number): number {
    return this.#number(count, (at) => this.at(index + count - 1 - at));
  }

  /** Whether the bytes from an index on are those of a text in Latin-1. */
  spells(index: number, text: string): boolean {
    for (let at = 0; at < text.length; at++) if (this.at(index + at) !== text.charCodeAt(at)) return false;
    return true;
  }

  #number(count: number, byteAt: (at: number) => number): number {
    let number = 0;
    for (let at = 0; at < count; at++) {
      const byte = byteAt(at);
      if (byte === -1) return -1;
      number = number * 256 + byte;
    }
    return number;
  }

  #sextet(at: number): number {
    return SEXTETS[this.#text[at] ?? 0] ?? NONE;
  }
}

/** Some writers of JSON escape each slash. The beginning of such a text without these escapes; another escape ends it. */
function withoutEscapes(text: Uint8Array): Uint8Array {
  const plain = new Uint8Array(Math.min(text.length, IMAGE_ESCAPED_CHARS_MAX));
  let length = 0;
  for (let at = 0; at < text.length && length < plain.length; at++) {
    if (text[at] === BACKSLASH && text[++at] !== SLASH) break;
    plain[length++] = text[at] ?? 0;
  }
  return plain.subarray(0, length);
}
