/** The client's own names of a group's calls, which stand in its pages. */
import { readNames } from "../../src/engine/page.ts";
import { slotIdOf } from "../../src/engine/slot.ts";
import type { RunStore } from "./store.ts";
import type { StoredGroup } from "./stored.ts";

/** Looks up names, a page at a time; a group whose calls have none costs nothing. */
export function namesOf(store: RunStore, { header, named }: StoredGroup): (index: number) => string | null {
  let page: { firstIndex: number; names: (string | null)[] } = { firstIndex: 0, names: [] };
  return (index) => {
    if (!named) return null;
    if (index < page.firstIndex || index >= page.firstIndex + page.names.length) {
      const found = store.factsOf(slotIdOf(header.seq, index));
      if (found === null) return null;
      page = { firstIndex: found.firstIndex, names: readNames(found.facts) };
    }
    return page.names[index - page.firstIndex] ?? null;
  };
}
