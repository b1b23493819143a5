/** `GET /runs?search=`: runs with a text in their name, id, prompts, answers or errors; and `GET /runs/:id/search` in one run. */
import type { Context } from "hono";
import type { AppEnv } from "../context.ts";
import type { UnreadRun } from "../../contract/runs.ts";
import {
  parseRunSearchQuery,
  type RunMatch,
  type RunSearchDocument,
  type SearchedRuns,
} from "../../contract/search.ts";
import { Refusal } from "../../errors.ts";
import {
  LIST_PAGE_DEFAULT,
  SEARCH_COUNTED_MAX,
  SEARCH_MATCHES_MAX,
  SEARCH_PAGE_CHARS_MAX,
  SEARCH_RUNS_AT_ONCE,
  SEARCH_RUNS_MAX,
} from "../../limits.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import { countBefore, cursorOf, runsBefore } from "../../objects/clients/directory.ts";
import type { RunRow } from "../../objects/clients/run-rows.ts";
import type { ListedRun } from "../../objects/methods/directory-api.ts";
import type { SearchReply } from "../../objects/methods/search.ts";
import { Needle } from "../../text/needle.ts";
import type { Handlers } from "../handler.ts";
import { fits, isOld, isTooOld, type Filter, type Filtered } from "./run-filter.ts";
import { callerOf, notFound } from "./runs.ts";

export const runSearchHandlers = {
  "GET /runs/:id/search": async (c) => {
    const query = parseRunSearchQuery(c.req.query());
    if (!query.ok) throw new Refusal(query.reason);
    const id = c.req.param("id");
    const { search: text, cursor: from = null } = query.value;
    const request = { text, from, matchesMax: SEARCH_MATCHES_MAX };
    const run = new RunCaller(c.env, id);
    const found = await run.callWithRetry<SearchReply | null>((stub) => stub.searchTexts(request, callerOf(c)));
    if (found === null) throw notFound(id);
    const data = found.matches.map(({ callId: call_id, ...match }) => ({ ...match, call_id }));
    const more = { has_more: found.next !== null, next_cursor: found.next };
    const page: RunSearchDocument = {
      object: "list",
      data,
      calls: found.calls,
      unread_prompts: found.unread,
      ...more,
    };
    return c.json(page);
  },
} satisfies Partial<Handlers>;

/** What a page of a search has: as a page of the list, with why each run is in it and how far the search has come. */
export type SearchedPage = {
  data: unknown[];
  cursor: string | null;
  unread: UnreadRun[];
  missingParts: number;
  search: SearchedRuns;
};

/** A run of the list, or why it has none. */
export type Row<T> = { document: T } | UnreadRun;

export type SearchDeps<T> = {
  /** Reads these runs, in their order. */
  rows: (runs: readonly ListedRun[]) => Promise<Row<T>[]>;
  withSummaries: boolean;
  shown: (document: T) => object;
  /** Reads one object, whatever becomes of it. */
  readRow: <R>(id: string, look: () => Promise<R | null>) => Promise<RunRow<R>>;
  unreadOf: (run: ListedRun, row: Exclude<RunRow<never>, { document: never }>) => UnreadRun;
};

type Looked<T> = { row: Row<T>; match: RunMatch | null; found: SearchReply | null; failed: UnreadRun | null };

