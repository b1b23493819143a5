/**
 * Stopping attempts in flight: their cost is unknown, so they stay charged, and their executors must be notified. Where an abort costs
 * what was seen of a stream, only the executor knows the cost: there the attempt ends with its report, or as lost.
 */
import type { Reason } from "../../errors.ts";
import { cancelQueuedSlot, drainGroup } from "./end-slot.ts";
import type { Group } from "../group/group.ts";
import { giveUpAttempt } from "./settle.ts";
import { groupSeqOf, slotIdOf } from "../queue/slot.ts";
import type { EngineState, InFlight } from "../state.ts";

/** Stops a group: none of its queued slots starts, and its attempts in flight are aborted. */
export function cancelGroup(state: EngineState, group: Group, reason: Reason, nowMs: number): void {
  drainGroup(state, group, { state: "cancelled", reason, cause: "cancel" }, nowMs);
  const { seq } = group.header;
  stopAttempts(state, ({ lease }) => lease.slotId !== null && groupSeqOf(lease.slotId) === seq, reason, nowMs);
}

/** Cancels one slot of a group: it never starts, or its attempt is aborted. A slot that has ended stays as it is. */
export function cancelSlot(state: EngineState, group: Group, index: number, reason: Reason, nowMs: number): void {
  const slotId = slotIdOf(group.header.seq, index);
  // It cannot be taken out of its provider's batch, which may answer it, and bill that.
  if (group.provider?.isClaimed(index) === true) return group.markCancelled(index);
  group.provider?.drop(index);
  if (group.stateOf(index) === "queued") cancelQueuedSlot(state, group, slotId, reason, nowMs);
  else if (group.stateOf(index) === "running") {
    group.markCancelled(index);
    stopAttempts(state, ({ lease }) => lease.slotId === slotId, reason, nowMs);
  }
}

/**
 * Stops the attempts in flight that `matches`. The shell notifies lanes of them (`givenUp.takeOfLanes`), the Workers of groups
 * (`takeOfWorker`) and those of single calls (`takeOfCalls`).
 */
export function stopAttempts(
  state: EngineState,
  matches: (inFlight: InFlight) => boolean,
  reason: Reason,
  nowMs: number,
): void {
  for (const inFlight of [...state.attempts.values()]) {
    if (matches(inFlight)) stopAttempt(state, inFlight, reason, nowMs);
  }
}

/**
 * Has attempts stopped that a restart has found and a cancel had stopped before: their executors may not have heard of it. Those whose abort
 * costs the reservation have ended with the cancel.
 * @param run Why all attempts of the run must stop; null = those of groups that were cancelled. Not for a run that was closed: its groups
 * look as cancelled ones do, and their calls end by themselves.
 */
export function stopFound(state: EngineState, run: Reason | null): void {
  for (const inFlight of state.attempts.values()) {
    const drained = state.groupOf(inFlight.lease)?.drained ?? null;
    const reason = run ?? (drained?.cause === "cancel" ? drained.reason : null);
    if (reason !== null && isReported(inFlight)) state.givenUp.stop(inFlight, reason);
  }
}

/** Has an attempt aborted. One whose abort costs the reservation is given up at once. */
export function stopAttempt(state: EngineState, inFlight: InFlight, reason: Reason, nowMs: number): void {
  if (isReported(inFlight)) state.givenUp.stop(inFlight, reason);
  else giveUpAttempt(state, inFlight, reason, nowMs);
}

/** Whether an abort costs what was seen of a stream, which only the executor knows. */
export function isReported({ lease }: InFlight): boolean {
  return lease.target.abortCost === "seen";
}
