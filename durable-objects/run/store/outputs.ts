/** The outputs of slots, as their dependents read them: from the rows, and from what the present turn will write. */
import type { SlotRecord } from "../../../src/run/group/record.ts";
import { groupSeqOf, indexOf, isFinalState, type SlotState } from "../../../src/run/queue/slot.ts";
import type { EngineState } from "../../../src/run/state.ts";
import type { SlotRows } from "./slots.ts";
import type { KeptOutputs } from "./kept-outputs.ts";

type Places = {
  rows: Pick<SlotRows, "from" | "one">;
  /** Null while the run is rebuilt: then all that has ended is in rows. */
  engine: Pick<EngineState, "unwrittenSlot"> | null;
  kept: Pick<KeptOutputs, "get" | "keep">;
};

/**
 * The texts of completed slots from `firstId` on; null for a slot that has not completed. No dependent is given to an
 * executor before the turn is stored, so what is not written yet may be read.
 */
export function outputsFrom(places: Places, { firstId, count }: { firstId: number; count: number }): (string | null)[] {
  const { rows, kept } = places;
  const outputs = Array.from({ length: count }, (_, offset) => atHand(places, firstId + offset));
  if (outputs.includes(undefined)) {
    for (const record of storedFrom(rows, firstId, count)) {
      const offset = record.id - firstId;
      if (outputs[offset] !== undefined) continue;
      outputs[offset] = outputOf(record);
      if (isFinalState(record.state)) kept.keep(record.id, outputOf(record));
    }
  }
  return outputs.map((output) => output ?? null);
}

/** The output of a slot without a read of its row; undefined if it takes one. */
function atHand({ engine, kept }: Places, slotId: number): string | null | undefined {
  const unwritten = engine?.unwrittenSlot(slotId);
  return unwritten === undefined ? kept.get(slotId) : outputOf(unwritten);
}

function* storedFrom(rows: Places["rows"], firstId: number, count: number): Generator<SlotRecord> {
  if (count === 1) {
    const record = rows.one(firstId);
    if (record !== null) yield record;
    return;
  }
  for (const record of rows.from(groupSeqOf(firstId), indexOf(firstId))) {
    if (record.id >= firstId + count) return;
    yield record;
  }
}

/** What dependents read of a slot. */
export function outputOf({ state, text }: { state: SlotState; text: string | null }): string | null {
  return state === "completed" ? (text ?? "") : null;
}
