/** What the reply to the Worker of a group says of its group. */
import { answerChars, partsOf } from "../../../src/answer.ts";
import type { SlotRecord } from "../../../src/run/group/record.ts";
import { workerOf } from "../../../src/run/leases/shard.ts";
import { isFinalState, slotIdOf } from "../../../src/run/queue/slot.ts";
import { RESULTS_REPLY_BYTES_MAX } from "../../../src/limits.ts";
import type { EndedReply, EndedSlot, OwnGroup } from "../../../src/objects/methods/groups.ts";
import { endedRecord, groupView, viewOf } from "./read.ts";
import type { RunState } from "../state.ts";
import type { RunStore } from "../store/store.ts";
import { awaitsEnd, missingLanes } from "../executors/lanes.ts";
import type { SettledSlots } from "../memory/waiting.ts";

export function ownGroupOf(run: RunState, store: RunStore, seq: number, nowMs: number): OwnGroup {
  const worker = workerOf(seq);
  const settled = run.waitingExecutors.settledBy(worker);
  const after = run.waitingExecutors.knownTo(worker);
  const since = after === undefined ? null : endedSince(run, store, { seq, after, settled });
  // What it is shown at its socket begins there.
  if (since?.upTo !== undefined) run.workers.shown(seq, since.upTo.cursor);
  const lanes = run.waitingExecutors.asksForLanes(worker) ? missingLanes(run) : [];
  if (lanes.length > 0) run.laneStarts.started(nowMs);
  // A client that is shown slots as they end is not shown them late.
  const gathers = after === undefined && awaitsEnd(run, seq) ? { awaitsEnd: true as const } : {};
  return {
    ...(since ?? { ended: endedBy(run, settled) }),
    ...gathers,
    aborted: run.engine.givenUp.takeOfWorker(worker),
    // Sooner than by the alarm, which starts them if the Worker ends first.
    lanes,
    view: run.openGroups.has(seq) ? null : groupView(run, store, seq, nowMs),
  };
}

/** The slots that a claim has ended. */
function endedBy(run: Pick<RunState, "slotsWritten">, settled: SettledSlots): EndedSlot[] {
  const ended: EndedSlot[] = [];
  for (const slotId of settled.keys()) {
    const record = run.slotsWritten.get(slotId);
    if (record !== undefined && isFinalState(record.state)) ended.push(endedSlot(record, settled));
  }
  return ended;
}

/** The slots that have ended after a cursor, up to the size of one reply. */
function endedSince(
  { engine, epoch, slotsWritten }: Pick<RunState, "engine" | "epoch" | "slotsWritten">,
  store: RunStore,
  { seq, after, settled }: { seq: number; after: EndedReply["cursor"]; settled: SettledSlots },
): Pick<OwnGroup, "ended" | "upTo"> {
  const group = engine.groups.get(seq);
  const ended: EndedSlot[] = [];
  if (group === undefined || after.epoch !== epoch) return { ended };
  let { position } = after;
  for (let chars = 0; chars < RESULTS_REPLY_BYTES_MAX; position++) {
    const index = group.ended[position];
    if (index === undefined) break;
    const slotId = slotIdOf(seq, index);
    const record = endedRecord(slotsWritten.get(slotId) ?? store.slots.one(slotId), slotId, group.drained);
    const slot = endedSlot(record, settled);
    ended.push(slot);
    chars += answerChars(slot);
  }
  return { ended, upTo: { cursor: { epoch, position }, hasMore: position < group.ended.length } };
}

/** A slot without what its Worker has: the text and the parts of an answer that it has settled itself, and the client's id. */
function endedSlot(record: SlotRecord, settled: SettledSlots): EndedSlot {
  const { id: _, text, parts, ...slot } = viewOf(record, () => null);
  // The best of several samples need not be the last one, and the answer of a model that uses tools may have a transcript.
  const { samples, toolUse } = record.course ?? {};
  const isWhole = samples === undefined && toolUse === undefined;
  const hasText = settled.get(record.id)?.answered === true && isWhole;
  return hasText && slot.state === "completed" ? slot : { ...slot, text, ...partsOf({ parts }) };
}
