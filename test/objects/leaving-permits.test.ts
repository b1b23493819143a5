/**
 * Permits of clients that leave: one that its client does not take is given back at once and costs nothing, wherever the grant
 * is when the client leaves. Each test forces one order of events.
 */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, onTestFinished } from "vitest";
import { acquireRequest, crash, factsOf } from "../support/objects-direct.ts";
import type { Attempt } from "../../src/executors/attempt.ts";
import { executeCall } from "../../src/executors/call.ts";
import { acquire, watchClient } from "../../src/executors/permit.ts";
import { RunObject } from "../../src/index.ts";
import { ABANDONED_MS, PERMIT_GUARD_MS, SWEEP_MS } from "../../src/limits.ts";
import type { AcquireReply } from "../../src/objects/methods/calls.ts";
import { RunSockets } from "../../durable-objects/run/sockets/hub.ts";
import { RunCaller } from "../../src/objects/clients/caller.ts";
import { logOf, ofType } from "../support/objects-log.ts";
import { skipTime, withTimers } from "../support/objects-clock.ts";
import { openRun, type TestRun } from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

const facts = factsOf("p", "up/x");
const UNSENT = {
  kind: "failure",
  class: "rejected",
  reason: { reason: "cancelled", message: "it was not sent" },
  answered: false,
  retryAfterMs: null,
  latencyMs: 0,
} as const;

const ANSWERED = {
  kind: "success",
  text: "ok",
  model: "x",
  finishReason: "stop",
  usage: null,
  latencyMs: 1,
} as const;

/** A run of one permit, which the call "first" has. */
async function fullRun(): Promise<TestRun> {
  const run = await openRun({ max_parallel: 1, budget: { usd: 1 } });
  expect((await run.object.acquire(acquireRequest("first", facts))).ok).toBe(true);
  return run;
}

/** The call "first" ends: the run's permit is free for the next in the queue. */
const firstEnds = async (run: TestRun): Promise<unknown> =>
  await run.object.settle({ attemptId: "first.1", outcome: UNSENT, stored: null });

const reservedOf = async (run: TestRun): Promise<number> => (await run.budget()).calls.reserved;
const pendingOf = async (run: TestRun): Promise<number> => (await run.document()).stats.pending_queries;

/** The next call has its permit at once, and nothing was paid for the one before. */
async function expectFree(run: TestRun): Promise<void> {
  const { calls, usd } = await run.budget();
  expect([calls.reserved, calls.spent, usd.reserved, usd.spent]).toEqual([0, 0, 0, 0]);
  expect(await run.object.acquireMany([acquireRequest("next", facts)], [])).toMatchObject([{ ok: true }]);
}

