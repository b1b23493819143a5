/** A buffer of bytes that grows at its end, in proportion to what is added. */

const FIRST_BYTES = 512;

/** `take` frees memory above this, bytes: one large event of a stream must not occupy it while the stream is quiet. */
const IDLE_BYTES_MAX = 8 * 1024;

/** Bytes are copied in, because the source of a chunk may reuse the chunk's memory. */
export class ByteBuffer {
  readonly #bytesMax: number;
  #bytes = new Uint8Array(0);
  #length = 0;

  /** @param bytesMax Most bytes it holds. */
  constructor(bytesMax = Number.POSITIVE_INFINITY) {
    this.#bytesMax = bytesMax;
  }

  get length(): number {
    return this.#length;
  }

  get isFull(): boolean {
    return this.#length === this.#bytesMax;
  }

  /** Copies what fits, and returns the rest. */
  append(more: Uint8Array): Uint8Array {
    const fitting = more.subarray(0, this.#bytesMax - this.#length);
    const length = this.#length + fitting.length;
    if (length > this.#bytes.length) {
      const room = Math.max(FIRST_BYTES, length, 2 * this.#bytes.length);
      const grown = new Uint8Array(Math.min(room, this.#bytesMax));
      grown.set(this.view());
      this.#bytes = grown;
    }
    this.#bytes.set(fitting, this.#length);
    this.#length = length;
    return more.subarray(fitting.length);
  }

  /** The bytes without a copy: valid until the buffer is cleared or emptied and appended to. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Copies the bytes out and empties the buffer. */
  take(): Uint8Array {
    const taken = this.#bytes.slice(0, this.#length);
    this.#length = 0;
    if (this.#bytes.length > IDLE_BYTES_MAX) this.#bytes = new Uint8Array(0);
    return taken;
  }

  /** Empties the buffer and keeps its memory for the next bytes. */
  clear(): void {
    this.#length = 0;
  }
}
