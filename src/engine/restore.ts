/** How a run's state is rebuilt from its rows. The order is groups, then their slots and leases, then the queue. */
import { FOUND_LEASE_TTL_MS } from "../limits.ts";
import type { Group } from "./group.ts";
import { lineOf } from "./open.ts";
import type { SlotRecord } from "./record.ts";
import type { AttemptInFlight, Shard, StoredLease, StoredShard, Target } from "./shard.ts";
import { groupSeqOf, indexOf, slotIdOf } from "./slot.ts";
import type { EngineState } from "./state.ts";
import { zeroTotals } from "./totals.ts";

/** Takes over a shard's totals: what the run had spent before. Its leases follow by `restoreLease`. */
export function restoreShard(state: EngineState, id: number, stored: StoredShard): Shard {
  const shard = state.shard(id);
  // Totals written by an earlier version may lack counters that were added since.
  shard.totals = { ...zeroTotals(), ...stored.totals };
  state.ledger.restoreSpent(shard.totals.spent);
  return shard;
}

/**
 * Takes over a lease that was in flight when the object stopped. Its executor may be alive and report, so it gets a
 * fresh term; if nobody speaks up it expires as unknown and its slot runs again.
 */
export function restoreLease(
  state: EngineState,
  shard: Shard,
  stored: StoredLease,
  target: Target,
  nowMs: number,
): void {
  const { id: attemptId, slot: slotId, attempt, amounts, startedAtMs, queuedMs, startSeq } = stored;
  const expiresAtMs = nowMs + FOUND_LEASE_TTL_MS;
  const group = state.groupOf({ slotId });
  const onLost: AttemptInFlight["onLost"] = stored.onLost ?? group?.header.onLost ?? "retry";
  const known = { startSeq, dedupeKey: null, capTokens: stored.capTokens ?? null, onLost };
  const lease = { attemptId, slotId, attempt, target, amounts, startedAtMs, queuedMs, expiresAtMs, ...known };
  shard.leases.set(attemptId, lease);
  state.ledger.restore(attemptId, amounts);
  state.addInFlight({ lease, shard, call: null }, nowMs);
  if (slotId !== null) group?.restore(indexOf(slotId), "running", attempt, nowMs);
  // Its start was in memory when the object stopped; numbers given out then are given out again.
  if (startSeq > state.writtenSeq) lease.startSeq = state.tellStart(lease, null, startedAtMs);
}

/** Takes over what storage remembers of a slot; one that was waiting for a retry waits again. Before its lease, if any. */
export function restoreSlot(state: EngineState, group: Group, record: SlotRecord, nowMs: number): void {
  group.restore(indexOf(record.id), record.state, record.attempts, nowMs);
  group.sequentialMs += record.latencyMs;
  group.costNanoUsd += record.costNanoUsd;
  if (record.state === "queued") state.tried.set(record.id, record);
}

/** Queues the slots that wait for a retry, once leases have been restored: a slot with a lease is running, not waiting. */
export function requeueTried(state: EngineState, nowMs: number): void {
  for (const record of state.tried.values()) {
    const group = state.groups.get(groupSeqOf(record.id));
    if (group === undefined || group.stateOf(indexOf(record.id)) !== "queued") continue;
    const key = lineOf(state, group, state.deps.factsOf(record.id));
    state.queue.delay(key, record.id, record.notBeforeMs ?? nowMs);
  }
}

/** Ends the queued slots of a group that was stopped before the object was: the group's row speaks for them. */
export function endDrained(state: EngineState, group: Group, nowMs: number): void {
  if (group.drained === null) return;
  // What was stopped has been told when it was.
  for (let index = 0; index < group.header.count; index++) {
    if (group.stateOf(index) !== "queued") continue;
    group.step(index, group.drained.state, nowMs);
    state.tried.delete(slotIdOf(group.header.seq, index));
  }
  if (group.done) state.writeGroup(group);
}