/** Searches runs that fit the filters, newest first, until it has a page of matches or has looked at as many as one request may. */
export async function searchedPage<T extends Filtered>(
  c: Context<AppEnv>,
  query: Filter & { search: string },
  first: ListedRun | null,
  deps: SearchDeps<T>,
): Promise<SearchedPage> {
  const { limit = LIST_PAGE_DEFAULT } = query;
  const needle = new Needle(query.search);
  const page: SearchedPage = {
    data: [],
    cursor: null,
    unread: [],
    missingParts: 0,
    search: { runs: 0, calls: 0, older: 0, in_part: [], unread_prompts: 0 },
  };
  const { search } = page;
  let before = first;
  let chars = 0;
  while (search.runs < SEARCH_RUNS_MAX && chars < SEARCH_PAGE_CHARS_MAX) {
    const listed = await runsBefore(c.env, before, SEARCH_RUNS_AT_ONCE + 1, deps.withSummaries);
    page.missingParts = Math.max(page.missingParts, listed.missingParts);
    const runs = listed.runs.slice(0, SEARCH_RUNS_AT_ONCE);
    const rows = await deps.rows(runs);
    const looked = await Promise.all(rows.map((row, at) => lookIn(c, { row, run: runs[at] }, { query, needle, deps })));
    for (const [at, each] of looked.entries()) {
      const run = runs[at];
      if (run === undefined) break;
      if ("document" in each.row && isTooOld(each.row.document, query)) return page;
      before = run;
      search.runs += 1;
      chars += each.found?.chars ?? 0;
      take(page, run, each, deps);
      if (page.data.length < limit) continue;
      return at + 1 < listed.runs.length ? await continued(c, page, run) : page;
    }
    if (listed.runs.length <= SEARCH_RUNS_AT_ONCE) return page;
  }
  return before === null ? page : await continued(c, page, before);
}

/** A page behind whose last run there are more. */
async function continued(c: Context<AppEnv>, page: SearchedPage, last: ListedRun): Promise<SearchedPage> {
  const older = await countBefore(c.env, last, SEARCH_COUNTED_MAX);
  return { ...page, cursor: cursorOf(last), search: { ...page.search, older } };
}

function take<T>(page: SearchedPage, run: ListedRun, looked: Looked<T>, { shown }: SearchDeps<T>): void {
  const { row, match, found, failed } = looked;
  const { search } = page;
  search.calls += found?.calls ?? 0;
  search.unread_prompts += found?.unread ?? 0;
  const unread = "document" in row ? failed : row;
  // Whether it has the text is not known: who looks for it must find it.
  if (unread !== null && (unread.code !== "deleted" || isOld(run))) page.unread.push(unread);
  if (!("document" in row)) return;
  if (match !== null) page.data.push({ ...shown(row.document), match });
  else if (found !== null && found.next !== null) search.in_part.push(run.id);
}

type Wanted<T> = { query: Filter; needle: Needle; deps: SearchDeps<T> };

/** Looks in what the list knows of a run, and then in its object. */
async function lookIn<T extends Filtered>(
  c: Context<AppEnv>,
  { row, run }: { row: Row<T>; run: ListedRun | undefined },
  { query, needle, deps }: Wanted<T>,
): Promise<Looked<T>> {
  const nothing = { row, match: null, found: null, failed: null };
  if (run === undefined || !("document" in row) || !fits(row.document, query)) return nothing;
  const known = matchIn(row.document, needle);
  if (known !== null) return { ...nothing, match: known };
  const request = { text: query.search ?? "", from: null, matchesMax: 1 };
  const read = await deps.readRow(run.id, () =>
    new RunCaller(c.env, run.id).callWithRetry<SearchReply | null>((stub) => stub.searchTexts(request, null)),
  );
  if (!("document" in read)) return { ...nothing, failed: deps.unreadOf(run, read) };
  const found = read.document;
  const [match] = found.matches;
  if (match === undefined) return { ...nothing, found };
  const { where, group, index, excerpt } = match;
  return { ...nothing, found, match: { where, group, index, excerpt } };
}

/** The text in a run's own id and name, and in the codes of its failures, with blanks or as they are. */
function matchIn({ id, name, metrics }: Filtered, needle: Needle): RunMatch | null {
  const own = (where: RunMatch["where"], excerpt: string): RunMatch => ({ where, group: null, index: null, excerpt });
  if (name !== null && needle.isIn(name)) return own("name", name);
  if (needle.isIn(id)) return own("id", id);
  const code = Object.keys(metrics.failures ?? {}).find(
    (each) => needle.isIn(each) || needle.isIn(each.replaceAll("_", " ")),
  );
  return code === undefined ? null : own("error", code);
}
