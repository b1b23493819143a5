/**
 * Splits a byte stream into lines as JSON Lines means them: `\n` ends a line, one `\r` before it is dropped, and no
 * other byte or character does either (U+2028 stands inside strings). Blank lines hold nothing but are counted, so that
 * numbers are those an editor shows.
 */

/** A line that is not blank. */
export type Line = {
  /** From 1. */
  number: number;
  /** Where its content lies in the file: reading can resume at `start`, and `start` to `end` is its range. */
  start: number;
  end: number;
  /** Its content; null where it is longer than allowed. May lie in the chunk that was pushed: copy what is kept. */
  bytes: Uint8Array | null;
};

const LF = 0x0a;
const CR = 0x0d;
/** A byte order mark and a carriage return, which are not content but must be held to be seen. */
const EXTRA_BYTES = 4;
const HELD_BYTES_MIN = 1_024;

/** Holds at most one line; what is longer than `lineBytesMax` is counted and forgotten. */
export class LineSplitter {
  readonly #lineBytesMax: number;
  #number: number;
  /** Where the line that is being read begins in the file. */
  #start: number;
  /** Content of that line from earlier chunks, and how much there was of it, the forgotten included. */
  #held = new Uint8Array(0);
  #heldBytes = 0;

  /** `from` = a line of an earlier reading, to go on with it: push bytes of the file from `from.start` on. */
  constructor(lineBytesMax: number, from: { number: number; start: number } = { number: 1, start: 0 }) {
    this.#lineBytesMax = lineBytesMax;
    this.#number = from.number;
    this.#start = from.start;
  }

  /** The lines that end in this chunk. */
  push(chunk: Uint8Array): Line[] {
    const lines: Line[] = [];
    let from = 0;
    for (let lf = chunk.indexOf(LF); lf !== -1; lf = chunk.indexOf(LF, from)) {
      const line = this.#end(chunk.subarray(from, lf));
      if (line !== null) lines.push(line);
      this.#start += 1;
      from = lf + 1;
    }
    this.#hold(chunk.subarray(from));
    return lines;
  }

  /** The last line, where the file does not end with `\n`. Call it once, after the last chunk. */
  finish(): Line | null {
    return this.#end(new Uint8Array(0));
  }

  /** Ends the line at hand with its last bytes, and begins the next behind it. */
  #end(tail: Uint8Array): Line | null {
    const number = this.#number;
    const start = this.#start;
    const end = start + this.#heldBytes + tail.length;
    // Decided by the length alone, so that it does not depend on where chunks end.
    const isLong = end - start > this.#lineBytesMax + EXTRA_BYTES;
    const bytes = this.#heldBytes === 0 || isLong ? tail : this.#join(tail);
    this.#number += 1;
    this.#start = end;
    this.#heldBytes = 0;
    if (isLong) return { number, start, end, bytes: null };
    const first = start === 0 && hasMark(bytes) ? 3 : 0;
    const last = bytes.length > first && bytes.at(-1) === CR ? bytes.length - 1 : bytes.length;
    const content = bytes.subarray(first, last);
    if (isBlank(content)) return null;
    const fits = content.length <= this.#lineBytesMax;
    return { number, start: start + first, end: start + last, bytes: fits ? content : null };
  }

  #join(tail: Uint8Array): Uint8Array {
    this.#hold(tail);
    // The next line overwrites what is held now.
    return this.#held.slice(0, this.#heldBytes);
  }

  #hold(bytes: Uint8Array): void {
    const size = this.#heldBytes + bytes.length;
    if (size <= this.#lineBytesMax + EXTRA_BYTES) {
      if (size > this.#held.length) {
        const grown = new Uint8Array(
          Math.min(this.#lineBytesMax + EXTRA_BYTES, Math.max(size, this.#held.length * 2, HELD_BYTES_MIN)),
        );
        grown.set(this.#held.subarray(0, this.#heldBytes));
        this.#held = grown;
      }
      this.#held.set(bytes, this.#heldBytes);
    }
    this.#heldBytes = size;
  }
}

function hasMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === CR);
}
