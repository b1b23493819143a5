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
