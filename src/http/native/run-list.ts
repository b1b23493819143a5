/** `GET /runs`: root runs, newest first, all of them or those that fit a filter; and the child runs of a run. */
import type { Context } from "hono";
import { refuseViewers } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import { parseChildListQuery, parseRunListQuery, type ListedSummary, type UnreadRun } from "../../contract/runs.ts";
import type { SearchedRuns } from "../../contract/search.ts";
import { Refusal } from "../../errors.ts";
import { LIST_PAGE_DEFAULT, LIST_PAGE_MAX, LIST_RUNS_VISITED_MAX } from "../../limits.ts";
import type { ListedRun } from "../../objects/methods/directory-api.ts";
import type { ListedChild, StoredDocument } from "../../objects/methods/runs.ts";
import { readRow, UNREAD_MESSAGES, type RowDeps, type UnreadCause } from "../../objects/clients/run-rows.ts";
import {
  cursorOf,
  firstPlaceOf,
  forgetRuns,
  parseCursor,
  runsBefore,
  summariseFirst,
} from "../../objects/clients/directory.ts";
import { summaryOf } from "../../objects/clients/run-summary.ts";
import type { Handlers } from "../handler.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import { callerOf, documentOf, lookAt, shown } from "./runs.ts";
import { fits, hasFilter, isOld, isTooOld, type Filter, type Filtered } from "./run-filter.ts";
import { searchedPage, type Row } from "./run-search.ts";
import { shownSummary } from "./run-summary.ts";

export const runListHandlers = {
  "GET /runs": async (c) => {
    const query = parseRunListQuery(c.req.query());
    if (!query.ok) throw new Refusal(query.reason);
    const { view, ...filter } = query.value;
    if (filter.search !== undefined) refuseViewers(c);
    const page = view === "summary" ? pageFor(c, filter, summaries(c)) : pageFor(c, filter, documents(c));
    const { data, cursor, unread, missingParts, search } = await page;
    const deleted = unread.flatMap(({ id, code, created_at }) =>
      code === "deleted" ? [{ id, openedAt: placeFrom(created_at) }] : [],
    );
    if (deleted.length > 0) c.executionCtx.waitUntil(forgetRuns(c.env, deleted));
    const more = { has_more: cursor !== null, next_cursor: cursor };
    const searched = search === undefined ? {} : { search };
    return c.json({ object: "list", data, ...more, unread, missing_parts: missingParts, ...searched });
  },
  "GET /runs/:id/children": async (c) => {
    const query = parseChildListQuery(c.req.query());
    if (!query.ok) throw new Refusal(query.reason);
    const { id } = await documentOf(c, c.req.param("id"));
    const { limit, before } = query.value;
    const run = new RunCaller(c.env, id);
    // One more than is shown, to know whether there is more.
    const listed = await run.callWithRetry<ListedChild[]>((stub) => stub.childList(before, limit + 1));
    const page = listed.slice(0, limit);
    const rows = await rowsOf(c, page, callerOf(c));
    const data = rows.flatMap((row) => ("document" in row ? [shown(c, row.document)] : []));
    // A child that was deleted, or is just being opened, is not worth a word: its parent's figures have what it spent.
    const unread = rows.flatMap((row) => ("document" in row || row.code === "deleted" ? [] : [row]));
    const cursor = listed.length > limit ? String(page.at(-1)?.seq ?? 0) : null;
    return c.json({ object: "list", data, has_more: cursor !== null, next_cursor: cursor, unread });
  },
} satisfies Partial<Handlers>;

/** How a list reads the runs of a page, and shows one. */
type View<T extends Filtered> = {
  withSummaries: boolean;
  rows: (runs: readonly ListedRun[]) => Promise<Row<T>[]>;
  shown: (document: T) => object;
};

function documents(c: Context<AppEnv>): View<StoredDocument> {
  return { withSummaries: false, rows: (runs) => rowsOf(c, runs, null), shown: (document) => shown(c, document) };
}

/** What the list itself knows. Only a run without a summary there is read: the list then keeps what was read. */
function summaries(c: Context<AppEnv>): View<ListedSummary> {
  const nowMs = Date.now();
  const summaryAt = async (run: ListedRun): Promise<Row<ListedSummary>> => {
    const known = run.summary === undefined ? null : shownSummary(run.summary, nowMs);
    if (known !== null) return { document: known };
    const [row] = await rowsOf(c, [run], null);
    if (row === undefined) throw new Error(`no row for ${run.id}`);
    if (!("document" in row)) return row;
    const summary = summaryOf(row.document);
    c.executionCtx.waitUntil(summariseFirst(c.env, run, { text: JSON.stringify(summary), atMs: nowMs }));
    return { document: { ...summary, updated_at: new Date(nowMs).toISOString() } };
  };
  return { withSummaries: true, rows: (runs) => Promise.all(runs.map(summaryAt)), shown: (summary) => summary };
}

