/** Rebuilds a run's state from its rows, in this order: groups, their slots, leases, and then the queue. */
import { BATCH_TIER } from "../../call.ts";
import { FOUND_LEASE_TTL_MS, LEASE_TTL_MS } from "../../limits.ts";
import { callIdOf } from "../log.ts";
import { attemptsBefore } from "../continuations/table.ts";
import { bucketOf, enqueueReady, factsOf } from "./enqueue.ts";
import type { Group } from "../group/group.ts";
import type { SlotRecord } from "../group/record.ts";
import { FRESH } from "../gates/choose.ts";
import { sendable } from "../gates/sendable.ts";
import {
  keptOf,
  type AttemptInFlight,
  type ChosenFrom,
  type Shard,
  type StoredLease,
  type StoredShard,
  type Target,
} from "../leases/shard.ts";
import { groupSeqOf, indexOf, isFinalState } from "../queue/slot.ts";
import type { EngineState } from "../state.ts";
import type { StoredProviderPage } from "./provider-settle.ts";
import { stopIn } from "../gates/outcome.ts";
import { zeroTotals } from "../measures/totals.ts";

/** Takes over a shard's totals, with all that the run had spent before. `restoreLease` takes over its leases. */
export function restoreShard(state: EngineState, id: number, stored: StoredShard): Shard {
  const shard = state.shard(id);
  // A counter that is added to this one lacks in the rows that were stored before.
  shard.totals = { ...zeroTotals(), ...stored.totals };
  state.ledger.restoreSpent(shard.totals.spent, shard.totals.overrun);
  return shard;
}

/**
 * Takes over the groups of single calls that had not ended, from the row that was written last: before the leases of their calls.
 * `endWindows` follows when the credits are restored, too.
 */
export function restoreWindows({ window }: EngineState, shards: readonly StoredShard[]): void {
  const newest = Math.max(0, ...shards.map(({ upTo = 0 }) => upTo));
  const written = shards.find(({ upTo = 0, windows }) => upTo === newest && windows !== undefined);
  window.restore(written?.windows ?? [], newest > 0);
}

/** Ends the restored groups of single calls none of whose calls is in flight: the calls that wait have left them. */
export function endWindows(state: EngineState, nowMs: number): void {
  state.window.keepReported((instance) => state.credits.get(instance) !== undefined);
  state.emitWindows(nowMs);
}

/**
 * Takes over a lease that was in flight when the object stopped. Its executor may be alive and report, so it gets a
 * new term; without a report, a socket or a heartbeat it expires, its outcome is unknown, and its slot is retried.
 */
export function restoreLease(
  state: EngineState,
  shard: Shard,
  stored: StoredLease,
  target: Target,
  nowMs: number,
): void {
  const lease = leaseOfStored(state, stored, target, nowMs);
  const { attemptId, slotId, attempt, amounts, startedAtMs, startSeq, dedupeKey } = lease;
  const group = state.groupOf({ slotId });
  const window = stored.window === undefined ? null : state.window.readmit(stored.window);
  if (window !== null) {
    lease.window = window;
    group?.joinWindow(window);
  }
  const chosenFrom = choicesOf(state, group, lease);
  if (chosenFrom !== null) lease.chosenFrom = chosenFrom;
  shard.leases.set(attemptId, lease);
  state.ledger.restore(attemptId, amounts);
  state.addInFlight({ lease, shard, call: null }, nowMs);
  if (dedupeKey !== null) state.singleFlight.lead(dedupeKey, slotId === null ? callIdOf(attemptId) : String(slotId));
  if (slotId !== null && group !== undefined) {
    // A slot that was hedged has two leases, in any order.
    const attempts = Math.max(attempt, group.attempts[indexOf(slotId)] ?? 0);
    group.restore(indexOf(slotId), "running", attempts, nowMs);
  }
  // The event of its start was in memory only when the object stopped. It is emitted again, under the next number.
  if (startSeq > state.writtenSeq) lease.startSeq = state.emitStart(lease, startedAtMs);
}

/**
 * The end of a lease that was found in the rows. Its executor has the time of a reconnect; but a single call has ended, and its
 * settlement was repeated for the last time, so long after its start: an object that restarts over and over, each time before
 * the term is over, does not keep it reserved. A slot may wait in its executor behind others, so that its end is not known.
 */
function foundLeaseEndMs({ slot, startedAtMs }: StoredLease, { timeoutMs }: Target, nowMs: number): number {
  const termEndMs = nowMs + FOUND_LEASE_TTL_MS;
  return slot === null ? Math.max(nowMs, Math.min(termEndMs, startedAtMs + timeoutMs + LEASE_TTL_MS)) : termEndMs;
}

