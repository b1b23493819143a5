/** The custom ids that a client gave to the calls of a group; they are stored in the group's pages. */
import { readCustomIds } from "../../../src/run/queue/call-page.ts";
import { slotIdOf } from "../../../src/run/queue/slot.ts";
import type { GroupRows } from "../store/groups.ts";
import type { StoredGroup } from "../store/records.ts";

/** Returns a function that looks custom ids up, a page at a time. A group without custom ids reads nothing. */
export function customIdsOf(
  rows: Pick<GroupRows, "factsOf">,
  { header, named }: StoredGroup,
): (index: number) => string | null {
  let page: { firstIndex: number; names: (string | null)[] } = { firstIndex: 0, names: [] };
  return (index) => {
    if (!named) return null;
    if (index < page.firstIndex || index >= page.firstIndex + page.names.length) {
      const found = rows.factsOf(slotIdOf(header.seq, index));
      if (found === null) return null;
      page = { firstIndex: found.firstIndex, names: readCustomIds(found.facts) };
    }
    return page.names[index - page.firstIndex] ?? null;
  };
}

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
