/**
 * What the program of `POST /plan` does under the run of its request: calls and graphs. With an Idempotency-Key each of them has a name
 * that follows from the key and its place in the program. So a repeated request finds what was done, and goes on from there.
 */
import type { Context } from "hono";
import * as z from "zod";
import { parseDag, type DagRequest } from "../../../contract/graph/dag.ts";
import type { PlannedTask, PlanRequest } from "../../../contract/graph/plan.ts";
import type { Parsed } from "../../../contract/errors.ts";
import { parseQuery, type QueryRequest } from "../../../contract/query.ts";
import { Refusal } from "../../../errors.ts";
import { makeCall } from "../../../executors/single-call.ts";
import type { IdempotencyKey } from "../../../objects/methods/types.ts";
import { RunCaller } from "../../../objects/clients/caller.ts";
import { openedBy } from "../../../objects/clients/groups/open-group.ts";
import { compileGraph } from "../../../run/graph/compile.ts";
import { graphReason } from "../../../run/graph/faults.ts";
import type { CompiledGraph } from "../../../run/graph/types.ts";
import { usdOf } from "../../../run/money/money.ts";
import { jsonOfAnswer } from "../../../text/schema/answer.ts";
import { clientTrace } from "../../client-trace.ts";
import type { AppEnv } from "../../context.ts";
import { graphJson } from "../../replies/graph/graph-json.ts";
import { spentBefore } from "../../replies/usage.ts";
import { groupOfCalls } from "../combining/calls-group.ts";
import { combiningCalls } from "../combining/make-calls.ts";
import { openGroupDeps } from "../client-group.ts";
import { openGraph } from "../graph/open.ts";
import type { GraphEnd, PlanEffects } from "./program.ts";
import type { OfferedTool, Schema } from "./prompts.ts";
import { atFirstUse } from "../../../at-first-use.ts";

export type PlanGraph = { request: DagRequest; graph: CompiledGraph };

/** `named`: the client's Idempotency-Key; null = it sent none. */
type Planning = { request: PlanRequest; tools: readonly OfferedTool[]; named: IdempotencyKey | null };

const graphDocument = atFirstUse(() =>
  z.object({
    tasks: z.record(
      z.string(),
      z.looseObject({ output: z.string().nullable(), error: z.looseObject({ message: z.string() }).nullable() }),
    ),
    outputs: z.record(z.string(), z.unknown()),
  }),
);

/** What a joiner reads of a task. */
function textOf({ output, error }: { output: string | null; error: { message: string } | null }): string {
  return output ?? `(it has no output: ${error?.message ?? "it was not needed"})`;
}

/** Calls and graphs under the run of a request. */
export class RunEffects implements PlanEffects<PlanGraph> {
  readonly #c: Context<AppEnv>;
  readonly #runId: string;
  readonly #request: PlanRequest;
  readonly #named: IdempotencyKey | null;
  readonly #opened = new Map<PlanGraph, ReturnType<typeof openGraph>>();
  readonly tools: readonly OfferedTool[];
  /** Tokens and cost of all calls so far. */
  readonly used = { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 };
  remainingNanoUsd: number | null = null;
  #steps = 0;

  constructor(c: Context<AppEnv>, runId: string, { request, tools, named }: Planning) {
    this.tools = tools;
    this.#c = c;
    this.#runId = runId;
    this.#request = request;
    this.#named = named;
  }

  readonly call = async (prompt: string, schema: Schema): Promise<unknown> => {
    const { plannerModel } = this.#request;
    const call = parseQuery({ prompt, schema, ...(plannerModel !== null && { model: plannerModel }) });
    if (!call.ok) throw new Refusal(call.reason);
    const name = this.#nextName();
    return jsonOfAnswer(name === null ? await this.#made(call.value) : await this.#kept(call.value, name));
  };

  readonly check = (tasks: readonly PlannedTask[]): Parsed<PlanGraph> => {
    const { model, notify } = this.#request;
    // A tool task has no model.
    const modelled = tasks.map((task) => (model === null || task.tool !== undefined ? task : { ...task, model }));
    const request = parseDag({ tasks: modelled });
    if (!request.ok) return request;
    const { tiers, ...plain } = request.value;
    void tiers;
    const compiled = compileGraph(plain);
    if (!compiled.ok) return { ok: false, reason: graphReason(compiled.faults) };
    return { ok: true, value: { request: { ...request.value, ...(notify && { notify }) }, graph: compiled.graph } };
  };

  /** Opens a graph, once. Throws a Refusal. */
  open(planned: PlanGraph): ReturnType<typeof openGraph> {
    const known = this.#opened.get(planned);
    if (known !== undefined) return known;
    const opening = openGraph(this.#c, this.#runId, { ...planned, named: this.#nextName() });
    this.#opened.set(planned, opening);
    return opening;
  }

  readonly run = async (planned: PlanGraph): Promise<GraphEnd> => {
    const { group, graph } = await this.open(planned);
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
    const { tasks, outputs } = graphDocument().parse(JSON.parse(pieces.join("")));
    const all = Object.fromEntries(Object.entries(tasks).map(([id, task]) => [id, textOf(task)]));
    const { id, status, remainingNanoUsd } = view;
    return { id, status, outputs, all, remainingUsd: remainingNanoUsd === null ? null : usdOf(remainingNanoUsd) };
  };

  readonly isRepeated = async (): Promise<boolean> => {
    const name = this.#nameOf(this.#steps + 1);
    if (name === null) return false;
    const deps = openGroupDeps(this.#c, new RunCaller(this.#c.env, this.#runId), null);
    return (await openedBy(name, deps)) !== null;
  };

  /** The name of the next call or graph. No header can have a line break, so no client's key is like it. */
  #nextName(): IdempotencyKey | null {
    this.#steps += 1;
    return this.#nameOf(this.#steps);
  }

  #nameOf(step: number): IdempotencyKey | null {
    if (this.#named === null) return null;
    const { key, hash } = this.#named;
    return { key: `\nplan ${step} ${key}`, hash };
  }

  /** The answer of a call that ends with its client. */
  async #made(call: QueryRequest): Promise<string> {
    const run = new RunCaller(this.#c.env, this.#runId);
    const waitUntil = (promise: Promise<unknown>): void => this.#c.executionCtx.waitUntil(promise);
    const { signal } = this.#c.req.raw;
    const deps = { run, config: this.#c.get("config"), signal, waitUntil, ...clientTrace(this.#c) };
    const calling = makeCall(call, deps);
    // If the client leaves, the attempt is stopped and must still be settled.
    waitUntil(calling.catch(() => undefined));
    const end = await calling;
    this.#add(end);
    this.#remaining(end.remainingNanoUsd);
    if (!end.outcome.ok) throw new Refusal(end.outcome.reason, spentBefore(end, end.outcome.reason));
    return end.outcome.text;
  }

  /** The answer of a call that is made once for all requests with the same key. */
  async #kept({ body, facts }: QueryRequest, name: IdempotencyKey): Promise<string> {
    const end = await groupOfCalls(this.#c, this.#runId, { name, calls: [{ body, facts }], detach: true });
    this.#add(end.spent);
    this.remainingNanoUsd = this.#c.get("remainingNanoUsd") ?? null;
    if (end.reason !== null) throw new Refusal(end.reason, spentBefore({ ...end.spent, ...end }, end.reason));
    return end.texts[0] ?? "";
  }

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
