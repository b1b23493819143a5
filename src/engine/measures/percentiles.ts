/**
 * Percentiles of many durations in little memory: counts by buckets that are 5 % wide, so that a percentile is at most that
 * much too high. A duration below 1 ms counts as 0.
 */

const RATIO = Math.log(1.05);

/** The values that 50, 95 and 99 % of all are at most, ms; null = there are none. */
export type Percentiles = { p50: number; p95: number; p99: number };

export class Durations {
  readonly #counts = new Map<number, number>();
  #count = 0;
  #maxMs = 0;

  add(durationMs: number): void {
    const bucket = durationMs < 1 ? -1 : Math.ceil(Math.log(durationMs) / RATIO - 1e-9);
    this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + 1);
    this.#count += 1;
    this.#maxMs = Math.max(this.#maxMs, durationMs);
  }

  get percentiles(): Percentiles | null {
    if (this.#count === 0) return null;
    const buckets = [...this.#counts].toSorted(([a], [b]) => a - b);
    const at = (share: number): number => {
      let left = Math.ceil(this.#count * share);
      for (const [bucket, count] of buckets) {
        left -= count;
        if (left <= 0) return bucket < 0 ? 0 : Math.min(this.#maxMs, Math.round(Math.exp(bucket * RATIO)));
      }
      return this.#maxMs;
    };
    return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
  }
}
