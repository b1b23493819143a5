/** Reads the facts of a group's pages in slices: a page has the calls of 32 slots, or one call of tens of thousands. */
import { isAlike } from "../../../src/run/queue/alike.ts";
import { readFacts, type CallPage, type ReadPage } from "../../../src/run/queue/call-page.ts";
import type { SlotFacts } from "../../../src/run/queue/slot.ts";
import { SLICE_PIECE_CHARS } from "../../../src/limits.ts";
import { SliceCount, type Sliced } from "../../../src/text/bytes/slices.ts";

/**
 * The facts of pages. Alike calls in a row are one object, as copies are: so many of them take no memory, and are queued at once.
 * @param look Sees the facts of each slot, in order.
 */
export function* readingPages(
  pages: readonly Omit<CallPage, "calls">[],
  models: readonly (string | null)[],
  look: (facts: SlotFacts) => void,
): Sliced<ReadPage[]> {
  const slice = new SliceCount();
  const read: ReadPage[] = [];
  let before: SlotFacts | null = null;
  for (const { firstIndex, facts } of pages) {
    const slots = readFacts(facts, models);
    for (const [at, slot] of slots.entries()) {
      if (before !== null && isAlike(before, slot)) slots[at] = before;
      else before = slot;
      look(before);
    }
    read.push({ firstIndex, slots });
    if (slice.add(facts.length + slots.length * SLICE_PIECE_CHARS)) yield;
  }
  return read;
}
