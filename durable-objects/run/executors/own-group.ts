/** What the reply to the Worker of a group says of its group. */
import { workerOf } from "../../../src/engine/shard.ts";
import { isFinalState } from "../../../src/engine/slot.ts";
import type { EndedSlot, OwnGroup } from "../../../src/run-api/groups.ts";
import { groupView, viewOf } from "../groups/read.ts";
import type { RunState } from "../state.ts";
import type { RunStore } from "../store/store.ts";
import { missingLanes } from "./lanes.ts";

/** Its Worker knows the text of an answer that it has settled itself: the reply has the rest of the slot. */
export function ownGroupOf(run: RunState, store: RunStore, seq: number, nowMs: number): OwnGroup {
  const worker = workerOf(seq);
  const ended: EndedSlot[] = [];
  for (const [slotId, { answered }] of run.waitingExecutors.settledBy(worker)) {
    const record = run.slotsWritten.get(slotId);
    if (record === undefined || !isFinalState(record.state)) continue;
    const { id: _, ...slot } = viewOf(record, () => null);
    const { text, ...others } = slot;
    ended.push(answered && slot.state === "completed" ? others : { ...others, text });
  }
  return {
    ended,
    aborted: run.engine.takeAbortedOf(worker),
    // Sooner than by the alarm, which starts them if the Worker ends first.
    lanes: run.waitingExecutors.asksForLanes(worker) ? missingLanes(run) : [],
    view: run.openGroups.has(seq) ? null : groupView(run, store, seq, nowMs),
  };
}
