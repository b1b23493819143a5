/** Which attempts are stragglers: much slower than the others, while the others are not. */
import type { HedgeRule } from "../../call.ts";
import { HEDGE_MEDIANS_MIN, HEDGE_SLOW_SHARE_MAX } from "../../limits.ts";
/** After how long an attempt counts as slow, and after how long it is hedged if few are, ms. */
export type SlowTimes = { slowMs: number; hedgeMs: number };

/**
 * By the time that 95 % of the calls of a model take at most. A call that is not several times as slow as half of the others is
 * none that another attempt would overtake by much.
 */
export function slowTimes(p50Ms: number, p95Ms: number): SlowTimes {
  return { slowMs: p95Ms, hedgeMs: Math.max(p95Ms, p50Ms * HEDGE_MEDIANS_MIN) };
}

/** The times of a rule; `p95`: those that are known of the model. Null = too little is known. */
export function timesOf({ after }: HedgeRule, p95: SlowTimes | null): SlowTimes | null {
  return after === "p95" ? p95 : { slowMs: after, hedgeMs: after };
}

/** What of a model's attempts happened since one of them began. */
export type Siblings = {
  /** Those that were slow, or are in flight for so long that they are, the attempt itself among them. */
  slow: number;
  /** Those that were answered meanwhile and were fast. */
  fast: number;
};

/**
 * Whether an attempt that is late is slower than its siblings: where many are slow, so is the provider, and more calls would
 * make it slower. One that is the only slow one is judged by its time alone.
 */
export function isStraggler({ slow, fast }: Siblings): boolean {
  return slow <= 1 || slow <= HEDGE_SLOW_SHARE_MAX * (slow + fast);
}
