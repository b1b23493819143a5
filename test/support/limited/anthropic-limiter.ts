/**
 * The limits of a key as Anthropic keeps them: requests, input tokens and output tokens per minute. A cap counts nothing:
 * output tokens are counted when they have been made. Resets are times of day, to the second, and a remainder of tokens is
 * rounded to thousands.
 */
import { Bucket } from "./bucket.ts";
import type { Arrival, Limiter, Rejection, Verdict } from "./limiter.ts";

export type AnthropicLimits = {
  requestsPerMinute: number;
  inputTokensPerMinute: number;
  outputTokensPerMinute: number;
  /** Share of all limits that is left at first; 1 if it is not given. */
  fill?: number;
  /** Requests in flight from which on it is overloaded (529, without a hint); never if it is not given. */
  overloadedAt?: number;
};

export class AnthropicLimiter implements Limiter {
  readonly #buckets: { requests: Bucket; "input-tokens": Bucket; "output-tokens": Bucket };
  readonly #overloadedAt: number;

  constructor(limits: AnthropicLimits) {
    const { requestsPerMinute, inputTokensPerMinute, outputTokensPerMinute, fill = 1 } = limits;
    this.#buckets = {
      requests: new Bucket(requestsPerMinute, fill),
      "input-tokens": new Bucket(inputTokensPerMinute, fill),
      "output-tokens": new Bucket(outputTokensPerMinute, fill),
    };
    this.#overloadedAt = limits.overloadedAt ?? Infinity;
  }

  arrive({ nowMs, inFlight, promptTokens }: Arrival): Verdict {
    if (inFlight >= this.#overloadedAt) return { rejection: OVERLOADED };
    const { requests, "input-tokens": input, "output-tokens": output } = this.#buckets;
    const waits: [what: string, waitMs: number][] = [
      ["requests", requests.readyInMs(1, nowMs)],
      ["input tokens", input.readyInMs(promptTokens, nowMs)],
      ["output tokens", output.readyInMs(1, nowMs)],
    ];
    const [what, waitMs] = waits.reduce((longest, wait) => (wait[1] > longest[1] ? wait : longest));
    if (waitMs > 0) return { rejection: this.#rejection(what, waitMs, nowMs) };
    requests.take(1, nowMs);
    input.take(promptTokens, nowMs);
    return { headers: this.headersAt(nowMs), rejection: null };
  }

  answered(outputTokens: number, nowMs: number): void {
    this.#buckets["output-tokens"].take(outputTokens, nowMs);
  }

  headersAt(nowMs: number): Record<string, string> {
    const headers: Record<string, string> = {};
    for (const [name, bucket] of Object.entries(this.#buckets)) {
      const left = Math.max(0, bucket.level(nowMs));
      const shown = name === "requests" ? Math.floor(left) : Math.round(left / 1_000) * 1_000;
      headers[`anthropic-ratelimit-${name}-limit`] = String(bucket.limit);
      headers[`anthropic-ratelimit-${name}-remaining`] = String(shown);
      headers[`anthropic-ratelimit-${name}-reset`] = secondOf(nowMs + bucket.fullInMs(nowMs));
    }
    return headers;
  }

  #rejection(what: string, waitMs: number, nowMs: number): Rejection {
    return {
      status: 429,
      code: "rate_limit_error",
      message: `This request would exceed your organization's rate limit of ${what} per minute.`,
      headers: { ...this.headersAt(nowMs), "retry-after": String(Math.ceil(waitMs / 1_000)) },
    };
  }
}

const OVERLOADED: Rejection = { status: 529, code: "overloaded_error", message: "Overloaded", headers: {} };

/** RFC 3339, to the second, never before the time that it states. */
function secondOf(epochMs: number): string {
  return new Date(Math.ceil(epochMs / 1_000) * 1_000).toISOString().replace(".000Z", "Z");
}
