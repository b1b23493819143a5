/**
 * Splits a byte stream into server-sent events without changing a byte: what it returns, joined, is what it was fed. The
 * borders of chunks make no difference, not inside a character and not between CR and LF.
 */
import { ByteBuffer } from "../bytes/byte-buffer.ts";

/**
 * Largest event that is kept until it is whole, bytes: a Responses stream ends with an event that repeats the whole
 * answer, and an answer is read up to about this size elsewhere (`RESPONSE_BYTES_MAX`).
 */
export const SSE_EVENT_BYTES_MAX = 2 * 1024 * 1024;

/** A piece of the stream, in its order. */
export type StreamPiece =
  /** A whole event with the blank line that ends it. */
  | { kind: "event"; bytes: Uint8Array }
  /** A part of an event that is too large to be kept. Its first part is longer than the bound. */
  | { kind: "part"; bytes: Uint8Array; first: boolean; last: boolean }
  /** The LF of a CRLF whose CR has already ended an event: it belongs to that event. */
  | { kind: "tail"; bytes: Uint8Array };

/** What remains behind the last whole event; `isPartial` if the first part of that event was already returned. */
export type StreamRest = { bytes: Uint8Array; isPartial: boolean };

const LF = 10;
const CR = 13;

/** The splitter of one stream. Pieces may be views of their chunk: use them before its memory is reused. */
export class EventSplitter {
  readonly #bytesMax: number;
  readonly #incomplete = new ByteBuffer();
  /** Whether the current line is empty so far: an empty line ends its event. */
  #atLineStart = true;
  /** What a CR at the very end of the last chunk ended: an LF that follows belongs to that CR. */
  #endedByCr: "line" | "event" | null = null;
  #oversize = false;

  constructor(bytesMax: number = SSE_EVENT_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  feed(chunk: Uint8Array): StreamPiece[] {
    const pieces: StreamPiece[] = [];
    if (chunk.length === 0) return pieces;
    let lineStart = this.#endedByCr !== null && chunk[0] === LF ? 1 : 0;
    let eventStart = this.#endedByCr === "event" ? lineStart : 0;
    if (eventStart === 1) pieces.push({ kind: "tail", bytes: chunk.subarray(0, 1) });
    this.#endedByCr = null;
    let lf = next(chunk, LF, lineStart);
    let cr = next(chunk, CR, lineStart);
    while (lf < chunk.length || cr < chunk.length) {
      const end = Math.min(lf, cr);
      const blank = this.#atLineStart && end === lineStart;
      lineStart = end === cr && lf === end + 1 ? end + 2 : end + 1;
      this.#atLineStart = true;
      if (end === chunk.length - 1 && cr === end) this.#endedByCr = blank ? "event" : "line";
      if (blank) {
        // Counted to the first byte of its line end, so that a CRLF counts the same if a border cuts it.
        const size = this.#incomplete.length + (end + 1 - eventStart);
        pieces.push(this.#whole(chunk.subarray(eventStart, lineStart), size));
        eventStart = lineStart;
      }
      if (lf < lineStart) lf = next(chunk, LF, lineStart);
      if (cr < lineStart) cr = next(chunk, CR, lineStart);
    }
    if (lineStart < chunk.length) this.#atLineStart = false;
    if (eventStart < chunk.length) this.#keep(pieces, chunk.subarray(eventStart));
    return pieces;
  }

  /** Whether the next byte begins an event. */
  get isBetweenEvents(): boolean {
    return this.#incomplete.length === 0 && this.#atLineStart && this.#endedByCr === null && !this.#oversize;
  }

  /** Whether the first part of the current event has been returned already. */
  get isInPart(): boolean {
    return this.#oversize;
  }

  /** A copy of what has been fed and not yet returned: the beginning of the current event. */
  kept(): Uint8Array {
    return this.#incomplete.view().slice();
  }

  /** What is left at the end of the stream. Call it once, after the last chunk. */
  rest(): StreamRest {
    return { bytes: this.#incomplete.take(), isPartial: this.#oversize };
  }

  #whole(end: Uint8Array, size: number): StreamPiece {
    const bytes = this.#incomplete.length === 0 ? end : this.#incompleteWith(end);
    if (!this.#oversize && size <= this.#bytesMax) return { kind: "event", bytes };
    const first = !this.#oversize;
    this.#oversize = false;
    return { kind: "part", bytes, first, last: true };
  }

  #keep(pieces: StreamPiece[], bytes: Uint8Array): void {
    if (this.#oversize) {
      pieces.push({ kind: "part", bytes, first: false, last: false });
    } else if (this.#incomplete.length + bytes.length > this.#bytesMax) {
      pieces.push({ kind: "part", bytes: this.#incompleteWith(bytes), first: true, last: false });
      this.#oversize = true;
    } else {
      this.#incomplete.append(bytes);
    }
  }

  #incompleteWith(bytes: Uint8Array): Uint8Array {
    this.#incomplete.append(bytes);
    return this.#incomplete.take();
  }
}

function next(chunk: Uint8Array, byte: number, from: number): number {
  const at = chunk.indexOf(byte, from);
  return at === -1 ? chunk.length : at;
}
