/** What a slot of a graph takes over from the call that was made for it before its condition was known. */
import { LEASE_TTL_MS } from "../../limits.ts";
import type { Group } from "../group/group.ts";
import type { RecalledSlot } from "../group/recorded.ts";
import type { Bucket } from "../queue/queue.ts";
import { groupSeqOf, indexOf, slotIdOf } from "../queue/slot.ts";
import type { EngineState } from "../state.ts";
import { drainGroup } from "./end-slot.ts";

/** The answer of the early call of a slot; null = there is none, or not yet. What it has cost is charged to its own group. */
export function earlyAnswerOf(state: EngineState, group: Group, slotId: number): RecalledSlot | null {
  const seq = group.early?.answerFor(indexOf(slotId)) ?? null;
  if (seq === null) return null;
  const answered = slotIdOf(seq, 0);
  const record = state.unwrittenSlot(answered) ?? state.deps.storedSlot?.(answered) ?? null;
  if (record?.state !== "completed") return null;
  const { text, parts, model, finishReason, cappedBy, upstream, checks, latencyMs, queuedMs } = record;
  return {
    ...{ text, model, finishReason, latencyMs, queuedMs },
    ...(parts === undefined ? {} : { parts }),
    ...(cappedBy === undefined ? {} : { cappedBy }),
    ...(upstream === undefined ? {} : { upstream }),
    ...(checks === undefined ? {} : { checks }),
  };
}

/** Whether the call that was made early for a slot is in flight. */
export function hasEarlyInFlight(state: EngineState, slotId: number): boolean {
  return (openCallOf(state, slotId)?.inFlight ?? 0) > 0;
}

/** The call that was made early for a slot of a group and has not ended; undefined = there is none. */
function openCallOf({ groups }: EngineState, slotId: number): Group | undefined {
  const seq = groups.get(groupSeqOf(slotId))?.early?.openFor(indexOf(slotId)) ?? null;
  return seq === null ? undefined : groups.get(seq);
}

/**
 * Whether a slot that could start has an early call which has not ended. Then the slot waits behind it, and the end of the call queues
 * the slot anew. A call that is not in flight is cancelled, which ends it at once.
 */
export function waitsForEarly(state: EngineState, bucket: Bucket, slotId: number, nowMs: number): boolean {
  const call = openCallOf(state, slotId);
  if (call === undefined) return false;
  if (call.inFlight > 0) {
    const { groupSeq, upstream, priority, queuedAtMs, rankOf } = bucket;
    const key = { groupSeq, upstream, priority, queuedAtMs, ...(rankOf === undefined ? {} : { rankOf }) };
    state.queue.take(bucket);
    // The end of the call is noticed by then at the latest: its lease has expired.
    state.queue.delay(key, slotId, nowMs + LEASE_TTL_MS);
    return true;
  }
  const reason = { reason: "cancelled", message: "the task whose call was to be made early starts by itself" } as const;
  drainGroup(state, call, { state: "cancelled", reason, cause: "cancel" }, nowMs);
  return openCallOf(state, slotId) === undefined;
}
