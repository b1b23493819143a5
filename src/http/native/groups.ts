/** Groups after their opening: look at one, read its results, its report, cancel it. */
import type { Context } from "hono";
import { RunCaller, type RunStub } from "../../objects/clients/caller.ts";
import { graphMembers, withTaskIds } from "../replies/graph/graph-results.ts";
import type { GroupView, SlotView } from "../../objects/methods/groups.ts";
import { requireRun } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import { parseCancelQuery } from "../../contract/cancel-groups.ts";
import {
  parseGroupQuery,
  parseNamesQuery,
  parseReportQuery,
  parseResultsQuery,
  type ReportFormat,
} from "../../contract/groups.ts";
import { groupSalt, groupSeqOfId } from "../../run/queue/group-id.ts";
import { Refusal } from "../../errors.ts";
import { NAME_CHARS_MAX, SLOT_NAMES_PAGE } from "../../limits.ts";
import { runningJson } from "../replies/batch-json.ts";
import { MARKDOWN, reportText } from "../replies/report.ts";
import { coordinatorJson, reportJson, swarmJson, type ReportSource } from "../replies/report-json.ts";
import { slotLook } from "../replies/slot-look.ts";
import { resultsPageOf } from "../replies/results-page.ts";
import { answerGroup, framingOf, JSON_PIECES, streamPieces, type GroupAnswer } from "./group-answer.ts";
import { GroupReader } from "../../objects/clients/groups/group-reader.ts";
import { runOfGroup } from "../../objects/clients/groups/run-of-group.ts";
import { answerGraph, answerLook } from "./graph/answer.ts";
import { ChangingGraph, graphOf } from "./graph/changing-graph.ts";
import { combiningCalls } from "./combining/make-calls.ts";
import { noteGroup } from "../trace-header.ts";
import type { Handlers } from "../handler.ts";

export const groupHandlers = {
  "GET /groups/:id": look,
  "GET /dag/:id": look,
  "GET /groups/:id/results": results,
  "GET /groups/:id/report": report,
  "POST /groups/:id/confirm": confirm,
  "DELETE /groups/:id": cancel,
  "DELETE /dag/:id": cancel,
  "GET /groups/:id/names": listNames,
  "GET /groups/:id/slots/:index": lookAtSlot,
  "DELETE /groups/:id/slots/:index": async (c) => {
    const { group, seq } = await findGroup(c, 0);
    const index = slotIndexIn(c.req.param("index"));
    const run = new RunCaller(c.env, group.runId);
    const view =
      index === null ? null : await run.callWithRetry<GroupView | null>((stub) => stub.cancelSlot(seq, index));
    if (view === null) throw new Refusal({ reason: "not_found", what: `slot of group ${group.id}` });
    return c.json(runningJson(view));
  },
} satisfies Partial<Handlers>;

async function cancel(c: Context<AppEnv>): Promise<Response> {
  const inFlight = parseCancelQuery(c.req.query());
  if (!inFlight.ok) throw new Refusal(inFlight.reason);
  const { group, seq } = await findGroup(c, 0);
  const run = new RunCaller(c.env, group.runId);
  const view = await run.callWithRetry<GroupView | null>((stub) => stub.cancelGroup(seq, inFlight.value));
  if (view === null) throw notFound(group.id);
  return c.json(runningJson(view));
}

async function confirm(c: Context<AppEnv>): Promise<Response> {
  const { group, seq } = await findGroup(c, 0);
  const run = new RunCaller(c.env, group.runId);
  const view = await run.callWithRetry<GroupView | null>((stub) => stub.confirmGroup(seq));
  if (view === null) throw notFound(group.id);
  return c.json(runningJson(view));
}

