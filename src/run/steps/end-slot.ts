/**
 * Where a slot of a group ends, in whatever way: after an attempt, refused, cancelled, at its deadline, with its group,
 * or with the outcome of an equal call. `endSlot` is the only step into a final state; the functions after it are the
 * ways in which a queued slot ends.
 */
import { partsOf } from "../../answer.ts";
import { isBudgetReason } from "../money/admit.ts";
import { cappedOf } from "../money/capped.ts";
import type { Outcome } from "../../call.ts";
import type { Reason } from "../../errors.ts";
import { answerLeft, endOfCourse } from "../continuations/table.ts";
import { enqueueReady, factsOf, releaseTiers, requeueFollowers } from "./enqueue.ts";
import { endingOf, type GroupGraph } from "../group/group-graph.ts";
import type { Advance } from "../graph/frontier.ts";
import type { CompiledGraph } from "../graph/types.ts";
import type { Drained, Group, GroupHeader } from "../group/group.ts";
import { slotEnd, slotName } from "../log.ts";
import { isViolation, noteCheck } from "../group/schema-check.ts";
import { savedBy } from "./saved.ts";
import { freshRecord, withoutAnswer, type SlotRecord } from "../group/record.ts";
import type { RecalledSlot } from "../group/recorded.ts";
import { groupSeqOf, indexOf, slotIdOf } from "../queue/slot.ts";
import type { FailedSlot, RuleEffect } from "../rules/rule.ts";
import { callEnded, mayBeServed } from "../services/table.ts";
import type { EngineState } from "../state.ts";
import { reconsider } from "./paused.ts";

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

/**
 * Ends a slot in the state of its record: row, event, what depends on it, the rules of its group, and its group's row after
 * the last.
 */
export function endSlot(state: EngineState, group: Group, record: SlotRecord, end: SlotEnd, nowMs: number): void {
  const { graph } = group;
  const own = endOfCourse(record);
  const answered = graph === null ? own : graph.endOf(own);
  const ended = end.hasRow === false ? answered : withKey(state, group, answered);
  finishSlot(state, group, ended, end, nowMs);
  const effects = group.rules.slotEnded(ended);
  const lost = graph === null ? failedOf(ended) : advanceGraph(state, group, graph, ended, nowMs);
  if (lost.length > 0) applyEffects(state, group, group.rules.slotsFailed(lost), nowMs, end.hasEvent);
  applyEffects(state, group, effects, nowMs);
  releaseTiers(state, group);
  if (group.early !== null) state.addServed(group);
  if (!group.done) return;
  state.writeGroup(group);
  if (mayBeServed(group)) state.addServed(group);
  endService(state, group, ended, nowMs);
}

/** The record with the key under which its answer is recorded: only whole answers are, that their calls have asked for. */
function withKey({ deps }: EngineState, group: Group, record: SlotRecord): SlotRecord {
  if (record.replay?.of !== undefined) group.replayed += 1;
  if (record.state !== "completed" || record.reason !== null || record.cappedBy !== undefined) return record;
  const key = deps.replay?.completed(group, record) ?? null;
  return key === null || record.replay !== undefined ? record : { ...record, replay: { key } };
}

/** Ends a queued slot, which is in no queue any more, with an answer that is there. */
export function endRecalled(state: EngineState, slotId: number, recalled: RecalledSlot, nowMs: number): void {
  const group = state.groups.get(groupSeqOf(slotId));
  if (group === undefined) return;
  const record = { ...recordOf(state, slotId), state: "completed", reason: null, notBeforeMs: null } as const;
  endSlot(state, group, { ...record, ...recalled }, {}, nowMs);
}

function finishSlot(
  state: EngineState,
  group: Group,
  record: SlotRecord,
  { startedAtMs = null, hasRow = true, hasEvent = true }: SlotEnd,
  nowMs: number,
): void {
  group.step(indexOf(record.id), record.state, nowMs);
  group.addEnded(record);
  // Ends without a row of their own are counted with their group's, which is applied again after a restart.
  if (startedAtMs === null && hasRow && record.state === "failed" && record.reason !== null)
    state.countRefused(record.reason.reason);
  if (startedAtMs === null) handOn(state, String(record.id));
  if (hasRow) state.writeSlot(record);
  else state.forgetTried(record.id);
  if (hasEvent) emitSlotEnd(state, group, record, { startedAtMs, endedAtMs: nowMs });
}

/** A slot has ended without an outcome to share: those that waited for it return to the queue. */
function handOn(state: EngineState, name: string): void {
  requeueFollowers(state, state.singleFlight.end(name));
  const next = state.singleFlight.passOn(name);
  if (next !== null) state.queue.push(next.bucket, next.id);
}

