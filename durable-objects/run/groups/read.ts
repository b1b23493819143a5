/** What readers of groups are sent: from memory while the group is there, from its rows at any time. */
import { answerChars } from "../../../src/answer.ts";
import { shownCourse } from "../../../src/run/continuations/tools.ts";
import { freshRecord, withoutAnswer, type SlotRecord } from "../../../src/run/group/record.ts";
import type { Group, GroupHeader, Paused } from "../../../src/run/group/group.ts";
import type { Speculation } from "../../../src/run/group/early-calls.ts";
import { isFinalState, indexOf, slotIdOf } from "../../../src/run/queue/slot.ts";
import { stoppingOf } from "../../../src/run/rules/table.ts";
import { shortOf } from "../../../src/run/steps/paused.ts";
import { waitsBySlot, waitsOf } from "../../../src/run/steps/waiting-for.ts";
import { RESULTS_REPLY_BYTES_MAX } from "../../../src/limits.ts";
import type { EndedReply, GroupView, SlotView, TierFailure } from "../../../src/objects/methods/groups.ts";
import type { RunState } from "../state.ts";
import { groupResult, type GroupResult, type StoredGroup } from "../store/records.ts";
import type { RunStore } from "../store/store.ts";
import { customIdsOf } from "./custom-ids.ts";
import { tracedIn } from "./open.ts";

/** What readers need of the run. */
type Groups = Pick<RunState, "engine" | "settings" | "storedGroup" | "remainingNanoUsd">;

/** A group's state with what it has used so far; null if there is no such group. */
export function groupView(run: Groups, store: RunStore, seq: number, nowMs: number): GroupView | null {
  const found = store.groups.get(seq);
  if (found === null || !found.stored.sealed) return null;
  const { header, errorStyle, aggregate } = found.stored;
  const live = run.engine.groups.get(seq);
  const result = live === undefined ? found.result : groupResult(live, nowMs);
  if (result === null) return null;
  const { status, counts, metrics, endedAtMs, parallelGroupId, graph } = result;
  return {
    id: header.id,
    status,
    count: graph?.presentSlots ?? header.count,
    counts,
    openedAtMs: header.openedAtMs,
    endedAtMs,
    errorStyle,
    parallelGroupId,
    effectiveParallel: Math.min(header.concurrency, run.engine.width),
    remainingNanoUsd: run.remainingNanoUsd,
    ...tracedIn(run, header),
    metrics,
    ...(live === undefined || counts.queued === 0 ? {} : waitOf(run, live, nowMs)),
    // The sum of a large group's rows takes long, and groups are looked at often.
    usage: result.usage ?? store.slots.usageOf(seq),
    ...stopOf(header, result),
    ...(result.speculation === undefined ? {} : { speculation: speculationNow(run, store, result.speculation) }),
    ...(aggregate === undefined ? {} : { aggregate }),
    ...(header.held === undefined || live === undefined || live.done ? {} : { held: header.held }),
    ...(result.missing === undefined ? {} : { missing: result.missing }),
    ...(live?.paused == null ? {} : pausedOf(run, live.paused)),
    ...(header.replay === undefined ? {} : { replayed: result.replayed ?? 0 }),
    ...(header.graph === undefined || header.graph.ordersOnly === true
      ? {}
      : { graph: { slots: header.count, version: header.graph.version ?? 1 } }),
    ...(result.tierFailures === undefined ? {} : { tierFailures: tierFailuresOf(store, found.stored, result) }),
  };
}

/** Why and where in the run's queue the queued slots of a group wait. */
function waitOf({ engine }: Groups, group: Group, nowMs: number): Pick<GroupView, "waitsFor" | "queuedAhead"> {
  const queuedAhead = engine.queue.aheadOf(group.header.seq, nowMs);
  const waitsFor = waitsOf(engine, group, nowMs);
  return queuedAhead === null ? { waitsFor } : { waitsFor, queuedAhead };
}

