/** Which attempts are stragglers: much slower than the others, while the others are not. */
import type { HedgeRule } from "../../call.ts";
import { HEDGE_MEDIANS_MIN, HEDGE_SLOW_SHARE_MAX } from "../../limits.ts";
/** After how long an attempt counts as slow, and after how long it is hedged if few are, ms. */
export type SlowTimes = { slowMs: number; hedgeMs: number };

/**
 * From the time that 95 % of the calls of a model take at most. Another attempt would hardly overtake a call that is not several
 * times as slow as the median.
 */
export function slowTimes(p50Ms: number, p95Ms: number): SlowTimes {
  return { slowMs: p95Ms, hedgeMs: Math.max(p95Ms, p50Ms * HEDGE_MEDIANS_MIN) };
}

/** The times of a rule; `p95`: those that are known of the model. Null = too little is known. */
export function timesOf({ after }: HedgeRule, p95: SlowTimes | null): SlowTimes | null {
  return after === "p95" ? p95 : { slowMs: after, hedgeMs: after };
}

/** How a model's other attempts fared since one attempt began. */
export type Siblings = {
  /** Number of slow attempts: ended, or still in flight for that long, including the attempt itself. */
  slow: number;
  /** Number of attempts that ended meanwhile and were fast. */
  fast: number;
};

/**
 * Whether a late attempt is slower than its siblings. If many are slow, the provider is slow, and more calls would make it
 * slower. If no other attempt is slow, only its time counts.
 */
export function isStraggler({ slow, fast }: Siblings): boolean {
  return slow <= 1 || slow <= HEDGE_SLOW_SHARE_MAX * (slow + fast);
}
