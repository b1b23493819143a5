/**
 * Where a slot of a group ends, in whatever way: after an attempt, refused, cancelled, at its deadline, with its group,
 * or with the outcome of an equal call. `endSlot` is the only step into a final state; the functions after it are the
 * ways in which a queued slot ends.
 */
import { isBudgetReason } from "../budget/admit.ts";
import { cappedOf } from "../budget/capped.ts";
import type { Outcome } from "../call.ts";
import type { Reason } from "../errors.ts";
import { requeueFollowers } from "./enqueue.ts";
import type { Drained, Group } from "./group.ts";
import { slotEnd, slotName } from "./log.ts";
import { freshRecord, hasShortAnswer, withoutAnswer, type SlotRecord } from "./record.ts";
import { groupSeqOf, indexOf, slotIdOf } from "./slot.ts";
import type { EngineState } from "./state.ts";

/** The differences between the ways to end. */
export type SlotEnd = {
  /**
   * Start of the attempt that ended the slot; null = it ends without one. Then it has no outcome to share, so its
   * followers return to the queue. After an attempt, `settle` shares the outcome with them.
   */
  startedAtMs?: number | null;
  /** False if the end follows from its group's row: stopping a group of thousands of queued slots writes one row. */
  hasRow?: boolean;
  /** False if the end is part of its group's `slots_cancelled`. */
  hasEvent?: boolean;
};

/** Ends a slot in the state of its record: row, event, its group's failure rule, and its group's row after the last. */
export function endSlot(
  state: EngineState,
  group: Group,
  record: SlotRecord,
  { startedAtMs = null, hasRow = true, hasEvent = true }: SlotEnd,
  nowMs: number,
): void {
  group.step(indexOf(record.id), record.state, nowMs);
  if (startedAtMs === null) requeueFollowers(state, state.singleFlight.end(String(record.id)));
  if (hasRow) state.writeSlot(record);
  else state.forgetTried(record.id);
  if (hasEvent) emitSlotEnd(state, group, record, { startedAtMs, endedAtMs: nowMs });
  if (record.state === "failed") applyFailureRule(state, group, nowMs);
  if (group.done) state.writeGroup(group);
}

function emitSlotEnd(
  state: EngineState,
  group: Group,
  record: SlotRecord,
  times: { startedAtMs: number | null; endedAtMs: number },
): void {
  const { state: status, attempts, reason, model, finishReason, cappedBy } = record;
  if (status !== "completed" && status !== "failed" && status !== "cancelled") return;
  const capped = cappedBy === undefined ? {} : { cappedBy };
  const result = { status, attempts, reason, model, finishReason, ...capped };
  const { promptTokens, completionTokens, costNanoUsd } = record;
  const usage = { promptTokens, completionTokens, costNanoUsd };
  const end = slotEnd(slotName(group, record.id), result, usage, times);
  state.log.add(end, group.parallelGroupId, times.endedAtMs);
}

/** Stops a group with `on_error: "abort"` after one of its slots has failed. */
function applyFailureRule(state: EngineState, group: Group, nowMs: number): void {
  if (group.header.onError !== "abort") return;
  const message = 'an earlier slot failed and on_error is "abort"';
  const drained = { state: "cancelled", reason: { reason: "cancelled", message }, cause: "abort" } as const;
  drainGroup(state, group, drained, nowMs);
}

/** Ends a slot that dispatch has taken from the queue and refuses: for its budget, or because it has no target. */
export function refuseSlot(state: EngineState, slotId: number, reason: Reason, nowMs: number): void {
  const group = state.groups.get(groupSeqOf(slotId));
  if (group === undefined) return;
  if (isBudgetReason(reason)) {
    state.log.add({ event: "budget_refused", ...slotName(group, slotId), reason }, group.parallelGroupId, nowMs);
  }
  endSlot(state, group, { ...recordOf(state, slotId), state: "failed", reason }, {}, nowMs);
}

