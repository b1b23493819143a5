/**
 * Finds where a part of a form ends. The delimiter begins with a CR, which occurs in it nowhere else: so comparing it
 * from the front costs one pass over the bytes in the worst case, and the skips of Horspool's search save most of that.
 */
const CR = 13;

/** How much of a window is content for certain, and whether the delimiter stands right behind it. */
export type Cut = { contentBytes: number; isFound: boolean };

export class Delimiter {
  /** CRLF, two dashes, the boundary. */
  readonly bytes: Uint8Array;
  /** How far the search may move on, by the byte under the delimiter's end. */
  readonly #skips: Uint8Array;

  /** `boundary` has at most 70 characters. */
  constructor(boundary: string) {
    this.bytes = new TextEncoder().encode(`\r\n--${boundary}`);
    const last = this.bytes.length - 1;
    this.#skips = new Uint8Array(256).fill(this.bytes.length);
    for (const [index, byte] of this.bytes.subarray(0, last).entries()) this.#skips[byte] = last - index;
  }

  /** Cuts before the first delimiter; where there is none, before what may be the beginning of one. */
  cut(window: Uint8Array): Cut {
    const last = this.bytes.length - 1;
    const lastByte = this.bytes[last];
    const startMax = window.length - this.bytes.length;
    for (let start = 0; start <= startMax;) {
      const byte = window[start + last] ?? 0;
      if (byte === lastByte && this.#standsAt(window, start)) return { contentBytes: start, isFound: true };
      start += this.#skips[byte] ?? 1;
    }
    return { contentBytes: this.#beginning(window, Math.max(0, startMax + 1)), isFound: false };
  }

  /** Where a delimiter that is cut off at the window's end begins; the window's length if none does. */
  #beginning(window: Uint8Array, from: number): number {
    let start = window.indexOf(CR, from);
    while (start !== -1 && !this.#standsAt(window, start)) start = window.indexOf(CR, start + 1);
    return start === -1 ? window.length : start;
  }

  /** Compares up to the window's end. */
  #standsAt(window: Uint8Array, start: number): boolean {
    const length = Math.min(this.bytes.length, window.length - start);
    for (let index = 0; index < length; index += 1) if (window[start + index] !== this.bytes[index]) return false;
    return true;
  }
}