/** One call, with the beginnings of its texts: for people, whose page must stay small whatever a model writes. */
async function listNames(c: Context<AppEnv>): Promise<Response> {
  const query = parseNamesQuery(c.req.query());
  if (!query.ok) throw new Refusal(query.reason);
  const { group, view, seq } = await findGroup(c, 0);
  const { from } = query.value;
  const run = new RunCaller(c.env, group.runId);
  const read = (stub: RunStub): Promise<(string | null)[] | null> => stub.slotNames(seq, from, SLOT_NAMES_PAGE);
  const data = (await run.callWithRetry<(string | null)[] | null>(read)) ?? [];
  return c.json({ object: "list", from, data, has_more: data.length > 0 && from + data.length < view.count });
}

async function lookAtSlot(c: Context<AppEnv>): Promise<Response> {
  const { group, view, seq } = await findGroup(c, 0);
  const index = slotIndexIn(c.req.param("index") ?? "");
  const slotsFrom = view.graph === undefined ? null : namedSlots(group, await graphAt(c, group, seq));
  const read = slotsFrom ?? ((at: number): Promise<SlotView[]> => group.reader.slotsFrom(at));
  const slot = index === null ? undefined : (await read(index))[0];
  if (slot === undefined || slot.index !== index) {
    throw new Refusal({ reason: "not_found", what: `slot of group ${group.id}` });
  }
  const run = new RunCaller(c.env, group.runId);
  const prompt_head = await run.callWithRetry<string | null>((stub) => stub.promptHead(seq, index));
  return c.json(slotLook(slot, prompt_head));
}

function slotIndexIn(text: string): number | null {
  return /^\d{1,5}$/.test(text) ? Number(text) : null;
}

/** The group as it is now; once it has ended, with everything in the answer to the request that opened it. */
async function look(c: Context<AppEnv>): Promise<Response> {
  const query = parseGroupQuery(c.req.query());
  if (!query.ok) throw new Refusal(query.reason);
  const { group, view, seq } = await findGroup(c, query.value.waitMs);
  if (c.get("principal").kind === "viewer") return c.json(figuresOf(view));
  if (view.graph !== undefined) return answerGraphNow(c, group, { view, seq });
  // A style that turns failures into HTTP errors is for who waits; who looks wants to see.
  const style = group.style === "throw" ? "bracket" : group.style;
  return view.status === "running" ? c.json(runningJson(view)) : answerGroup(c, { ...group, style });
}

/** What viewers see of a group, also when it has ended: counts and costs, no answers and no messages of failures. */
function figuresOf({ tierFailures: _messages, ...figures }: GroupView): object {
  return runningJson(figures);
}

/** A graph as it is now. As a stream, its tasks as they end; those that have ended come first. */
async function answerGraphNow(
  c: Context<AppEnv>,
  group: GroupAnswer,
  { view, seq }: { view: GroupView; seq: number },
): Promise<Response> {
  const graph = await graphAt(c, group, seq);
  if (framingOf(c.req.header("accept")) !== null) return answerGraph(c, group, graph);
  return answerLook(c, group, { view, graph });
}

async function results(c: Context<AppEnv>): Promise<Response> {
  const query = parseResultsQuery(c.req.query());
  if (!query.ok) throw new Refusal(query.reason);
  const { group, view, seq } = await findGroup(c, 0);
  const isStream = framingOf(c.req.header("accept")) !== null;
  if (isStream && view.graph !== undefined) return answerGraphNow(c, group, { view, seq });
  if (isStream) return answerGroup(c, group);
  if (view.graph === undefined)
    return c.body(await resultsPageOf(group, query.value), 200, { "content-type": "application/json" });
  const slotsFrom = namedSlots(group, await graphAt(c, group, seq));
  const source = { count: view.graph.slots, style: group.style, reader: { slotsFrom } };
  return c.body(await resultsPageOf(source, query.value), 200, { "content-type": "application/json" });
}

