/** The custom ids that a client gave to the calls of a group, and their labels; they are stored in the group's pages. */
import { readNames, type SlotName } from "../../../src/run/queue/call-page.ts";
import { slotIdOf } from "../../../src/run/queue/slot.ts";
import { NAMED_PAGES_KEPT } from "../../../src/limits.ts";
import type { GroupRows } from "../store/groups.ts";
import type { StoredGroup } from "../store/records.ts";

/** Returns a function that looks custom ids up. A group without custom ids and labels reads nothing. */
export function customIdsOf(rows: Pick<GroupRows, "factsOf">, stored: StoredGroup): (index: number) => string | null {
  const nameOf = namesOf(rows, stored);
  return (index) => nameOf(index)?.id ?? null;
}

/**
 * Returns a function that looks ids and labels up, a page at a time, and keeps the newest pages: calls end in another order than that of
 * their indexes.
 */
export function namesOf(
  rows: Pick<GroupRows, "factsOf">,
  { header, named }: StoredGroup,
): (index: number) => SlotName | null {
  let pages: NamedPage[] = [];
  return (index) => {
    if (!named) return null;
    let page = pages.find(({ firstIndex, names }) => index >= firstIndex && index < firstIndex + names.length);
    if (page === undefined) {
      const found = rows.factsOf(slotIdOf(header.seq, index));
      if (found === null) return null;
      page = { firstIndex: found.firstIndex, names: readNames(found.facts) };
      pages = [page, ...pages.slice(0, NAMED_PAGES_KEPT - 1)];
    }
    return page.names[index - page.firstIndex] ?? null;
  };
}

type NamedPage = { firstIndex: number; names: SlotName[] };

/** The custom ids of up to `limit` slots from an index on; empty = the client gave none; null = there is no such group. */
export function slotNames(
  { groups }: { groups: Pick<GroupRows, "factsOf" | "get"> },
  seq: number,
  from: number,
  limit: number,
): (string | null)[] | null {
  const stored = groups.get(seq)?.stored;
  if (stored === undefined) return null;
  if (!stored.named) return [];
  const nameOf = customIdsOf(groups, stored);
  const count = Math.max(0, Math.min(limit, stored.header.count - from));
  return Array.from({ length: count }, (_, at) => nameOf(from + at));
}
