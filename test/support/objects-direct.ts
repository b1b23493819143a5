/** What tests do to objects directly, as Workers and the platform do: open, acquire, crash. */
import { runInDurableObject } from "cloudflare:test";
import type { CallFacts, Outcome } from "../../src/call.ts";
import type { AcquireRequest, OpenGroupRequest } from "../../durable-objects/run/rpc.ts";
import { PageBuilder, type Page } from "../../src/engine/page.ts";
import { RunObject, type LaneObject } from "../../src/index.ts";
import type { TestRun } from "./objects-run.ts";

/** Ends one object where it stands: what it holds in memory and what it waits for are gone. */
export async function crash(stub: DurableObjectStub<RunObject> | DurableObjectStub<LaneObject>): Promise<void> {
  const abort = (_: unknown, state: DurableObjectState): void => state.abort("the test crashes this object");
  await runInDurableObject<RunObject | LaneObject, void>(stub, abort).catch(() => undefined);
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

/** What a Worker asks for that opens a plain batch; `openKey` is a fresh one. */
export function openingOf(count: number, models: (string | null)[]): OpenGroupRequest {
  return {
    openKey: crypto.randomUUID(),
    named: null,
    count,
    single: false,
    background: false,
    onLost: "retry",
    detach: true,
    errorStyle: null,
    namesCalls: false,
    concurrency: null,
    onError: "continue",
    deadlineMs: null,
    split: false,
    models,
    defaultsJson: "{}",
  };
}

/** What a Worker asks for that has a single call to make, and tries it for the first time. */
export function askingFor(callId: string, facts: CallFacts): AcquireRequest {
  return { callId, attempt: 1, facts, delayMs: 0, deadlineMs: null, onLost: "retry", parallelGroupId: null };
}

/** The pages of a small batch, as its Worker cuts them. */
export function pagesOf(asked: string[], model: string): { pages: Page[]; models: (string | null)[] } {
  const builder = new PageBuilder({});
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
  const acquired = await run.object.acquire(askingFor("call", facts));
  if (acquired.ok !== true) throw new Error("the run gave no permit");
  return acquired.lease.attemptId;
}

/** The facts of a call that asks for nothing special. */
export function factsOf(prompt: string, model: string): CallFacts {
  const rules = { maxTokens: null, priority: 2, timeoutMs: null } as const;
  return { promptBytes: prompt.length, messageCount: 1, mediaParts: 0, model, ...rules };
}

type Claim = RunObject["settleAndClaim"];

/**
 * Loses the next settlement that a lane tells a run: `loss` is called in its place, with the real one. Settlements after
 * that go their way. What it returns says whether it was lost: a promise would cross from one object into another.
 */
export function loseNextSettlement(
  loss: (real: () => ReturnType<Claim>, run: RunObject, lane: number) => Promise<void>,
): () => boolean {
  let isLost = false;
  const plain = RunObject.prototype.settleAndClaim;
  RunObject.prototype.settleAndClaim = async function (this: RunObject, ...args: Parameters<Claim>) {
    const [lane, settlements] = args;
    if (settlements.length === 0) return plain.apply(this, args);
    RunObject.prototype.settleAndClaim = plain;
    isLost = true;
    await loss(() => plain.apply(this, args), this, lane);
    throw new Error("the test loses a settlement");
  };
  return () => isLost;
}
