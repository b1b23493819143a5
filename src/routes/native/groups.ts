/** Groups after their opening: look at one, read its results, its report, cancel it. */
import type { Context, Hono } from "hono";
import { RunCaller } from "../../run-client/caller.ts";
import type { GroupView } from "../../run-api/groups.ts";
import { requireRun } from "../../auth/middleware.ts";
import type { AppEnv } from "../../context.ts";
import { parseGroupQuery, parseResultsQuery } from "../../contract/groups.ts";
import { groupSalt, groupSeqOfId } from "../../engine/group-id.ts";
import { Refusal } from "../../errors.ts";
import { NAME_CHARS_MAX } from "../../limits.ts";
import { runningJson } from "../../respond/batch-json.ts";
import { MARKDOWN, reportText } from "../../respond/report.ts";
import { resultsPageOf } from "../../respond/results-page.ts";
import { answerGroup, framingOf, streamPieces, type GroupAnswer } from "./group-answer.ts";
import { GroupReader } from "../../run-client/group-reader.ts";
import type { Protection } from "../under-run.ts";

export function mountGroups(app: Hono<AppEnv>, protect: Protection): void {
  app.get("/groups/:id", ...protect, look);
  app.get("/groups/:id/results", ...protect, results);
  app.get("/groups/:id/report", ...protect, async (c) => {
    const { group, view } = await find(c, 0);
    const slotsFrom = (index: number) => group.reader.slotsFrom(index);
    return streamPieces(c, group, reportText({ group: view, slotsFrom }), MARKDOWN);
  });
  app.delete("/groups/:id", ...protect, async (c) => {
    const { group, seq } = await find(c, 0);
    const run = new RunCaller(c.env, group.runId);
    const view = await run.callWithRetry<GroupView | null>((stub) => stub.cancelGroup(seq));
    if (view === null) throw notFound(group.id);
    return c.json(runningJson(view));
  });
  app.delete("/groups/:id/slots/:index", ...protect, async (c) => {
    const { group, seq } = await find(c, 0);
    const index = slotIndexIn(c.req.param("index"));
    const run = new RunCaller(c.env, group.runId);
    const view =
      index === null ? null : await run.callWithRetry<GroupView | null>((stub) => stub.cancelSlot(seq, index));
    if (view === null) throw new Refusal({ reason: "not_found", what: `slot of group ${group.id}` });
    return c.json(runningJson(view));
  });
}

function slotIndexIn(text: string): number | null {
  return /^\d{1,5}$/.test(text) ? Number(text) : null;
}

/** The group as it is now; once it has ended, with everything in the answer to the request that opened it. */
async function look(c: Context<AppEnv>): Promise<Response> {
  const query = parseGroupQuery(c.req.query());
  if (!query.ok) throw new Refusal(query.reason);
  const { group, view } = await find(c, query.value.waitMs);
  // A style that turns failures into HTTP errors is for who waits; who looks wants to see.
  const style = group.style === "throw" ? "bracket" : group.style;
  return view.status === "running" ? c.json(runningJson(view)) : answerGroup(c, { ...group, style });
}

async function results(c: Context<AppEnv>): Promise<Response> {
  const query = parseResultsQuery(c.req.query());
  if (!query.ok) throw new Refusal(query.reason);
  const { group } = await find(c, 0);
  if (framingOf(c.req.header("accept")) !== null) return answerGroup(c, group);
  return c.json(await resultsPageOf(group, query.value));
}

/** The run's group of the id in the path. Another run's is not found: its number or its id differs. */
async function find(c: Context<AppEnv>, waitMs: number): Promise<{ group: GroupAnswer; view: GroupView; seq: number }> {
  const runId = requireRun(c);
  const id = c.req.param("id") ?? "";
  const seq = groupSeqOfId(id, groupSalt(runId));
  const run = new RunCaller(c.env, runId);
  const known = seq === null ? null : await run.callWithRetry<GroupView | null>((stub) => stub.waitGroup(seq, 0));
  if (seq === null || known === null || known.id !== id) throw notFound(id);
  const reader = new GroupReader(run, seq, c.req.raw.signal);
  const view = waitMs > 0 && known.status === "running" ? await reader.look(waitMs) : known;
  const { count, effectiveParallel, errorStyle: style, remainingNanoUsd } = view;
  c.set("remainingNanoUsd", remainingNanoUsd);
  return { group: { runId, id, count, effectiveParallel, reader, style, remainingNanoUsd }, view, seq };
}

function notFound(id: string): Refusal {
  return new Refusal({ reason: "not_found", what: `group ${id.slice(0, NAME_CHARS_MAX)}` });
}
