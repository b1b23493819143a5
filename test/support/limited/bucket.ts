/**
 * A continuous token bucket as providers run them: it refills all the time, at its limit per minute, and never beyond its
 * limit. Knows no clock: every method takes the time, ms.
 */
export class Bucket {
  readonly limit: number;
  readonly #perMs: number;
  #level: number;
  #atMs: number | null = null;

  /** @param fill Share of the limit that is in the bucket at first: below 1, the key was in use before. */
  constructor(limitPerMinute: number, fill = 1) {
    this.limit = limitPerMinute;
    this.#perMs = limitPerMinute / 60_000;
    this.#level = limitPerMinute * fill;
  }

  /** What is in the bucket. Negative where more was taken than it had. */
  level(nowMs: number): number {
    if (this.#atMs !== null) this.#level = Math.min(this.limit, this.#level + (nowMs - this.#atMs) * this.#perMs);
    this.#atMs = nowMs;
    return this.#level;
  }

  take(amount: number, nowMs: number): void {
    this.#level = this.level(nowMs) - amount;
  }

  /** Time until it has this amount, ms. */
  readyInMs(amount: number, nowMs: number): number {
    return Math.max(0, (amount - this.level(nowMs)) / this.#perMs);
  }

  /** Time until it is full, ms. */
  fullInMs(nowMs: number): number {
    return this.readyInMs(this.limit, nowMs);
  }
}
