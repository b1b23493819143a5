/** Cancelling groups or one of their slots: what is queued never starts, what is in flight is aborted, or ends by itself. */
import type { InFlightRule } from "../../../src/contract/cancel-groups.ts";
import { cancelGroup as cancelInEngine, cancelSlot as cancelSlotInEngine } from "../../../src/run/steps/cancel.ts";
import { drainGroup } from "../../../src/run/steps/end-slot.ts";
import { groupSalt, groupSeqOfId } from "../../../src/run/queue/group-id.ts";
import { SLOT_STATES } from "../../../src/run/queue/slot.ts";
import type { CancelGroupsReply, CancelGroupsRequest } from "../../../src/objects/methods/groups.ts";
import type { RunState } from "../state.ts";
import type { RunStore } from "../store/store.ts";
import { groupView } from "./read.ts";

/**
 * Stops a group: what is queued never starts. What is in flight is aborted, or ends by itself, and is not made again. A group that
 * is bound to its client stays so: what has not ended a term after that has left is aborted.
 */
export function stopGroup(run: RunState, seq: number, inFlight: InFlightRule, nowMs: number): void {
  if (inFlight === "abort") return cancelGroup(run, seq, CANCELLED, nowMs);
  const group = run.engine.groups.get(seq);
  if (group === undefined || group.done) return;
  const reason = { reason: "cancelled", message: CANCELLED } as const;
  drainGroup(run.engine, group, { state: "cancelled", reason, cause: "cancel" }, nowMs);
}

const CANCELLED = "the group was cancelled";

/** Stops the groups of these names, and says how they are by now. */
export function stopGroups(
  run: RunState | null,
  store: RunStore,
  { keys, ids, inFlight }: CancelGroupsRequest,
  nowMs: number,
): CancelGroupsReply {
  const counts = { queued: 0, running: 0, completed: 0, failed: 0, skipped: 0, cancelled: 0 };
  const reply: CancelGroupsReply = { ids: [], running: [], counts, costNanoUsd: 0, unknown: [] };
  if (run === null) return { ...reply, unknown: [...keys, ...ids] };
  const seen = new Set<number>();
  const stop = (name: string, seq: number | null): void => {
    if (seq !== null && seen.has(seq)) return;
    if (seq !== null) stopGroup(run, seq, inFlight, nowMs);
    const view = seq === null ? null : groupView(run, store, seq, nowMs);
    if (seq === null || view === null) return void reply.unknown.push(name);
    seen.add(seq);
    reply.ids.push(view.id);
    if (view.status === "running") reply.running.push(name);
    for (const state of SLOT_STATES) counts[state] += view.counts[state];
    reply.costNanoUsd += view.usage.costNanoUsd;
  };
  for (const key of keys) stop(key, seqOfKey(run, key));
  for (const id of ids) stop(id, seqOfId(run, id));
  return reply;
}

/** The group that a key has opened; null = none, or a child run. */
function seqOfKey(run: RunState, key: string): number | null {
  const record = run.keyRecord(key);
  return record === null || record.hash.startsWith("/runs ") ? null : record.seq;
}

function seqOfId(run: RunState, id: string): number | null {
  const seq = groupSeqOfId(id, groupSalt(run.settings.id));
  return seq !== null && run.storedGroup(seq)?.header.id === id ? seq : null;
}

/** Cancels a group. One that has ended keeps its state. */
export function cancelGroup(
  run: Pick<RunState, "engine" | "clientBoundGroups">,
  seq: number,
  message: string,
  nowMs: number,
): void {
  run.clientBoundGroups.forget(seq);
  const group = run.engine.groups.get(seq);
  if (group !== undefined && !group.done) cancelInEngine(run.engine, group, { reason: "cancelled", message }, nowMs);
}

/** Cancels one slot. False if there is no such slot; one that has ended keeps its state. */
export function cancelSlot(
  run: Pick<RunState, "engine" | "storedGroup">,
  { seq, index }: { seq: number; index: number },
  nowMs: number,
): boolean {
  const group = run.engine.groups.get(seq);
  if (group === undefined || group.done) return (run.storedGroup(seq)?.header.count ?? 0) > index;
  if (index >= group.header.count || group.graph?.frontier.isAbsent(index) === true) return false;
  cancelSlotInEngine(run.engine, group, index, { reason: "cancelled", message: "the slot was cancelled" }, nowMs);
  return true;
}
