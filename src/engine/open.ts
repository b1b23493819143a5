/** How work enters and leaves the queue: groups of stored slots, single calls, and groups that are stopped. */
import type { Reason } from "../errors.ts";
import type { Follower } from "./flights.ts";
import { Group, type Drained, type GroupHeader } from "./group.ts";
import type { LineKey } from "./queue.ts";
import { slotName, type CallResult } from "./log.ts";
import { freshRecord, type SlotRecord } from "./record.ts";
import { groupSeqOf, indexOf, slotIdOf } from "./slot.ts";
import type { EngineState, SingleCall, SlotFacts } from "./state.ts";
import type { WindowGroup } from "./window.ts";

/** Opens a group. Its slots are queued by `enqueueSlots`, page by page. */
export function openGroup(state: EngineState, header: GroupHeader): Group {
  const group = new Group(header);
  state.groups.set(header.seq, group);
  return group;
}

/** Tells that a group is open; a single call only if it is the one that makes a group of itself and the first. */
export function tellOpened(state: EngineState, group: Group, nowMs: number): void {
  const { single, count, concurrency } = group.header;
  if (single === null || single === "second")
    tellGroup(state, group.parallelGroupId, single === null ? count : 2, concurrency, nowMs);
}

function tellGroup(state: EngineState, id: string | null, count: number, width: number, nowMs: number): void {
  const effectiveParallel = Math.min(count, width, state.width);
  state.log.add({ event: "group_started", count, effectiveParallel }, id, nowMs);
}

/** Queues those stored slots of a group, from `firstIndex` on, that have neither run nor ended. */
export function enqueueSlots(state: EngineState, group: Group, firstIndex: number, facts: readonly SlotFacts[]): void {
  facts.forEach((fact, place) => {
    const index = firstIndex + place;
    const fresh = group.stateOf(index) === "queued" && group.attempts[index] === 0;
    if (fresh) state.queue.push(lineOf(state, group, fact), slotIdOf(group.header.seq, index));
  });
}

/**
 * Queues a single call, to start no sooner than `delayMs` from now. Its first attempt joins the grouping window; a retry
 * does not count as a new call.
 */
export function enqueueCall(
  state: EngineState,
  {
    parallelGroupId,
    ...call
  }: Omit<SingleCall, "queuedAtMs" | "window" | "place"> & { parallelGroupId: string | null },
  delayMs: number,
  nowMs: number,
): void {
  const { group: window, place } =
    call.attempt === 1 ? state.window.join(nowMs) : rejoined(state, call.callId, parallelGroupId);
  if (place === "second") tellGroup(state, window?.id ?? null, 2, 2, nowMs);
  const queuePlace = state.nextPlace();
  state.calls.set(queuePlace, { ...call, queuedAtMs: nowMs, window, place });
  state.upstream(call.target);
  // Calls of the same second share a line: a line is first in, first out already.
  const queuedAtMs = nowMs - (nowMs % 1_000);
  const key = { groupSeq: 0, upstream: call.target.upstream, priority: call.facts.priority, queuedAtMs };
  if (delayMs > 0) state.queue.delay(key, queuePlace, nowMs + delayMs);
  else state.queue.push(key, queuePlace);
}

/** A retry belongs where its first attempt did. */
function rejoined(
  { window }: EngineState,
  callId: string,
  id: string | null,
): { group: WindowGroup | null; place: SingleCall["place"] } {
  return { group: window.rejoin(callId, id), place: "alone" };
}

/** Takes a queued single call back, for it ends without an attempt. False when it is not queued (any more). */
export function withdrawCall(state: EngineState, callId: string, nowMs: number): boolean {
  for (const [place, call] of state.calls) {
    if (call.callId !== callId) continue;
    state.calls.delete(place);
    call.window?.callEnded(false, nowMs);
    const queued = state.queue.remove((groupSeq, slotId) => groupSeq === 0 && slotId === place);
    const following = state.flights.remove((follower) => follower.call === call);
    return queued.length + following.length > 0;
  }
  return false;
}

/** Ends a queued single call without an attempt, and tells so. */
export function endCall(state: EngineState, callId: string, reason: Reason, nowMs: number): void {
  const call = [...state.calls.values()].find((queued) => queued.callId === callId);
  if (call === undefined) return;
  withdrawCall(state, callId, nowMs);
  tellCallEnd(state, call, reason, nowMs);
}

/** Ends every queued single call; returns them. */
export function endCalls(state: EngineState, reason: Reason, nowMs: number): SingleCall[] {
  const ended = [...state.calls.values()];
  for (const call of ended) {
    call.window?.callEnded(false, nowMs);
    tellCallEnd(state, call, reason, nowMs);
  }
  state.calls.clear();
  state.queue.remove((groupSeq) => groupSeq === 0);
  state.flights.remove(({ call }) => call !== null);
  return ended;
}

/** Tells that a single call was turned away. */
export function tellCallEnd(state: EngineState, call: SingleCall, reason: Reason, nowMs: number): void {
  tellCallResult(state, call, { status: "failed", reason, model: null, finishReason: null }, nowMs);
}

/** Tells how a single call ended that did so without an attempt of its own, and so at no cost. */
export function tellCallResult(state: EngineState, call: SingleCall, result: CallResult, nowMs: number): void {
  const { callId, attempt, window } = call;
  const ended = { index: null, callId, ...result, attempts: attempt - 1, ...neverRan(nowMs) };
  const usage = { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 };
  state.log.add({ event: "slot_completed", ...ended, usage }, window?.id ?? null, nowMs);
}