/** Ends one queued slot as cancelled; the others of its group go on. */
export function cancelQueuedSlot(
  state: EngineState,
  group: Group,
  slotId: number,
  reason: Reason,
  nowMs: number,
): void {
  state.queue.remove((groupSeq, queued) => groupSeq === group.header.seq && queued === slotId);
  state.singleFlight.remove(({ call, id }) => call === null && id === slotId);
  endSlot(state, group, { ...recordOf(state, slotId), state: "cancelled", reason }, {}, nowMs);
}

/**
 * Ends a queued slot with the answer that a learned cap cut: it is paid for, and neither budget nor deadline allow for
 * a whole one.
 */
export function deliverShortAnswer(state: EngineState, slotId: number, nowMs: number): void {
  const group = state.groups.get(groupSeqOf(slotId));
  const tried = state.tried.get(slotId);
  if (group === undefined || tried === undefined) return;
  const completed = { state: "completed", reason: null, notBeforeMs: null, cappedBy: "budget" } as const;
  endSlot(state, group, { ...tried, ...completed }, {}, nowMs);
}

/** Ends a follower with its leader's final outcome, at no cost of its own. */
export function shareWithSlot(state: EngineState, slotId: number, outcome: Outcome, nowMs: number): void {
  const group = state.groups.get(groupSeqOf(slotId));
  if (group === undefined) return;
  const record = recordOf(state, slotId);
  if (outcome.kind === "failure") {
    endSlot(state, group, { ...record, state: "failed", reason: outcome.reason }, {}, nowMs);
    return;
  }
  const { text, model, finishReason } = outcome;
  const answer = { text, model, finishReason, reason: null, ...cappedOf(outcome) };
  endSlot(state, group, { ...record, state: "completed", ...answer }, {}, nowMs);
}

/**
 * Stops a group: its queued slots and followers end at once, its running slots with their attempts, without a retry.
 */
export function drainGroup(state: EngineState, group: Group, drained: Drained, nowMs: number): void {
  if (group.drained !== null || group.done) return;
  group.drain(drained);
  const { header, parallelGroupId } = group;
  const { state: status, reason, cause } = drained;
  const followers = state.singleFlight.remove(({ call, bucket }) => call === null && bucket.groupSeq === header.seq);
  const queued = [...state.queue.remove((groupSeq) => groupSeq === header.seq), ...followers.map(({ id }) => id)];
  // A slot that storage knows as queued needs a row of its own. The ends of the others follow from the group's row.
  for (const slotId of queued.filter((id) => state.tried.has(id))) {
    if (cause === "deadline" && hasShortAnswer(state.tried.get(slotId))) deliverShortAnswer(state, slotId, nowMs);
    else endSlot(state, group, { ...recordOf(state, slotId), state: status, reason }, {}, nowMs);
  }
  const fresh = queued.filter((id) => group.stateOf(indexOf(id)) === "queued");
  const hasEvent = header.single !== null;
  if (fresh.length > 0 && !hasEvent) {
    state.log.add({ event: "slots_cancelled", count: fresh.length, status, reason }, parallelGroupId, nowMs);
  }
  for (const slotId of fresh) {
    endSlot(state, group, { ...freshRecord(slotId), state: status, reason }, { hasRow: false, hasEvent }, nowMs);
  }
  state.writeGroup(group);
}

/** Ends the queued slots of a group that was stopped before a restart. Their events were emitted when it was. */
export function endDrainedSlots(state: EngineState, group: Group, nowMs: number): void {
  if (group.drained === null) return;
  const { state: status, reason } = group.drained;
  for (let index = 0; index < group.header.count; index++) {
    if (group.stateOf(index) !== "queued") continue;
    const record = { ...freshRecord(slotIdOf(group.header.seq, index)), state: status, reason };
    endSlot(state, group, record, { hasRow: false, hasEvent: false }, nowMs);
  }
}

/** The record of a queued slot that ends without the answer that it may have had. */
function recordOf({ tried }: EngineState, slotId: number): SlotRecord {
  return withoutAnswer(tried.get(slotId) ?? freshRecord(slotId));
}
