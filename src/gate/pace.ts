/** The rate of calls at a width so small that whole permits are too coarse: one that the gate has found itself. */
export class Pace {
  #perMs: number;
  #level = 1;
  #atMs: number;

  constructor(perMs: number, nowMs: number) {
    this.#perMs = perMs;
    this.#atMs = nowMs;
  }

  /** Calls per ms. */
  get rate(): number {
    return this.#perMs;
  }

  /** The width has changed. */
  set(perMs: number, nowMs: number): void {
    this.#refill(nowMs);
    this.#perMs = perMs;
  }

  start(calls: number, nowMs: number): void {
    this.#refill(nowMs);
    // Calls that were started before there was a pace are no debt of it.
    this.#level = Math.max(-COLLECTED_MIN, this.#level - calls);
  }

  available(outstanding: number, nowMs: number): number {
    this.#refill(nowMs);
    return Math.max(0, this.#level - outstanding);
  }

  waitFor(calls: number, outstanding: number, nowMs: number): number {
    this.#refill(nowMs);
    return Math.max(0, calls + outstanding - this.#level) / this.#perMs;
  }

  /** Few calls collect: they would start together, which is what the rate avoids. */
  #refill(nowMs: number): void {
    const most = Math.max(COLLECTED_MIN, this.#perMs * COLLECTED_MS);
    this.#level = Math.min(most, this.#level + this.#perMs * Math.max(0, nowMs - this.#atMs));
    this.#atMs = Math.max(this.#atMs, nowMs);
  }
}

const COLLECTED_MIN = 1;
/** Longer than the time between two exchanges, so that none of the rate is lost between them. */
const COLLECTED_MS = 400;
