/** Reads what a provider's headers say of its rate limits. The one table of their names. */
import type { BucketName, BucketSample, RateSample } from "../../gate/wire.ts";
import { readResetMs } from "./duration.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** A bucket and the headers that show it. */
export type LimitHeader = {
  bucket: BucketName;
  limit: string;
  remaining: string;
  reset: string;
  /** The window that the names speak of; null = a minute, unless the time of the reset shows a longer one (Groq: a day). */
  windowMs: number | null;
  source: string;
};

/** `x-ratelimit-limit-…`, `-remaining-…` and `-reset-…` with the same end. */
function family(bucket: BucketName, end: string, windowMs: number | null, source: string): LimitHeader {
  const name = (what: string): string => `x-ratelimit-${what}${end}`;
  return { bucket, limit: name("limit"), remaining: name("remaining"), reset: name("reset"), windowMs, source };
}

function anthropic(bucket: BucketName, kind: string): LimitHeader {
  const name = (what: string): string => `anthropic-ratelimit-${kind}-${what}`;
  const source = "Anthropic, rate limits: response headers; a bucket that refills continuously, per minute";
  return {
    bucket,
    limit: name("limit"),
    remaining: name("remaining"),
    reset: name("reset"),
    windowMs: MINUTE_MS,
    source,
  };
}

/** Of two headers for one bucket, the first that is there is read. */
export type LimitHeaders = readonly LimitHeader[];

/** Those of all providers: who speaks OpenAI's protocol may have any of them. */
export const COMMON_LIMIT_HEADERS: LimitHeaders = [
  family("requests", "-requests", null, "OpenAI, Groq (requests per day), xAI: rate limits in headers; Azure OpenAI"),
  family("tokens", "-tokens", null, "OpenAI, Groq, Azure OpenAI: rate limits in headers"),
  anthropic("requests", "requests"),
  anthropic("inputTokens", "input-tokens"),
  anthropic("outputTokens", "output-tokens"),
  anthropic("tokens", "tokens"),
  family(
    "requests",
    "-req-minute",
    MINUTE_MS,
    "Mistral: headers of a chat completion, as its client's users report them",
  ),
  family("requests", "-requests-minute", MINUTE_MS, "Cerebras: rate limits, headers"),
  family("requests", "-requests-day", DAY_MS, "Cerebras: rate limits, headers"),
  family("tokens", "-tokens-minute", MINUTE_MS, "Cerebras: rate limits, headers; Mistral"),
  family("tokens", "-tokens-per-minute", MINUTE_MS, "DigitalOcean, serverless inference: quota headers"),
  family("inputTokens", "-tokens-prompt", MINUTE_MS, "Fireworks: serverless rate limits, headers"),
  family("outputTokens", "-tokens-generated", MINUTE_MS, "Fireworks: serverless rate limits, headers"),
  family("requests", "", null, "OpenRouter: X-RateLimit-Reset in ms since 1970"),
];

const COUNT = /^\d{1,15}(?:\.\d{1,15})?$/;

/**
 * The rate limits in an answer's headers; null if they show none. `ageMs`: the time since the request was sent. Providers
 * that count no limit send -1 or 0 as the limit (Azure): these are not read.
 */
export function readRateSample(
  headers: Headers,
  { ageMs, nowMs, shown }: { ageMs: number; nowMs: number; shown: LimitHeaders },
): RateSample | null {
  const sample: RateSample = { ageMs };
  for (const rule of shown) {
    if (sample[rule.bucket] !== undefined) continue;
    const bucket = readBucket(rule, headers, nowMs);
    if (bucket !== null) sample[rule.bucket] = bucket;
  }
  // Anthropic's plain `tokens` repeats whichever of the two is closest to its limit.
  if (sample.inputTokens !== undefined || sample.outputTokens !== undefined) delete sample.tokens;
  return shown.some(({ bucket }) => sample[bucket] !== undefined) ? sample : null;
}

function readBucket(rule: LimitHeader, headers: Headers, nowMs: number): BucketSample | null {
  const remaining = countIn(headers, rule.remaining);
  if (remaining === null) return null;
  const limit = countIn(headers, rule.limit);
  if (limit === 0) return null;
  const reset = headers.get(rule.reset);
  const resetMs = reset === null ? null : readResetMs(reset, nowMs);
  return { limit, remaining, resetMs, windowMs: rule.windowMs ?? windowOf(limit, remaining, resetMs) };
}

/**
 * The window of a bucket whose headers name none. A reset within a minute fits a minute's bucket; a later one shows at
 * which rate it is refilled.
 */
function windowOf(limit: number | null, remaining: number, resetMs: number | null): number {
  if (limit === null || resetMs === null || resetMs <= MINUTE_MS || remaining >= limit) return MINUTE_MS;
  return Math.min(DAY_MS, Math.max(MINUTE_MS, (limit * resetMs) / (limit - remaining)));
}

function countIn(headers: Headers, name: string): number | null {
  const text = headers.get(name)?.trim();
  return text !== undefined && COUNT.test(text) ? Number(text) : null;
}
