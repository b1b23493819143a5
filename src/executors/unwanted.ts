/** Attempts in flight whose answers nobody waits for any more: which of them may end, because an abort would cost as much. */
import { CALL_MS_ASSUMED, SEEN_MARGIN_TOKENS, UNWANTED_END_MS } from "../limits.ts";

export type Unwanted = {
  /** For how long it has been in flight, ms. */
  elapsedMs: number;
  /** How long calls of its model last on average, ms; null = none has ended here. */
  callMs: number | null;
  /** The most tokens that its answer can have; null = no bound is known. */
  capTokens: number | null;
  /** What its upstream is charged for an abort: the whole reservation, or what was seen of the stream and a margin. */
  abortCost: "reservation" | "seen";
};

/** A call that lasts this many times the average is late, and may never end; no call is late before a short answer could be there. */
const LATE_SHARE = 4;

/** From this share of the average on, a call is nearly done. */
const NEARLY_DONE_SHARE = 0.75;

/**
 * How long an attempt may go on, ms; 0 = it is aborted at once. An abort is charged the reservation, which is never less than what
 * the answer costs: so an attempt may go on if it is likely to end in time. Where an abort is charged what was seen, it saves what
 * has not been generated: then only an attempt that is nearly done, or whose rest is no more than the margin, may go on.
 */
export function lastsMs({ elapsedMs, callMs, capTokens, abortCost }: Unwanted): number {
  const expectedMs = callMs ?? CALL_MS_ASSUMED;
  const leftMs = Math.max(LATE_SHARE * expectedMs, CALL_MS_ASSUMED) - elapsedMs;
  if (leftMs <= 0 || expectedMs - elapsedMs > UNWANTED_END_MS) return 0;
  if (abortCost === "seen") {
    const isShort = capTokens !== null && capTokens <= SEEN_MARGIN_TOKENS;
    const isNearlyDone = callMs !== null && elapsedMs >= NEARLY_DONE_SHARE * callMs;
    if (!isShort && !isNearlyDone) return 0;
  }
  return Math.min(callMs === null ? expectedMs : leftMs, UNWANTED_END_MS);
}
