/**
 * Permits of clients that leave: one that its client does not take is given back at once and costs nothing, wherever the grant
 * is when the client leaves. Each test forces one order of events.
 */
import { env } from "cloudflare:workers";
import { describe, expect, it, onTestFinished } from "vitest";
import { acquireRequest, crash, factsOf } from "../support/objects-direct.ts";
import { acquire, watchClient } from "../../src/executors/permit.ts";
import { RunObject } from "../../src/index.ts";
import { UNTAKEN_MS } from "../../src/limits.ts";
import type { AcquireReply } from "../../src/objects/methods/calls.ts";
import { RunCaller } from "../../src/objects/clients/caller.ts";
import { skipTime } from "../support/objects-clock.ts";
import { openRun, type TestRun } from "../support/objects-run.ts";

const facts = factsOf("p", "up/x");
const UNSENT = {
  kind: "failure",
  class: "rejected",
  reason: { reason: "cancelled", message: "it was not sent" },
  answered: false,
  retryAfterMs: null,
  latencyMs: 0,
} as const;

/** A run of one permit, which the call "first" has. */
async function fullRun(): Promise<TestRun> {
  const run = await openRun({ max_parallel: 1, budget: { usd: 1 } });
  expect((await run.object.acquire(acquireRequest("first", facts))).ok).toBe(true);
  return run;
}

/** The call "first" ends: the run's permit is free for the next in the queue. */
const firstEnds = async (run: TestRun): Promise<unknown> => await run.object.settle("first.1", UNSENT);

const reservedOf = async (run: TestRun): Promise<number> => (await run.budget()).calls.reserved;
const pendingOf = async (run: TestRun): Promise<number> => (await run.document()).stats.pending_queries;

/** The next call has its permit at once, and nothing was paid for the one before. */
async function expectFree(run: TestRun): Promise<void> {
  const { calls, usd } = await run.budget();
  expect([calls.reserved, calls.spent, usd.reserved, usd.spent]).toEqual([0, 0, 0, 0]);
  expect(await run.object.acquireMany([acquireRequest("next", facts)], [])).toMatchObject([{ ok: true }]);
}

/** Holds a method's calls until it is released: `before` they do anything, or `after`, so that only their replies wait. */
function held(method: "withdraw" | "acquireMany", place: "before" | "after"): () => void {
  const plain = RunObject.prototype[method] as (...args: unknown[]) => Promise<unknown>;
  const gate = { isOpen: false };
  const opened = async (): Promise<void> => {
    while (!gate.isOpen) await scheduler.wait(1);
  };
  Object.assign(RunObject.prototype, {
    async [method](this: RunObject, ...args: unknown[]) {
      if (place === "before") await opened();
      const reply = await plain.apply(this, args);
      if (place === "after") await opened();
      return reply;
    },
  });
  onTestFinished(() => void Object.assign(RunObject.prototype, { [method]: plain }));
  return () => void (gate.isOpen = true);
}

/** A Worker's call that waits for its permit, and its client. */
function workersCall(run: TestRun): { client: AbortController; permit: Promise<unknown> } {
  const client = new AbortController();
  const request = acquireRequest(crypto.randomUUID(), facts);
  return { client, permit: acquire(new RunCaller(env, run.id), request, watchClient(client.signal)) };
}

describe("the permit of a call whose client leaves", () => {
  it("is taken back if it is granted while the withdrawal is on its way", async () => {
    const run = await fullRun();
    const { client, permit } = workersCall(run);
    await expect.poll(() => pendingOf(run)).toBe(2);
    const release = held("withdraw", "before");
    client.abort();
    await firstEnds(run);
    expect(await reservedOf(run)).toBe(1);
    release();
    expect(await permit).toBeNull();
    await expectFree(run);
  });

  it("is taken back if the reply that grants it is on its way", async () => {
    const run = await openRun({ max_parallel: 1, budget: { usd: 1 } });
    const release = held("acquireMany", "after");
    const { client, permit } = workersCall(run);
    await expect.poll(() => reservedOf(run)).toBe(1);
    client.abort();
    await expect.poll(() => reservedOf(run)).toBe(0);
    release();
    expect(await permit).toBeNull();
    await expectFree(run);
  });

  it("is taken back if the reply that grants it is lost", async () => {
    const run = await openRun({ max_parallel: 1, budget: { usd: 1 } });
    const plain = RunObject.prototype.acquireMany;
    onTestFinished(() => void (RunObject.prototype.acquireMany = plain));
    RunObject.prototype.acquireMany = async function (this: RunObject, ...args): Promise<AcquireReply[]> {
      await plain.apply(this, args);
      throw new Error("the reply is lost");
    };
    await expect(workersCall(run).permit).rejects.toThrow("the reply is lost");
    RunObject.prototype.acquireMany = plain;
    await expect.poll(() => reservedOf(run)).toBe(0);
    await expectFree(run);
  });

  it("is not granted if the withdrawal overtakes the request", async () => {
    const run = await openRun({ max_parallel: 1, budget: { usd: 1 } });
    await run.object.withdraw("left");
    expect(await run.object.acquireMany([acquireRequest("left", facts)], [])).toEqual([{ ok: "wait" }]);
    expect(await run.object.acquire(acquireRequest("left", facts))).toEqual({ ok: "wait" });
    expect(await pendingOf(run)).toBe(0);
    await expectFree(run);
  });

  it("is taken back by an instance that has only read of it", async () => {
    const run = await openRun({ max_parallel: 1, budget: { usd: 1 } });
    expect((await run.object.acquire(acquireRequest("left", facts))).ok).toBe(true);
    await crash(run.object);
    const next = env.RUN.get(run.object.id);
    await next.withdraw("left");
    expect(await reservedOf(run)).toBe(0);
    expect((await run.budget()).calls.spent).toBe(0);
  });

  it("changes nothing for other calls when it is withdrawn", async () => {
    const run = await fullRun();
    await run.object.withdraw("another");
    expect(await reservedOf(run)).toBe(1);
  });
});

describe("a permit that could be sent to nobody", () => {
  async function grantedToNobody(): Promise<TestRun> {
    const run = await fullRun();
    expect(await run.object.acquireMany([acquireRequest("away", facts)], [])).toEqual([{ ok: "wait" }]);
    await firstEnds(run);
    expect(await reservedOf(run)).toBe(1);
    return run;
  }

  it("is given back after a moment, at no cost", async () => {
    const run = await grantedToNobody();
    skipTime(UNTAKEN_MS);
    await expect.poll(() => reservedOf(run)).toBe(0);
    await expectFree(run);
  });

  it("is its call's if the Worker comes back in time", async () => {
    const run = await grantedToNobody();
    expect(await run.object.acquire(acquireRequest("away", facts))).toMatchObject({ ok: true });
    skipTime(UNTAKEN_MS);
    await run.object.acquireMany([acquireRequest("next", facts)], []);
    expect(await reservedOf(run)).toBe(1);
    expect(await run.object.heartbeat(["away.1"])).toEqual([]);
  });
});
