/** Keeps the bytes of an event that has begun until its end arrives. */

/** A buffer that one large event made bigger than this is let go, so that a quiet stream holds little. */
const KEPT_BYTES_MAX = 8 * 1024;
const FIRST_BYTES = 512;

/** Bytes that grow at their end. They are copied in: a reader may use its chunk's memory again. */
export class ByteBuffer {
  #bytes = new Uint8Array(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(more: Uint8Array): void {
    const length = this.#length + more.length;
    if (length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(FIRST_BYTES, length, 2 * this.#bytes.length));
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
    }
    this.#bytes.set(more, this.#length);
    this.#length = length;
  }

  /** All bytes kept, and the buffer is empty. */
  take(): Uint8Array {
    const taken = this.#bytes.slice(0, this.#length);
    this.#length = 0;
    if (this.#bytes.length > KEPT_BYTES_MAX) this.#bytes = new Uint8Array(0);
    return taken;
  }
}
