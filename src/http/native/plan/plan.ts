/** `POST /plan`: a model writes a graph for a goal, which runs like one that a client has written. */
import type { Context } from "hono";
import { requireRun } from "../../auth/middleware.ts";
import type { AppEnv } from "../../context.ts";
import { jsonOf, readJsonBytes } from "../../../contract/body.ts";
import { invalid } from "../../../contract/errors.ts";
import { parsePlan, type PlanRequest } from "../../../contract/graph/plan.ts";
import { prefersAsync } from "../../../contract/groups.ts";
import { Refusal } from "../../../errors.ts";
import { usageOf } from "../../replies/usage.ts";
import { bodyRoom } from "../../body-bound.ts";
import type { Handlers } from "../../handler.ts";
import { answerAccepted, isAccepted, JSON_PIECES, streamPieces, type GroupAnswer } from "../group-answer.ts";
import { namedOf } from "../idempotency.ts";
import { toolsOfRun } from "../graph/plan-readers.ts";
import { requireWebhook } from "../webhook-rule.ts";
import { RunEffects, type PlanGraph } from "./effects.ts";
import { executed, notRun, planned, type Planned, type PlanOutcome } from "./program.ts";
import { streamedPlan } from "./streamed.ts";

export const planHandlers = {
  "POST /plan": plan,
} satisfies Partial<Handlers>;

async function plan(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  const body = await readJsonBytes(c.req.raw, bodyRoom(c));
  if (!body.ok) throw new Refusal(body.reason);
  const value = jsonOf(body.value);
  if (!value.ok) throw new Refusal(value.reason);
  const request = parsePlan(value.value);
  if (!request.ok) throw new Refusal(request.reason);
  // All that no plan can mend is refused before one is paid for.
  requireWebhook(c, request.value);
  const named = await namedOf(c, body.value);
  const isAsync = prefersAsync(c.req.header("prefer"));
  if (isAsync) requireWaiting(request.value);
  const tools = await toolsOfRun(c, runId);
  if (request.value.stream) return streamedPlan(c, runId, { request: request.value, tools, named });
  const effects = new RunEffects(c, runId, { request: request.value, tools, named });
  // What fails before a graph runs is an HTTP error; later, the answer has it beside what was done.
  const first = await planned(request.value, [], effects);
  if (!request.value.run) return c.json(replyOf(notRun(first), effects));
  const group = await openedGroup(effects, first.graph, isAsync);
  if (group !== null && isAccepted(c, group)) return acceptedPlan(c, group, first);
  const pieces = answered(executed(request.value, first, effects), effects);
  const headers = group?.headers === undefined ? {} : { headers: group.headers };
  return streamPieces(c, { runId, remainingNanoUsd: effects.remainingNanoUsd, ...headers }, pieces, JSON_PIECES);
}

/** Refuses what needs a client that waits, for one that does not. */
function requireWaiting({ stream, replan }: PlanRequest): void {
  if (stream) {
    const why = "runs the plan while its client waits; leave out Prefer: respond-async, and with an Idempotency-Key";
    throw new Refusal(invalid("stream", `${why} repeat the request if the connection is lost`).reason);
  }
  if (replan !== null) {
    const why = "needs a client that waits, because its joiner reads the results; leave out Prefer: respond-async";
    throw new Refusal(invalid("replan", why).reason);
  }
}

/** The group of the first graph; null = it was refused, which the answer says, for a client that waits for one. */
async function openedGroup(effects: RunEffects, graph: PlanGraph, isAsync: boolean): Promise<GroupAnswer | null> {
  try {
    return (await effects.open(graph)).group;
  } catch (error) {
    if (error instanceof Refusal && !isAsync) return null;
    throw error;
  }
}

/** 202: the graph goes on; the answer has its tasks as they were written, which nothing else shows. */
async function acceptedPlan(
  c: Context<AppEnv>,
  group: GroupAnswer,
  { tasks, repaired }: Planned<PlanGraph>,
): Promise<Response> {
  return answerAccepted(c, group, await group.reader.look(), { plan: { tasks, repaired } });
}

async function* answered(outcome: Promise<PlanOutcome>, effects: RunEffects): AsyncGenerator<string> {
  yield JSON.stringify(replyOf(await outcome, effects));
}

function replyOf(outcome: PlanOutcome, { used }: RunEffects) {
  return { object: "plan", ...outcome, usage: usageOf(used) };
}