/** A lease from its row, with a new term. */
function leaseOfStored(state: EngineState, stored: StoredLease, target: Target, nowMs: number): AttemptInFlight {
  const { id: attemptId, slot: slotId, attempt, amounts, startedAtMs, queuedMs, startSeq } = stored;
  const expiresAtMs = foundLeaseEndMs(stored, target, nowMs);
  const group = state.groupOf({ slotId });
  // What a lost call of a tool has done is not known.
  const ofTool = target.tool?.idempotent === false ? ("fail" as const) : undefined;
  const onLost: AttemptInFlight["onLost"] = stored.onLost ?? ofTool ?? group?.header.onLost ?? "retry";
  const cap = { capTokens: stored.capTokens ?? null, capKind: stored.capKind ?? ("client" as const) };
  const template = { shape: stored.shape ?? "chat", byteTokensMax: stored.byteTokensMax ?? null };
  const dedupeKey = stored.dedupeKey ?? null;
  const learned = { priced: stored.priced ?? {}, textSample: null, ...template };
  const rest = { gateTokens: null, startSeq, dedupeKey, ...cap, onLost, ...learned };
  const lease: AttemptInFlight = {
    attemptId,
    slotId,
    attempt,
    target,
    amounts,
    startedAtMs,
    queuedMs,
    expiresAtMs,
    ...rest,
    ...keptOf(stored),
  };
  if (stored.step !== undefined) lease.labels = stored.step;
  return lease;
}

/**
 * Takes over a page of slots that are at their provider, once the rows of the slots have been: those without an attempt are there
 * still.
 */
export function restoreProviderPage(
  state: EngineState,
  group: Group,
  { page, leases }: StoredProviderPage,
  targetOf: (lease: StoredLease) => Target,
  nowMs: number,
): void {
  const { provider } = group;
  if (provider === null) return;
  const isThere = ({ slot }: StoredLease): boolean =>
    slot !== null && group.stateOf(indexOf(slot)) === "queued" && group.attempts[indexOf(slot)] === 0;
  const there = leases.filter(isThere).map((stored) => {
    const lease = { ...leaseOfStored(state, stored, targetOf(stored), nowMs), tier: BATCH_TIER };
    state.ledger.restore(lease.attemptId, lease.amounts);
    return lease;
  });
  provider.addPage(page, there);
}

/**
 * The choices of a slot's attempt, if its model has any. What the slot tried elsewhere is forgotten: all of its attempts so
 * far count for the target of this one.
 */
function choicesOf(
  state: EngineState,
  group: Group | undefined,
  { slotId, attempt, target: { gate, model } }: AttemptInFlight,
): ChosenFrom | null {
  if (group === undefined || slotId === null) return null;
  const { header } = group;
  const { deps } = state;
  if (!header.models.some((_, index) => deps.targetOf(header, index)?.choices !== undefined)) return null;
  const facts = factsOf(state, group, indexOf(slotId));
  const asked = state.targetOf(header, facts);
  const { choices, route } = asked === null ? {} : sendable(asked, facts);
  const at =
    choices?.findIndex(({ targets }) => targets.some((each) => each.gate === gate && each.model === model)) ?? -1;
  if (choices === undefined || at === -1) return null;
  const before = attemptsBefore(state.tried.get(slotId));
  const tried = choices.map((_, index) => (index === at ? attempt - 1 - before : 0));
  return { choices, route, at, cause: null, position: { ...FRESH, tried } };
}

/** Takes over a slot's row. Call it before `restoreLease`: a slot whose row is queued may have a lease. */
export function restoreSlot(state: EngineState, group: Group, record: SlotRecord, nowMs: number): void {
  group.restore(indexOf(record.id), record.state, record.attempts, nowMs);
  group.addAttempt(record.latencyMs, record);
  if (isFinalState(record.state)) group.addEnded(record);
  if (record.replay?.of !== undefined) group.replayed += 1;
  if (record.reason?.reason === "condition_not_met") group.graph?.noteUnmet(indexOf(record.id));
  if (record.state === "queued") state.restoreTried(record);
}

/**
 * Computes anew which slots of a graph may start, once its slots and leases have been restored, and queues them. `absent`: of
 * a graph that was stopped, the slots that did not exist then.
 */
export function restoreGraph(
  state: EngineState,
  group: Group,
  absent: readonly (readonly [number, number])[] | null,
): void {
  if (group.graph === null) return;
  const { frontier } = group.graph;
  if (absent !== null) frontier.restoreStopped(absent);
  const first = absent === null ? frontier.start().ready : [];
  // What else this skips has a row of its own, because it was stored together with these ends.
  const { ready } = frontier.restored(group.graph.endings(group.header.count, (index) => group.stateOf(index)));
  enqueueReady(state, group, [...first, ...ready]);
}

/**
 * Queues the slots that wait for a retry, once leases have been restored: a slot with a lease is running, not waiting.
 */
export function requeueTried(state: EngineState, nowMs: number): void {
  for (const record of state.tried.values()) {
    const group = state.groups.get(groupSeqOf(record.id));
    if (group === undefined || group.stateOf(indexOf(record.id)) !== "queued") continue;
    const facts = factsOf(state, group, indexOf(record.id));
    const key = bucketOf(state, group, facts);
    state.queue.delay(key, record.id, record.notBeforeMs ?? nowMs);
    const target = state.targetOf(group.header, facts);
    const stop = record.reason === null ? null : stopIn(record.reason);
    if (target === null || stop === null) continue;
    // All of its attempts so far may have been probes; and others of the run must not meet the same key.
    group.uncounted.set(indexOf(record.id), record.attempts);
    state.upstreams.add(target).stopped(stop.reason, stop.message, nowMs);
  }
}
