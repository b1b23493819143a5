/** How fast a run's calls end, how long the rest takes, and what it will have cost. */
import type { RunState } from "./run-state.ts";

/** The rate is that of the last calls: enough of them to be steady, few enough to follow a change. */
const RECENT_CALLS = 50;

export type Progress = {
  total: number;
  ended: number;
  /** Calls per second at the end; null until two have ended. */
  perSecond: number | null;
  /** Null if it cannot be known. */
  remainingMs: number | null;
  /** Spent so far, and for each call that has not ended the mean cost of those that have; null if none has ended. */
  predictedUsd: number | null;
};

export function progressOf(state: RunState, nowMs: number): Progress {
  const { total, endedCalls: ended } = state;
  const left = Math.max(0, total - ended);
  const perSecond = recentRate(state, nowMs);
  const remainingMs = left === 0 ? 0 : perSecond === null || perSecond === 0 ? null : (left / perSecond) * 1_000;
  const predictedUsd = ended === 0 ? null : state.spentUsd + (left * state.spentUsd) / ended;
  return { total, ended, perSecond, remainingMs, predictedUsd };
}

function recentRate(state: RunState, nowMs: number): number | null {
  const ends: number[] = [];
  // Calls end roughly in the order in which they begin: the last begun hold the last ended.
  for (let at = state.calls.length - 1; at >= 0 && ends.length < RECENT_CALLS; at--) {
    const endMs = state.calls[at]?.endMs;
    if (endMs !== null && endMs !== undefined) ends.push(endMs);
  }
  if (ends.length < 2) return null;
  const untilMs = state.ended === null && state.counts.running > 0 ? nowMs : state.lastMs;
  const spanMs = Math.max(1, untilMs - Math.min(...ends));
  return (ends.length / spanMs) * 1_000;
}
