/** How fast a run's calls end, how long the rest takes, and what it will have cost. */
import type { Call } from "../../src/log/picture/call.ts";
import { nanoUsdOf, usdOf } from "../../src/run/money/money.ts";
import { countText, durationText, usdText } from "./format.ts";
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
  const recent = recentlyEnded(state);
  const perSecond = rateOf(recent, state, nowMs);
  const remainingMs = remainingOf(state, { left, recent, perSecond }, nowMs);
  // In whole nano-USD, as amounts are: what pays for exactly so many calls must not seem to be a rounding error short.
  const predictedUsd = ended === 0 ? null : usdOf(nanoUsdOf(state.spentUsd + (left * state.spentUsd) / ended));
  return { total, ended, perSecond, remainingMs, predictedUsd };
}

/** Dollars are sums of decimals: what pays for exactly so many calls must not seem to pay for one less. */
const ROUNDING = 1e-6;

export type Forecast = { text: string; isShort: boolean };

/**
 * In a sentence, when the calls will have ended and what they will have cost; or, if the budget does not reach so far, at about
 * which call it ends. Null while no call has a cost.
 */
export function forecastOf(state: RunState, limitUsd: number | null, nowMs: number): Forecast | null {
  const { total, ended, remainingMs, predictedUsd } = progressOf(state, nowMs);
  const left = total - ended;
  if (predictedUsd === null || left === 0 || state.counts.completed === 0) return null;
  const meanUsd = state.spentUsd / ended;
  if (limitUsd !== null && predictedUsd > limitUsd && meanUsd > 0) {
    const reached = Math.min(total, ended + Math.floor(Math.max(0, limitUsd - state.spentUsd) / meanUsd + ROUNDING));
    const missing = usdText(predictedUsd - limitUsd);
    return {
      text: `The budget ends at about call ${countText(reached)} of ${countText(total)}: all of them would need about ${missing} more.`,
      isShort: true,
    };
  }
  const when = remainingMs === null ? "" : ` in about ${durationText(remainingMs)}`;
  return {
    text: `At this pace all ${countText(total)} calls end${when} and cost about ${usdText(predictedUsd)}.`,
    isShort: false,
  };
}

type Ended = Call & { endMs: number };

function recentlyEnded({ calls }: RunState): Ended[] {
  const recent: Ended[] = [];
  // Calls end roughly in the order in which they begin: the last begun contain the last ended.
  for (let at = calls.length - 1; at >= 0 && recent.length < RECENT_CALLS; at--) {
    const call = calls[at];
    if (call !== undefined && hasEnded(call)) recent.push(call);
  }
  return recent;
}

function hasEnded(call: Call): call is Ended {
  return call.endMs !== null;
}

function rateOf(recent: readonly Ended[], state: RunState, nowMs: number): number | null {
  if (recent.length < 2) return null;
  const untilMs = state.ended === null && state.counts.running > 0 ? nowMs : state.lastMs;
  const spanMs = Math.max(1, untilMs - Math.min(...recent.map(({ endMs }) => endMs)));
  return (recent.length / spanMs) * 1_000;
}

/** Calls in the queue end at the rate of the last ones. That rate says nothing about the end of the last calls in flight. */
function remainingOf(
  state: RunState,
  { left, recent, perSecond }: { left: number; recent: readonly Ended[]; perSecond: number | null },
  nowMs: number,
): number | null {
  if (left === 0) return 0;
  if (left <= state.counts.running) return inFlightMs(state, recent, nowMs);
  return perSecond === null ? null : (left / perSecond) * 1_000;
}

/**
 * Until the last call in flight ends, if each takes as long as the longest recent call to its model. Null if a call takes longer
 * than that already, or is the first to its model.
 */
function inFlightMs({ calls, counts }: RunState, recent: readonly Ended[], nowMs: number): number | null {
  const longestMs = new Map<string, number>();
  for (const { attempts, latencyMs } of recent) {
    const target = attempts.at(-1)?.target ?? "";
    longestMs.set(target, Math.max(longestMs.get(target) ?? 0, latencyMs));
  }
  let [found, remainingMs] = [0, 0];
  for (let at = calls.length - 1; at >= 0 && found < counts.running; at--) {
    const call = calls[at];
    if (call?.state !== "running") continue;
    found += 1;
    const { target = "", startMs = nowMs } = call.attempts.at(-1) ?? {};
    const leftMs = (longestMs.get(target) ?? 0) - (nowMs - startMs);
    if (leftMs <= 0) return null;
    remainingMs = Math.max(remainingMs, leftMs);
  }
  return remainingMs;
}
