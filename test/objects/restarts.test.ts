import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { RunStore } from "../../durable-objects/run/store.ts";
import { LEASE_TTL_MS, SETTLE_LAG_MS } from "../../src/limits.ts";
import type { LaneObject, RunObject } from "../../src/index.ts";
import type { CallFacts, Outcome } from "../../src/call.ts";
import { PageBuilder, type Page } from "../../src/engine/page.ts";
import { skipTime, withHeartbeats } from "../support/objects-clock.ts";
import {
  expectSettled,
  openRun,
  prompts,
  untilInFlight,
  upstreamStats,
  type BatchAnswer,
  type TestRun,
} from "../support/objects-run.ts";
import { watched, watchObjects } from "../support/objects-watch.ts";

watchObjects();

describe("a run object that restarts", () => {
  it("in the middle of a batch loses no slot, runs none twice and charges each once", async () => {
    const run = await openRun({ max_parallel: 10, budget: { usd: 1 } });
    const batch = run.batch({ prompts: prompts(40), model: "up/key/evicted-run/delay/150" });
    await untilInFlight("evicted-run", 10);
    await evictDurableObject(run.object);
    const answer = await batch;
    expectWhole(answer, prompts(40));
    expect((await upstreamStats("evicted-run")).requests).toBe(40);
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it("in the middle of a stream of slots has each told once, with the group's end after them", async () => {
    const run = await openRun({ max_parallel: 6 });
    const body = { prompts: prompts(18), model: "up/key/evicted-stream/delay/150" };
    const lines = run.post("/batch", body, { accept: "application/x-ndjson" }).then((response) => response.text());
    await expect.poll(async () => (await upstreamStats("evicted-stream")).requests).toBeGreaterThan(6);
    await crash(run.object);
    const events = (await lines)
      .trim()
      .split("\n")
      .map((line) => streamEvent.parse(JSON.parse(line)));
    const slots = events.filter(({ type }) => type === "slot").map(({ index }) => index ?? -1);
    expect(slots.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 18 }, (_, index) => index));
    expect(events.at(-1)?.type).toBe("group_completed");
  });

  it("while a query is at the upstream takes its answer, and charges it once", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    const query = run.query({ prompt: "p", model: "up/key/evicted-query/delay/200" });
    await untilInFlight("evicted-query", 1);
    await evictDurableObject(run.object);
    const answer = await query;
    expect(answer).toMatchObject({ text: "p", attempts: 1 });
    expect((await upstreamStats("evicted-query")).requests).toBe(1);
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it("by a crash, while one query is at the upstream and others wait for a permit, answers them all", async () => {
    const run = await openRun({ max_parallel: 1, budget: { usd: 1 } });
    const asked = prompts(4);
    const queries = asked.map((prompt) => run.query({ prompt, model: "up/key/crashed-queue/delay/100" }));
    await untilInFlight("crashed-queue", 1);
    await crash(run.object);
    const answers = await Promise.all(queries);
    expect(answers.map(({ text }) => text)).toEqual(asked);
    expect((await upstreamStats("crashed-queue")).requests).toBe(4);
    expectSettled(
      await run.budget(),
      answers.reduce((sum, { usage }) => sum + usage.cost, 0),
    );
  });

  it("shows the same results, group and document as before", async () => {
    const run = await openRun({ max_parallel: 4 });
    const model = "up/key/same/status/400/percent/30";
    const { id } = await run.batch({ prompts: prompts(30), model });
    await run.query({ prompt: "one more" });
    const look = async () => [
      await run.object.results(1, 0),
      await run.object.waitGroup(1, 0),
      (await run.object.endedSlots(1, null, 0))?.slots.toSorted((a, b) => a.index - b.index),
      await run.document(),
    ];
    const before = await look();
    expect(before[1]).toMatchObject({ id, status: "partial", count: 30 });
    await evictDurableObject(run.object);
    expect(await look()).toEqual(before);
  });

  it("forgets the pages of a batch that was never opened: they are never run", async () => {
    const run = await openRun();
    const { pages } = pagesOf(["staged"], "up/key/unsealed");
    expect(await run.object.stagePages(pages, null)).toBe(1);
    await evictDurableObject(run.object);
    await runDurableObjectAlarm(run.object);
    // Nothing is left to look after before the run's own end.
    expect(await alarmOf(run)).toBe(Date.parse((await run.document()).expires_at));
    const answer = await run.batch({ prompts: ["opened"], model: "up/key/unsealed" });
    expect(answer.results).toEqual(["opened"]);
    expect((await upstreamStats("unsealed")).sends).toEqual({ opened: 1 });
    expect((await run.document()).stats).toMatchObject({ total_queries: 1, pending_queries: 0 });
  });

  it("takes the settlement of an attempt once, however often it is told", async () => {
    const run = await openRun({ budget: { calls: 5 } });
    const attemptId = await acquireOne(run);
    expect(await run.object.settle(attemptId, SUCCESS)).toMatchObject({ known: true, promptTokens: 3 });
    expect(await run.object.settle(attemptId, SUCCESS)).toMatchObject({ known: false, promptTokens: 0 });
    await scheduler.wait(2 * SETTLE_LAG_MS);
    await crash(run.object);
    expect(await run.object.settle(attemptId, SUCCESS)).toMatchObject({ known: false });
    expect((await run.budget()).calls).toEqual({ limit: 5, spent: 1, reserved: 0, remaining: 4 });
  });

  it("before it has written the settlement of a query charges what was reserved: never less than was spent", async () => {
    const run = await openRun({ budget: { completion_tokens: 1_000 } });
    await run.object.settle(await acquireOne(run), SUCCESS);
    await crash(run.object);
    expect((await run.budget()).completion_tokens).toMatchObject({ spent: 0, reserved: 100 });
    skipTime(LEASE_TTL_MS);
    await runDurableObjectAlarm(run.object);
    expect((await run.budget()).completion_tokens).toMatchObject({ spent: 100, reserved: 0 });
  });
});

describe("a write that fails", () => {
  it("in the middle of a batch with queries beside it leaves nobody waiting and no slot lost", async () => {
    const run = await openRun({ max_parallel: 8, budget: { usd: 1 } });
    const model = "up/key/disk/delay/150";
    const batch = run.batch({ prompts: prompts(30), model });
    const queries = prompts(6, "alone").map((prompt) => run.query({ prompt, model }));
    await untilInFlight("disk", 8);
    failNextWrite();
    const answer = await batch;
    expectWhole(answer, prompts(30));
    const answers = await Promise.all(queries);
    expect(answers.map(({ text }) => text)).toEqual(prompts(6, "alone"));
    const costUsd = answers.reduce((sum, { usage }) => sum + usage.cost, answer.usage.cost);
    expectSettled(await run.budget(), costUsd);
  });
});

describe("a lane", () => {
  it("that is evicted in the middle of a batch, and its run with it, loses nothing", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const batch = run.batch({ prompts: prompts(12), model: "up/key/evicted-lane/delay/150" });
    await untilInFlight("evicted-lane", 6);
    await evictDurableObject(env.LANE.getByName(`${run.id}/0`));
    await evictDurableObject(run.object);
    await run.document();
    skipTime(LEASE_TTL_MS);
    const answer = await batch;
    expectWhole(answer, prompts(12));
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it("that is lost has its attempts charged as estimates and made again once their leases are over", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const model = "up/key/lost-lane/delay/300";
    const batch = run.batch({ prompts: prompts(9), model, max_tokens: 50 });
    await untilInFlight("lost-lane", 6);
    await crash(env.LANE.getByName(`${run.id}/0`));
    // Its attempts ended at the upstream, and nobody knows.
    await untilInFlight("lost-lane", 0);
    skipTime(LEASE_TTL_MS);
    const answer = await batch;
    expectWhole(answer, prompts(9));
    expect(answer.items.map(({ attempts }) => attempts)).toEqual([2, 2, 2, 2, 2, 2, 1, 1, 1]);
    expect(answer.items.map(({ estimated }) => estimated)).toEqual(answer.items.map(({ attempts }) => attempts === 2));
    const { requests, sends } = await upstreamStats("lost-lane");
    expect(requests).toBe(15);
    expect(Math.max(...Object.values(sends))).toBe(2);
    const budget = await run.budget();
    expectSettled(budget, answer.usage.cost);
    expect(budget.calls.spent).toBe(15);
    // Six lost attempts at their whole reservation: 50 completion tokens each.
    expect(budget.completion_tokens.spent).toBeGreaterThan(6 * 50);
  });
});

describe("a crash of everything", () => {
  it("in the middle of a batch ends every slot once, within the budget", async () => {
    const run = await openRun({ max_parallel: 12, budget: { usd: 0.01 } });
    const batch = run.batch({ prompts: prompts(40), model: "up/key/crash/delay/100/jitter/100", max_tokens: 50 });
    await untilInFlight("crash", 12);
    const inFlightAtMost = 12;
    await abortAllDurableObjects();
    // A lease that a restart finds gets a fresh term.
    await run.document();
    skipTime(LEASE_TTL_MS);
    const answer = await batch;
    expectWhole(answer, prompts(40));
    const { budget, metrics, stats } = await run.document();
    expectSettled(budget, answer.usage.cost);
    expect(metrics.attempts).toBeLessThanOrEqual(40 + inFlightAtMost);
    expect(metrics.retries).toBe(metrics.attempts - 40);
    expect(metrics.retries).toBeGreaterThan(0);
    expect(stats).toMatchObject({ total_queries: 40, parallel_batches: 1, pending_queries: 0 });
  });

  it("is recovered from by the run's alarm alone, where no client waits any more", async () => {
    const run = await openRun({ max_parallel: 6, budget: { usd: 1 } });
    const lanes = await openUnwatched(run, prompts(12), "up/key/alone/delay/150");
    for (const lane of lanes) await env.LANE.getByName(`${run.id}/${lane}`).start(run.id, lane);
    await untilInFlight("alone", 6);
    await abortAllDurableObjects();
    await run.document();
    skipTime(LEASE_TTL_MS);
    await runDurableObjectAlarm(run.object);
    await expect.poll(() => statusOf(run), { timeout: 5_000 }).toBe("completed");
    const { calls } = await run.budget();
    expect(calls).toMatchObject({ spent: 18, reserved: 0 });
  });

  it("between the opening of a batch and the start of its lanes leaves the start to the run's alarm", async () => {
    const run = await openRun({ max_parallel: 12 });
    expect(await openUnwatched(run, prompts(12), "up/key/unstarted")).toEqual([0, 1]);
    await evictDurableObject(run.object);
    await runDurableObjectAlarm(run.object);
    await expect.poll(() => statusOf(run)).toBe("completed");
    expect([...watched(run.id).laneStubsTakenBy]).toEqual(["run.alarm"]);
    expect((await upstreamStats("unstarted")).requests).toBe(12);
  });
});

describe("a lease", () => {
  it("of a lane lives on for as long as the lane's heartbeats come", async () => {
    const run = await openRun({ max_parallel: 2 });
    const answer = await withHeartbeats(20, async () => {
      const batch = run.batch({ prompts: prompts(2), model: "up/key/beating-lane/delay/600" });
      await untilInFlight("beating-lane", 2);
      await ageBy(3 * LEASE_TTL_MS, run.object);
      return batch;
    });
    expect(answer.items.map(({ attempts, estimated }) => ({ attempts, estimated }))).toEqual([
      { attempts: 1, estimated: false },
      { attempts: 1, estimated: false },
    ]);
  });

  it("of a Worker lives on for as long as the Worker's heartbeats come", async () => {
    const run = await openRun();
    const answer = await withHeartbeats(20, async () => {
      const query = run.query({ prompt: "p", model: "up/key/beating-worker/delay/600" });
      await untilInFlight("beating-worker", 1);
      await ageBy(3 * LEASE_TTL_MS, run.object);
      return query;
    });
    expect(answer).toMatchObject({ text: "p", attempts: 1 });
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it("without heartbeats is over after its time, and not a moment before", async () => {
    const run = await openRun({ max_parallel: 2 });
    await withHeartbeats(null, async () => {
      const batch = run.batch({ prompts: prompts(1), model: "up/key/silent/delay/400" });
      await untilInFlight("silent", 1);
      skipTime(LEASE_TTL_MS - 5_000);
      await runDurableObjectAlarm(run.object);
      expect((await run.budget()).calls).toMatchObject({ spent: 0, reserved: 1 });
      skipTime(5_000);
      await runDurableObjectAlarm(run.object);
      expect((await run.budget()).calls.spent).toBe(1);
      const answer = await batch;
      expect(answer.items[0]).toMatchObject({ status: "completed", attempts: 2, estimated: true });
    });
  });
});

const streamEvent = z.looseObject({ type: z.string(), index: z.number().optional() });

/** Lets time pass in steps shorter than a lease, with room for heartbeats between them; the alarm looks at each step. */
async function ageBy(ms: number, stub: DurableObjectStub): Promise<void> {
  for (let leftMs = ms; leftMs > 0; leftMs -= 15_000) {
    skipTime(15_000);
    await scheduler.wait(60);
    await runDurableObjectAlarm(stub);
  }
}

/** Ends one object where it stands: what it holds in memory and what it waits for are gone. */
async function crash(stub: DurableObjectStub<RunObject> | DurableObjectStub<LaneObject>): Promise<void> {
  const abort = (_: unknown, state: DurableObjectState): void => state.abort("the test crashes this object");
  await runInDurableObject<RunObject | LaneObject, void>(stub, abort).catch(() => undefined);
}

/** Lets the next row of a ledger's shard fail to be written, whichever object writes it. */
function failNextWrite(): void {
  const plain = RunStore.prototype.putShard;
  RunStore.prototype.putShard = () => {
    RunStore.prototype.putShard = plain;
    throw new Error("the test lets a write fail");
  };
}

async function statusOf(run: TestRun): Promise<string | undefined> {
  return (await run.object.waitGroup(1, 0))?.status;
}

function alarmOf(run: TestRun): Promise<number | null> {
  return runInDurableObject(run.object, (_: RunObject, state) => state.storage.getAlarm());
}

/** Opens a batch as a Worker does that dies before it can start a lane or wait. Returns the lanes to start. */
async function openUnwatched(run: TestRun, asked: string[], model: string): Promise<number[]> {
  const { pages, models } = pagesOf(asked, model);
  const request = { count: asked.length, concurrency: null, onError: "continue", models, defaultsJson: "{}" } as const;
  const opened = await run.object.openGroup(request, pages, null);
  if (!opened.ok) throw new Error("the batch was refused");
  return opened.lanes;
}

function pagesOf(asked: string[], model: string): { pages: Page[]; models: (string | null)[] } {
  const builder = new PageBuilder({});
  for (const prompt of asked) builder.add({ body: { prompt }, facts: factsOf(prompt, model) });
  const page = builder.flush();
  return { pages: page === null ? [] : [page], models: builder.models };
}

/** What a Worker reports of a query that its upstream answered with 3 + 4 tokens. */
const SUCCESS: Outcome = {
  kind: "success",
  text: "t",
  model: "x",
  finishReason: null,
  usage: { promptTokens: 3, completionTokens: 4, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null },
  latencyMs: 1,
};

/** Takes the permit of a query of up to 100 completion tokens, as a Worker does. Returns the attempt's id. */
async function acquireOne(run: TestRun): Promise<string> {
  const facts = { ...factsOf("p", "up/x"), maxTokens: 100 };
  const acquired = await run.object.acquire({ callId: "call", attempt: 1, facts, delayMs: 0 });
  if (acquired.ok !== true) throw new Error("the run gave no permit");
  return acquired.lease.attemptId;
}

function factsOf(prompt: string, model: string): CallFacts {
  return { promptBytes: prompt.length, messageCount: 1, model, maxTokens: null, priority: 2, timeoutMs: null };
}

function expectWhole(answer: BatchAnswer, results: string[]): void {
  expect(answer.status).toBe("completed");
  expect(answer.results).toEqual(results);
  expect(answer.items.every(({ status }) => status === "completed")).toBe(true);
}