/** Holds a method's calls until it is released: `before` they do anything, or `after`, so that only their replies wait. */
function held(method: "withdraw" | "acquireMany" | "acquire", place: "before" | "after"): () => void {
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
function workersCall(
  run: TestRun,
  callId: string = crypto.randomUUID(),
): { client: AbortController; permit: Promise<unknown> } {
  const client = new AbortController();
  const request = acquireRequest(callId, facts);
  return { client, permit: acquire(new RunCaller(env, run.id), request, watchClient(client.signal)) };
}

describe("the permit of a call whose client leaves", () => {
  it("is taken back if it is granted while the withdrawal is on its way", async () => {
    const run = await fullRun();
    // Its Worker's request waits until it is granted, however long that takes: between two requests it would get no permit.
    await withTimers([SWEEP_MS], null, async () => {
      const { client, permit } = workersCall(run);
      await expect.poll(() => pendingOf(run)).toBe(2);
      const release = held("withdraw", "before");
      client.abort();
      await firstEnds(run);
      expect(await reservedOf(run)).toBe(1);
      release();
      expect(await permit).toBeNull();
    });
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

describe("the calls of a program that is killed", () => {
  const CALLS = 200;

  /** So many calls that wait behind "first", and their clients. */
  async function queued(count: number): Promise<{ run: TestRun; calls: ReturnType<typeof workersCall>[] }> {
    const run = await fullRun();
    const calls = Array.from({ length: count }, () => workersCall(run));
    await expect.poll(() => pendingOf(run)).toBe(count + 1);
    return { run, calls };
  }

  it("are withdrawn by a few requests, however many they are", { tags: ["slow"] }, async () => {
    const { run, calls } = await queued(CALLS);
    const seen = watched(run.id).calls;
    const before = { ...seen };
    const leftMs = Date.now();
    for (const { client } of calls) client.abort();
    expect(await Promise.all(calls.map(({ permit }) => permit))).toEqual(Array(CALLS).fill(null));
    const slow = Math.ceil((Date.now() - leftMs) / PERMIT_GUARD_MS);
    expect(await pendingOf(run)).toBe(1);
    const sent = ["withdraw", "withdrawMany"].map((method) => (seen[method] ?? 0) - (before[method] ?? 0));
    // Two, and one more for each time that the object takes longer than a request waits for another.
    expect(sent.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(2 + slow);
    await firstEnds(run);
    await expectFree(run);
  });

  it.each([
    ["that may have been sent", "unknown", CALLS / 10],
    ["that were not sent", "rejected", 0],
  ] as const)("settle their attempts %s by a few requests, each as it ended", async (_, kind, charged) => {
    const width = CALLS / 10;
    const run = await openRun({ max_parallel: width, budget: { usd: 1 } });
    const client = new AbortController();
    const kept: Promise<unknown>[] = [];
    const deps = {
      run: new RunCaller(env, run.id),
      config: { upstreams: [], routes: [], defaultModel: null, leasedCredit: false },
      signal: client.signal,
      waitUntil: (promise: Promise<unknown>) => void kept.push(promise),
    };
    const rules = { deadlineMs: null, onLost: "retry", waitsForGate: false, mayUseCredit: false } as const;
    const attempt = async ({ controller, timer }: Attempt) => {
      const stop = timer(60_000, () => undefined);
      await new Promise((resolve) => controller.signal.addEventListener("abort", resolve));
      stop();
      return { kind: "ended" as const, outcome: { ...UNSENT, class: kind } };
    };
    const calls = Array.from({ length: width }, () => executeCall({ facts, ...rules }, attempt, deps));
    await expect.poll(() => reservedOf(run)).toBe(width);
    const seen = watched(run.id).calls;
    const leftMs = Date.now();
    client.abort();
    for (const { end, usage } of await Promise.all(calls)) expect([end.kind, usage.attempts]).toEqual(["ended", 1]);
    const slow = Math.ceil((Date.now() - leftMs) / PERMIT_GUARD_MS);
    const { calls: budgeted } = await run.budget();
    expect([budgeted.reserved, budgeted.spent]).toEqual([0, charged]);
    expect((seen["settle"] ?? 0) + (seen["settleMany"] ?? 0)).toBeLessThanOrEqual(2 + slow);
    await Promise.all(kept);
  });

  it("are withdrawn by each other, if the request that began with it does not get through", async () => {
    const { run, calls } = await queued(3);
    const release = held("withdraw", "before");
    for (const { client } of calls) client.abort();
    await expect.poll(() => pendingOf(run)).toBe(1);
    release();
    expect(await Promise.all(calls.map(({ permit }) => permit))).toEqual([null, null, null]);
    await firstEnds(run);
    await expectFree(run);
  });

  it("are withdrawn one by one from an object of an earlier version", async () => {
    const { run, calls } = await queued(3);
    const plain = RunObject.prototype.withdrawMany;
    onTestFinished(() => void (RunObject.prototype.withdrawMany = plain));
    RunObject.prototype.withdrawMany = () =>
      Promise.reject(new Error('The RPC receiver does not implement the method "withdrawMany".'));
    for (const { client } of calls) client.abort();
    expect(await Promise.all(calls.map(({ permit }) => permit))).toEqual([null, null, null]);
    expect(await pendingOf(run)).toBe(1);
  });
});

describe("a queued call whose Worker is away", () => {
  /** A call that waits behind "first", whose Worker's second request is on its way while "first" ends. */
  async function awayCall(): Promise<{ run: TestRun; permit: Promise<unknown>; comeBack: () => void }> {
    const run = await fullRun();
    const comeBack = held("acquire", "before");
    const { permit } = workersCall(run, "away");
    await expect.poll(() => pendingOf(run)).toBe(2);
    await firstEnds(run);
    return { run, permit, comeBack };
  }

  const endsOf = async (run: TestRun): Promise<unknown[]> =>
    ofType(await logOf(run), "slot_completed").map(({ call_id, status }) => [call_id, status]);

  it("holds no permit, and leaves it to the next call", async () => {
    const { run } = await awayCall();
    expect([await reservedOf(run), await pendingOf(run)]).toEqual([0, 1]);
    await expectFree(run);
    expect(await pendingOf(run)).toBe(2);
  });

  it("goes on when its Worker comes back late: it starts, counts and ends once", async () => {
    const { run, permit, comeBack } = await awayCall();
    skipTime(ABANDONED_MS - 1_000);
    await expect.poll(() => reservedOf(run)).toBe(0);
    comeBack();
    expect(await permit).toMatchObject({ ok: true, lease: { attemptId: "away.1", attempt: 1 } });
    expect(await reservedOf(run)).toBe(1);
    await run.object.settle({ attemptId: "away.1", outcome: ANSWERED, stored: null });
    const { stats, metrics, budget } = await run.document();
    expect([stats.total_queries, stats.pending_queries, metrics.attempts]).toEqual([2, 0, 2]);
    expect(budget.calls).toMatchObject({ spent: 1, reserved: 0 });
    const lines = await logOf(run);
    expect(ofType(lines, "attempt_started").map(({ call_id }) => call_id)).toEqual(["first", "away"]);
    expect(await endsOf(run)).toEqual([
      ["first", "failed"],
      ["away", "completed"],
    ]);
  });

  it("ends once as left by its client, if its Worker never comes back", async () => {
    const { run } = await awayCall();
    skipTime(ABANDONED_MS);
    await expect.poll(() => pendingOf(run)).toBe(0);
    expect(await endsOf(run)).toEqual([
      ["first", "failed"],
      ["away", "failed"],
    ]);
    await expectFree(run);
    expect((await run.document()).stats.total_queries).toBe(2);
  });

  it("ends at once and once, if its client is said to have left", async () => {
    const { run, permit, comeBack } = await awayCall();
    await run.object.withdraw("away");
    expect(await pendingOf(run)).toBe(0);
    const [, left] = await endsOf(run);
    expect(left).toEqual(["away", "failed"]);
    comeBack();
    void permit;
    await expectFree(run);
    expect(await endsOf(run)).toHaveLength(2);
  });

  it("ends once at its deadline, and its Worker is told so when it comes back", async () => {
    const run = await fullRun();
    const comeBack = held("acquire", "before");
    const request = { ...acquireRequest("away", facts), deadlineMs: 1_000, waitsForGate: true };
    const permit = acquire(new RunCaller(env, run.id), request, watchClient(new AbortController().signal));
    await expect.poll(() => pendingOf(run)).toBe(2);
    skipTime(1_000);
    await expect.poll(() => pendingOf(run)).toBe(1);
    comeBack();
    expect(await permit).toMatchObject({ ok: false, reason: { reason: "deadline_exceeded" } });
    await firstEnds(run);
    expect((await endsOf(run)).filter((end) => (end as string[])[0] === "away")).toEqual([["away", "failed"]]);
    expect(await pendingOf(run)).toBe(0);
  });

  it("shares the outcome of an equal call that ends meanwhile, and is not sent itself", async () => {
    const run = await openRun({ max_parallel: 2, budget: { usd: 1 } });
    const equal = { ...facts, dedupeKey: "same" };
    expect((await run.object.acquire(acquireRequest("first", equal))).ok).toBe(true);
    const comeBack = held("acquire", "before");
    const request = acquireRequest("away", equal);
    const permit = acquire(new RunCaller(env, run.id), request, watchClient(new AbortController().signal));
    await expect.poll(() => pendingOf(run)).toBe(2);
    await run.object.settle({ attemptId: "first.1", outcome: ANSWERED, stored: null });
    comeBack();
    expect(await permit).toMatchObject({ ok: "shared", outcome: { kind: "success", text: "ok" } });
    const { stats, metrics, budget } = await run.document();
    expect([stats.pending_queries, metrics.attempts]).toEqual([0, 1]);
    expect(budget.calls).toMatchObject({ spent: 1, reserved: 0 });
    expect(await endsOf(run)).toEqual([
      ["first", "completed"],
      ["away", "completed"],
    ]);
  });

  it("ends with its run, once", async () => {
    const { run, permit, comeBack } = await awayCall();
    await run.object.end("closed");
    comeBack();
    expect(await permit).toMatchObject({ ok: false });
    const lines = ofType(await logOf(run), "slot_completed");
    expect(lines.map(({ call_id }) => call_id)).toEqual(["first", "away"]);
  });

  it("is neither lost nor counted twice if the object restarts meanwhile", async () => {
    const { run, permit, comeBack } = await awayCall();
    // The end of "first" is in the rows then.
    expect(await endsOf(run)).toEqual([["first", "failed"]]);
    await crash(run.object);
    comeBack();
    expect(await permit).toMatchObject({ ok: true });
    const next = env.RUN.get(run.object.id);
    await next.settle({ attemptId: "away.1", outcome: ANSWERED, stored: null });
    expect((await run.document()).stats).toMatchObject({ total_queries: 2, pending_queries: 0 });
    expect((await endsOf(run)).filter((end) => (end as string[])[0] === "away")).toEqual([["away", "completed"]]);
  });
});

describe("a permit that reaches nobody, because its Worker's socket breaks", () => {
  /** The next permit that is sent at a socket does not arrive. */
  function loseOnePermit(): void {
    const plain = RunSockets.prototype.signal;
    onTestFinished(() => void (RunSockets.prototype.signal = plain));
    RunSockets.prototype.signal = function (this: RunSockets, to, signal): boolean {
      if (signal.type !== "reply") return plain.call(this, to, signal);
      RunSockets.prototype.signal = plain;
      return false;
    };
  }

  const socketsOf = (run: TestRun): Promise<WebSocket[]> =>
    runInDurableObject(run.object, (_, ctx) => ctx.getWebSockets());

  it("goes back at once, and its call goes on when its Worker comes back", { tags: ["slow"] }, async () => {
    const run = await fullRun();
    const { permit } = workersCall(run, "away");
    await expect.poll(async () => (await socketsOf(run)).length).toBe(1);
    loseOnePermit();
    await firstEnds(run);
    expect([await reservedOf(run), await pendingOf(run)]).toEqual([0, 1]);
    await runInDurableObject(run.object, (_, ctx) => {
      for (const socket of ctx.getWebSockets()) socket.close(1011, "it breaks");
    });
    expect(await permit).toMatchObject({ ok: true, lease: { attemptId: "away.1" } });
    await run.object.settle({ attemptId: "away.1", outcome: ANSWERED, stored: null });
    const { stats, metrics, budget } = await run.document();
    expect([stats.total_queries, stats.pending_queries, metrics.attempts]).toEqual([2, 0, 2]);
    expect(budget.calls).toMatchObject({ spent: 1, reserved: 0 });
    const ends = ofType(await logOf(run), "slot_completed").filter(({ call_id }) => call_id === "away");
    expect(ends).toMatchObject([{ status: "completed", attempts: 1 }]);
  });
});
