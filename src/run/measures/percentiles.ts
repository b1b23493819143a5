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

/**
 * The counts of a sketch as the text of a JSON object, in parts of CHUNK buckets each; undefined = it must be written anew. A sketch is
 * written with every call that ends, which changes one of its counts.
 */
type Chunks = (string | undefined)[];

/** Buckets in one part of the text. A sketch has some hundred buckets: about as many parts as a part has buckets. */
const CHUNK = 16;

/** Whatever changes counts must drop the part of the text that has them. */
const textsOf = new WeakMap<Durations["counts"], Chunks>();

/** The values that 50, 95 and 99 % of all are at most, ms. */
export type Percentiles = { p50: number; p95: number; p99: number };

export function noDurations(): Durations {
  return { counts: {}, maxMs: 0 };
}

export function addDuration(all: Durations, durationMs: number): void {
  addCount(all, durationMs < 1 ? 0 : 1 + bucketOf(durationMs), 1);
  all.maxMs = Math.max(all.maxMs, durationMs);
}

export function addDurations(all: Durations, more: Durations): void {
  for (const bucket in more.counts) addCount(all, Number(bucket), more.counts[bucket] ?? 0);
  all.maxMs = Math.max(all.maxMs, more.maxMs);
}

function addCount({ counts }: Durations, bucket: number, more: number): void {
  counts[bucket] = (counts[bucket] ?? 0) + more;
  const texts = textsOf.get(counts);
  if (texts !== undefined) texts[Math.floor(bucket / CHUNK)] = undefined;
}

/** The same JSON as JSON.stringify makes of them: only the parts that have changed since the last text are written anew. */
export function durationsText({ counts, maxMs }: Durations): string {
  const texts = textsOf.get(counts) ?? chunksOf(counts);
  let text = "";
  for (let chunk = 0; chunk < texts.length; chunk++) {
    const part = (texts[chunk] ??= chunkText(counts, chunk * CHUNK));
    if (part !== "") text += text === "" ? part : `,${part}`;
  }
  return `{"counts":{${text}},"maxMs":${JSON.stringify(maxMs)}}`;
}

function chunksOf(counts: Durations["counts"]): Chunks {
  const texts: Chunks = [];
  for (const bucket in counts) texts[Math.floor(Number(bucket) / CHUNK)] = undefined;
  textsOf.set(counts, texts);
  return texts;
}

function chunkText(counts: Durations["counts"], first: number): string {
  let text = "";
  for (let bucket = first; bucket < first + CHUNK; bucket++) {
    const count = counts[bucket];
    if (count !== undefined) text += text === "" ? `"${bucket}":${count}` : `,"${bucket}":${count}`;
  }
  return text;
}

/** Those that came after `before`, which is a part of all. Their longest is only known not to be above that of all. */
export function durationsSince(all: Durations, before: Durations): Durations {
  const since: Durations = { counts: {}, maxMs: all.maxMs };
  for (const bucket in all.counts) {
    const left = (all.counts[bucket] ?? 0) - (before.counts[bucket] ?? 0);
    if (left > 0) since.counts[bucket] = left;
  }
  return since;
}

/** Null if there are none. */
export function percentilesOf({ counts, maxMs }: Durations): Percentiles | null {
  let count = 0;
  for (const bucket in counts) count += counts[bucket] ?? 0;
  if (count === 0) return null;
  const at = (share: number): number => {
    let left = Math.ceil(count * share);
    // Names that are whole numbers come in their order.
    for (const bucket in counts) {
      left -= counts[bucket] ?? 0;
      if (left <= 0) return bucket === "0" ? 0 : Math.min(maxMs, longestMsIn(Number(bucket) - 1));
    }
    return maxMs;
  };
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}
