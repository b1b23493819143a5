/**
 * What takes long of opening a group: its facts are read, and its floor and its quote are counted. Of a large one it is done in slices,
 * before the turn that opens it: one turn of so many calls would hold all other requests of the isolate.
 */
import type { HeldQuote } from "../../../src/run/group/group.ts";
import type { SlotFloors } from "../../../src/run/money/feasible.ts";
import { isAlike } from "../../../src/run/queue/alike.ts";
import { readFacts, type CallPage, type ReadPage } from "../../../src/run/queue/call-page.ts";
import type { SlotFacts } from "../../../src/run/queue/slot.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import { SLICE_PIECE_CHARS } from "../../../src/limits.ts";
import type { OpenGroupRequest } from "../../../src/objects/methods/groups.ts";
import { SliceCount, type Sliced } from "../../../src/text/bytes/slices.ts";
import { heldQuoteOf, type QuotingRun } from "./confirm.ts";
import { Floors, hasFloor } from "./floors.ts";

/** `staged`: the group whose pages were stored before, and are read with the last ones; null = there are none. */
export type Prepared = {
  staged: number | null;
  pages: readonly ReadPage[];
  floors: readonly SlotFloors[];
  held: HeldQuote | null;
};

type Asked = { request: OpenGroupRequest; graph: CompiledGraph | null; isJudge: boolean };

/**
 * Reads the pages of a group that is to open, in order: those that were stored before, and the last ones.
 * @param run As it is now: what changes until the turn is seen there, but for prices.
 */
export function* preparing(
  run: QuotingRun & { openings: { find(openKey: string): number | null } },
  store: { readonly groups: { pageFacts(seq: number): Iterable<Omit<CallPage, "calls">> } },
  { request, graph, isJudge }: Asked,
  last: readonly CallPage[],
  nowMs: number,
): Sliced<Prepared> {
  const staged = run.openings.find(request.openKey);
  // All texts at once: rows are not read on while others are written.
  const texts = [...(staged === null ? [] : store.groups.pageFacts(staged)), ...last];
  const floors = hasFloor(run, { request, graph }) ? new Floors(run) : null;
  const slice = new SliceCount();
  const pages: ReadPage[] = [];
  let before: SlotFacts | null = null;
  for (const { firstIndex, facts } of texts) {
    const slots = readFacts(facts, request.models);
    for (const [at, slot] of slots.entries()) {
      // Alike calls are one object, as copies are: so many of them take no memory, and are queued at once.
      if (before !== null && isAlike(before, slot)) slots[at] = before;
      else before = slot;
      floors?.add(before);
    }
    pages.push({ firstIndex, slots });
    if (slice.add(facts.length + slots.length * SLICE_PIECE_CHARS)) yield;
  }
  const held = isJudge ? null : yield* heldQuoteOf(run, { request, graph, pages }, nowMs);
  return { staged, pages, floors: floors?.counted ?? [], held };
}
