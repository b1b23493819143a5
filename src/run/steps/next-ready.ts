/** When time alone changes what a run may start, or ends something of it. */
import type { EngineState } from "../state.ts";
import { TIMER_MS_MAX } from "../../limits.ts";
import { isExchanging, nextExchangeMs } from "./exchange.ts";
import { nextPatienceMs } from "./stop-width.ts";
import { stoppedEndMs } from "./waiting.ts";

/** When the next retry is due, deadline passes, wait at a gate or coalescing window ends; null when none is pending. */
export function nextReadyMs(state: EngineState, nowMs: number): number | null {
  const { queue, window, upstreams } = state;
  const deadlineMs = nextDeadlineMs(state, nowMs);
  const times = [queue.nextDueMs, window.nextEndMs, deadlineMs, state.hedges.nextMs(nowMs)];
  times.push(nextExchangeMs(state, deadlineMs, nowMs), nextPatienceMs(state, nowMs));
  if (queue.readyCount > 0) times.push(upstreams.nextReadyMs(nowMs), state.prefixes.nextMs(nowMs));
  const known = times.filter((timeMs) => timeMs !== null);
  return known.length === 0 ? null : Math.min(...known);
}

/** Whether a run waits for its gates for so long that it sleeps meanwhile: its alarm starts the lanes that it needs then. */
export function sleepsAtGates(state: EngineState, nowMs: number): boolean {
  if (!state.upstreams.holdsUp(nowMs) || isExchanging(state, nowMs)) return false;
  const readyMs = nextReadyMs(state, nowMs);
  return readyMs !== null && readyMs > nowMs + TIMER_MS_MAX;
}

function nextDeadlineMs(state: EngineState, nowMs: number): number | null {
  const { groups, calls } = state;
  let next: number | null = null;
  for (const group of groups.values()) {
    const { header, drained, counts, provider } = group;
    if (drained !== null || counts.queued === 0) continue;
    if (provider !== null && provider.unclaimed.size > 0) next = Math.min(next ?? Infinity, provider.liveAtMs);
    const stoppedMs = stoppedEndMs(state, group, nowMs)?.atMs ?? Infinity;
    const endMs = header.deadlineMs === null ? stoppedMs : header.openedAtMs + header.deadlineMs;
    if (endMs < Infinity) next = Math.min(next ?? Infinity, endMs);
  }
  for (const { deadlineMs, queuedAtMs } of calls.values()) {
    if (deadlineMs !== null) next = Math.min(next ?? Infinity, queuedAtMs + deadlineMs);
  }
  return next;
}
