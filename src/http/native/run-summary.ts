/** A run's summary, as the list of runs shows it. */
import { runSummary, type ListedSummary, type RunSummary } from "../../contract/runs.ts";
import { tryParse } from "../../text/json/parse.ts";
import type { StoredSummary } from "../../objects/methods/directory-api.ts";

/**
 * A stored summary as clients see it at `nowMs`; null if this code cannot read it. A run past its expiry has expired, even if it
 * has not said so.
 */
export function shownSummary({ text, atMs }: StoredSummary, nowMs: number): ListedSummary | null {
  const read = runSummary().safeParse(tryParse(text));
  if (!read.success) return null;
  const summary = read.data;
  const isOver = nowMs >= Date.parse(summary.expires_at) && TAKES_CALLS.has(summary.status);
  const status: RunSummary["status"] = isOver ? "expired" : summary.status;
  return { ...summary, status, updated_at: new Date(atMs).toISOString() };
}

const TAKES_CALLS: ReadonlySet<RunSummary["status"]> = new Set(["active", "paused", "escalated"]);
