/**
 * Percentiles of many durations in little memory: counts by buckets. They are plain data, which can be stored, added up and
 * subtracted. A duration below 1 ms counts as 0.
 */
import { bucketOf, longestMsIn } from "../../gate/duration-buckets.ts";

/**
 * How many durations each bucket has, and the longest of them, ms. By the bucket's number plus one, and 0 for what is below 1 ms. The
 * longest ever has few hundred buckets below it.
 */
export type Durations = { counts: Record<number, number>; maxMs: number };

/** The values that 50, 95 and 99 % of all are at most, ms. */
export type Percentiles = { p50: number; p95: number; p99: number };

export function noDurations(): Durations {
  return { counts: {}, maxMs: 0 };
}

export function addDuration(all: Durations, durationMs: number): void {
  const bucket = durationMs < 1 ? 0 : 1 + bucketOf(durationMs);
  all.counts[bucket] = (all.counts[bucket] ?? 0) + 1;
  all.maxMs = Math.max(all.maxMs, durationMs);
}

export function addDurations(all: Durations, more: Durations): void {
  for (const [bucket, count] of countsOf(more)) all.counts[bucket] = (all.counts[bucket] ?? 0) + count;
  all.maxMs = Math.max(all.maxMs, more.maxMs);
}

/** Those that came after `before`, which is a part of all. Their longest is only known not to be above that of all. */
export function durationsSince(all: Durations, before: Durations): Durations {
  const since: Durations = { counts: {}, maxMs: all.maxMs };
  for (const [bucket, count] of countsOf(all)) {
    const left = count - (before.counts[bucket] ?? 0);
    if (left > 0) since.counts[bucket] = left;
  }
  return since;
}

/** Null if there are none. */
export function percentilesOf(all: Durations): Percentiles | null {
  const buckets = countsOf(all).toSorted(([a], [b]) => a - b);
  const count = buckets.reduce((sum, [, each]) => sum + each, 0);
  if (count === 0) return null;
  const at = (share: number): number => {
    let left = Math.ceil(count * share);
    for (const [bucket, each] of buckets) {
      left -= each;
      if (left <= 0) return bucket === 0 ? 0 : Math.min(all.maxMs, longestMsIn(bucket - 1));
    }
    return all.maxMs;
  };
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

function countsOf({ counts }: Durations): [number, number][] {
  return Object.entries(counts).map(([bucket, count]) => [Number(bucket), count]);
}
