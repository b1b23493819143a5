/** What readers of groups get: from memory while a group is followed, from its rows at any time. */
import { freshRecord, type SlotRecord } from "../../src/engine/record.ts";
import { hasEnded, indexOf, slotIdOf } from "../../src/engine/slot.ts";
import { RESULTS_REPLY_BYTES_MAX } from "../../src/limits.ts";
import type { RunCore } from "./core.ts";
import { namesOf } from "./names.ts";
import type { EndedReply, GroupView, SlotView } from "./rpc.ts";
import type { RunStore } from "./store.ts";
import type { GroupResult } from "./stored.ts";

/** A group's state with what it has used so far; null for no such group. */
export function groupView(core: RunCore, store: RunStore, seq: number, nowMs: number): GroupView | null {
  const found = store.group(seq);
  if (found === null || !found.stored.sealed) return null;
  const { header } = found.stored;
  const live = core.state.groups.get(seq);
  const metrics = live?.metrics(nowMs) ?? found.result?.metrics;
  const status = live?.status ?? found.result?.status;
  if (metrics === undefined || status === undefined) return null;
  const { id, count, openedAtMs } = header;
  const counts = live?.counts ?? found.result?.counts;
  if (counts === undefined) return null;
  const endedAtMs = live === undefined ? (found.result?.endedAtMs ?? null) : live.endedAtMs;
  const parallelGroupId = live === undefined ? (found.result?.parallelGroupId ?? null) : live.parallelGroupId;
  const effectiveParallel = Math.min(header.concurrency, core.state.width);
  const { errorStyle } = found.stored;
  const { remainingNanoUsd } = core;
  const times = { openedAtMs, endedAtMs, remainingNanoUsd };
  const usage = store.slots.usageOf(seq);
  return { id, status, count, counts, ...times, errorStyle, parallelGroupId, effectiveParallel, metrics, usage };
}

/** Slots in input order from an index on, up to the size of one reply; at least one, if there is one. */
export function resultsFrom(core: RunCore, store: RunStore, seq: number, fromIndex: number): SlotView[] {
  const found = store.group(seq);
  if (found === null || !found.stored.sealed) return [];
  const views: SlotView[] = [];
  const nameOf = namesOf(store, found.stored);
  const live = core.state.groups.get(seq);
  let chars = 0;
  for (const record of withGaps(store, seq, fromIndex, found.stored.header.count, found.result)) {
    const view = viewOf(record, nameOf);
    // A slot that runs has no row that says so.
    if (live?.stateOf(view.index) === "running") view.state = "running";
    views.push(view);
    chars += sizeOf(record);
    if (chars >= RESULTS_REPLY_BYTES_MAX) break;
  }
  return views;
}

/** Slots that ended after `from` in the order of their end. Only a group in memory knows that order. */
export function endedSlots(
  core: RunCore,
  store: RunStore,
  { seq, from, epoch }: { seq: number; from: number; epoch: number },
): EndedReply | null {
  const group = core.state.groups.get(seq);
  const stored = group === undefined ? undefined : core.groupStored(seq);
  if (group === undefined || stored === undefined) return storedSlots(core, store, seq, from);
  const slots: SlotView[] = [];
  const nameOf = namesOf(store, stored);
  let position = from;
  for (let chars = 0; position < group.ended.length && chars < RESULTS_REPLY_BYTES_MAX; position++) {
    const index = group.ended[position];
    if (index === undefined) break;
    const record = endedRecord(store.slots.one(slotIdOf(seq, index)), slotIdOf(seq, index), group.drained);
    slots.push(viewOf(record, nameOf));
    chars += sizeOf(record);
  }
  return { slots, cursor: { epoch, position }, done: group.done && position === group.ended.length };
}

/** The epoch of cursors that count places: no instance has it. */
const STORED = -1;

/** The same for a group that only rows remember: by place. Its cursor counts places, under a name of its own. */
function storedSlots(core: RunCore, store: RunStore, seq: number, from: number): EndedReply | null {
  const found = store.group(seq);
  if (found === null) return null;
  const slots = resultsFrom(core, store, seq, from);
  const position = from + slots.length;
  return { slots, cursor: { epoch: STORED, position }, done: position >= found.stored.header.count };
}

/** Every slot from an index on; one without a row of its own ended as its group did. */
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

function endedRecord(record: SlotRecord | null, slotId: number, drained: GroupResult["drained"]): SlotRecord {
  if (record !== null && hasEnded(record.state)) return record;
  const base = record ?? freshRecord(slotId);
  return drained === null ? base : { ...base, state: drained.state, reason: drained.reason };
}

function viewOf(record: SlotRecord, nameOf: (index: number) => string | null): SlotView {
  const { notBeforeMs, id, ...view } = record;
  void notBeforeMs;
  const index = indexOf(id);
  return { ...view, index, id: nameOf(index) };
}

function sizeOf(record: SlotRecord): number {
  return (record.text?.length ?? 0) + 200;
}
