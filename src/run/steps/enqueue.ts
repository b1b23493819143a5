/** How work enters the queue: the slots of stored groups, single calls, and followers that lost their leader. */
import { TIER_DEFAULT } from "../answers/tiers.ts";
import type { InstanceLabel, WindowGroup, WindowPosition } from "../leases/concurrency-window.ts";
import { patienceOf, type SingleCall } from "../leases/single-call.ts";
import { nextFacts } from "../continuations/table.ts";
import type { Group } from "../group/group.ts";
import { nameOf, type BucketKey } from "../queue/queue.ts";
import { lineOf } from "../gates/route-keys.ts";
import { sendable } from "../gates/sendable.ts";
import type { Position, Target } from "../leases/shard.ts";
import type { Follower } from "../leases/single-flight.ts";
import { groupSeqOf, slotIdOf, type SlotFacts } from "../queue/slot.ts";
import { batchTargetOf } from "./batch-target.ts";
import type { EngineState } from "../state.ts";

/** A single call as its Worker requests a permit for it. `ageMs`: how long ago the call was accepted. */
export type CallRequest = Omit<SingleCall, "queuedAtMs" | "window" | "windowPosition"> & {
  /** The group that an earlier attempt of the call belonged to, if any. */
  parallelGroupId: string | null;
  ageMs?: number;
  label?: InstanceLabel;
};

/** Emits that a group was opened. A single call that is stored as a group is announced with its coalescing window. */
export function emitGroupStarted(state: EngineState, group: Group, nowMs: number): void {
  const { single, count, concurrency, graph, retryOf } = group.header;
  if (single !== null) return;
  const tasks = graph === undefined || graph.ordersOnly === true ? {} : { tasks: graph.tasks };
  const more = { ...tasks, ...(retryOf === undefined ? {} : { retryOf }) };
  const effectiveParallel = Math.min(count, concurrency, state.width);
  state.log.add({ event: "group_started", count, effectiveParallel, ...more }, group.parallelGroupId, nowMs);
}

/** The slots of a group that are queued for themselves and for those that are equal to them, by bucket and in-flight key. */
export type Equals = Map<string, number>;

/**
 * Queues those stored slots of a group, from `firstIndex` on, that have neither run nor ended. Those of strict tiers wait for
 * `releaseTiers`, which must follow the last page. Of equal slots that may share an outcome one is queued.
 * @param equals Those of the pages before, of one group.
 */
export function enqueueSlots(
  state: EngineState,
  group: Group,
  firstIndex: number,
  facts: readonly SlotFacts[],
  equals: Equals = new Map(),
): void {
  setTiers(group, firstIndex, facts);
  if (group.tiers?.isStrict === true) return;
  let last: { fact: SlotFacts; bucket: BucketKey } | null = null;
  for (const [offset, fact] of facts.entries()) {
    // Copies of one call have one object of facts, and wait in one bucket.
    const known = last?.fact === fact ? last.bucket : null;
    const bucket = enqueueFresh(state, group, { index: firstIndex + offset, fact, bucket: known }, equals);
    if (bucket !== null) last = { fact, bucket };
  }
}

/** Queues a slot that has neither run nor ended. Its bucket; null = it is not queued. `bucket`: if it is known. */
function enqueueFresh(
  state: EngineState,
  group: Group,
  { index, fact, bucket: known }: { index: number; fact: SlotFacts; bucket: BucketKey | null },
  equals: Equals,
): BucketKey | null {
  const isFresh = group.stateOf(index) === "queued" && group.attempts[index] === 0;
  if (!isFresh || group.provider?.isClaimed(index) === true) return null;
  if (group.provider !== null && batchTargetOf(state, group, fact) !== null) {
    group.provider.hold(index);
    return null;
  }
  const slotId = slotIdOf(group.header.seq, index);
  const bucket = known ?? bucketOf(state, group, fact);
  // Each slot of a run that records may have an answer of its own.
  if (group.header.replay !== undefined) {
    state.queue.push(bucket, slotId);
    state.replayQueue.add(slotId);
  } else if (!joinsEqual(state, { slotId, dedupeKey: fact.dedupeKey, bucket }, equals))
    state.queue.push(bucket, slotId);
  return bucket;
}

