/**
 * Finds the end of a form's part. The delimiter begins with its only CR, so that comparing it from the front is one pass
 * over the bytes in the worst case; the skips of Horspool's search save most of it.
 */
const CR = 13;

/** The bytes of a window that are certainly content, and whether the delimiter follows them. */
export type Cut = { contentBytes: number; isFound: boolean };

export class Delimiter {
  /** CRLF, two dashes, the boundary. */
  readonly bytes: Uint8Array;
  /** How far the search may skip, by the byte at the delimiter's end. */
  readonly #skips: Uint8Array;

  /** `boundary` has at most 70 characters. */
  constructor(boundary: string) {
    this.bytes = new TextEncoder().encode(`\r\n--${boundary}`);
    const last = this.bytes.length - 1;
    this.#skips = new Uint8Array(256).fill(this.bytes.length);
    for (const [index, byte] of this.bytes.subarray(0, last).entries()) this.#skips[byte] = last - index;
  }

  /** Cuts before the first delimiter; if there is none, before bytes that may begin one. */
  cut(window: Uint8Array): Cut {
    const last = this.bytes.length - 1;
    const lastByte = this.bytes[last];
    const startMax = window.length - this.bytes.length;
    for (let start = 0; start <= startMax;) {
      const byte = window[start + last] ?? 0;
      if (byte === lastByte && this.#matchesAt(window, start)) return { contentBytes: start, isFound: true };
      start += this.#skips[byte] ?? 1;
    }
    return { contentBytes: this.#beginning(window, Math.max(0, startMax + 1)), isFound: false };
  }

  /** The index of a delimiter that the window's end cuts off; the window's length if there is none. */
  #beginning(window: Uint8Array, from: number): number {
    let start = window.indexOf(CR, from);
    while (start !== -1 && !this.#matchesAt(window, start)) start = window.indexOf(CR, start + 1);
    return start === -1 ? window.length : start;
  }

  /** Compares up to the end of the window. */
  #matchesAt(window: Uint8Array, start: number): boolean {
    const length = Math.min(this.bytes.length, window.length - start);
    for (let index = 0; index < length; index += 1) if (window[start + index] !== this.bytes[index]) return false;
    return true;
  }
}
