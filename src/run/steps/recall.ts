/**
 * Slots that end with an answer from elsewhere instead of an attempt, a recorded one or that of their early call: they need no permit and
 * no money. They are looked up once when they are queued, and once more when dispatch comes to them, because an equal call may have been
 * answered meanwhile.
 */
import { answerChars } from "../../answer.ts";
import { earlyAnswerOf, waitsForEarly } from "./early-answers.ts";
import { endRecalled } from "./end-slot.ts";
import type { Bucket } from "../queue/queue.ts";
import { groupSeqOf, indexOf } from "../queue/slot.ts";
import type { EngineState } from "../state.ts";
import type { Recall, RecalledSlot } from "../group/recorded.ts";

/**
 * Whether the answer of a slot at the head of its bucket comes from elsewhere; null = it does not. `ended`: the slot has ended with it.
 * `waits`: the slot has left the head until it is there. `awaited`: it is being looked up, and others may overtake the slot.
 */
export function answeredElsewhere(
  state: EngineState,
  bucket: Bucket,
  slotId: number,
  nowMs: number,
): "ended" | "waits" | "awaited" | null {
  const recalled = recallOf(state, slotId);
  if (recalled === "awaited") return "awaited";
  if (recalled === null) return waitsForEarly(state, bucket, slotId, nowMs) ? "waits" : null;
  state.queue.take(bucket);
  endRecalled(state, slotId, recalled, nowMs);
  return "ended";
}

/** The answer of a slot that dispatch or the queue has come to. */
export function recallOf(state: EngineState, slotId: number): Recall {
  const { replay } = state.deps;
  const group = state.groups.get(groupSeqOf(slotId));
  const mayRecall = group?.early != null || (replay !== undefined && group?.header.replay !== undefined);
  if (group === undefined || !mayRecall) return null;
  if (state.replayQueue.isSpent) return "awaited";
  const early = earlyAnswerOf(state, group, slotId);
  const recalled = early ?? (group.header.replay === undefined ? null : (replay?.recall(group, slotId) ?? null));
  if (recalled !== null && recalled !== "awaited") state.replayQueue.spend(answerChars(recalled));
  return recalled;
}

/** Ends the newly queued slots that have recorded answers. Bounded: a turn holds the texts of all that it writes. */
export function replayQueued(state: EngineState, nowMs: number): void {
  const { replayQueue: queue } = state;
  queue.begin();
  for (let slots = queue.take(); slots.length > 0; slots = queue.take()) {
    const rest = replaySome(state, slots, nowMs);
    if (rest.length > 0) return queue.putBack(rest);
  }
}

/** Looks slots up until the turn's share is spent; returns those that are left. */
function replaySome(state: EngineState, slots: number[], nowMs: number): number[] {
  const hits = new Map<number, RecalledSlot>();
  let at = 0;
  for (; at < slots.length && !state.replayQueue.isSpent; at++) {
    const slotId = slots[at] ?? 0;
    const group = state.groups.get(groupSeqOf(slotId));
    if (group?.stateOf(indexOf(slotId)) !== "queued") continue;
    const recalled = recallOf(state, slotId);
    if (recalled === null || recalled === "awaited") continue;
    // The end of such a slot may stop its group, whose queued slots must then be in the queue.
    if (group.rules.mayStop || group.graph !== null) endQueued(state, new Map([[slotId, recalled]]), nowMs);
    else hits.set(slotId, recalled);
  }
  if (hits.size > 0) endQueued(state, hits, nowMs);
  return slots.slice(at);
}

function endQueued(state: EngineState, hits: ReadonlyMap<number, RecalledSlot>, nowMs: number): void {
  const removed = new Set(state.queue.remove((groupSeq, id) => groupSeq !== 0 && hits.has(id)));
  for (const [slotId, recalled] of hits) if (removed.has(slotId)) endRecalled(state, slotId, recalled, nowMs);
}
