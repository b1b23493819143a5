/**
 * What takes long of opening a group: its facts are read, and its floor and its quote are counted. Of a large one it is done in slices,
 * before the turn that opens it: one turn of so many calls would hold all other requests of the isolate.
 */
import type { HeldQuote } from "../../../src/run/group/group.ts";
import type { SlotFloors } from "../../../src/run/money/feasible.ts";
import type { CallPage, ReadPage } from "../../../src/run/queue/call-page.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import type { OpenGroupRequest } from "../../../src/objects/methods/groups.ts";
import type { Sliced } from "../../../src/text/bytes/slices.ts";
import { heldQuoteOf, type QuotingRun } from "./confirm.ts";
import { Floors, hasFloor } from "./floors.ts";
import { readingPages } from "./read-pages.ts";

/** `staged`: the group whose pages were stored before, and are read with the last ones; null = there are none. */
export type Prepared = {
  staged: number | null;
  pages: readonly ReadPage[];
  floors: readonly SlotFloors[];
  held: HeldQuote | null;
};

type Asked = { request: OpenGroupRequest; graph: CompiledGraph | null; isService: boolean };

/**
 * Reads the pages of a group that is to open, in order: those that were stored before, and the last ones.
 * @param run As it is now: what changes until the turn is seen there, but for prices.
 */
export function* preparing(
  run: QuotingRun & { openings: { find(openKey: string): number | null } },
  store: { readonly groups: { pageFacts(seq: number): Iterable<Omit<CallPage, "calls">> } },
  { request, graph, isService }: Asked,
  last: readonly CallPage[],
  nowMs: number,
): Sliced<Prepared> {
  const staged = run.openings.find(request.openKey);
  // All texts at once: rows are not read on while others are written.
  const texts = [...(staged === null ? [] : store.groups.pageFacts(staged)), ...last];
  const floors = hasFloor(run, { request, graph }) ? new Floors(run) : null;
  const pages = yield* readingPages(texts, request.models, (facts) => floors?.add(facts));
  const held = isService ? null : yield* heldQuoteOf(run, { request, graph, pages }, nowMs);
  return { staged, pages, floors: floors?.counted ?? [], held };
}
