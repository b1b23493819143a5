/** `POST /plan`: a model writes a graph for a goal, which runs like one that a client has written. */
import type { Context } from "hono";
import * as z from "zod";
import { requireRun } from "../../auth/middleware.ts";
import { combiningCalls } from "../combining/make-calls.ts";
import { usdOf } from "../../../run/money/money.ts";
import type { AppEnv } from "../../context.ts";
import { parseBody } from "../../../contract/body.ts";
import { invalid, type Parsed } from "../../../contract/errors.ts";
import { parseDag, type DagRequest } from "../../../contract/graph/dag.ts";
import { parsePlan, type PlannedTask, type PlanRequest } from "../../../contract/graph/plan.ts";
import { prefersAsync } from "../../../contract/groups.ts";
import { parseQuery } from "../../../contract/query.ts";
import { Refusal } from "../../../errors.ts";
import { makeCall } from "../../../executors/single-call.ts";
import { compileGraph } from "../../../run/graph/compile.ts";
import { graphReason } from "../../../run/graph/faults.ts";
import type { CompiledGraph } from "../../../run/graph/types.ts";
import { graphJson } from "../../replies/graph/graph-json.ts";
import { spentBefore, usageOf } from "../../replies/usage.ts";
import { RunCaller } from "../../../objects/clients/caller.ts";
import { jsonOfAnswer } from "../../../text/schema/answer.ts";
import { bodyRoom } from "../../body-bound.ts";
import { clientTrace } from "../../client-trace.ts";
import type { Handlers } from "../../handler.ts";
import { openGraph } from "../graph/open.ts";
import { JSON_PIECES, streamPieces } from "../group-answer.ts";
import { executed, notRun, planned, type GraphEnd, type PlanEffects, type PlanOutcome } from "./program.ts";
import { toolsOfRun } from "../graph/plan-readers.ts";
import type { OfferedTool, Schema } from "./prompts.ts";
import { streamedPlan } from "./streamed.ts";

export const planHandlers = {
  "POST /plan": plan,
} satisfies Partial<Handlers>;

type PlanGraph = { request: DagRequest; graph: CompiledGraph };

async function plan(c: Context<AppEnv>): Promise<Response> {
  const runId = requireRun(c);
  const body = await parseBody(c.req.raw, bodyRoom(c));
  if (!body.ok) throw new Refusal(body.reason);
  const request = parsePlan(body.value);
  if (!request.ok) throw new Refusal(request.reason);
  if (prefersAsync(c.req.header("prefer")) || c.req.header("idempotency-key") !== undefined) throw new Refusal(WAITS);
  const tools = await toolsOfRun(c, runId);
  if (request.value.stream) return streamedPlan(c, runId, { request: request.value, tools });
  const effects = new RunEffects(c, runId, request.value, tools);
  // What fails before a graph runs is an HTTP error; later, the answer has it beside what was done.
  const first = await planned(request.value, [], effects);
  if (!request.value.run) return c.json(replyOf(notRun(first), effects));
  const pieces = answered(executed(request.value, first, effects), effects);
  return streamPieces(c, { runId, remainingNanoUsd: effects.remainingNanoUsd }, pieces, JSON_PIECES);
}

const WAITS = invalid(
  null,
  "takes neither Prefer: respond-async nor Idempotency-Key: its client waits. With run: false it returns a plan for /dag, which takes both",
).reason;

async function* answered(outcome: Promise<PlanOutcome>, effects: RunEffects): AsyncGenerator<string> {
  yield JSON.stringify(replyOf(await outcome, effects));
}

function replyOf(outcome: PlanOutcome, { used }: RunEffects) {
  return { object: "plan", ...outcome, usage: usageOf(used) };
}

const graphDocument = z.object({
  tasks: z.record(
    z.string(),
    z.looseObject({ output: z.string().nullable(), error: z.looseObject({ message: z.string() }).nullable() }),
  ),
  outputs: z.record(z.string(), z.unknown()),
});

