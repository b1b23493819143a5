/** Reads the keys of a JSON text that comes in chunks. Only a key that a chunk's border cuts is copied. */
import { keyAt } from "./json-key.ts";
import { ByteBuffer } from "./sse-buffer.ts";

/** Longest key that may be watched, bytes: 21 characters, if each is written as an escape. */
export const KEY_BYTES_MAX = 128;

/** Reads one key after another. */
export class KeyReader {
  readonly #kept = new ByteBuffer();
  /** Where in this chunk the key goes on. */
  #start = 0;

  /** A key begins, behind its quote. */
  open(at: number): void {
    this.#start = at;
  }

  /** The chunk ends within the key, which goes on in the next one. */
  carry(chunk: Uint8Array): void {
    this.#keep(chunk, chunk.length);
    this.#start = 0;
  }

  /** The key that ends before `end`, escapes decoded; null where it is longer than `KEY_BYTES_MAX` or no text. */
  close(chunk: Uint8Array, end: number): string | null {
    if (this.#kept.length === 0) return textAt(chunk, this.#start, end);
    this.#keep(chunk, end);
    const key = this.#kept.take();
    return textAt(key, 0, key.length);
  }

  /** Keeps one byte too many of a key that is too long, so that it shows. */
  #keep(chunk: Uint8Array, end: number): void {
    const room = KEY_BYTES_MAX + 1 - this.#kept.length;
    this.#kept.append(chunk.subarray(this.#start, Math.min(end, this.#start + room)));
  }
}

function textAt(bytes: Uint8Array, start: number, end: number): string | null {
  if (end - start > KEY_BYTES_MAX) return null;
  try {
    return keyAt(bytes, start, end);
  } catch {
    return null;
  }
}
