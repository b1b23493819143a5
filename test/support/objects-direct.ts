/** What tests do to objects directly, as Workers and the platform do: open, acquire, crash. */
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { NO_LIMITS } from "../../src/run/money/ledger.ts";
import type { CallFacts, Outcome } from "../../src/call.ts";
import type { AcquireRequest } from "../../src/objects/methods/calls.ts";
import type { ClaimReply, OpenGroupRequest } from "../../src/objects/methods/groups.ts";
import type { RunSettings } from "../../src/objects/methods/runs.ts";
import { CallPageBuilder, type CallPage } from "../../src/run/queue/call-page.ts";
import { RunStore } from "../../durable-objects/run/store/store.ts";
import { RunObject, type LaneObject } from "../../src/index.ts";
import { prompts, type TestRun } from "./objects-run.ts";

/** Aborts one object: its memory and everything that it waits for are lost. */
export async function crash(stub: DurableObjectStub<RunObject> | DurableObjectStub<LaneObject>): Promise<void> {
  const abort = (_: unknown, state: DurableObjectState): void => state.abort("the test crashes this object");
  await runInDurableObject<RunObject | LaneObject, void>(stub, abort).catch(() => undefined);
}

/** Evicts one object, as the platform does after a while in which nothing has reached it: on a slow machine it may have done so. */
export async function evict(
  stub: DurableObjectStub,
  options?: Parameters<typeof evictDurableObject>[1],
): Promise<void> {
  await evictDurableObject(stub, options).catch((error: unknown) => {
    if (!String(error).includes("it is not currently running")) throw error;
  });
}

/** Opens a batch as a Worker does that dies before it can start a lane or wait. Returns the lanes to start. */
export async function openUnwatched(
  run: TestRun,
  asked: string[],
  model: string,
  rules: Partial<OpenGroupRequest> = {},
): Promise<number[]> {
  const { pages, models } = pagesOf(asked, model);
  const opened = await run.object.openGroup({ ...openingOf(asked.length, models), ...rules }, pages);
  if (!opened.ok) throw new Error("the batch was refused");
  return opened.lanes;
}

/** Opens a group as a Worker does that executes it. Returns what it has claimed. */
export async function openAsWorker(
  run: TestRun,
  { count, key, capacity }: { count: number; key: string; capacity: number },
  rules: Partial<OpenGroupRequest> = {},
): Promise<ClaimReply> {
  const { pages, models } = pagesOf(prompts(count), `up/key/${key}`);
  const opened = await run.object.openGroup({ ...openingOf(count, models), ...rules }, pages, capacity);
  if (!opened.ok) throw new Error(`the batch was refused: ${JSON.stringify(opened.reason)}`);
  if (opened.claim === null) throw new Error("the Worker got no claim");
  return opened.claim;
}

/** The request of a Worker that opens a plain batch; `openKey` is a fresh one. */
export function openingOf(count: number, models: (string | null)[]): OpenGroupRequest {
  return {
    openKey: crypto.randomUUID(),
    idempotencyKey: null,
    count,
    single: false,
    background: false,
    onLost: "retry",
    detach: true,
    errorStyle: null,
    hasCustomIds: false,
    concurrency: null,
    onError: "continue",
    onBudget: "partial",
    deadlineMs: null,
    split: false,
    models,
    defaultsJson: "{}",
  };
}

/** The settings of a root run that lives for a minute; its id is the name of its object. */
export function namedSettings(id: string): RunSettings {
  const createdAtMs = Date.now();
  return {
    id,
    name: null,
    parentId: null,
    ancestors: [],
    holder: null,
    depth: 0,
    createdAtMs,
    expiresAtMs: createdAtMs + 60_000,
    limits: { ...NO_LIMITS, usd: 1_000_000_000 },
    maxParallel: 8,
    maxDepth: 3,
    models: [],
    defaultModel: null,
    errorStyle: "bracket",
    weight: 1,
    region: null,
    windowMs: 50,
    unpriced: "refuse",
    retentionMs: 60_000,
    tools: [],
    metadataJson: "{}",
  };
}

/** The request of a Worker for the first attempt of a single call. */
export function acquireRequest(callId: string, facts: CallFacts): AcquireRequest {
  return { callId, attempt: 1, facts, delayMs: 0, deadlineMs: null, onLost: "retry", parallelGroupId: null };
}

/** The pages of a small batch, as its Worker cuts them. */
export function pagesOf(asked: string[], model: string): { pages: CallPage[]; models: (string | null)[] } {
  const builder = new CallPageBuilder({});
  for (const prompt of asked) builder.add({ body: { prompt }, facts: factsOf(prompt, model) });
  const page = builder.flush();
  return { pages: page === null ? [] : [page], models: builder.models };
}

/** What a Worker reports of a query that its upstream answered with 3 + 4 tokens. */
export const SUCCESS: Outcome = {
  kind: "success",
  text: "t",
  model: "x",
  finishReason: null,
  usage: { promptTokens: 3, completionTokens: 4, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null },
  latencyMs: 1,
};

/** Takes the permit of a query of up to 100 completion tokens, as a Worker does. Returns the attempt's id. */
export async function acquireOne(run: TestRun): Promise<string> {
  const facts = { ...factsOf("p", "up/x"), maxTokens: 100 };
  const acquired = await run.object.acquire(acquireRequest("call", facts));
  if (acquired.ok !== true) throw new Error("the run gave no permit");
  return acquired.lease.attemptId;
}

/** Leases in the rows of a run's object: none once every settlement is stored. */
export function storedLeases(run: TestRun): Promise<number> {
  return runInDurableObject(run.object, (_: RunObject, { storage }) => {
    const store = new RunStore(storage);
    const inShards = store.shards().shards.reduce((sum, { shard }) => sum + shard.leases.length, 0);
    return inShards + [...store.singles.leases()].length;
  });
}

/** The admission facts of a plain call. */
export function factsOf(prompt: string, model: string): CallFacts {
  const rules = { maxTokens: null, priority: 2, timeoutMs: null } as const;
  return { promptBytes: prompt.length, messageCount: 1, mediaParts: 0, model, ...rules };
}

/** Ends an object from inside one of its own methods. */
export function abortFromWithin(object: RunObject): void {
  const state: unknown = Reflect.get(object, "ctx");
  if (typeof state === "object" && state !== null && "abort" in state && typeof state.abort === "function") {
    state.abort("the test crashes this object");
  }
}

type Claim = RunObject["settleAndClaim"];

/**
 * Loses the next settlement that a lane reports to a run: `loss` is called in its place, with the real one, and then the
 * run's object is aborted if `endsRun`. Later settlements are not touched. The function that it returns says whether all
 * of that has happened: a promise would cross from one object into another.
 */
export function loseNextSettlement(
  { endsRun }: { endsRun: boolean },
  loss: (real: () => ReturnType<Claim>, lane: number) => Promise<void>,
): () => boolean {
  let isLost = false;
  const plain = RunObject.prototype.settleAndClaim;
  RunObject.prototype.settleAndClaim = async function (this: RunObject, ...args: Parameters<Claim>) {
    const [lane, settlements] = args;
    if (settlements.length === 0) return plain.apply(this, args);
    RunObject.prototype.settleAndClaim = plain;
    await loss(() => plain.apply(this, args), lane);
    // In one step with the abort: whoever sees it finds no instance but the next one.
    isLost = true;
    if (endsRun) abortFromWithin(this);
    throw new Error("the test loses a settlement");
  };
  return () => isLost;
}
