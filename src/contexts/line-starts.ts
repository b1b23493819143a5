/** Beginnings of lines in the order of the text, found by bisection: a chunk may have half a million, and the next repeats most of them. */
export class LineStarts {
  #places: number[] = [];
  /** Those before it are dropped; they leave the list once they are half of it. */
  #first = 0;

  push(at: number): void {
    this.#places.push(at);
  }

  /** Drops the beginnings before a place. */
  dropBefore(at: number): void {
    this.#first = this.#indexOf(at);
    if (this.#first * 2 <= this.#places.length) return;
    this.#places = this.#places.slice(this.#first);
    this.#first = 0;
  }

  /** The first beginning at a place or behind it; null = there is none. */
  from(at: number): number | null {
    return this.#places[this.#indexOf(at)] ?? null;
  }

  /** The last beginning at a place or before it; null = there is none. */
  upTo(at: number): number | null {
    const index = this.#indexOf(at + 1) - 1;
    return index < this.#first ? null : (this.#places[index] ?? null);
  }

  /** The index of the first beginning at a place or behind it. */
  #indexOf(at: number): number {
    let low = this.#first;
    let high = this.#places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#places[middle] ?? 0) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
