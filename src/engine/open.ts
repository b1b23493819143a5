/** How work enters and leaves the queue: groups of stored slots, single calls, and groups that are stopped. */
import type { Reason } from "../errors.ts";
import { Group, type GroupHeader } from "./group.ts";
import type { LineKey } from "./queue.ts";
import { freshRecord } from "./record.ts";
import { groupSeqOf, indexOf, slotIdOf } from "./slot.ts";
import type { EngineState, SingleCall, SlotFacts } from "./state.ts";
import type { CallWindow } from "./window.ts";

/** Opens a group. Its slots are queued by `enqueueSlots`, page by page. */
export function openGroup(state: EngineState, header: GroupHeader): Group {
  const group = new Group(header);
  state.groups.set(header.seq, group);
  return group;
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
  call: Omit<SingleCall, "queuedAtMs" | "window" | "place">,
  delayMs: number,
  nowMs: number,
): void {
  const joined = call.attempt === 1 ? state.window.join(nowMs) : null;
  const queuePlace = state.nextPlace();
  state.calls.set(queuePlace, { ...call, queuedAtMs: nowMs, window: joined?.group ?? null, place: placeOf(joined) });
  state.upstream(call.target);
  // Calls of the same second share a line: a line is first in, first out already.
  const queuedAtMs = nowMs - (nowMs % 1_000);
  const key = { groupSeq: 0, upstream: call.target.upstream, priority: call.facts.priority, queuedAtMs };
  if (delayMs > 0) state.queue.delay(key, queuePlace, nowMs + delayMs);
  else state.queue.push(key, queuePlace);
}

function placeOf(joined: ReturnType<CallWindow["join"]> | null): SingleCall["place"] {
  if (joined === null || joined.group.members === 1) return "alone";
  return joined.announced ? "second" : "later";
}

/** Takes a queued single call back: its client has gone. False when it is not queued (any more). */
export function withdrawCall(state: EngineState, callId: string): boolean {
  for (const [place, call] of state.calls) {
    if (call.callId !== callId) continue;
    state.calls.delete(place);
    return state.queue.remove((groupSeq, slotId) => groupSeq === 0 && slotId === place).length > 0;
  }
  return false;
}

/** Lets nothing more of a group start: what is queued ends at once, what runs ends by itself and is not retried. */
export function drainGroup(
  state: EngineState,
  group: Group,
  drained: { state: "cancelled" | "failed"; reason: Reason },
  nowMs: number,
): void {
  if (group.drained !== null || group.done) return;
  group.drained = drained;
  for (const slotId of state.queue.remove((groupSeq) => groupSeq === group.header.seq)) {
    group.step(indexOf(slotId), drained.state, nowMs);
    // Only a slot that storage remembers as queued needs a row; the others follow from the group's.
    const record = state.tried.get(slotId);
    if (record !== undefined) state.writeSlot({ ...record, state: drained.state, reason: drained.reason });
  }
  state.writeGroup(group);
}

/** Ends a queued slot without an attempt: the budget refuses it, or there is nowhere to send it. */
export function refuseSlot(state: EngineState, slotId: number, reason: Reason, nowMs: number): void {
  const group = state.groups.get(groupSeqOf(slotId));
  if (group === undefined) return;
  group.step(indexOf(slotId), "failed", nowMs);
  state.writeSlot({ ...(state.tried.get(slotId) ?? freshRecord(slotId)), state: "failed", reason });
  afterFailure(state, group, nowMs);
}

/** What a group's rule says once one of its slots has failed for good. */
export function afterFailure(state: EngineState, group: Group, nowMs: number): void {
  if (group.header.onError === "abort") {
    const message = 'an earlier slot failed and on_error is "abort"';
    drainGroup(state, group, { state: "cancelled", reason: { reason: "cancelled", message } }, nowMs);
  }
  if (group.done) state.writeGroup(group);
}

/** The line in which a slot of a group waits. */
export function lineOf(state: EngineState, group: Group, facts: SlotFacts): LineKey {
  const target = state.deps.targetOf(group.header, facts.modelIndex);
  if (target !== null) state.upstream(target);
  return {
    groupSeq: group.header.seq,
    upstream: target?.upstream ?? "",
    priority: facts.priority,
    queuedAtMs: group.header.openedAtMs,
  };
}
