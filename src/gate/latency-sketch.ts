/**
 * Percentiles of the latest durations in bounded memory: counts by buckets, which fade, so that what is found follows a provider
 * that becomes slower or faster.
 */
import { SKETCH_DURATION_MS_MAX, SKETCH_FADES_AT } from "../limits.ts";
import { bucketOf, longestMsIn } from "./duration-buckets.ts";

/** How many durations each bucket has, by its number. */
export type Durations = (readonly [bucket: number, count: number])[];

export class LatencySketch {
  readonly #counts = new Map<number, number>();
  #count = 0;

  /** Adds durations that are alike. */
  add(durationMs: number, count = 1): void {
    this.#addTo(bucketOf(Math.min(Math.max(1, durationMs), SKETCH_DURATION_MS_MAX)), count);
  }

  /** Adds what another sketch has. */
  addAll(durations: Durations): void {
    for (const [bucket, count] of durations) this.#addTo(bucket, count);
  }

  /** All that it knows, for another sketch. */
  durations(): Durations {
    return [...this.#counts];
  }

  /** Durations that it knows; those that have faded do not count. */
  get count(): number {
    return this.#count;
  }

  /** What this share of the durations is at most, ms; null = it knows none. */
  quantile(share: number): number | null {
    if (this.#count === 0) return null;
    let left = this.#count * share;
    for (const [bucket, count] of [...this.#counts].toSorted(([a], [b]) => a - b)) {
      left -= count;
      if (left <= 1e-9) return longestMsIn(bucket);
    }
    return SKETCH_DURATION_MS_MAX;
  }

  #addTo(bucket: number, count: number): void {
    this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + count);
    this.#count += count;
    if (this.#count >= SKETCH_FADES_AT) this.#fade();
  }

  /** Halves the weight of all samples so far: after a few times, they no longer count. */
  #fade(): void {
    this.#count = 0;
    for (const [bucket, count] of this.#counts) {
      const half = count / 2;
      if (half < 0.5) this.#counts.delete(bucket);
      else this.#counts.set(bucket, half);
      if (half >= 0.5) this.#count += half;
    }
  }
}
