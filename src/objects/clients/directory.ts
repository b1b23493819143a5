/** The list of root runs, over the objects that have a part of it each. */
import { directoriesOf, directoryOf, type Objects } from "../address.ts";
import type { ListedRun, StoredSummary } from "../methods/directory-api.ts";
import type { RunSettings } from "../methods/runs.ts";
import { LIST_PLACES_READ_MAX } from "../../limits.ts";
import { withRetry } from "./retry.ts";

/**
 * At most `limit` runs that were opened before `before`, newest first; from the newest on if it is null. Parts of the list that do
 * not answer are left out and counted; rejects if none does. `withSummaries`: with what the list knows of each.
 */
export async function runsBefore(
  objects: Objects,
  before: ListedRun | null,
  limit: number,
  withSummaries = false,
): Promise<{ runs: ListedRun[]; missingParts: number }> {
  const reads = await Promise.allSettled(
    directoriesOf(objects).map((directory) =>
      withRetry(async () => await directory().newest(before, limit, withSummaries), DELAYS),
    ),
  );
  const parts = reads.flatMap((read) => (read.status === "fulfilled" ? [read.value] : []));
  const failed = reads.find((read) => read.status === "rejected");
  if (parts.length === 0 && failed !== undefined) throw failed.reason;
  return { runs: mergeParts(parts, limit), missingParts: reads.length - parts.length };
}

/** How many runs were opened before one, `limit` in each part at most; null = a part does not say. */
export async function countBefore(objects: Objects, before: ListedRun, limit: number): Promise<number | null> {
  try {
    const counts = await Promise.all(
      directoriesOf(objects).map((directory) =>
        withRetry(async () => await directory().countBefore(before, limit), DELAYS),
      ),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  } catch {
    return null;
  }
}

/** Takes runs that have no data any more off the list, whichever part has them. */
export async function forgetRuns(
  objects: Objects,
  runs: readonly { id: string; openedAt?: number | undefined }[],
): Promise<void> {
  for (const { id, openedAt } of runs) {
    const parts = [directoryOf(objects, { id, holder: null }), directoryOf(objects, { id, holder: "directory" })];
    await Promise.allSettled(parts.map((part) => part.forget(id, openedAt)));
  }
}

/** Keeps a summary of a run that has none, in whichever part of the list has it. The next look does so again if it fails. */
export async function summariseFirst(
  objects: Objects,
  { id, openedAt }: ListedRun,
  summary: StoredSummary,
): Promise<void> {
  const parts = [directoryOf(objects, { id, holder: null }), directoryOf(objects, { id, holder: "directory" })];
  await Promise.allSettled(parts.map((part) => part.summarise(id, summary, true, openedAt)));
}

const DELAYS = { wait: (ms: number) => scheduler.wait(ms), random: Math.random };

/** The newest runs of what each part of the list has. */
export function mergeParts(parts: readonly (readonly ListedRun[])[], limit: number): ListedRun[] {
  return parts.flat().toSorted(newestFirst).slice(0, limit);
}

/** Runs opened at the same time have an order too: that of their ids. */
function newestFirst(a: ListedRun, b: ListedRun): number {
  if (a.openedAt !== b.openedAt) return b.openedAt - a.openedAt;
  return a.id < b.id ? 1 : -1;
}

const CURSOR = /^(\d{1,16})\.(run_[0-9A-Za-z_-]{1,128})$/;

/** The text that continues a page behind a run. */
export function cursorOf({ openedAt, id }: ListedRun): string {
  return `${openedAt}.${id}`;
}

/** The run that a cursor names, which may have been deleted since; null for a text that is no cursor. */
export function parseCursor(text: string): ListedRun | null {
  const [, openedAt = "", id = ""] = CURSOR.exec(text) ?? [];
  return id === "" || !Number.isSafeInteger(Number(openedAt)) ? null : { openedAt: Number(openedAt), id };
}

/** The first position that a run may have: `ListOrder` gives it this one, or a later one in the same moment. */
export function firstPlaceOf({ createdAtMs }: Pick<RunSettings, "createdAtMs">): number {
  return createdAtMs * 1_000;
}

/**
 * Positions of runs in the list: those of one isolate are in the order in which they were opened, also within one ms. A clock that was set
 * back begins anew: a run is looked for near the time of its opening.
 */
export class ListOrder {
  #last = 0;

  /** The position of a run that is opened now, in µs since 1970. */
  next(nowMs: number): number {
    const first = firstPlaceOf({ createdAtMs: nowMs });
    const isNear = this.#last < first + LIST_PLACES_READ_MAX / 2;
    this.#last = isNear ? Math.max(this.#last + 1, first) : first;
    return this.#last;
  }
}