function failedOf({ id, state: ended, reason }: SlotRecord): FailedSlot[] {
  return ended === "failed" ? [{ index: indexOf(id), reason }] : [];
}

/** Queues and ends what a slot's end lets start or keeps from starting. The slots of tasks that failed and that nothing answers for. */
function advanceGraph(
  state: EngineState,
  group: Group,
  graph: GroupGraph,
  { id, state: ended, reason }: SlotRecord,
  nowMs: number,
): FailedSlot[] {
  const { frontier } = graph;
  const index = indexOf(id);
  const advance = frontier.ended(index, endingOf(ended));
  takeAdvance(state, group, graph, advance, nowMs);
  const failed = [{ index, reason }, ...advance.unfed.map((at) => ({ index: at, reason: graph.unfedReason(at) }))];
  return lostOf(graph, failed);
}

/** Those of the failed slots of a graph that nothing answers for. */
function lostOf(graph: GroupGraph, failed: readonly FailedSlot[]): FailedSlot[] {
  return failed
    .filter(({ index }) => graph.frontier.isLost(index))
    .map(({ index, reason }) => ({ index: graph.answeredFor(index), reason }));
}

function takeAdvance(
  state: EngineState,
  group: Group,
  graph: GroupGraph,
  { ready, skipped, unfed }: Pick<Advance, "ready" | "skipped" | "unfed">,
  nowMs: number,
): void {
  const { compiled, frontier } = graph;
  const { seq } = group.header;
  for (const { index: at, because, isUnmet } of skipped) {
    const dependency = compiled.tasks[because]?.id ?? "";
    const record = recordOf(state, slotIdOf(seq, at));
    const reason = { reason: isUnmet === true ? "condition_not_met" : "dependency_failed", dependency } as const;
    if (isUnmet === true) graph.noteUnmet(at);
    finishSlot(state, group, { ...record, state: "skipped", reason }, {}, nowMs);
  }
  for (const at of unfed) {
    const elements = graph.elementsOf(frontier.taskOf(at));
    if (elements.ok) throw new Error(`slot ${at} of ${group.header.id} failed for its elements, but has some`);
    const record = { ...recordOf(state, slotIdOf(seq, at)), state: "failed", reason: elements.reason } as const;
    finishSlot(state, group, record, {}, nowMs);
  }
  enqueueReady(state, group, ready);
}

/**
 * Takes over a changed graph of a group that runs. Slots that were queued without having started are queued anew, as far as
 * they may still start.
 */
export function changeGraph(
  state: EngineState,
  group: Group,
  { header, compiled }: { header: GroupHeader; compiled: CompiledGraph },
  nowMs: number,
): void {
  const { graph } = group;
  if (graph === null) throw new Error(`${header.id} has no graph`);
  const { seq } = header;
  state.queue.remove((groupSeq, id) => groupSeq === seq && group.attempts[indexOf(id)] === 0);
  group.grow(header);
  reconsider(group);
  const { ready, skipped, unfed } = graph.change(compiled, (index) => group.stateOf(index));
  // Before any of them ends, which a skipped one does at once.
  group.setTaskTiers();
  const isQueued = (index: number): boolean => group.stateOf(index) === "queued";
  const newlyUnfed = unfed.filter(isQueued);
  takeAdvance(
    state,
    group,
    graph,
    { ready, skipped: skipped.filter(({ index }) => isQueued(index)), unfed: newlyUnfed },
    nowMs,
  );
  const lost = lostOf(
    graph,
    newlyUnfed.map((at) => ({ index: at, reason: graph.unfedReason(at) })),
  );
  if (lost.length > 0) applyEffects(state, group, group.rules.slotsFailed(lost), nowMs, false);
  if (group.done) state.writeGroup(group);
}

/** Queues what may start of a graph that was just opened. */
export function startGraph(state: EngineState, group: Group): void {
  if (group.graph !== null) enqueueReady(state, group, group.graph.frontier.start().ready);
  if (group.early !== null) state.addServed(group);
}

function emitSlotEnd(
  state: EngineState,
  group: Group,
  record: SlotRecord,
  times: { startedAtMs: number | null; endedAtMs: number },
): void {
  const { state: status, attempts, reason, model, finishReason, cappedBy } = record;
  if (status === "skipped" && reason !== null) {
    const event = { event: "slot_skipped", ...slotName(group, record.id), reason } as const;
    state.log.add(event, group.parallelGroupId, times.endedAtMs);
  }
  if (status !== "completed" && status !== "failed" && status !== "cancelled") return;
  const capped = cappedBy === undefined ? {} : { cappedBy };
  const replayed = record.replay?.of === undefined ? {} : { replayed: true as const };
  const result = { status, attempts, reason, model, finishReason, ...capped, ...replayed };
  const { promptTokens, completionTokens, costNanoUsd } = record;
  const usage = { promptTokens, completionTokens, costNanoUsd };
  const end = slotEnd(slotName(group, record.id), result, usage, times);
  state.log.add(end, group.parallelGroupId, times.endedAtMs);
}

