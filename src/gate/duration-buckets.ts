/**
 * Buckets of durations that are 5 % wide, so that what is found by them is at most that much too high. Sketches and totals are stored
 * and sent by the numbers of buckets, so their width stays as it is.
 */

const RATIO = Math.log(1.05);

/** The number of a duration's bucket; `durationMs` ≥ 1. The bucket of 1 ms is 0. */
export function bucketOf(durationMs: number): number {
  return Math.ceil(Math.log(durationMs) / RATIO - 1e-9);
}

/** The longest duration of a bucket, in whole ms. */
export function longestMsIn(bucket: number): number {
  return Math.round(Math.exp(bucket * RATIO));
}
