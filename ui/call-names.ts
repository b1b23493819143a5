/** Reads the ids that a client gave to the calls of a batch: the log has only their indexes. */
import type { Api } from "./api.ts";
import { numberOf } from "./model/line.ts";
import type { RunState } from "./model/run-state.ts";

/** Groups whose names are read: of a run with more, the first. */
const GROUPS_MAX = 50;

export function callNames(api: Api, runId: string, state: RunState, named: () => void) {
  const asked = new Set<string>();
  const read = async (group: string): Promise<void> => {
    const names: (string | null)[] = [];
    for (let hasMore = true; hasMore;) {
      const page = await api.json(`/groups/${encodeURIComponent(group)}/names?from=${names.length}`, { runId });
      const data: unknown[] = Array.isArray(page["data"]) ? page["data"] : [];
      names.push(...data.map((name) => (typeof name === "string" ? name : null)));
      hasMore = page["has_more"] === true && data.length > 0 && numberOf(page, "from") + data.length === names.length;
    }
    if (names.every((name) => name === null)) return;
    state.nameTasks(group, (index) => names[index] ?? null);
    named();
  };
  /** Reads the names of groups that have appeared. A graph's calls have the names of its tasks. */
  return function look(): void {
    for (const { id, tasks, calls } of state.groups.values()) {
      const isBatch = tasks === null && calls.some(({ index }) => index !== null);
      if (!isBatch || asked.has(id) || asked.size >= GROUPS_MAX) continue;
      asked.add(id);
      // Without them, calls are named by their index.
      read(id).catch(() => undefined);
    }
  };
}