/**
 * What the rules of a group do because a slot has ended. One that has stopped meanwhile does not stop again. `hasEvent` false: what has
 * failed is not reported.
 */
function applyEffects(
  state: EngineState,
  group: Group,
  effects: readonly RuleEffect[],
  nowMs: number,
  hasEvent = true,
): void {
  for (const effect of effects) {
    switch (effect.kind) {
      case "served":
        state.addServed(group);
        break;
      case "escalated": {
        const { index, reason } = effect;
        if (hasEvent) state.escalate({ event: "escalated", index, callId: null, reason }, group, nowMs);
        break;
      }
      case "abort":
        abortGroup(state, group, effect.message, nowMs);
        break;
      case "stop":
        if (!group.hasStopped) stopGroup(state, group, effect.rule, nowMs);
    }
  }
}

/** Lets no further slot of a group start, because of those that failed. */
function abortGroup(state: EngineState, group: Group, message: string, nowMs: number): void {
  const drained = { state: "cancelled", reason: { reason: "cancelled", message }, cause: "abort" } as const;
  drainGroup(state, group, drained, nowMs);
}

/**
 * The only call of a group that serves another one has ended. What that does to the other is stored with it: a restart finds both,
 * or makes the call once more.
 */
function endService(state: EngineState, { header }: Group, end: SlotRecord, nowMs: number): void {
  const { serves, seq, id } = header;
  const served = serves === undefined ? undefined : state.groups.get(serves.seq);
  if (serves === undefined || served === undefined) return;
  const effect = callEnded(served, { serves, seq, id }, end);
  state.addServed(served);
  if (effect?.kind === "stop") stopGroup(state, served, effect.rule, nowMs);
  if (effect?.kind === "released") releaseSlot(state, served, effect.index);
}

/** Queues a slot anew that waits in the queue for a call that was made for it. */
function releaseSlot(state: EngineState, group: Group, index: number): void {
  const waiting = slotIdOf(group.header.seq, index);
  const removed = state.queue.remove((groupSeq, id) => groupSeq === group.header.seq && id === waiting);
  if (removed.length > 0) enqueueReady(state, group, [index]);
}

/**
 * Stops a group whose early stop is met: in the transaction of the end that met it, so a restart finds both or neither.
 * Attempts in flight are given up at the end of the turn (`giveUpStopped`): some of them may be settled in it.
 */
function stopGroup(state: EngineState, group: Group, rule: string, nowMs: number): void {
  if (group.done) return;
  group.noteSaved(savedBy(state, group, nowMs));
  if (group.isShadow) return state.writeGroup(group);
  const message = `stop_when was met: ${rule}`;
  drainGroup(state, group, { state: "cancelled", reason: { reason: "cancelled", message }, cause: "stop" }, nowMs);
  if (group.inFlight > 0) state.stopped.add(group);
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
  reconsider(group);
  endSlot(state, group, { ...recordOf(state, slotId), state: "cancelled", reason }, {}, nowMs);
}

/** Ends a slot that dispatch has taken from the queue with the answer that it has: neither budget nor deadline allow for another one. */
export function endWithAnswer(state: EngineState, left: SlotRecord, nowMs: number): void {
  const group = state.groups.get(groupSeqOf(left.id));
  if (group !== undefined) endSlot(state, group, left, {}, nowMs);
}

/** Ends a follower with its leader's final outcome, at no cost of its own. */
export function shareWithSlot(state: EngineState, slotId: number, outcome: Outcome, nowMs: number): void {
  const group = state.groups.get(groupSeqOf(slotId));
  // It may have been cancelled since its leader ended.
  if (group?.stateOf(indexOf(slotId)) !== "queued") return;
  const record = recordOf(state, slotId);
  if (outcome.kind === "failure") {
    const text = isViolation(outcome) ? (outcome.body ?? null) : null;
    endSlot(state, group, { ...record, state: "failed", reason: outcome.reason, text }, {}, nowMs);
    return;
  }
  noteCheck(record, outcome, false);
  const { text, model, finishReason } = outcome;
  const answer = { text, ...partsOf(outcome), model, finishReason, reason: null, ...cappedOf(outcome) };
  endSlot(state, group, { ...record, state: "completed", ...answer }, {}, nowMs);
}

/**
 * Stops a group: its queued slots and followers end at once, its running slots with their attempts, and those at a provider with
 * their batch, without a retry.
 */
