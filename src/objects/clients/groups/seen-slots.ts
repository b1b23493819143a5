/** The slots of a group that a reader has seen: a bit for each. */

const BYTES_FIRST = 128;

export class SeenSlots {
  #bits = new Uint8Array(BYTES_FIRST);
  #size = 0;

  /** Number of slots that were seen. */
  get size(): number {
    return this.#size;
  }

  /** Those of `slots` that were not seen before; they are from now on. */
  unseen<Slot extends { index: number }>(slots: readonly Slot[]): Slot[] {
    return slots.filter(({ index }) => this.#add(index));
  }

  #add(index: number): boolean {
    const at = index >> 3;
    if (at >= this.#bits.length) {
      const larger = new Uint8Array(Math.max(at + 1, this.#bits.length * 2));
      larger.set(this.#bits);
      this.#bits = larger;
    }
    const before = this.#bits[at] ?? 0;
    const after = before | (1 << (index & 7));
    this.#bits[at] = after;
    if (after !== before) this.#size += 1;
    return after !== before;
  }
}
