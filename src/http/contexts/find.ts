/** Finds the contexts that a request refers to, before anything is reserved, and gives each call the text that it names. */
import type { Context } from "hono";
import { runFilesOf, type Objects } from "../../objects/address.ts";
import type { CallBody, CallFacts, SharedBody } from "../../call.ts";
import type { AppEnv } from "../context.ts";
import { KnownContexts, noContext, withContext } from "../../contexts/resolve.ts";
import type { ContextRecord, ContextReference } from "../../contexts/types.ts";
import type { BatchCall, BatchRequest } from "../../contract/batch.ts";
import type { CacheChoice } from "../../contract/contexts/cache.ts";
import { invalid } from "../../contract/errors.ts";
import { isLong, SharedPrefixes } from "../../contexts/shared-prefixes.ts";
import type { DagRequest, DagTask } from "../../contract/graph/dag.ts";
import type { DagPatch } from "../../contract/graph/patch.ts";
import { Refusal } from "../../errors.ts";
import { CHUNK_KINDS_MAX, CHUNK_PLACE, CONTEXTS_PER_REQUEST_MAX } from "../../limits.ts";
import { hashOf } from "../../objects/clients/dedupe-key.ts";
import { chunksOf } from "./chunks.ts";

/** A call that may refer to a context. */
type Referring = { body: CallBody; facts: CallFacts; context?: ContextReference; cache?: CacheChoice };

/** The call with the text that it refers to. Throws a Refusal. */
export async function callWithContext<Call extends Referring>(
  c: Context<AppEnv>,
  runId: string,
  call: Call,
): Promise<Call> {
  if (call.context === undefined) return call;
  return placed(call, await findContexts(c.env, runId, [call.context]), "context");
}

/** A task of a plan with the text that it refers to. Throws a Refusal. */
export async function taskWithContext(c: Context<AppEnv>, runId: string, task: DagTask): Promise<DagTask> {
  return await withElementPrefix({ ...task, call: await callWithContext(c, runId, task.call) });
}

/** The graph with the texts that its tasks refer to. Throws a Refusal. */
export async function graphWithContexts(c: Context<AppEnv>, runId: string, request: DagRequest): Promise<DagRequest> {
  const { context: shared, defaults } = request;
  const references = request.tasks.flatMap(({ call: { context } }) => (context === undefined ? [] : [context]));
  if (request.tasks.every(({ call: { cache } }) => cache === undefined) && references.length === 0) return request;
  const known = await findContexts(c.env, runId, references);
  const tasks = request.tasks.map((task, index) => {
    const call = placed(task.call, known, task.call.context === shared ? "context" : `tasks[${index}].context`);
    return { ...task, call };
  });
  const sharing = tasks.filter(({ call: { cache } }) => cache !== undefined);
  const bodies = sharing.map(({ call: { body } }) => body);
  const shares = await SharedPrefixes.of(defaults, hashOf, bodies);
  for (const task of sharing) shares.count(task.call, callsOf(task));
  const marked = tasks.map((task) => withCall(task, shares.mark(task.call)));
  return { ...request, tasks: marked, defaults: sharedBody(defaults, shared, known) };
}

/** A task that comes alone: nobody knows yet what others share, but the calls of a `foreach` share all that they begin with. */
async function withElementPrefix(task: DagTask): Promise<DagTask> {
  const { call } = task;
  if (call.cache === undefined || callsOf(task) < 2) return withCall(task, call);
  return withCall(task, (await SharedPrefixes.of(call.body, hashOf)).markLone(call));
}

/** The calls that a task stands for, as far as one shares its beginning with another. */
function callsOf({ foreach }: DagTask): number {
  return foreach === null ? 1 : 2;
}

function withCall(task: DagTask, call: DagTask["call"]): DagTask {
  return { ...task, call, body: call.body };
}

/** The change of a graph with the texts that its tasks refer to. Throws a Refusal. */
export async function changeWithContexts(c: Context<AppEnv>, runId: string, change: DagPatch): Promise<DagPatch> {
  const references = change.operations.flatMap((each) =>
    "task" in each && each.task.call.context !== undefined ? [each.task.call.context] : [],
  );
  const known = await findContexts(c.env, runId, references);
  const operations: DagPatch["operations"][number][] = [];
  for (const [index, each] of change.operations.entries()) {
    if (!("task" in each)) operations.push(each);
    else {
      const call = placed(each.task.call, known, `operations[${index}].task.context`);
      operations.push({ ...each, task: await withElementPrefix({ ...each.task, call }) });
    }
  }
  return { ...change, operations };
}

/** The batch with the texts that its calls refer to, or the calls of its chunks. Throws a Refusal. */
export async function batchWithContexts(
  c: Context<AppEnv>,
  runId: string,
  request: BatchRequest,
): Promise<BatchRequest> {
  if (request.isCopied === true) return await copiesWithContexts(c, runId, request);
  const { named, default: shared, over } = request.contexts;
  if (over !== null) return await batchOver(c, runId, request);
  if (named.size === 0) return await withSystemPrefix(request);
  const known = await findContexts(c.env, runId, [...named.values()]);
  const paramOf = (call: BatchCall, index: number): string =>
    call.context === shared ? "context" : `items[${index}].context`;
  // All of them before the first is stored: a range may be outside its text.
  let checked = 0;
  const shares = await SharedPrefixes.of(request.defaults, hashOf);
  for (const call of request.calls) shares.count(placed(call, known, paramOf(call, checked++)));
  const calls = mapped(request.calls, (call, index) => shares.mark(placed(call, known, paramOf(call, index))));
  return { ...request, calls, defaults: sharedBody(request.defaults, shared, known) };
}