/** What a joiner reads of a task. */
function textOf({ output, error }: { output: string | null; error: { message: string } | null }): string {
  return output ?? `(it has no output: ${error?.message ?? "it was not needed"})`;
}

/** Calls and graphs under the run of a request. */
class RunEffects implements PlanEffects<PlanGraph> {
  readonly #c: Context<AppEnv>;
  readonly #runId: string;
  readonly #request: PlanRequest;
  readonly tools: readonly OfferedTool[];
  /** Tokens and cost of all calls so far. */
  readonly used = { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 };
  remainingNanoUsd: number | null = null;

  constructor(c: Context<AppEnv>, runId: string, request: PlanRequest, tools: readonly OfferedTool[]) {
    this.tools = tools;
    this.#c = c;
    this.#runId = runId;
    this.#request = request;
  }

  readonly call = async (prompt: string, schema: Schema): Promise<unknown> => {
    const { plannerModel } = this.#request;
    const call = parseQuery({ prompt, schema, ...(plannerModel !== null && { model: plannerModel }) });
    if (!call.ok) throw new Refusal(call.reason);
    const run = new RunCaller(this.#c.env, this.#runId);
    const waitUntil = (promise: Promise<unknown>): void => this.#c.executionCtx.waitUntil(promise);
    const { signal } = this.#c.req.raw;
    const deps = { run, config: this.#c.get("config"), signal, waitUntil, ...clientTrace(this.#c) };
    const calling = makeCall(call.value, deps);
    // If the client leaves, the attempt is stopped and must still be settled.
    waitUntil(calling.catch(() => undefined));
    const end = await calling;
    this.#add(end);
    this.#remaining(end.remainingNanoUsd);
    if (!end.outcome.ok) throw new Refusal(end.outcome.reason, spentBefore(end, end.outcome.reason));
    return jsonOfAnswer(end.outcome.text);
  };

  readonly check = (tasks: readonly PlannedTask[]): Parsed<PlanGraph> => {
    const { model } = this.#request;
    // A tool task has no model.
    const modelled = tasks.map((task) => (model === null || task.tool !== undefined ? task : { ...task, model }));
    const request = parseDag({ tasks: modelled });
    if (!request.ok) return request;
    const { tiers, ...plain } = request.value;
    void tiers;
    const compiled = compileGraph(plain);
    if (!compiled.ok) return { ok: false, reason: graphReason(compiled.faults) };
    return { ok: true, value: { request: request.value, graph: compiled.graph } };
  };

  readonly run = async ({ request, graph: compiled }: PlanGraph): Promise<GraphEnd> => {
    const { group, graph } = await openGraph(this.#c, this.#runId, { request, graph: compiled, named: null });
    const view = await group.reader.ended();
    this.#add(view.usage);
    this.#remaining(view.remainingNanoUsd);
    const source = {
      group: view,
      graph: await graph.of(view),
      slotsFrom: (index: number) => group.reader.slotsFrom(index),
      makeCalls: combiningCalls(this.#c, this.#runId, view),
    };
    const pieces: string[] = [];
    for await (const piece of graphJson(source)) pieces.push(piece);
    const { tasks, outputs } = graphDocument.parse(JSON.parse(pieces.join("")));
    const all = Object.fromEntries(Object.entries(tasks).map(([id, task]) => [id, textOf(task)]));
    const { id, status, remainingNanoUsd } = view;
    return { id, status, outputs, all, remainingUsd: remainingNanoUsd === null ? null : usdOf(remainingNanoUsd) };
  };

  #add({ promptTokens, completionTokens, costNanoUsd }: RunEffects["used"]): void {
    this.used.promptTokens += promptTokens;
    this.used.completionTokens += completionTokens;
    this.used.costNanoUsd += costNanoUsd;
  }

  #remaining(nanoUsd: number | null): void {
    this.remainingNanoUsd = nanoUsd;
    this.#c.set("remainingNanoUsd", nanoUsd);
  }
}
