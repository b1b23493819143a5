/**
 * What the start page knows of all runs, and when it reads it again. While somebody looks, the newest entries of the list are read
 * about once a second, so that new runs appear by themselves; figures every few seconds. A hidden page reads nothing, and one that
 * nobody has touched for minutes reads seldom.
 */
import { signal } from "@preact/signals";
import { ApiError, type Api, type Json } from "./api.ts";
import { isRecord, textOf } from "./model/line.ts";
import { activityOf, newer, readPage, type ListedRun } from "./model/runs/listed.ts";

/** Between two reads of the newest entries, ms: a new run is shown within a second. */
const NEWEST_MS = 500;
/** Between two reads of the figures, ms. */
const FIGURES_MS = 5_000;
/** A page that nobody has touched for so long reads at a tenth of that pace, ms. */
const UNTOUCHED_MS = 5 * 60_000;
const UNTOUCHED_FACTOR = 10;

const NEWEST = 20;
const PAGE = 100;
/** Runs that are loaded without being asked for: enough to sort, little enough to load in a second or two. */
const LOADED_MAX = 1_000;
/** Runs whose documents are read, which wakes their objects: those that may have made calls that they have not reported. */
const DOCUMENTS_MAX = 40;
const YOUNG_MS = 15 * 60_000;

export type Runs = ReturnType<typeof watchRuns>;

export function watchRuns(api: Api, sinceMidnight: () => string) {
  const runs = signal<ReadonlyMap<string, ListedRun>>(new Map());
  const isLoaded = signal(false);
  const hasMore = signal(false);
  const overview = signal<Json | null>(null);
  const keys = signal<readonly Json[] | null>(null);
  const problem = signal<ApiError | null>(null);
  const stop = new AbortController();
  let touchedMs = performance.now();
  let cursor: string | null = null;

  const take = (listed: readonly ListedRun[]): void => {
    const known = runs.value;
    const changed = listed.filter((run) => newer(known.get(run.id), run) === run);
    if (changed.length === 0) return;
    runs.value = new Map([...known, ...changed.map((run) => [run.id, run] as const)]);
  };
  const read = async (query: string): Promise<Json> => {
    const page = await api.json(`/runs?${query}`, { signal: stop.signal });
    take(readPage(page, api.now()));
    return page;
  };
  const refused = (error: unknown): void => {
    if (!stop.signal.aborted) problem.value = error instanceof ApiError ? error : new ApiError(0, String(error));
  };
  /** The next page of older runs. */
  const more = async (): Promise<void> => {
    const after = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page = await read(`view=summary&limit=${PAGE}${after}`);
    cursor = page["has_more"] === true ? textOf(page, "next_cursor") : null;
    hasMore.value = cursor !== null;
    isLoaded.value = true;
  };
  const figures = async (): Promise<void> => {
    const documents = documentsOf(runs.value, api.now());
    await Promise.all([documents > 0 ? read(`limit=${documents}`) : null, sums(), gates()]);
  };
  const sums = async (): Promise<void> => {
    const path = `/overview?since=${encodeURIComponent(sinceMidnight())}`;
    overview.value = await api.json(path, { signal: stop.signal });
  };
  const gates = async (): Promise<void> => {
    const { data } = await api.json("/upstreams", { signal: stop.signal });
    keys.value = Array.isArray(data) ? data.filter(isRecord) : [];
  };
  const repeat = async (work: () => Promise<unknown>, everyMs: number): Promise<void> => {
    while (!stop.signal.aborted) {
      const isUntouched = performance.now() - touchedMs > UNTOUCHED_MS;
      await pause(everyMs * (isUntouched ? UNTOUCHED_FACTOR : 1), stop.signal);
      if (stop.signal.aborted || document.hidden) continue;
      await work()
        .then(() => void (problem.value = null))
        .catch(refused);
    }
  };
  const start = async (): Promise<void> => {
    try {
      await more();
      // A run whose document is read reports at once: then the sums have what it has not reported before.
      void figures().then(sums).catch(refused);
    } catch (error) {
      refused(error);
    }
    void repeat(() => read(`view=summary&limit=${NEWEST}`), NEWEST_MS);
    void repeat(figures, FIGURES_MS);
    try {
      while (hasMore.value && runs.value.size < LOADED_MAX) await more();
    } catch (error) {
      refused(error);
    }
  };
  const touched = (): void => void (touchedMs = performance.now());
  for (const event of ["pointermove", "keydown", "scroll", "visibilitychange"])
    addEventListener(event, touched, { passive: true, signal: stop.signal });
  return { runs, isLoaded, hasMore, overview, keys, problem, start, more, read, stop: () => stop.abort() };
}

/** How many of the newest runs to read as documents: up to the last that works, or that is so young that it may not have reported. */
export function documentsOf(runs: ReadonlyMap<string, ListedRun>, nowMs: number): number {
  const newest = [...runs.values()].toSorted((a, b) => b.createdMs - a.createdMs).slice(0, DOCUMENTS_MAX);
  return newest.findLastIndex((run) => activityOf(run) === "working" || nowMs - run.createdMs < YOUNG_MS) + 1;
}

function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const due = setTimeout(resolve, delayMs);
    signal.addEventListener("abort", () => {
      clearTimeout(due);
      resolve();
    });
  });
}
