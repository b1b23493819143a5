/**
 * Splits a byte stream into lines as JSON Lines means them: `\n` ends a line, one `\r` before it is dropped, and no
 * other byte or character does (U+2028 occurs inside strings). Blank lines are skipped but counted, so that numbers are
 * those that an editor shows.
 */
import { ByteBuffer } from "../text/bytes/byte-buffer.ts";

/** A line that is not blank. */
export type Line = {
  /** From 1. */
  number: number;
  /** The range of its content in the file, to which a ranged read can return. */
  start: number;
  end: number;
  /** Its content; null if it is too long. May be a view of the chunk that was pushed: copy what you keep. */
  bytes: Uint8Array | null;
};

const LF = 0x0a;
const CR = 0x0d;
/** Bytes of a byte order mark and a carriage return, which are not content but are kept until the line ends. */
const EXTRA_BYTES = 4;

/** Keeps at most one line; the bytes of a line longer than `lineBytesMax` are counted and dropped. */
export class LineSplitter {
  readonly #lineBytesMax: number;
  #number: number;
  /** The index in the file at which the current line begins. */
  #start: number;
  /** The current line's bytes from earlier chunks, and their number, dropped ones included. */
  readonly #kept = new ByteBuffer();
  #keptBytes = 0;

  /** `from` = a line of an earlier read, to resume there: push the bytes of the file from `from.start` on. */
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
    this.#keep(chunk.subarray(from));
    return lines;
  }

  /** The last line, if the file does not end in `\n`. Call it once, after the last chunk. */
  finish(): Line | null {
    return this.#end(new Uint8Array(0));
  }

  /** Ends the current line with its last bytes, and begins the next one. */
  #end(tail: Uint8Array): Line | null {
    const number = this.#number;
    const start = this.#start;
    const end = start + this.#keptBytes + tail.length;
    // Decided by the length alone, so that the borders of chunks make no difference.
    const isLong = end - start > this.#lineBytesMax + EXTRA_BYTES;
    const bytes = this.#keptBytes === 0 || isLong ? tail : this.#join(tail);
    this.#number += 1;
    this.#start = end;
    this.#keptBytes = 0;
    if (isLong) {
      this.#kept.clear();
      return { number, start, end, bytes: null };
    }
    const first = start === 0 && hasMark(bytes) ? 3 : 0;
    const last = bytes.length > first && bytes.at(-1) === CR ? bytes.length - 1 : bytes.length;
    const content = bytes.subarray(first, last);
    if (isBlank(content)) return null;
    const fits = content.length <= this.#lineBytesMax;
    return { number, start: start + first, end: start + last, bytes: fits ? content : null };
  }

  #join(tail: Uint8Array): Uint8Array {
    this.#keep(tail);
    return this.#kept.take();
  }

  #keep(bytes: Uint8Array): void {
    this.#keptBytes += bytes.length;
    if (this.#keptBytes <= this.#lineBytesMax + EXTRA_BYTES) this.#kept.append(bytes);
  }
}

function hasMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === CR);
}
