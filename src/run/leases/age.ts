/** How old a single call is when its request reaches its run. */
import { STOOD_STILL_MS_MAX } from "../../limits.ts";

export type Aged = {
  /** Time from its arrival at its Worker until it was sent, ms; absent = it was sent at once. */
  ageMs?: number;
  /** When it was sent, by the Worker's clock, epoch ms; absent = it is not known, and it took no time. */
  sentAtMs?: number;
};

/**
 * Time since the call's Worker got it, ms. The time on its way is what the Worker's clock and the object's say, which is as exact as
 * they agree: so no more of it counts than for which a process may stand still, and none if the Worker's clock is ahead.
 */
export function ageOf({ ageMs = 0, sentAtMs }: Aged, nowMs: number): number {
  const onWayMs = sentAtMs === undefined ? 0 : Math.min(Math.max(0, nowMs - sentAtMs), STOOD_STILL_MS_MAX);
  return Math.max(0, ageMs) + onWayMs;
}
