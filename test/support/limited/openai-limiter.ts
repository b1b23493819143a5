/**
 * The limits of a key as OpenAI keeps them: requests and tokens per minute in continuous buckets, where a request counts
 * its prompt and its cap before it starts. Every answer names both buckets.
 */
import { Bucket } from "./bucket.ts";
import type { Arrival, Limiter, Rejection, Verdict } from "./limiter.ts";

export type OpenAiLimits = {
  requestsPerMinute: number;
  tokensPerMinute: number;
  /** Share of both limits that is left at first; 1 if it is not given. */
  fill?: number;
  /** Whether refused requests count as well, as those of api.openai.com do. */
  countsRefused?: boolean;
};

/** What a request without a cap counts for its answer. */
const DEFAULT_CAP_TOKENS = 16;

export class OpenAiLimiter implements Limiter {
  readonly #requests: Bucket;
  readonly #tokens: Bucket;
  readonly #countsRefused: boolean;

  constructor({ requestsPerMinute, tokensPerMinute, fill = 1, countsRefused = false }: OpenAiLimits) {
    this.#requests = new Bucket(requestsPerMinute, fill);
    this.#tokens = new Bucket(tokensPerMinute, fill);
    this.#countsRefused = countsRefused;
  }

  arrive({ nowMs, promptTokens, capTokens }: Arrival): Verdict {
    const tokens = promptTokens + (capTokens ?? DEFAULT_CAP_TOKENS);
    const waits = {
      requests: this.#requests.readyInMs(1, nowMs),
      tokens: this.#tokens.readyInMs(tokens, nowMs),
    };
    const isAdmitted = waits.requests === 0 && waits.tokens === 0;
    if (isAdmitted || this.#countsRefused) this.#requests.take(1, nowMs);
    if (!isAdmitted) return { rejection: this.#rejection(waits, nowMs) };
    this.#tokens.take(tokens, nowMs);
    return { headers: this.headersAt(nowMs), rejection: null };
  }

  answered(): void {}

  headersAt(nowMs: number): Record<string, string> {
    const of = (bucket: Bucket, what: string) => ({
      [`x-ratelimit-limit-${what}`]: String(bucket.limit),
      [`x-ratelimit-remaining-${what}`]: String(Math.max(0, Math.floor(bucket.level(nowMs)))),
      [`x-ratelimit-reset-${what}`]: goDuration(bucket.fullInMs(nowMs)),
    });
    return { ...of(this.#requests, "requests"), ...of(this.#tokens, "tokens") };
  }

  #rejection(waits: { requests: number; tokens: number }, nowMs: number): Rejection {
    const which = waits.requests >= waits.tokens ? "requests" : "tokens";
    const waitMs = Math.ceil(waits[which]);
    const unit = which === "requests" ? "requests per min (RPM)" : "tokens per min (TPM)";
    return {
      status: 429,
      code: "rate_limit_exceeded",
      message: `Rate limit reached on ${unit}. Please try again in ${goDuration(waitMs)}.`,
      headers: {
        ...this.headersAt(nowMs),
        "retry-after": String(Math.ceil(waitMs / 1_000)),
        "retry-after-ms": String(waitMs),
      },
    };
  }
}

/** A duration as Go prints it, which is how these headers are written: `6m0s`, `1.5s`, `120ms`. */
export function goDuration(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1_000) return whole === 0 ? "0s" : `${whole}ms`;
  const seconds = (whole % 60_000) / 1_000;
  const minutes = Math.floor(whole / 60_000) % 60;
  const hours = Math.floor(whole / 3_600_000);
  if (hours > 0) return `${hours}h${minutes}m${seconds}s`;
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`;
}
