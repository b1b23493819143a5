/** Draws that a seed repeats: mulberry32. */
export class Random {
  #state: number;

  constructor(...seeds: readonly number[]) {
    this.#state = 0x9e3779b9;
    for (const seed of seeds) {
      this.#state = (this.#state ^ Math.imul(seed + 1, 0x85ebca6b)) >>> 0;
      this.fraction();
    }
  }

  /** From 0 to below 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number, both ends included. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.fraction() * (max - min + 1));
  }

  chance(share: number): boolean {
    return this.fraction() < share;
  }

  pick<T>(list: readonly [T, ...T[]] | readonly T[]): T {
    const found = list[Math.floor(this.fraction() * list.length)];
    if (found === undefined) throw new Error("nothing to pick from");
    return found;
  }

  /** One of the names, by their weights. */
  weighted<Name extends string>(weights: readonly (readonly [Name, number])[]): Name {
    let left = this.fraction() * weights.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of weights) {
      left -= weight;
      if (left < 0) return name;
    }
    return this.pick(weights)[0];
  }
}