/** Lets nothing more of a group start: what is queued ends at once, what runs ends by itself and is not retried. */
export function drainGroup(state: EngineState, group: Group, drained: Drained, nowMs: number): void {
  if (group.drained !== null || group.done) return;
  group.drained = drained;
  const { seq, single } = group.header;
  const { reason } = drained;
  const following = state.flights.remove(({ call, line }) => call === null && line.groupSeq === seq);
  const queued = [...state.queue.remove((groupSeq) => groupSeq === seq), ...following.map(({ place }) => place)];
  let fresh = 0;
  for (const slotId of queued) {
    group.step(indexOf(slotId), drained.state, nowMs);
    // Only a slot that storage remembers as queued needs a row; the others follow from the group's.
    const record = state.tried.get(slotId);
    if (record !== undefined) endTried(state, group, { ...record, state: drained.state, reason }, nowMs);
    else if (single === null) fresh += 1;
    else tellSlotEnd(state, group, { ...freshRecord(slotId), state: drained.state, reason }, neverRan(nowMs));
  }
  const { parallelGroupId: id } = group;
  if (fresh > 0) state.log.add({ event: "slots_cancelled", count: fresh, status: drained.state, reason }, id, nowMs);
  state.writeGroup(group);
}

/** Takes one queued slot out and ends it as cancelled; the others of its group go on. */
export function withdrawSlot(state: EngineState, group: Group, slotId: number, reason: Reason, nowMs: number): void {
  state.queue.remove((groupSeq, queued) => groupSeq === group.header.seq && queued === slotId);
  state.flights.remove(({ call, place }) => call === null && place === slotId);
  group.step(indexOf(slotId), "cancelled", nowMs);
  endTried(state, group, { ...(state.tried.get(slotId) ?? freshRecord(slotId)), state: "cancelled", reason }, nowMs);
  if (group.done) state.writeGroup(group);
}

/** Ends a slot that waited to be tried again. */
function endTried(state: EngineState, group: Group, record: SlotRecord, nowMs: number): void {
  releaseFollowers(state, record.id);
  state.writeSlot(record);
  tellSlotEnd(state, group, record, neverRan(nowMs));
}

function neverRan(nowMs: number): { startedAtMs: null; endedAtMs: number } {
  return { startedAtMs: null, endedAtMs: nowMs };
}

/** Who waited for a slot's answer goes back to its line: the slot is given up before its next attempt. */
function releaseFollowers(state: EngineState, slotId: number): void {
  const { dedupeKey } = state.deps.factsOf(slotId);
  if (dedupeKey !== undefined) requeue(state, state.flights.end(dedupeKey, String(slotId)));
}

/** Puts calls that waited for another's answer back into their lines. */
export function requeue(state: EngineState, followers: readonly Follower[]): void {
  for (const { line, place } of followers) state.queue.push(line, place);
}

/** Tells how a slot of a group ended. */
export function tellSlotEnd(
  state: EngineState,
  group: Group,
  record: SlotRecord,
  times: { startedAtMs: number | null; endedAtMs: number },
): void {
  const { state: status, attempts, reason, model, finishReason } = record;
  if (status !== "completed" && status !== "failed" && status !== "cancelled") return;
  const { promptTokens, completionTokens, costNanoUsd } = record;
  const ended = { status, attempts, reason, model, finishReason, ...times };
  const usage = { promptTokens, completionTokens, costNanoUsd };
  const name = slotName(group, record.id);
  state.log.add({ event: "slot_completed", ...name, ...ended, usage }, group.parallelGroupId, times.endedAtMs);
}

/** Ends a queued slot without an attempt: the budget refuses it, or there is nowhere to send it. */
export function refuseSlot(state: EngineState, slotId: number, reason: Reason, nowMs: number): void {
  const group = state.groups.get(groupSeqOf(slotId));
  if (group === undefined) return;
  group.step(indexOf(slotId), "failed", nowMs);
  const tried = state.tried.get(slotId);
  if (tried !== undefined) releaseFollowers(state, slotId);
  const record: SlotRecord = { ...(tried ?? freshRecord(slotId)), state: "failed", reason };
  state.writeSlot(record);
  const name = slotName(group, slotId);
  if (isBudgetReason(reason)) state.log.add({ event: "budget_refused", ...name, reason }, group.parallelGroupId, nowMs);
  tellSlotEnd(state, group, record, neverRan(nowMs));
  afterFailure(state, group, nowMs);
}

/** What a group's rule says once one of its slots has failed for good. */
export function afterFailure(state: EngineState, group: Group, nowMs: number): void {
  if (group.header.onError === "abort") {
    const message = 'an earlier slot failed and on_error is "abort"';
    const drained = { state: "cancelled", reason: { reason: "cancelled", message }, cause: "abort" } as const;
    drainGroup(state, group, drained, nowMs);
  }
  if (group.done) state.writeGroup(group);
}

/** Whether a call was turned away for money. */
export function isBudgetReason({ reason }: Reason): boolean {
  return reason === "budget_exhausted" || reason === "in_flight_budget_exhausted";
}

/** Later than any other call is queued, ms (1,000 years). */
const BACKGROUND_MS = 365_000 * 86_400_000;

/** The line in which a slot of a group waits. */
export function lineOf(state: EngineState, group: Group, facts: SlotFacts): LineKey {
  const target = state.deps.targetOf(group.header, facts.modelIndex);
  if (target !== null) state.upstream(target);
  return {
    groupSeq: group.header.seq,
    upstream: target?.upstream ?? "",
    priority: facts.priority,
    // What waits in the background gains nothing by waiting: it counts as queued in a time that never comes.
    queuedAtMs: group.header.openedAtMs + (group.header.background === true ? BACKGROUND_MS : 0),
  };
}