export function drainGroup(state: EngineState, group: Group, drained: Drained, nowMs: number): void {
  if (group.drained !== null || group.done) return;
  group.drain(drained);
  if (group.early !== null) state.addServed(group);
  const blocked = stopGraph(group);
  const { header, parallelGroupId } = group;
  const { state: status, reason, cause } = drained;
  const followers = state.singleFlight.remove(({ call, bucket }) => call === null && bucket.groupSeq === header.seq);
  const queued = [...state.queue.remove((groupSeq) => groupSeq === header.seq), ...followers.map(({ id }) => id)];
  // A slot that storage knows as queued needs a row of its own. The ends of the others follow from the group's row.
  for (const slotId of queued.filter((id) => state.tried.has(id))) {
    const left = cause === "deadline" ? leftAtDeadline(state, group, slotId) : null;
    if (left !== null) endSlot(state, group, left, {}, nowMs);
    else endSlot(state, group, { ...recordOf(state, slotId), state: status, reason }, {}, nowMs);
  }
  const fresh = [...queued, ...heldSlots(group), ...unclaimedSlots(group)].filter(
    (id) => group.stateOf(indexOf(id)) === "queued",
  );
  for (const slotId of blocked) fresh.push(slotId);
  const hasEvent = header.single !== null;
  if (fresh.length > 0 && !hasEvent) {
    state.log.add({ event: "slots_cancelled", count: fresh.length, status, reason }, parallelGroupId, nowMs);
  }
  if (status === "failed" && fresh.length > 0) state.countRefused(reason.reason, fresh.length);
  endFresh(state, group, fresh, { end: { state: status, reason }, hasEvent }, nowMs);
  state.writeGroup(group);
}

/**
 * Ends slots of a stopped group that have never run, whose ends follow from its row. What the end of a slot can lead to happens
 * once, with the last: there may be tens of thousands. A graph moves on with each.
 */
function endFresh(
  state: EngineState,
  group: Group,
  slotIds: readonly number[],
  { end, hasEvent }: { end: Pick<SlotRecord, "state" | "reason">; hasEvent: boolean },
  nowMs: number,
): void {
  const last = slotIds.length - 1;
  for (const [at, slotId] of slotIds.entries()) {
    if (group.graph === null && !hasEvent && at < last) {
      group.step(indexOf(slotId), end.state, nowMs);
      state.forgetTried(slotId);
      if (group.rules.areAny) group.rules.slotEnded({ ...freshRecord(slotId), ...end });
    } else endSlot(state, group, { ...freshRecord(slotId), ...end }, { hasRow: false, hasEvent }, nowMs);
  }
}

/** Stops a graph; returns the ids of its blocked slots. */
function stopGraph({ graph, header }: Group): number[] {
  if (graph === null) return [];
  graph.frontier.stop();
  const blocked: number[] = [];
  for (let index = 0; index < header.count; index++)
    if (graph.frontier.isBlocked(index)) blocked.push(slotIdOf(header.seq, index));
  return blocked;
}

/** The slots that wait for a tier before theirs. */
function heldSlots({ tiers, header }: Group): number[] {
  if (tiers === null) return [];
  const held: number[] = [];
  for (let index = 0; index < header.count; index++) if (tiers.isHeld(index)) held.push(slotIdOf(header.seq, index));
  return held;
}

/** The slots that wait for a batch of their provider. Those that are in one end with it: what it has answered is billed. */
function unclaimedSlots({ provider, header }: Group): number[] {
  return (provider?.takeUnclaimed() ?? []).map((index) => slotIdOf(header.seq, index));
}

/** Ends the queued slots of a group that was stopped before a restart. Their events were emitted when it was. */
export function endDrainedSlots(state: EngineState, group: Group, nowMs: number): void {
  if (group.drained === null) return;
  const { state: status, reason } = group.drained;
  const fresh: number[] = [];
  for (let index = 0; index < group.header.count; index++) {
    if (group.stateOf(index) !== "queued" || group.graph?.frontier.isAbsent(index) === true) continue;
    if (group.provider?.isClaimed(index) !== true) fresh.push(slotIdOf(group.header.seq, index));
  }
  endFresh(state, group, fresh, { end: { state: status, reason }, hasEvent: false }, nowMs);
}

function leftAtDeadline(state: EngineState, group: Group, slotId: number): SlotRecord | null {
  return answerLeft(state.tried.get(slotId), { kind: "deadline" }, factsOf(state, group, indexOf(slotId)));
}

/** The record of a queued slot that ends without the answer that it may have had. */
function recordOf({ tried }: EngineState, slotId: number): SlotRecord {
  return withoutAnswer(tried.get(slotId) ?? freshRecord(slotId));
}
