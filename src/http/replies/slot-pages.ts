/** All slots of a group in input order, page by page, some pages ahead. */
import { RESULT_PAGES_AHEAD } from "../../limits.ts";
import type { GroupView, SlotView } from "../../objects/methods/groups.ts";
import { readAhead } from "./read-ahead.ts";

/** Where slots are read: some of them in input order from an index on; empty after the last. */
export type SlotSource = { count: number; slotsFrom: (index: number) => Promise<SlotView[]> };

/** The index after the last slot of a group. A graph has indexes without a slot. */
export function endIndexOf({ count, graph }: Pick<GroupView, "count" | "graph">): number {
  return graph?.slots ?? count;
}

export function slotPages({ count, slotsFrom }: SlotSource): AsyncGenerator<SlotView[]> {
  return readAhead(storedPages({ count, slotsFrom }), RESULT_PAGES_AHEAD);
}

async function* storedPages({ count, slotsFrom }: SlotSource): AsyncGenerator<SlotView[]> {
  for (let from = 0; from < count;) {
    const slots = await slotsFrom(from);
    const last = slots.at(-1);
    if (last === undefined) return;
    from = last.index + 1;
    yield slots;
  }
}