function pausedOf({ engine }: Groups, paused: Paused): Pick<GroupView, "paused"> {
  const dimension = shortOf(engine, paused);
  return dimension === null ? {} : { paused: { dimension, sinceMs: paused.sinceMs } };
}

function stopOf({ rules }: GroupHeader, { saved, drained, judges }: GroupResult): Pick<GroupView, "stop"> {
  const stopping = stoppingOf(rules);
  if (stopping === null) return {};
  const judged = judges === undefined ? {} : { judges };
  const hasCancelled = drained?.cause === "stop";
  return { stop: { shadow: stopping.shadow, saved: saved ?? null, hasCancelled, ...judged } };
}

/** What early calls have come to by now: a graph that has ended knows nothing of those that were in flight then. */
function speculationNow(
  { engine }: Groups,
  { groups }: Pick<RunStore, "groups">,
  { open, ...known }: Speculation,
): NonNullable<GroupView["speculation"]> {
  const sum = { ...known, inFlight: 0 };
  for (const seq of open) {
    const { done = true, usage = groups.get(seq)?.result?.usage } = engine.groups.get(seq) ?? {};
    if (!done) sum.inFlight += 1;
    sum.spentNanoUsd += usage?.costNanoUsd ?? 0;
    sum.wastedNanoUsd += usage?.costNanoUsd ?? 0;
  }
  return sum;
}

/** The failed slots that a group with tiers lists, with their reasons, in input order within a tier. */
function tierFailuresOf(
  { slots, groups }: Pick<RunStore, "slots" | "groups">,
  stored: StoredGroup,
  { tierFailures, drained }: GroupResult,
): TierFailure[] {
  const nameOf = customIdsOf(groups, stored);
  return TIERS.flatMap((tier) =>
    [...(tierFailures?.indexes[tier] ?? [])]
      .sort((a, b) => a - b)
      .flatMap((index) => {
        const slotId = slotIdOf(stored.header.seq, index);
        const { reason } = endedRecord(slots.one(slotId), slotId, drained);
        return reason === null ? [] : [{ index, id: nameOf(index), tier, reason }];
      }),
  );
}

const TIERS = [0, 1, 2] as const;

/** Slots in input order from an index on, up to the size of one reply; at least one, if there is one. */
export function resultsFrom(run: Groups, store: RunStore, seq: number, fromIndex: number): SlotView[] {
  const found = store.groups.get(seq);
  if (found === null || !found.stored.sealed) return [];
  const views: SlotView[] = [];
  const nameOf = customIdsOf(store.groups, found.stored);
  const live = run.engine.groups.get(seq);
  let chars = 0;
  const isAbsent = absentIn(live, found.result);
  const drained = found.result?.drained ?? null;
  for (const record of withGaps(store, { seq, fromIndex, count: found.stored.header.count, drained })) {
    if (isAbsent(indexOf(record.id))) continue;
    const view = viewOf(record, nameOf);
    // The row of a running slot is missing or old.
    if (live?.stateOf(view.index) === "running") view.state = "running";
    views.push(view);
    chars += sizeOf(record);
    if (chars >= RESULTS_REPLY_BYTES_MAX) break;
  }
  return views;
}

/** Adds to the queued ones of a group's slots what they wait for. */
export function withWaits({ engine }: Groups, seq: number, views: SlotView[], nowMs: number): SlotView[] {
  const group = engine.groups.get(seq);
  if (group === undefined || views.every(({ state }) => state !== "queued")) return views;
  const waits = waitsBySlot(engine, group, nowMs);
  return views.map((view) => {
    const waitingFor = view.state === "queued" ? waits.get(slotIdOf(seq, view.index)) : undefined;
    return waitingFor === undefined ? view : { ...view, waitingFor };
  });
}

type Cursor = EndedReply["cursor"];

/** How many ended slots a reader knows by its cursor; 0 if the cursor is of another epoch. */
export function positionOf(cursor: Cursor | null, epoch: number): number {
  return cursor !== null && cursor.epoch === epoch ? cursor.position : 0;
}

