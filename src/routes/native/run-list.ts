/** `GET /runs`: root runs, newest first, all of them or those that fit a filter; and the child runs of a run. */
import type { Context, Hono } from "hono";
import { requireReader } from "../../auth/middleware.ts";
import type { AppEnv } from "../../context.ts";
import { parseChildListQuery, parseRunListQuery, type RunListQuery } from "../../contract/runs.ts";
import { Refusal } from "../../errors.ts";
import { LIST_PAGE_DEFAULT, LIST_PAGE_MAX, LIST_RUNS_VISITED_MAX } from "../../limits.ts";
import type { ListedRun } from "../../run-api/directory-api.ts";
import type { ListedChild, StoredDocument } from "../../run-api/runs.ts";
import { cursorOf, parseCursor, runsBefore } from "../../run-client/directory.ts";
import type { Protection } from "../under-run.ts";
import { RunCaller } from "../../run-client/caller.ts";
import { callerOf, documentOf, lookAt, shown } from "./runs.ts";

export function mountRunList(app: Hono<AppEnv>, protect: Protection): void {
  app.get("/runs", ...protect, async (c) => {
    requireReader(c);
    const query = parseRunListQuery(c.req.query());
    if (!query.ok) throw new Refusal(query.reason);
    const { data, cursor } = await pageOf(c, query.value, firstOf(query.value));
    return c.json({ object: "list", data, has_more: cursor !== null, next_cursor: cursor });
  });
  app.get("/runs/:id/children", ...protect, async (c) => {
    const query = parseChildListQuery(c.req.query());
    if (!query.ok) throw new Refusal(query.reason);
    const { id } = await documentOf(c, c.req.param("id"));
    const { limit, before } = query.value;
    const run = new RunCaller(c.env, id);
    // One more than is shown, to know whether there is more.
    const listed = await run.callWithRetry<ListedChild[]>((stub) => stub.childList(before, limit + 1));
    const page = listed.slice(0, limit);
    const documents = await Promise.all(page.map((child) => lookAt(c, child.id, callerOf(c))));
    // A child that was deleted, or is just being opened, has no document.
    const data = documents.flatMap((document) => (document === null ? [] : [shown(c, document)]));
    const cursor = listed.length > limit ? String(page.at(-1)?.seq ?? 0) : null;
    return c.json({ object: "list", data, has_more: cursor !== null, next_cursor: cursor });
  });
}

/** What the first run of the page is behind; null = nothing: the page begins with the newest. */
function firstOf({ cursor, opened_before }: RunListQuery): ListedRun | null {
  if (cursor === undefined) {
    return opened_before === undefined ? null : { openedAt: Date.parse(opened_before) * 1_000, id: "" };
  }
  const before = parseCursor(cursor);
  if (before !== null) return before;
  // An empty page would look like the end of the list.
  const message = "cursor: expected the next_cursor of an earlier page";
  throw new Refusal({ reason: "invalid_request", message, param: "cursor" });
}

type Page = { data: unknown[]; cursor: string | null };

/** A page may have fewer runs than its limit, and none, although there are more: a filter visits so many, and no more. */
async function pageOf(c: Context<AppEnv>, query: RunListQuery, first: ListedRun | null): Promise<Page> {
  const { limit = LIST_PAGE_DEFAULT } = query;
  const size = hasFilter(query) ? LIST_PAGE_MAX : limit;
  const data: unknown[] = [];
  let before = first;
  for (let visited = 0; visited < LIST_RUNS_VISITED_MAX; visited += size) {
    // One more than is visited, to know whether there is more.
    const runs = await runsBefore(c.env, before, size + 1);
    const visitedNow = runs.slice(0, size);
    const documents = await Promise.all(visitedNow.map(({ id }) => lookAt(c, id, null)));
    for (const [index, document] of documents.entries()) {
      const run = visitedNow[index];
      if (run === undefined) break;
      before = run;
      if (document !== null && isTooOld(document, query)) return { data, cursor: null };
      if (document === null || !fits(document, query)) continue;
      data.push(shown(c, document));
      if (data.length < limit) continue;
      return { data, cursor: index + 1 < runs.length ? cursorOf(run) : null };
    }
    if (runs.length <= size) return { data, cursor: null };
    // Without a filter, runs that were deleted meanwhile leave a page short.
    if (!hasFilter(query)) break;
  }
  return { data, cursor: before === null ? null : cursorOf(before) };
}

function hasFilter({ limit: _limit, cursor: _cursor, ...filters }: RunListQuery): boolean {
  return Object.keys(filters).length > 0;
}

/** Those behind it are older still. */
function isTooOld({ created_at }: StoredDocument, { opened_after }: RunListQuery): boolean {
  return opened_after !== undefined && Date.parse(created_at) <= Date.parse(opened_after);
}

function fits(run: StoredDocument, query: RunListQuery): boolean {
  const { status, name, opened_before, spent_usd_min = 0, spent_usd_max = Infinity } = query;
  const { spent } = run.budget.usd;
  if (status !== undefined && run.status !== status) return false;
  if (name !== undefined && run.name?.toLowerCase().includes(name.toLowerCase()) !== true) return false;
  if (opened_before !== undefined && Date.parse(run.created_at) >= Date.parse(opened_before)) return false;
  return spent >= spent_usd_min && spent <= spent_usd_max;
}
