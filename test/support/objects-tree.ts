/** Trees of runs: how tests read and change them. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { expect } from "vitest";
import { z } from "zod";
import type { CallFacts, Outcome } from "../../src/call.ts";
import type { ChildRecord } from "../../durable-objects/run/store/records.ts";
import { RunStore } from "../../durable-objects/run/store/store.ts";
import { RunObject } from "../../src/index.ts";
import { acquireRequest } from "./objects-direct.ts";
import type { TestRun } from "./objects-run.ts";

const refusal = z.object({
  error: z.looseObject({ code: z.string(), message: z.string(), param: z.string().nullable() }),
});

/** An answer's status and its error. */
export async function refusalOf(response: Response) {
  const { error } = refusal.parse(await response.json());
  return { status: response.status, ...error };
}

/** What an upstream reports that used so many tokens. */
export function used(promptTokens: number, completionTokens: number): Outcome {
  const usage = { promptTokens, completionTokens, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null };
  return { kind: "success", text: "t", model: "x", finishReason: null, usage, latencyMs: 1 };
}

/** Nano-USD of so many tokens at the price of the tests' upstream. */
export function priceOf(promptTokens: number, completionTokens: number): number {
  return promptTokens * 150 + completionTokens * 600;
}

/** Takes a permit for a call of 92 bytes, at most 100 prompt tokens, and up to `maxTokens`. Its attempt's id. */
export async function begin(run: TestRun, maxTokens = 100): Promise<string> {
  const facts: CallFacts = {
    promptBytes: 92,
    messageCount: 1,
    mediaParts: 0,
    model: "up/x",
    maxTokens,
    priority: 2,
    timeoutMs: null,
  };
  const acquired = await run.object.acquire(acquireRequest(crypto.randomUUID(), facts));
  if (acquired.ok !== true) throw new Error(`no permit: ${JSON.stringify(acquired)}`);
  return acquired.lease.attemptId;
}

/** Lets a run spend what so many tokens cost. */
export async function spend(run: TestRun, promptTokens: number, completionTokens: number): Promise<void> {
  const attemptId = await begin(run, completionTokens);
  const settled = await run.object.settle({ attemptId, outcome: used(promptTokens, completionTokens), stored: null });
  expect(settled.known).toBe(true);
}

/** How long runs may take to come to rest, ms: a busy machine needs seconds for what takes an idle one 50 ms. */
const REST_MS_MAX = 45_000;

/** Rings the alarms of runs, as they would ring by themselves had the clock not been put forward, until `done`. */
export async function ringUntil(runs: readonly TestRun[], done: () => Promise<boolean>): Promise<void> {
  const startedMs = performance.now();
  while (!(await done().catch(() => false))) {
    if (performance.now() - startedMs > REST_MS_MAX) throw new Error("the runs do not come to rest");
    for (const run of runs) await ring(run.object);
    await scheduler.wait(5);
  }
}

/** Lets a run's alarm ring. One that finds leases stays with them for their term, so it is not waited for to the end. */
export async function ring(run: DurableObjectStub<RunObject>): Promise<void> {
  const rung = runDurableObjectAlarm(run).catch(() => false);
  await Promise.race([rung, scheduler.wait(50)]);
}

/** Whether nothing is set aside in any dimension. */
export async function holdsNothing(run: TestRun): Promise<boolean> {
  const budget = await run.object.budget();
  return budget !== null && Object.values(budget).every(({ reserved }) => reserved === 0);
}

/** The children of a run as its rows have them. */
export function childRows(run: TestRun): Promise<ChildRecord[]> {
  return runInDurableObject(run.object, (_: RunObject, state) => [...new RunStore(state.storage).children()]);
}

/**
 * Puts `around` in the place of the next report of a child's end to its parent, whoever makes it; it may call the real
 * one. Reports after that go their way, as do those of other runs: alarms of earlier tests may still repeat theirs.
 */
export function interceptNextReport(
  child: TestRun,
  around: (real: () => Promise<void>, parent: RunObject) => Promise<void>,
): void {
  const plain = RunObject.prototype.childEnded;
  RunObject.prototype.childEnded = function (this: RunObject, ...args: Parameters<RunObject["childEnded"]>) {
    const real = (): Promise<void> => plain.apply(this, args);
    if (args[0] !== child.id) return real();
    RunObject.prototype.childEnded = plain;
    return around(real, this);
  };
}

/** The same for the next change of what a parent sets aside for a child. */
export function interceptNextResize(
  child: TestRun,
  around: (real: () => ReturnType<RunObject["resizeChild"]>, parent: RunObject) => ReturnType<RunObject["resizeChild"]>,
): void {
  const plain = RunObject.prototype.resizeChild;
  RunObject.prototype.resizeChild = function (this: RunObject, ...args: Parameters<RunObject["resizeChild"]>) {
    const real = (): ReturnType<RunObject["resizeChild"]> => plain.apply(this, args);
    if (args[0] !== child.id) return real();
    RunObject.prototype.resizeChild = plain;
    return around(real, this);
  };
}