/** The same of a batch of one call, many times: the text is given once, as that of two calls which share it. */
async function copiesWithContexts(c: Context<AppEnv>, runId: string, request: BatchRequest): Promise<BatchRequest> {
  const { isCopied: _isCopied, ...few } = request;
  const { calls, ...found } = await batchWithContexts(c, runId, { ...few, calls: [...request.calls].slice(0, 2) });
  const [call] = calls;
  return { ...request, ...found, calls: call === undefined ? [] : Array<BatchCall>(request.calls.length).fill(call) };
}

/**
 * The batch with the long system messages that its calls share: its own, which calls without another have, and those that several
 * items set.
 */
async function withSystemPrefix(request: BatchRequest): Promise<BatchRequest> {
  const { calls, defaults } = request;
  if (calls.length < 2) return request;
  const systems = sharedSystems(request);
  if (systems.length === 0 && !isLong(defaults.system)) return request;
  const shares = await SharedPrefixes.of(defaults, hashOf, [], systems);
  return { ...request, calls: mapped(calls, (call) => shares.markLone(call)) };
}

/** The long system messages that at least two items set. Those of a batch that is parsed as it is read are not looked for. */
function sharedSystems({ calls, defaults }: BatchRequest): string[] {
  if (!Array.isArray(calls)) return [];
  const counts = new Map<string, number>();
  for (const { body, cache } of calls as readonly BatchCall[]) {
    const { system } = body;
    if (cache === undefined || system === undefined || system === defaults.system || !isLong(system)) continue;
    counts.set(system, (counts.get(system) ?? 0) + 1);
  }
  return [...counts].flatMap(([system, count]) => (count < 2 ? [] : [system]));
}

/** What calls share, with the text of those that name none: the same value as theirs, so that it is stored once. */
function sharedBody(defaults: SharedBody, shared: ContextReference | null, known: KnownContexts): SharedBody {
  if (shared === null) return defaults;
  const found = known.resolve(shared, "context");
  if (!found.ok) throw new Refusal(found.reason);
  return { ...defaults, context: found.value.placed };
}

/** One call for each chunk of a context. */
async function batchOver(c: Context<AppEnv>, runId: string, request: BatchRequest): Promise<BatchRequest> {
  const { over } = request.contexts;
  const [call] = request.calls;
  if (over === null || call === undefined) throw new Error("a batch over chunks has one prompt");
  const { id, split } = over;
  const known = await findContexts(c.env, runId, [{ id, chunk: { number: 0, split }, place: "template" }]);
  const length = known.chunksOf(id, split).length;
  const { prompt = "" } = call.body;
  const shares = await SharedPrefixes.of(request.defaults, hashOf);
  const times = prompt.split(CHUNK_PLACE).length - 1;
  const kinds = new Map<string, CallFacts>();
  const chunkCall = (number: number): BatchCall => {
    const found = known.resolve({ id, chunk: { number, split }, place: "template" }, "over.context");
    if (!found.ok) throw new Refusal(found.reason);
    const { placed: context, bytesMax, tokensMax } = found.value;
    // Nothing else of a chunk is a fact of its call: those of equal sizes have one object.
    const kind = `${bytesMax} ${tokensMax}`;
    const facts = kinds.get(kind);
    if (facts !== undefined) return { ...call, body: { ...call.body, context }, facts };
    const chunk = withContext(call, found.value, times);
    const whole = length < 2 ? chunk : shares.markLone(chunk);
    if (kinds.size < CHUNK_KINDS_MAX) kinds.set(kind, whole.facts);
    return whole;
  };
  const calls = {
    length,
    *[Symbol.iterator]() {
      for (let number = 0; number < length; number++) yield chunkCall(number);
    },
  };
  return { ...request, calls, ids: [], defaults: { ...request.defaults, prompt } };
}

function placed<Call extends Referring>(call: Call, known: KnownContexts, param: string): Call {
  if (call.context === undefined) return call;
  const found = known.resolve(call.context, param);
  if (!found.ok) throw new Refusal(found.reason);
  return withContext(call, found.value);
}

function mapped(
  calls: BatchRequest["calls"],
  map: (call: BatchCall, index: number) => BatchCall,
): BatchRequest["calls"] {
  return {
    length: calls.length,
    *[Symbol.iterator]() {
      let index = 0;
      for (const call of calls) yield map(call, index++);
    },
  };
}

/** The contexts of references, with the chunks that they name. Throws a Refusal if the run does not have one. */
async function findContexts(
  objects: Objects,
  runId: string,
  references: readonly ContextReference[],
): Promise<KnownContexts> {
  const known = new KnownContexts();
  const records = new Map<string, ContextRecord>();
  for (const { id } of references) {
    if (records.has(id)) continue;
    if (records.size === CONTEXTS_PER_REQUEST_MAX) {
      throw new Refusal(
        invalid("context", `one request refers to at most ${CONTEXTS_PER_REQUEST_MAX} contexts`).reason,
      );
    }
    const found = await runFilesOf(objects, runId).context(id);
    if (found === null) throw new Refusal(noContext(id));
    known.add(found);
    records.set(id, found.record);
  }
  for (const { id, chunk } of references) {
    const record = records.get(id);
    if (record === undefined || chunk === undefined || known.hasChunks(id, chunk.split)) continue;
    known.addChunks(id, chunk.split, await chunksOf(objects, runId, record, chunk.split));
  }
  return known;
}
