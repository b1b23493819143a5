/** What becomes of calls that waited for an equal one's answer, once it has ended. */
import type { Outcome } from "../call.ts";
import type { Follower } from "./flights.ts";
import { resultOf } from "./log.ts";
import { afterFailure, requeue, tellCallResult, tellSlotEnd } from "./open.ts";
import { freshRecord, type SlotRecord } from "./record.ts";
import type { AttemptInFlight } from "./shard.ts";
import { groupSeqOf, indexOf } from "./slot.ts";
import type { EngineState } from "./state.ts";

/**
 * Ends the flight that an attempt led. Its equals share a final outcome and cost nothing; if it was stopped, or its retry
 * is not certain to come, they go back to their lines, and the first of them leads.
 */
export function land(
  state: EngineState,
  { key, lease, outcome, final }: { key: string; lease: AttemptInFlight; outcome: Outcome; final: boolean },
  nowMs: number,
): void {
  const { slotId, attemptId } = lease;
  const leader = slotId === null ? attemptId.slice(0, attemptId.lastIndexOf(".")) : String(slotId);
  const followers = state.flights.end(key, leader);
  const stopped = outcome.kind === "failure" && outcome.reason.reason === "cancelled";
  if (!final || stopped) return requeue(state, followers);
  for (const follower of followers) share(state, follower, outcome, nowMs);
}

function share(state: EngineState, { call, place }: Follower, outcome: Outcome, nowMs: number): void {
  if (call === null) return shareWithSlot(state, place, outcome, nowMs);
  state.calls.delete(place);
  call.window?.callEnded(outcome.kind === "success", nowMs);
  tellCallResult(state, call, resultOf(outcome), nowMs);
  state.landed.push({ call, outcome });
}

function shareWithSlot(state: EngineState, slotId: number, outcome: Outcome, nowMs: number): void {
  const group = state.groups.get(groupSeqOf(slotId));
  if (group === undefined) return;
  const record: SlotRecord = { ...(state.tried.get(slotId) ?? freshRecord(slotId)) };
  if (outcome.kind === "success") {
    const { text, model, finishReason } = outcome;
    Object.assign(record, { state: "completed", text, model, finishReason, reason: null });
  } else {
    Object.assign(record, { state: "failed", reason: outcome.reason });
  }
  group.step(indexOf(slotId), record.state, nowMs);
  state.writeSlot(record);
  tellSlotEnd(state, group, record, { startedAtMs: null, endedAtMs: nowMs });
  if (record.state === "failed") afterFailure(state, group, nowMs);
  if (group.done) state.writeGroup(group);
}
