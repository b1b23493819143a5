/**
 * How many attempts of a group with an early stop are in flight near its end: no more than answers that it may still need, each
 * further one would only be paid for. One that takes far longer than the answers is taken to be stuck, and does not count.
 */
import { STOP_PATIENCE_FACTOR, STOP_PATIENCE_MS_MIN, STOP_PATIENCE_MS_UNKNOWN } from "../../limits.ts";
import type { Group } from "../group/group.ts";
import { groupSeqOf } from "../queue/slot.ts";
import type { EngineState, InFlight } from "../state.ts";

/** Whether as many attempts of a group are in flight as its early stop may still need. Those that take too long do not count. */
export function waitsForStop(state: EngineState, group: Group, nowMs: number): boolean {
  const { width } = group.rules;
  if (group.inFlight < width) return false;
  const stuck = attemptsOf(state, group).filter((inFlight) => isStuck(group, inFlight, nowMs));
  return group.inFlight - stuck.length >= width;
}

/** When the next attempt has taken so long that its group starts another one, or gives it up; null = no group waits for that. */
export function nextPatienceMs(state: EngineState, nowMs: number): number | null {
  let next = Infinity;
  for (const group of state.groups.values()) {
    const waits = state.stopped.has(group) || (group.counts.queued > 0 && group.inFlight >= group.rules.width);
    if (!waits) continue;
    for (const { lease } of attemptsOf(state, group)) {
      const atMs = lease.startedAtMs + patienceMs(group);
      if (atMs > nowMs) next = Math.min(next, atMs);
    }
  }
  return next === Infinity ? null : next;
}

/** Whether an attempt of the group has taken too long for an answer to be expected. */
export function isStuck(group: Group, { lease }: InFlight, nowMs: number): boolean {
  return nowMs >= lease.startedAtMs + patienceMs(group);
}

/** How long an attempt of the group may take before it is taken to be stuck. */
function patienceMs(group: Group): number {
  const meanMs = group.meanAnswerMs;
  return meanMs === null ? STOP_PATIENCE_MS_UNKNOWN : Math.max(STOP_PATIENCE_MS_MIN, STOP_PATIENCE_FACTOR * meanMs);
}

/** The attempts of a group in flight. */
export function attemptsOf(state: EngineState, { header }: Group): InFlight[] {
  return [...state.attempts.values()].filter(
    ({ lease }) => lease.slotId !== null && groupSeqOf(lease.slotId) === header.seq,
  );
}