/** A graph for reports: its slots with the ids of their tasks. */
async function graphSource(
  c: Context<AppEnv>,
  group: GroupAnswer,
  { view, seq }: { view: GroupView; seq: number },
): Promise<ReportSource> {
  const graph = await graphAt(c, group, seq);
  const slotsFrom = namedSlots(group, graph);
  const latest = await graph.of(view);
  const makeCalls = combiningCalls(c, group.runId, view);
  return { group: withTaskIds(view, latest), slotsFrom, memberOf: graphMembers(latest, slotsFrom), makeCalls };
}

/** A graph's slots with the ids of their tasks. */
function namedSlots(group: GroupAnswer, graph: ChangingGraph): (index: number) => Promise<SlotView[]> {
  return async (index) => {
    const slots = await group.reader.slotsFrom(index);
    const names = await graph.namesOf(slots);
    return slots.map((slot) => ({ ...slot, id: names.of(slot.index).task }));
  };
}

async function graphAt(c: Context<AppEnv>, { runId, id }: GroupAnswer, seq: number): Promise<ChangingGraph> {
  const run = new RunCaller(c.env, runId);
  const graph = await graphOf(run, seq);
  if (graph === null) throw new Error(`the graph of ${id} is gone`);
  return new ChangingGraph(run, seq, graph);
}

const REPORTS: Record<Exclude<ReportFormat, "markdown">, (source: ReportSource) => AsyncGenerator<string>> = {
  json: reportJson,
  coordinator: coordinatorJson,
  swarm: swarmJson,
};

async function report(c: Context<AppEnv>): Promise<Response> {
  const format = parseReportQuery(c.req.query(), c.req.header("accept"));
  if (!format.ok) throw new Refusal(format.reason);
  const { group, view, seq } = await findGroup(c, 0);
  const ofBatch = (index: number): Promise<SlotView[]> => group.reader.slotsFrom(index);
  const source =
    view.graph === undefined
      ? { group: view, slotsFrom: ofBatch, makeCalls: combiningCalls(c, group.runId, view) }
      : await graphSource(c, group, { view, seq });
  if (format.value === "markdown") return streamPieces(c, group, reportText(source), MARKDOWN);
  return streamPieces(c, group, REPORTS[format.value](source), JSON_PIECES);
}

/** The run's group of the id in the path. Another run's is not found: its number or its id differs. */
export async function findGroup(
  c: Context<AppEnv>,
  waitMs: number,
): Promise<{ group: GroupAnswer; view: GroupView; seq: number }> {
  const id = c.req.param("id") ?? "";
  const runId = await runIdFor(c, id);
  const seq = groupSeqOfId(id, groupSalt(runId));
  const run = new RunCaller(c.env, runId);
  const known = seq === null ? null : await run.callWithRetry<GroupView | null>((stub) => stub.waitGroup(seq, 0));
  if (seq === null || known === null || known.id !== id) throw notFound(id);
  const reader = new GroupReader(run, seq, c.req.raw.signal);
  const view = waitMs > 0 && known.status === "running" ? await reader.look(waitMs) : known;
  const { count, effectiveParallel, errorStyle: style, remainingNanoUsd } = view;
  noteGroup(c, runId, view);
  return { group: { runId, id, count, effectiveParallel, reader, style, remainingNanoUsd }, view, seq };
}

/** The run that a request names, or for an operator who names none the root run that has the group. */
async function runIdFor(c: Context<AppEnv>, groupId: string): Promise<string> {
  const isNamed = c.get("principal").kind === "run" || c.req.header("x-fanout-run") !== undefined;
  if (isNamed || !groupId.startsWith("pg-")) return requireRun(c);
  const found = await runOfGroup(c.env, groupId);
  if (found !== null) return found;
  const hint = "only root runs are searched; name a child run in x-fanout-run";
  throw new Refusal({ reason: "not_found", what: `group ${groupId.slice(0, NAME_CHARS_MAX)}`, hint });
}

function notFound(id: string): Refusal {
  return new Refusal({ reason: "not_found", what: `group ${id.slice(0, NAME_CHARS_MAX)}` });
}
