/**
 * Giving up attempts in flight: their cost is unknown, so they stay charged, and their executors must be notified. Where an abort costs
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
  abort(state, ({ lease }) => lease.slotId !== null && groupSeqOf(lease.slotId) === seq, reason, nowMs);
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
    abort(state, ({ lease }) => lease.slotId === slotId, reason, nowMs);
  }
}

/** Has the attempts of slots that `matches` aborted. Those whose abort costs the reservation are given up at once. */
function abort(state: EngineState, matches: (inFlight: InFlight) => boolean, reason: Reason, nowMs: number): void {
  const isReported = ({ lease }: InFlight): boolean => lease.target.abortCost === "seen";
  for (const inFlight of state.attempts.values())
    if (matches(inFlight) && isReported(inFlight)) state.givenUp.add(inFlight);
  giveUp(state, (inFlight) => matches(inFlight) && !isReported(inFlight), reason, nowMs);
}

/**
 * Gives up the attempts in flight that `matches`. The shell notifies lanes of them (`givenUp.takeOfLanes`), the Workers of groups
 * (`takeOfWorker`) and those of single calls (`takeOfCalls`).
 */
export function giveUp(
  state: EngineState,
  matches: (inFlight: InFlight) => boolean,
  reason: Reason,
  nowMs: number,
): void {
  for (const inFlight of [...state.attempts.values()]) {
    if (matches(inFlight)) giveUpAttempt(state, inFlight, reason, nowMs);
  }
}
