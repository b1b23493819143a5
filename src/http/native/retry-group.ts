/** `POST /groups/:id/retry`, `POST /dag/:id/retry`: runs a group that has ended again, except the calls that completed. */
import type { Context } from "hono";
import { requireRun } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import { Refusal } from "../../errors.ts";
import type { OpenGroupReply } from "../../objects/methods/groups.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import { GroupReader } from "../../objects/clients/groups/group-reader.ts";
import { startLanes } from "../../objects/clients/lanes.ts";
import { groupAnswer } from "./batch.ts";
import { answerGraph } from "./graph/answer.ts";
import { ChangingGraph, graphOf } from "./graph/changing-graph.ts";
import { findGraph } from "./graph/find.ts";
import { answerAccepted, answerGroup, isAccepted } from "./group-answer.ts";
import { findGroup } from "./groups.ts";
import { namedOf } from "./idempotency.ts";
import { clientTrace } from "../client-trace.ts";
import type { Handlers } from "../handler.ts";
import { noteGroup } from "../trace-header.ts";

export const retryHandlers = {
  "POST /groups/:id/retry": async (c) => {
    const { group, seq } = await findGroup(c, 0);
    return retry(c, new RunCaller(c.env, group.runId), seq);
  },
  "POST /dag/:id/retry": async (c) => {
    const run = new RunCaller(c.env, requireRun(c));
    const { seq } = await findGraph(run, c.req.param("id") ?? "");
    return retry(c, run, seq);
  },
} satisfies Partial<Handlers>;

async function retry(c: Context<AppEnv>, run: RunCaller, seq: number): Promise<Response> {
  const { runId } = run;
  const named = { openKey: crypto.randomUUID(), idempotencyKey: await namedOf(c, new Uint8Array()) };
  const request = { seq, ...named, ...clientTrace(c) };
  const opened = await run.callWithRetry<OpenGroupReply>((stub) => stub.retryGroup(request));
  if (!opened.ok) throw new Refusal(opened.reason);
  // A lane that does not start is started again by the run's alarm.
  c.executionCtx.waitUntil(startLanes(c.env, runId, opened.lanes));
  noteGroup(c, runId, opened);
  const group = groupAnswer(runId, opened, new GroupReader(run, opened.seq, c.req.raw.signal));
  const view = await group.reader.look();
  if (isAccepted(c, group)) return answerAccepted(c, group, view);
  if (view.graph === undefined) return answerGroup(c, group);
  const graph = await graphOf(run, opened.seq);
  if (graph === null) throw new Error(`the graph of ${opened.id} is gone`);
  return answerGraph(c, group, new ChangingGraph(run, opened.seq, graph));
}
