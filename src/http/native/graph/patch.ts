/** `PATCH /dag/:id`: changes a graph that runs, all or nothing. */
import type { Context } from "hono";
import { requireRun } from "../../auth/middleware.ts";
import type { AppEnv } from "../../context.ts";
import { jsonOf, readJsonBytes } from "../../../contract/body.ts";
import type { SharedBody } from "../../../call.ts";
import { parseDagPatch, type DagOperation } from "../../../contract/graph/patch.ts";
import { withoutDefaults } from "../../../run/queue/call-page.ts";
import { Refusal } from "../../../errors.ts";
import type { ChangeGraphReply, GroupView } from "../../../objects/methods/groups.ts";
import { RunCaller } from "../../../objects/clients/caller.ts";
import { sha256Hex } from "../../../objects/clients/dedupe-key.ts";
import { GroupReader } from "../../../objects/clients/groups/group-reader.ts";
import { startLanes } from "../../../objects/clients/lanes.ts";
import { bodyRoom } from "../../body-bound.ts";
import { changeWithContexts } from "../../contexts/find.ts";
import { changeWithTools } from "../tool-use.ts";
import type { Handlers } from "../../handler.ts";
import { answerLook } from "./answer.ts";
import { ChangingGraph, graphOf } from "./changing-graph.ts";
import { findGraph } from "./find.ts";

export const dagPatchHandlers = {
  "PATCH /dag/:id": patch,
} satisfies Partial<Handlers>;

async function patch(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  const run = new RunCaller(c.env, runId);
  const body = await readJsonBytes(c.req.raw, bodyRoom(c));
  if (!body.ok) throw new Refusal(body.reason);
  const value = jsonOf(body.value);
  if (!value.ok) throw new Refusal(value.reason);
  const { seq, view: found } = await findGraph(run, c.req.param("id") ?? "");
  const before = await graphOf(run, seq);
  if (before === null) throw new Error(`the graph of ${found.id} is gone`);
  const change = parseDagPatch(value.value, before.settings ?? {});
  if (!change.ok) throw new Refusal(change.reason);
  const changes = await changeWithContexts(c, runId, await changeWithTools(c, runId, change.value));
  const operations = changes.operations.map((each) => withoutShared(each, change.value.defaults));
  const { version } = changes;
  const request = { seq, key: await sha256Hex(body.value), version, operations };
  const changed = await run.callWithRetry<ChangeGraphReply>((stub) => stub.changeGraph(request));
  if (!changed.ok) throw new Refusal(changed.reason);
  // A lane that does not start is started again by the run's alarm.
  c.executionCtx.waitUntil(startLanes(c.env, runId, changed.lanes));
  c.set("remainingNanoUsd", changed.remainingNanoUsd);
  const view = await run.callWithRetry<GroupView | null>((stub) => stub.waitGroup(seq, 0));
  if (view === null) throw new Error(`the group ${found.id} is gone`);
  const { id, count, effectiveParallel, errorStyle: style, remainingNanoUsd } = view;
  const reader = new GroupReader(run, seq, c.req.raw.signal);
  const group = { runId, id, count, effectiveParallel, reader, style, remainingNanoUsd };
  return answerLook(c, group, { view, graph: new ChangingGraph(run, seq, before) });
}

/** The operation without what its task inherits, which its graph has stored. */
function withoutShared(operation: DagOperation, defaults: SharedBody): DagOperation {
  if (!("task" in operation)) return operation;
  const { call } = operation.task;
  const body = withoutDefaults(call.body, defaults);
  return { ...operation, task: { ...operation.task, body, call: { ...call, body } } };
}