/** The rows of these runs, in their order, each read by itself. */
function rowsOf(c: Context<AppEnv>, runs: readonly { id: string; openedAt?: number }[], caller: string | null) {
  return Promise.all(
    runs.map(async ({ id, openedAt }): Promise<Row<StoredDocument>> => {
      const row = await readRow(id, () => lookAt(c, id, caller), ROW_DEPS);
      return "document" in row ? row : unreadOf({ id, openedAt }, row.cause);
    }),
  );
}

const ROW_DEPS: RowDeps = {
  wait: (ms, signal) => scheduler.wait(ms, { signal }),
  log: (message, error) => console.error(message, error),
};

function unreadOf({ id, openedAt }: { id: string; openedAt?: number | undefined }, code: UnreadCause): UnreadRun {
  const message = UNREAD_MESSAGES[code];
  return { id, created_at: openingTime(openedAt), code, message, retryable: code === "overloaded" };
}

/** The first place in the list of a run that was opened then. */
function placeFrom(createdAt: string | null): number | undefined {
  return createdAt === null ? undefined : firstPlaceOf({ createdAtMs: Date.parse(createdAt) });
}

/** null = unknown: the place of a run may be a count instead of a time. */
function openingTime(openedAt: number | undefined): string | null {
  const ms = openedAt === undefined ? 0 : Math.floor(openedAt / 1_000);
  return ms < FIRST_TIMES_MS ? null : new Date(ms).toISOString();
}

const FIRST_TIMES_MS = Date.UTC(2020, 0);

/** What the first run of the page is behind; null = nothing: the page begins with the newest. */
function firstOf({ cursor, opened_before }: Filter): ListedRun | null {
  if (cursor === undefined) {
    return opened_before === undefined ? null : { openedAt: Date.parse(opened_before) * 1_000, id: "" };
  }
  const before = parseCursor(cursor);
  if (before !== null) return before;
  // An empty page would look like the end of the list.
  const message = "cursor: expected the next_cursor of an earlier page";
  throw new Refusal({ reason: "invalid_request", message, param: "cursor" });
}

/** A page of the list, or of a search in its runs. */
function pageFor<T extends Filtered>(c: Context<AppEnv>, query: Filter, view: View<T>): Promise<Page> {
  const first = firstOf(query);
  const { search } = query;
  if (search === undefined) return pageOf(c, query, first, view);
  return searchedPage(c, { ...query, search }, first, {
    ...view,
    readRow: (id, look) => readRow(id, look, ROW_DEPS),
    unreadOf: (run, { cause }) => unreadOf(run, cause),
  });
}

type Page = {
  data: unknown[];
  cursor: string | null;
  unread: UnreadRun[];
  missingParts: number;
  search?: SearchedRuns;
};

/** A page may have fewer runs than its limit, and none, although there are more: a filter visits so many, and no more. */
async function pageOf<T extends Filtered>(
  c: Context<AppEnv>,
  query: Filter,
  first: ListedRun | null,
  view: View<T>,
): Promise<Page> {
  const { limit = LIST_PAGE_DEFAULT } = query;
  const size = hasFilter(query) ? LIST_PAGE_MAX : limit;
  const data: unknown[] = [];
  const unread: UnreadRun[] = [];
  let missingParts = 0;
  const page = (cursor: string | null): Page => ({ data, cursor, unread, missingParts });
  let before = first;
  for (let visited = 0; visited < LIST_RUNS_VISITED_MAX; visited += size) {
    // One more than is visited, to know whether there is more.
    const listed = await runsBefore(c.env, before, size + 1, view.withSummaries);
    const { runs } = listed;
    missingParts = Math.max(missingParts, listed.missingParts);
    const visitedNow = runs.slice(0, size);
    const rows = await view.rows(visitedNow);
    for (const [index, row] of rows.entries()) {
      const run = visitedNow[index];
      if (run === undefined) break;
      before = run;
      if (!("document" in row)) {
        // Whether it fits a filter is not known: who looks for it must find it.
        if (row.code !== "deleted" || isOld(run)) unread.push(row);
        continue;
      }
      const { document } = row;
      if (isTooOld(document, query)) return page(null);
      if (!fits(document, query)) continue;
      data.push(view.shown(document));
      if (data.length < limit) continue;
      return page(index + 1 < runs.length ? cursorOf(run) : null);
    }
    if (runs.length <= size) return page(null);
    // Without a filter, runs that were deleted meanwhile leave a page short.
    if (!hasFilter(query)) break;
  }
  return page(before === null ? null : cursorOf(before));
}
