/**
 * Early stops and what is in flight. An abort charges the whole reservation, which is several times what most answers cost: so an
 * attempt in flight ends by itself, unless it takes far longer than the answers, or costs no more aborted than answered. And
 * near the end a group has no more in flight than may still be needed.
 */
import { STOP_PATIENCE_FACTOR, STOP_PATIENCE_MS_MIN, STOP_PATIENCE_MS_UNKNOWN } from "../../limits.ts";
import type { Group } from "../group/group.ts";
import { groupSeqOf } from "../queue/slot.ts";
import type { EngineState, InFlight } from "../state.ts";
import { giveUpAttempt } from "./settle.ts";

/** Gives up attempts in flight of the groups that their `stopWhen` has stopped, as their rule says. */
export function giveUpStopped(state: EngineState, nowMs: number): void {
  for (const group of state.stopped) {
    if (group.drained !== null) giveUpOf(state, group, nowMs);
    const isAwaited = group.inFlight > 0 && group.stopRule?.inFlight === undefined;
    if (!isAwaited || group.done) state.stopped.delete(group);
  }
}

function giveUpOf(state: EngineState, group: Group, nowMs: number): void {
  const { drained, stopRule } = group;
  if (drained === null || stopRule?.inFlight === "finish") return;
  const answerNanoUsd = group.meanAnswerNanoUsd;
  const isGivenUp = ({ lease }: InFlight): boolean =>
    stopRule?.inFlight === "abort" ||
    lease.amounts.usd <= answerNanoUsd ||
    nowMs >= lease.startedAtMs + patienceMs(group);
  for (const inFlight of attemptsOf(state, group).filter(isGivenUp)) {
    const { lease } = inFlight;
    group.noteAborted(lease.hedgeOf === undefined ? 1 : 0, lease.amounts.usd);
    giveUpAttempt(state, inFlight, drained.reason, nowMs);
  }
}

/** Whether as many attempts of a group are in flight as its early stop may still need. Those that take too long do not count. */
export function waitsForStop(state: EngineState, group: Group, nowMs: number): boolean {
  const { stopWidth } = group;
  if (group.inFlight < stopWidth) return false;
  const isOverdue = ({ lease }: InFlight): boolean => nowMs >= lease.startedAtMs + patienceMs(group);
  return group.inFlight - attemptsOf(state, group).filter(isOverdue).length >= stopWidth;
}

/** When the next attempt has taken so long that its group starts another one, or gives it up; null = no group waits for that. */
export function nextPatienceMs(state: EngineState, nowMs: number): number | null {
  let next = Infinity;
  for (const group of state.groups.values()) {
    const waits = state.stopped.has(group) || (group.counts.queued > 0 && group.inFlight >= group.stopWidth);
    if (!waits) continue;
    for (const { lease } of attemptsOf(state, group)) {
      const atMs = lease.startedAtMs + patienceMs(group);
      if (atMs > nowMs) next = Math.min(next, atMs);
    }
  }
  return next === Infinity ? null : next;
}

/** How long an attempt of the group may take before it is taken to be stuck. */
function patienceMs(group: Group): number {
  const meanMs = group.meanAnswerMs;
  return meanMs === null ? STOP_PATIENCE_MS_UNKNOWN : Math.max(STOP_PATIENCE_MS_MIN, STOP_PATIENCE_FACTOR * meanMs);
}

function attemptsOf(state: EngineState, { header }: Group): InFlight[] {
  return [...state.attempts.values()].filter(
    ({ lease }) => lease.slotId !== null && groupSeqOf(lease.slotId) === header.seq,
  );
}
