/**
 * Whether a failed attempt is retried, and when: after the upstream's Retry-After, or after a delay with full jitter.
 */
import type { FailureClass } from "../../call.ts";
import type { Reason } from "../../errors.ts";
import { RETRY_AFTER_MAX_MS, RETRY_BASE_MS, RETRY_MAX_MS } from "../../limits.ts";

/** The reason of an attempt whose executor stopped sending heartbeats. */
export const LOST: Reason = {
  reason: "upstream_error",
  upstream: "",
  status: null,
  message: "the executor of this call was lost before it reported an answer",
  retryable: true,
};

/** The facts of an attempt that failed. `attempt` counts from 1. */
export type FailedAttempt = {
  class: FailureClass;
  attempt: number;
  attemptsMax: number;
  retryAfterMs: number | null;
};

/**
 * Milliseconds until the next attempt may start, or null when the failure is final: it was rejected, the attempts are
 * used up, or the upstream's Retry-After is longer than is obeyed. `random` is uniform in [0, 1).
 */
export function retryDelayMs(failed: FailedAttempt, random: number): number | null {
  if (failed.class === "rejected" || failed.attempt >= failed.attemptsMax) return null;
  const ceilingMs = Math.min(RETRY_MAX_MS, RETRY_BASE_MS * 2 ** (failed.attempt - 1));
  const jitterMs = Math.floor(random * ceilingMs);
  if (failed.retryAfterMs === null) return jitterMs;
  if (failed.retryAfterMs > RETRY_AFTER_MAX_MS) return null;
  // All calls that were rate-limited wait this long; the jitter on top spreads their retries.
  return failed.retryAfterMs + Math.floor(random * RETRY_BASE_MS);
}
