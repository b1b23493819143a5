/** What readers of groups are sent: from memory while the group is there, from its rows at any time. */
import { freshRecord, withoutAnswer, type SlotRecord } from "../../../src/engine/record.ts";
import { isFinalState, indexOf, slotIdOf } from "../../../src/engine/slot.ts";
import { RESULTS_REPLY_BYTES_MAX } from "../../../src/limits.ts";
import type { EndedReply, GroupView, SlotView } from "../../../src/run-api/groups.ts";
import type { RunState } from "../state.ts";
import { groupResult, type GroupResult } from "../store/records.ts";
import type { RunStore } from "../store/store.ts";
import { customIdsOf } from "./custom-ids.ts";

/** What readers need of the run. */
type Groups = Pick<RunState, "engine" | "storedGroup" | "remainingNanoUsd">;

/** A group's state with what it has used so far; null if there is no such group. */
export function groupView(run: Groups, store: RunStore, seq: number, nowMs: number): GroupView | null {
  const found = store.groups.get(seq);
  if (found === null || !found.stored.sealed) return null;
  const { header, errorStyle } = found.stored;
  const live = run.engine.groups.get(seq);
  const result = live === undefined ? found.result : groupResult(live, nowMs);
  if (result === null) return null;
  const { status, counts, metrics, endedAtMs, parallelGroupId } = result;
  return {
    id: header.id,
    status,
    count: header.count,
    counts,
    openedAtMs: header.openedAtMs,
    endedAtMs,
    errorStyle,
    parallelGroupId,
    effectiveParallel: Math.min(header.concurrency, run.engine.width),
    remainingNanoUsd: run.remainingNanoUsd,
    metrics,
    // The sum of a large group's rows takes long, and groups are looked at often.
    usage: result.usage ?? store.slots.usageOf(seq),
  };
}

/** Slots in input order from an index on, up to the size of one reply; at least one, if there is one. */
export function resultsFrom(run: Groups, store: RunStore, seq: number, fromIndex: number): SlotView[] {
  const found = store.groups.get(seq);
  if (found === null || !found.stored.sealed) return [];
  const views: SlotView[] = [];
  const nameOf = customIdsOf(store.groups, found.stored);
  const live = run.engine.groups.get(seq);
  let chars = 0;
  for (const record of withGaps(store, seq, fromIndex, found.stored.header.count, found.result)) {
    const view = viewOf(record, nameOf);
    // The row of a running slot is missing or old.
    if (live?.stateOf(view.index) === "running") view.state = "running";
    views.push(view);
    chars += sizeOf(record);
    if (chars >= RESULTS_REPLY_BYTES_MAX) break;
  }
  return views;
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
  const position = from + slots.length;
  return { slots, cursor: { epoch: STORED, position }, done: position >= found.stored.header.count };
}

/** Every slot from an index on. A slot without a row ended as its group did. */
function* withGaps(
  store: RunStore,
  seq: number,
  fromIndex: number,
  count: number,
  result: GroupResult | null,
): Generator<SlotRecord> {
  let next = fromIndex;
  const drained = result?.drained ?? null;
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
  const { notBeforeMs, id, position, ...view } = isFinalState(record.state) ? record : withoutAnswer(record);
  void notBeforeMs;
  void position;
  const index = indexOf(id);
  return { ...view, index, id: nameOf(index) };
}

function sizeOf(record: SlotRecord): number {
  return (record.text?.length ?? 0) + 200;
}
