/** `POST /dag/:id/retry`: a graph that has ended once more, without the calls that completed. */
import type { Context, Hono } from "hono";
import { laneOf } from "../../../../durable-objects/address.ts";
import { requireRun } from "../../../auth/middleware.ts";
import type { AppEnv } from "../../../context.ts";
import { Refusal } from "../../../errors.ts";
import type { OpenGroupReply } from "../../../run-api/groups.ts";
import { RunCaller } from "../../../run-client/caller.ts";
import { GroupReader } from "../../../run-client/group-reader.ts";
import { groupAnswer } from "../batch.ts";
import { answerAccepted, isAccepted } from "../group-answer.ts";
import { namedOf } from "../idempotency.ts";
import { clientTrace } from "../../client-trace.ts";
import type { Protection } from "../../under-run.ts";
import { answerGraph } from "./answer.ts";
import { ChangingGraph, graphOf } from "./changing-graph.ts";
import { findGraph } from "./find.ts";

export function mountDagRetry(app: Hono<AppEnv>, protect: Protection): void {
  app.post("/dag/:id/retry", ...protect, retry);
}

async function retry(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  const run = new RunCaller(c.env, runId);
  const { seq } = await findGraph(run, c.req.param("id") ?? "");
  const request = {
    seq,
    openKey: crypto.randomUUID(),
    idempotencyKey: await namedOf(c, new Uint8Array()),
    ...clientTrace(c),
  };
  const opened = await run.callWithRetry<OpenGroupReply>((stub) => stub.retryGraph(request));
  if (!opened.ok) throw new Refusal(opened.reason);
  const graph = await graphOf(run, opened.seq);
  if (graph === null) throw new Error(`the graph of ${opened.id} is gone`);
  const starting = opened.lanes.map((lane) => laneOf(c.env, runId, lane).start(runId, lane));
  // A lane that does not start is started again by the run's alarm.
  c.executionCtx.waitUntil(Promise.allSettled(starting));
  c.set("remainingNanoUsd", opened.remainingNanoUsd);
  const group = groupAnswer(runId, opened, new GroupReader(run, opened.seq, c.req.raw.signal));
  if (isAccepted(c, group)) return answerAccepted(c, group, await group.reader.look());
  return answerGraph(c, group, new ChangingGraph(run, opened.seq, graph));
}
