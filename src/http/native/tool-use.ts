/** Offers the tools of the run to the models of calls that name them, before anything is reserved. Other calls cost nothing here. */
import type { Context } from "hono";
import type { CallBody, CallFacts, ToolUse } from "../../call.ts";
import type { BatchCall, BatchRequest } from "../../contract/batch.ts";
import type { DagRequest, DagTask } from "../../contract/graph/dag.ts";
import type { DagPatch } from "../../contract/graph/patch.ts";
import { Refusal } from "../../errors.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import type { StoredDocument } from "../../objects/methods/runs.ts";
import { OfferedTools } from "../../tools/offered.ts";
import type { AppEnv } from "../context.ts";

type Call = { body: CallBody; facts: CallFacts };

/** The call with the tools that it names. Throws a Refusal if the run does not have them. */
export async function callWithTools<C extends Call>(c: Context<AppEnv>, runId: string, call: C): Promise<C> {
  return call.facts.toolUse === undefined ? call : offered(await toolsOf(c, runId), call, "tools");
}

/** The batch with the tools that its calls name. Throws a Refusal, also while its calls are read. */
export async function batchWithTools(c: Context<AppEnv>, runId: string, request: BatchRequest): Promise<BatchRequest> {
  const { calls, defaults, tools } = request;
  if (!tools.areUsed) return request;
  const known = await toolsOf(c, runId);
  const paramOf = (call: BatchCall, index: number): string =>
    call.facts.toolUse?.tools === tools.default?.tools ? "tools" : `items[${index}].tools`;
  const [first] = calls;
  const offeredCalls =
    request.isCopied === true && first !== undefined
      ? Array<BatchCall>(calls.length).fill(offered(known, first, "tools"))
      : {
          length: calls.length,
          *[Symbol.iterator]() {
            let index = 0;
            for (const call of calls) yield offered(known, call, paramOf(call, index++));
          },
        };
  return {
    ...request,
    calls: offeredCalls,
    defaults: { ...defaults, ...sharedParams(known, defaults, tools.default) },
  };
}

/** The graph with the tools that its tasks name. Throws a Refusal. */
export async function graphWithTools(c: Context<AppEnv>, runId: string, request: DagRequest): Promise<DagRequest> {
  const { toolUse } = request;
  if (toolUse === null && request.tasks.every(({ call }) => call.facts.toolUse === undefined)) return request;
  const known = await toolsOf(c, runId);
  const tasks = request.tasks.map((task, index) => withTools(known, task, `tasks[${index}].tools`));
  return { ...request, tasks, defaults: { ...request.defaults, ...sharedParams(known, request.defaults, toolUse) } };
}

/** A task of a plan with the tools that it names. Throws a Refusal. */
export async function taskWithTools(c: Context<AppEnv>, runId: string, task: DagTask): Promise<DagTask> {
  return task.call.facts.toolUse === undefined ? task : withTools(await toolsOf(c, runId), task, "tools");
}

/** The change of a graph with the tools that its tasks name. Throws a Refusal. */
export async function changeWithTools(c: Context<AppEnv>, runId: string, change: DagPatch): Promise<DagPatch> {
  const uses = change.operations.some((each) => "task" in each && each.task.call.facts.toolUse !== undefined);
  if (!uses) return change;
  const known = await toolsOf(c, runId);
  const operations = change.operations.map((each, index) =>
    "task" in each ? { ...each, task: withTools(known, each.task, `operations[${index}].task.tools`) } : each,
  );
  return { ...change, operations };
}

async function toolsOf(c: Context<AppEnv>, runId: string): Promise<OfferedTools> {
  const document = await new RunCaller(c.env, runId).callWithRetry<StoredDocument | null>((run) => run.document(null));
  return new OfferedTools(document?.tools ?? []);
}

function offered<C extends Call>(known: OfferedTools, call: C, param: string): C {
  const found = known.offeredTo(call, param);
  if (!found.ok) throw new Refusal(found.reason);
  return found.value;
}

function withTools<T extends DagTask>(known: OfferedTools, task: T, param: string): T {
  const call = offered(known, task.call, param);
  return { ...task, call, body: call.body };
}

/** What calls share that use the tools which their request names for all of them: the same value as theirs, so that it is stored once. */
function sharedParams(known: OfferedTools, { params }: Pick<CallBody, "params">, shared: ToolUse | null) {
  if (shared === null) return {};
  const found = known.paramsWith(params, shared.tools, "tools");
  if (!found.ok) throw new Refusal(found.reason);
  return { params: found.value };
}
