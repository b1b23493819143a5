/** Collects bytes until there are enough for one part of an object. It grows as they come, so little ones cost little. */
const FIRST_BYTES = 64 * 1024;

export class PartBuffer {
  readonly #bytesMax: number;
  #bytes = new Uint8Array(0);
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get length(): number {
    return this.#length;
  }

  get isFull(): boolean {
    return this.#length === this.#bytesMax;
  }

  /** Copies what fits and returns the rest. */
  take(bytes: Uint8Array): Uint8Array {
    const taken = bytes.subarray(0, this.#bytesMax - this.#length);
    this.#growTo(this.#length + taken.length);
    this.#bytes.set(taken, this.#length);
    this.#length += taken.length;
    return bytes.subarray(taken.length);
  }

  /** What was taken: a view, good until the buffer is cleared and taken into again. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Forgets the bytes and keeps their room. */
  clear(): void {
    this.#length = 0;
  }

  #growTo(length: number): void {
    if (length <= this.#bytes.length) return;
    const room = Math.max(length, 2 * this.#bytes.length, FIRST_BYTES);
    const grown = new Uint8Array(Math.min(room, this.#bytesMax));
    grown.set(this.view());
    this.#bytes = grown;
  }
}
