/** Opens a graph as a group whose slots depend on each other. */
import type { Context } from "hono";
import type { AppEnv } from "../../context.ts";
import type { DagRequest } from "../../../contract/graph/dag.ts";
import { prefersAsync } from "../../../contract/groups.ts";
import { Refusal } from "../../../errors.ts";
import { firstCapacity } from "../../../executors/group-executor.ts";
import { startWorkflow, WORKFLOW_CAPACITY } from "../../../executors/workflow-group.ts";
import type { CompiledGraph } from "../../../run/graph/types.ts";
import type { IdempotencyKey } from "../../../objects/methods/types.ts";
import { RunCaller } from "../../../objects/clients/caller.ts";
import { GroupReader } from "../../../objects/clients/groups/group-reader.ts";
import { openedBy, openGroup } from "../../../objects/clients/groups/open-group.ts";
import { PLAIN_RULES } from "../../../objects/clients/groups/plain-rules.ts";
import { ChangingGraph, graphOf } from "./changing-graph.ts";
import { recordingOf } from "../../recording.ts";
import { groupAnswer } from "../batch.ts";
import { groupOfClient, openGroupDeps } from "../client-group.ts";
import { framingOf, type GroupAnswer } from "../group-answer.ts";
import { noteGroup } from "../../trace-header.ts";
import { requireWebhook } from "../webhook-rule.ts";

/** The graph that a key has opened before, which others execute; null = it has opened none. Throws a Refusal if that was another request. */
export async function graphOfKey(
  c: Context<AppEnv>,
  runId: string,
  key: IdempotencyKey,
): Promise<{ group: GroupAnswer; graph: ChangingGraph } | null> {
  const run = new RunCaller(c.env, runId);
  const opened = await openedBy(key, openGroupDeps(c, run, null));
  if (opened === null) return null;
  const { seq } = opened;
  const graph = await graphOf(run, seq);
  if (graph === null) throw new Refusal({ reason: "idempotency_conflict" });
  noteGroup(c, runId, opened);
  const reader = new GroupReader(run, seq, c.req.raw.signal);
  return { group: groupAnswer(runId, opened, reader), graph: new ChangingGraph(run, seq, graph) };
}

type RequestedGraph = { request: DagRequest; graph: CompiledGraph; named: IdempotencyKey | null };

/** Opens a graph, or finds the one that its key has opened (`isFound`). This Worker executes what it opens. */
export async function openGraph(
  c: Context<AppEnv>,
  runId: string,
  { request, graph, named }: RequestedGraph,
): Promise<{ seq: number; group: GroupAnswer; graph: ChangingGraph; isFound: boolean }> {
  const run = new RunCaller(c.env, runId);
  requireWebhook(c, request);
  const isAsync = prefersAsync(c.req.header("prefer"));
  const { waitingFetchesMax, mayUseWorkflows } = c.get("config");
  const workflows = isAsync && mayUseWorkflows ? c.env.WORKFLOW : undefined;
  const ownCapacity = isAsync ? null : firstCapacity(waitingFetchesMax);
  const capacity = workflows === undefined ? ownCapacity : WORKFLOW_CAPACITY;
  const { tasks, defaults, concurrency, onError, onLost, deadlineMs, detach, aggregate, tiers } = request;
  const rules = { concurrency, onError, onLost, deadlineMs, detach, count: graph.slots };
  const judged = {
    ...request.rules,
    ...(aggregate !== null && { aggregate }),
    ...(tiers !== null && { tiers }),
    ...(request.onExhausted !== null && { onExhausted: request.onExhausted }),
    ...(request.notify && { notify: request.notify }),
  };
  const calls = tasks.map(({ call }) => ({ ...call, id: null }));
  const recording = await recordingOf(c, runId);
  const replay = recording === null ? {} : { replay: recording };
  const opening = {
    calls,
    defaults,
    dedupe: false,
    rules: { ...PLAIN_RULES, idempotencyKey: named, ...rules, ...judged, ...replay },
    graph,
  };
  const opened = await openGroup(opening, openGroupDeps(c, run, capacity));
  noteGroup(c, runId, opened);
  if (workflows !== undefined && opened.claim !== null)
    c.executionCtx.waitUntil(startWorkflow(workflows, run, opened.seq));
  const showsSlots = framingOf(c.req.header("accept")) !== null;
  const reader = isAsync
    ? new GroupReader(run, opened.seq, c.req.raw.signal)
    : groupOfClient(c, run, opened, { ids: [], detach, showsSlots });
  const group = groupAnswer(runId, opened, reader);
  // The graph that a key has opened may have been changed since.
  const stored = opened.replayed ? await graphOf(run, opened.seq) : null;
  const changing = new ChangingGraph(run, opened.seq, stored ?? graph);
  return { seq: opened.seq, group, graph: changing, isFound: opened.replayed };
}
