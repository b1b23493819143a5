/** When the calls of a group leave their provider's batches to be sent live, so that its deadline holds. */
import { PROVIDER_CANCEL_MS_MAX, PROVIDER_LIVE_CALL_MS, PROVIDER_LIVE_MS_MIN } from "../../limits.ts";

/** The part of a deadline that a provider has at least, however many calls would have to be sent live after it. */
const PROVIDER_SHARE_MIN = 0.25;

export type LiveAt = {
  openedAtMs: number;
  deadlineMs: number;
  /** Calls of the group, and how many of them may be in flight at once. */
  count: number;
  width: number;
  /** What the operator has set for the upstream; null = nothing. */
  marginMs: number | null;
};

/**
 * The time at which what is open is cancelled at the provider, epoch ms: before the deadline by the time that a cancellation
 * takes, and by that in which all calls of the group could be sent live.
 */
export function liveAtMs({ openedAtMs, deadlineMs, count, width, marginMs }: LiveAt): number {
  const rounds = Math.ceil(count / Math.max(1, width));
  const byWork = PROVIDER_CANCEL_MS_MAX + Math.max(PROVIDER_LIVE_MS_MIN, rounds * PROVIDER_LIVE_CALL_MS);
  // What an operator has set holds as it is.
  const margin = marginMs ?? Math.min(byWork, deadlineMs * (1 - PROVIDER_SHARE_MIN));
  return openedAtMs + Math.max(0, Math.floor(deadlineMs - margin));
}