/** Slots that ended after a cursor, in the order in which they ended. Only memory knows that order. */
export function endedSlots(
  run: Groups & Pick<RunState, "epoch">,
  store: RunStore,
  { seq, cursor }: { seq: number; cursor: Cursor | null },
): EndedReply | null {
  const group = run.engine.groups.get(seq);
  const stored = group === undefined ? undefined : run.storedGroup(seq);
  if (group === undefined || stored === undefined) return storedSlots(run, store, seq, positionOf(cursor, STORED));
  const { epoch } = run;
  const slots: SlotView[] = [];
  const nameOf = customIdsOf(store.groups, stored);
  let position = positionOf(cursor, epoch);
  for (let chars = 0; position < group.ended.length && chars < RESULTS_REPLY_BYTES_MAX; position++) {
    const index = group.ended[position];
    if (index === undefined) break;
    const record = endedRecord(store.slots.one(slotIdOf(seq, index)), slotIdOf(seq, index), group.drained);
    slots.push(viewOf(record, nameOf));
    chars += sizeOf(record);
  }
  return { slots, cursor: { epoch, position }, done: group.done && position === group.ended.length };
}

/** The epoch of cursors that count indexes: no instance of the object has it. */
const STORED = -1;

/** The same for a group that is in rows only: in input order. Its cursor counts indexes, under an epoch of its own. */
function storedSlots(run: Groups, store: RunStore, seq: number, from: number): EndedReply | null {
  const found = store.groups.get(seq);
  if (found === null) return null;
  const slots = resultsFrom(run, store, seq, from);
  // A graph has indexes without a slot.
  const position = slots.length === 0 ? found.stored.header.count : (slots.at(-1)?.index ?? from) + 1;
  return { slots, cursor: { epoch: STORED, position }, done: position >= found.stored.header.count };
}

/** Whether the slot of an index does not exist, as slots of a graph may turn out not to. */
export function absentIn(live: Group | undefined, result: GroupResult | null): (index: number) => boolean {
  if (live !== undefined) return (index) => live.graph?.frontier.isAbsent(index) === true;
  const ranges = result?.graph?.absent ?? [];
  return (index) => ranges.some(([first, end]) => first <= index && index < end);
}

/** The slots of a group from an index on; `drained`: how it has ended, if it was stopped. */
type SlotRange = { seq: number; fromIndex: number; count: number; drained: GroupResult["drained"] };

/** Every slot from an index on. A slot without a row ended as its group did. */
export function* withGaps(
  store: Pick<RunStore, "slots">,
  { seq, fromIndex, count, drained }: SlotRange,
): Generator<SlotRecord> {
  let next = fromIndex;
  for (const record of store.slots.from(seq, fromIndex)) {
    for (; next < indexOf(record.id); next++) yield endedRecord(null, slotIdOf(seq, next), drained);
    yield endedRecord(record, record.id, drained);
    next += 1;
  }
  for (; next < count; next++) yield endedRecord(null, slotIdOf(seq, next), drained);
}

/** A slot that has ended, from its row; without a row of its end it ended as its group did. */
export function endedRecord(record: SlotRecord | null, slotId: number, drained: GroupResult["drained"]): SlotRecord {
  if (record !== null && isFinalState(record.state)) return record;
  const base = record ?? freshRecord(slotId);
  return drained === null ? base : { ...withoutAnswer(base), state: drained.state, reason: drained.reason };
}

/** A slot as its readers see it. */
export function viewOf(record: SlotRecord, nameOf: (index: number) => string | null): SlotView {
  const { notBeforeMs, id, position, replay, ...view } = isFinalState(record.state) ? record : withoutAnswer(record);
  void notBeforeMs;
  void position;
  const index = indexOf(id);
  const replayed = replay?.of === undefined ? {} : { replayed: true as const };
  const shown = { ...view, index, id: nameOf(index), ...replayed };
  return view.course === undefined ? shown : { ...shown, course: shownCourse(view.course) };
}

function sizeOf(record: SlotRecord): number {
  return answerChars(record) + 200;
}
