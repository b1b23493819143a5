/** Which attempts are stragglers: much slower than the others, while the others are not. */
import type { HedgeRule } from "../../call.ts";
import { HEDGE_SLOW_SHARE_MAX } from "../../limits.ts";
import type { ModelPace } from "./pace.ts";

/** After how long an attempt counts as slow, and after how long it is hedged if few are, ms; null = too little is known. */
export function timesOf({ after }: HedgeRule, pace: ModelPace | undefined): { slowMs: number; hedgeMs: number } | null {
  return after === "p95" ? (pace?.p95 ?? null) : { slowMs: after, hedgeMs: after };
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