/** Whether a slot shares the outcome of an equal one of its group, which is in flight or queued for both. */
function joinsEqual(
  { singleFlight }: EngineState,
  { slotId, dedupeKey, bucket }: { slotId: number; dedupeKey: string | undefined; bucket: BucketKey },
  equals: Equals,
): boolean {
  if (dedupeKey === undefined) return false;
  // An equal call of another group may come to lead before this slot would start.
  const leader = Number(singleFlight.leaderOf(dedupeKey));
  if (groupSeqOf(leader) === bucket.groupSeq)
    return singleFlight.follow(dedupeKey, String(slotId), { bucket, id: slotId, call: null });
  const key = `${nameOf(bucket)} ${dedupeKey}`;
  const first = equals.get(key);
  if (first === undefined) equals.set(key, slotId);
  else singleFlight.addCopy(String(first), bucket, slotId);
  return first !== undefined;
}

/** Notes the tiers of a group's slots, from `firstIndex` on, before any of them ends. */
export function setTiers({ tiers }: Group, firstIndex: number, facts: readonly Pick<SlotFacts, "tier">[]): void {
  if (tiers === null) return;
  for (const [offset, { tier = TIER_DEFAULT }] of facts.entries()) tiers.set(firstIndex + offset, tier);
}

/** Queues the slots of strict tiers that may start now, because the tiers before theirs have ended. */
export function releaseTiers(state: EngineState, group: Group): void {
  if (group.tiers === null || group.drained !== null) return;
  const equals: Equals = new Map();
  for (const index of group.tiers.takeReleased()) {
    const fact = state.deps.factsOf(slotIdOf(group.header.seq, index));
    enqueueFresh(state, group, { index, fact, bucket: null }, equals);
  }
}

/** Queues slots of a graph that may start, unless they have run or ended. */
export function enqueueReady(state: EngineState, group: Group, indexes: readonly number[]): void {
  for (const index of indexes) {
    if (group.stateOf(index) !== "queued" || group.attempts[index] !== 0) continue;
    const slotId = slotIdOf(group.header.seq, index);
    state.queue.push(bucketOf(state, group, factsOf(state, group, index)), slotId);
    const isAnswered = (group.early?.answerFor(index) ?? null) !== null;
    if (group.header.replay !== undefined || isAnswered) state.replayQueue.add(slotId);
  }
}

/**
 * Queues a single call, to start no sooner than `delayMs` from now. Its first attempt joins the coalescing window; a
 * retry does not count as a new call.
 */
export function enqueueCall(
  state: EngineState,
  { parallelGroupId, ageMs = 0, label, ...call }: CallRequest,
  delayMs: number,
  nowMs: number,
): void {
  const { group: window, position: windowPosition } =
    call.attempt === 1 ? joined(state, label, { nowMs, ageMs }) : rejoined(state, call.callId, parallelGroupId);
  const position = state.addCall({ ...call, queuedAtMs: nowMs, window, windowPosition });
  addTarget(state, call.target, call.position);
  if (call.waitsForGate !== true) sendAnyway(state, lineOf(call.target, call.position));
  const key = bucketOfCall(call, nowMs - ageMs);
  if (delayMs > 0 || call.attempt > 1) state.queue.delay(key, position, nowMs + delayMs);
  else state.queue.push(key, position);
}

/** The queue bucket of a single call. */
export function bucketOfCall(
  { target, position, facts }: Pick<SingleCall, "target" | "position" | "facts">,
  acceptedAtMs: number,
): BucketKey {
  // Calls that were accepted in the same second share a bucket: a bucket is first in, first out already.
  const queuedAtMs = acceptedAtMs - (acceptedAtMs % 1_000);
  return { groupSeq: 0, upstream: lineOf(target, position), priority: facts.priority, queuedAtMs };
}

/** Whether a single call was put aside because its Worker is away. */
export function isAside(state: EngineState, callId: string): boolean {
  return asideOf(state, callId) !== null;
}

