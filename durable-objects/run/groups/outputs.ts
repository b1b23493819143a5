/** The outputs of slots, as their dependents read them: from the rows, and from what the present turn will write. */
import type { SlotRecord } from "../../../src/engine/record.ts";
import { groupSeqOf, indexOf, type SlotState } from "../../../src/engine/slot.ts";
import type { EngineState } from "../../../src/engine/state.ts";
import type { SlotRows } from "../store/slots.ts";

/**
 * The texts of completed slots from `firstId` on; null for a slot that has not completed. No dependent is given to an
 * executor before the turn is stored, so what is not written yet may be read.
 */
export function outputsFrom(
  rows: Pick<SlotRows, "from" | "one">,
  engine: Pick<EngineState, "unwrittenSlot"> | null,
  { firstId, count }: { firstId: number; count: number },
): (string | null)[] {
  const outputs: (string | null)[] = Array.from({ length: count }, () => null);
  for (const record of storedFrom(rows, firstId, count)) outputs[record.id - firstId] = outputOf(record);
  for (let offset = 0; offset < count; offset++) {
    const unwritten = engine?.unwrittenSlot(firstId + offset);
    if (unwritten !== undefined) outputs[offset] = outputOf(unwritten);
  }
  return outputs;
}

function* storedFrom(rows: Pick<SlotRows, "from" | "one">, firstId: number, count: number): Generator<SlotRecord> {
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

function outputOf({ state, text }: { state: SlotState; text: string | null }): string | null {
  return state === "completed" ? (text ?? "") : null;
}
