/** Which runs a list has. */
import type { RunListQuery } from "../../contract/runs.ts";
import { LIST_OPENING_MS } from "../../limits.ts";
import type { ListedRun } from "../../objects/methods/directory-api.ts";
import type { StoredDocument } from "../../objects/methods/runs.ts";

/** What of a run the filters look at. */
export type Filtered = Pick<StoredDocument, "id" | "status" | "name" | "created_at"> & {
  budget: { usd: { spent: number } };
  metrics: { failures?: Record<string, number> | undefined };
};

export type Filter = Omit<RunListQuery, "view">;

/** Whether a run was opened so long ago that it is not being opened any more. */
export function isOld({ openedAt }: ListedRun): boolean {
  return openedAt / 1_000 < Date.now() - LIST_OPENING_MS;
}

export function hasFilter({ limit: _limit, cursor: _cursor, ...filters }: Filter): boolean {
  return Object.keys(filters).length > 0;
}

/** Those behind it are older still. */
export function isTooOld({ created_at }: Filtered, { opened_after }: Filter): boolean {
  return opened_after !== undefined && Date.parse(created_at) <= Date.parse(opened_after);
}

export function fits(run: Filtered, query: Filter): boolean {
  const { status, name, opened_before, spent_usd_min = 0, spent_usd_max = Infinity } = query;
  const { spent } = run.budget.usd;
  if (status !== undefined && run.status !== status) return false;
  if (name !== undefined && run.name?.toLowerCase().includes(name.toLowerCase()) !== true) return false;
  if (opened_before !== undefined && Date.parse(run.created_at) >= Date.parse(opened_before)) return false;
  return spent >= spent_usd_min && spent <= spent_usd_max;
}