/** The Worker of a single call is back: the call may start if it was put aside. */
export function resumeCall(state: EngineState, callId: string, nowMs: number): void {
  const position = asideOf(state, callId);
  const call = position === null ? undefined : state.calls.get(position);
  if (position === null || call === undefined) return;
  // Another call may have been sent in its place meanwhile.
  if (call.waitsForGate !== true) sendAnyway(state, lineOf(call.target, call.position));
  state.queue.resume(position, nowMs);
}

/** The position of a single call that was put aside; null = it was not. */
function asideOf({ queue, calls }: EngineState, callId: string): number | null {
  for (const position of queue.aside.keys()) if (calls.get(position)?.callId === callId) return position;
  return null;
}

/** Lets a call be sent although no key of its line works: its client gets the upstream's error at once. */
function sendAnyway({ lines, upstreams }: EngineState, line: string): void {
  const gates = lines.gatesOf(line).map((gate) => upstreams.get(gate));
  if (gates.every((gate) => gate?.stop != null)) gates[0]?.impatient();
}

/** A call of an instance that holds credit belongs to the instance's window, together with those inside the credit. */
function joined(
  { window, credits }: EngineState,
  label: InstanceLabel | undefined,
  { nowMs, ageMs }: { nowMs: number; ageMs: number },
): { group: WindowGroup; position: WindowPosition } {
  if (label === undefined || credits.get(label.creditId) === undefined) return window.join(nowMs, nowMs - ageMs);
  return window.joinReported(label.creditId, label, nowMs);
}

/** A retry belongs to the window of the call's first attempt. */
function rejoined(
  { window }: EngineState,
  callId: string,
  groupId: string | null,
): { group: WindowGroup | null; position: WindowPosition } {
  return { group: window.rejoin(callId, groupId), position: "alone" };
}

/**
 * Returns followers of one call to their buckets: they do not get its outcome. Of the slots in a bucket the first is queued for all
 * of them; of those that are queued then, the first to start leads the others.
 */
export function requeueFollowers(state: EngineState, followers: readonly Follower[]): void {
  const firsts = new Map<string, number>();
  for (const { bucket, id, call } of followers) {
    const first = call === null ? firsts.get(nameOf(bucket)) : undefined;
    if (first !== undefined) {
      state.singleFlight.addCopy(String(first), bucket, id);
      continue;
    }
    state.queue.push(bucket, id);
    if (call === null) firsts.set(nameOf(bucket), id);
  }
}

/** Added to the queueing time of background work, ms (1,000 years): later than any other call is queued. */
const BACKGROUND_MS = 365_000 * 86_400_000;

/** Registers the gates and the line of a target. */
function addTarget({ upstreams, lines }: EngineState, target: Target, position?: Position): void {
  lines.add(target, position);
  if (target.choices === undefined) upstreams.add(target);
  else for (const { targets } of target.choices) for (const each of targets) upstreams.add(each);
}

/** The stored facts of a slot, at the model that it has come to, without the outputs that its call may refer to. */
export function factsOf({ deps, tried }: EngineState, group: Group, index: number): SlotFacts {
  const facts = deps.factsOf(slotIdOf(group.header.seq, group.callIndexOf(index)));
  return nextFacts(facts, tried.get(slotIdOf(group.header.seq, index)));
}

/** The queue bucket of a slot of a group. */
export function bucketOf(state: EngineState, group: Group, facts: SlotFacts, position?: Position): BucketKey {
  const asked = state.targetOf(group.header, facts);
  const target = asked === null ? null : sendable(asked, facts);
  if (target !== null) {
    addTarget(state, target, position);
    const { single, deadlineMs } = group.header;
    if (single !== null && !patienceOf(deadlineMs).waitsForGate) sendAnyway(state, lineOf(target, position));
  }
  const rankOf = group.graph?.rankOf;
  return {
    ...(rankOf === undefined ? {} : { rankOf }),
    groupSeq: group.header.seq,
    upstream: target === null ? "" : lineOf(target, position),
    priority: facts.priority,
    // Background work gains no priority by waiting: it counts as queued at a time that never comes.
    queuedAtMs: group.header.openedAtMs + (group.header.background === true ? BACKGROUND_MS : 0),
  };
}
