import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { RunStore } from "../../durable-objects/run/store/store.ts";
import type { RunObject } from "../../src/index.ts";
import { LEARNED_ANSWERS_MIN, LEASE_TTL_MS, SETTLE_LAG_MS, STAGED_KEPT_MS } from "../../src/limits.ts";
import { skipTime, withTimers } from "../support/objects-clock.ts";
import { acquireOne, crash, evict, pagesOf, storedLeases, SUCCESS } from "../support/objects-direct.ts";
import { late } from "../support/objects-paces.ts";
import {
  asOperator,
  expectSettled,
  expectWhole,
  openLatch,
  openRun,
  prompts,
  untilInFlight,
  upstreamStats,
  type TestRun,
} from "../support/objects-run.ts";

describe("a run object that restarts", () => {
  it("in the middle of a batch loses no slot, runs none twice and charges each once", async () => {
    const run = await openRun({ max_parallel: 10, budget: { usd: 1 } });
    const batch = run.batch({ prompts: prompts(40), model: late("up/key/evicted-run/latch/evicted-run") });
    await untilInFlight("evicted-run", 10);
    const evicted = evict(run.object);
    await openLatch("evicted-run");
    await evicted;
    const answer = await batch;
    expectWhole(answer, prompts(40));
    expect((await upstreamStats("evicted-run")).requests).toBe(40);
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it("is still escalated, whichever instance is asked", async () => {
    const run = await openRun({});
    const items = [{ prompt: "x", tier: "P0", model: "up/status/400" }];
    await run.post("/batch", { items }).then((response) => response.text());
    expect((await run.document()).status).toBe("escalated");
    await crash(run.object);
    expect((await run.document()).status).toBe("escalated");
  });

  it(
    "in the middle of a stream of slots sends each once, followed by the group's end",
    { tags: ["slow"] },
    async () => {
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
    },
  );

  it("keeps an answer that a learned cap cut, because the slot ends with it if the budget is spent", async () => {
    const run = await openRun({ budget: { completion_tokens: 5_100 } });
    const model = "up/key/cut-answer";
    await run.batch({ prompts: prompts(LEARNED_ANSWERS_MIN), model });
    // What is left pays for no longer answer.
    await run.query({ prompt: "word".repeat(4_030), max_tokens: 4_050, model });
    const long = `${"word".repeat(400)} {{latch/cut-answer}}`;
    const batch = run.batch({ prompts: [long, "short {{latch/cut-answer}}"], model });
    await untilInFlight("cut-answer", 2);
    expect((await asOperator("PATCH", `/runs/${run.id}`, { paused: true })).status).toBe(200);
    await openLatch("cut-answer");
    await expect.poll(() => queuedTexts(run)).toEqual([expect.any(Number)]);
    const [cut = 0] = await queuedTexts(run);
    expect(cut).toBeLessThan(4 * 400);
    await crash(run.object);
    await asOperator("PATCH", `/runs/${run.id}`, { paused: false });
    const answer = await batch;
    expect(answer.results[0]).toBe(long.slice(0, cut));
    expect(answer.items[0]).toMatchObject({ attempts: 1, finish_reason: "length", capped_by: "budget" });
  });

  it("while a query is at the upstream accepts its answer, and charges it once", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    const query = run.query({ prompt: "p", model: "up/key/evicted-query/latch/evicted-query" });
    await untilInFlight("evicted-query", 1);
    await evict(run.object);
    await openLatch("evicted-query");
    const answer = await query;
    expect(answer).toMatchObject({ text: "p", attempts: 1 });
    expect((await upstreamStats("evicted-query")).requests).toBe(1);
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it("by a crash, with one query at the upstream and others waiting for a permit, answers them all", async () => {
    const run = await openRun({ max_parallel: 1, budget: { usd: 1 } });
    const asked = prompts(4);
    const queries = asked.map((prompt) => run.query({ prompt, model: "up/key/crashed-queue/latch/crashed-queue" }));
    await untilInFlight("crashed-queue", 1);
    await crash(run.object);
    await openLatch("crashed-queue");
    const answers = await Promise.all(queries);
    expect(answers.map(({ text }) => text)).toEqual(asked);
    expect((await upstreamStats("crashed-queue")).requests).toBe(4);
    expectSettled(
      await run.budget(),
      answers.reduce((sum, { usage }) => sum + usage.cost, 0),
    );
  });

  it("returns the same results, group and document as before", async () => {
    const run = await openRun({ max_parallel: 4 });
    const model = "up/key/same/status/400/percent/30";
    const { id } = await run.batch({ prompts: prompts(30), model });
    await run.query({ prompt: "one more" });
    await expect.poll(() => storedLeases(run)).toBe(0);
    const look = async () => [
      await run.object.results(1, 0),
      await run.object.waitGroup(1, 0),
      (await run.object.endedSlots(1, null, 0))?.slots.toSorted((a, b) => a.index - b.index),
      await run.document(),
    ];
    const before = await look();
    expect(before[1]).toMatchObject({ id, status: "partial", count: 30 });
    await evict(run.object);
    expect(await look()).toEqual(before);
  });

  it("never runs the uploaded pages of a batch that was never opened, and drops them when they expire", async () => {
    const run = await openRun();
    const { pages } = pagesOf(["staged"], "up/key/unsealed");
    expect(await run.object.stagePages("never opened", pages)).toBeNull();
    await evict(run.object);
    await runDurableObjectAlarm(run.object);
    expect(await pagesOfRun(run)).toBe(1);
    skipTime(STAGED_KEPT_MS);
    await runDurableObjectAlarm(run.object);
    expect(await pagesOfRun(run)).toBe(0);
    // Nothing is left to look after before the run's own end.
    expect(await alarmOf(run)).toBe(Date.parse((await run.document()).expires_at));
    const answer = await run.batch({ prompts: ["opened"], model: "up/key/unsealed" });
    expect(answer.results).toEqual(["opened"]);
    expect((await upstreamStats("unsealed")).sends).toEqual({ opened: 1 });
    expect((await run.document()).stats).toMatchObject({ total_queries: 1, pending_queries: 0 });
  });

  it("books the settlement of an attempt once, however often it is reported", async () => {
    const run = await openRun({ budget: { calls: 5 } });
    const attemptId = await acquireOne(run);
    expect(await run.object.settle({ attemptId, outcome: SUCCESS, stored: null })).toMatchObject({
      known: true,
      promptTokens: 3,
    });
    expect(await run.object.settle({ attemptId, outcome: SUCCESS, stored: null })).toMatchObject({
      known: false,
      promptTokens: 0,
    });
    await expect.poll(() => storedLeases(run)).toBe(0);
    await crash(run.object);
    expect(await run.object.settle({ attemptId, outcome: SUCCESS, stored: null })).toMatchObject({ known: false });
    expect((await run.budget()).calls).toEqual({ limit: 5, spent: 1, reserved: 0, remaining: 4 });
  });

  it("before it has written the settlement of a query charges what was reserved: never less than was spent", async () => {
    const run = await openRun({ budget: { completion_tokens: 1_000 } });
    await withTimers([SETTLE_LAG_MS], null, async () => {
      await run.object.settle({ attemptId: await acquireOne(run), outcome: SUCCESS, stored: null });
      await crash(run.object);
    });
    expect((await run.budget()).completion_tokens).toMatchObject({ spent: 0, reserved: 100 });
    skipTime(LEASE_TTL_MS);
    await runDurableObjectAlarm(run.object);
    expect((await run.budget()).completion_tokens).toMatchObject({ spent: 100, reserved: 0 });
  });
});

describe("a write that fails", () => {
  it("in the middle of a batch with concurrent queries leaves no client waiting and loses no slot", async () => {
    const run = await openRun({ max_parallel: 8, budget: { usd: 1 } });
    const model = late("up/key/disk/latch/disk");
    const batch = run.batch({ prompts: prompts(30), model });
    const queries = prompts(6, "alone").map((prompt) => run.query({ prompt, model }));
    await untilInFlight("disk", 8);
    failNextWrite();
    await openLatch("disk");
    const answer = await batch;
    expectWhole(answer, prompts(30));
    const answers = await Promise.all(queries);
    expect(answers.map(({ text }) => text)).toEqual(prompts(6, "alone"));
    const costUsd = answers.reduce((sum, { usage }) => sum + usage.cost, answer.usage.cost);
    expectSettled(await run.budget(), costUsd);
  });
});

const streamEvent = z.looseObject({ type: z.string(), index: z.number().optional() });

/** Lets the next row of a ledger's shard fail to be written, whichever object writes it. */
function failNextWrite(): void {
  const plain = RunStore.prototype.putShard;
  RunStore.prototype.putShard = () => {
    RunStore.prototype.putShard = plain;
    throw new Error("the test lets a write fail");
  };
}

function pagesOfRun(run: TestRun): Promise<number> {
  return runInDurableObject(run.object, (_: RunObject, state) =>
    Number(state.storage.sql.exec("SELECT count(*) AS n FROM page").one()["n"]),
  );
}

function alarmOf(run: TestRun): Promise<number | null> {
  return runInDurableObject(run.object, (_: RunObject, state) => state.storage.getAlarm());
}

/** Lengths of the answers that rows keep of slots which wait to run again. */
function queuedTexts(run: TestRun): Promise<number[]> {
  const query = "SELECT length(text) AS chars FROM slot WHERE state = 'queued'";
  return runInDurableObject(run.object, (_: RunObject, { storage }) =>
    storage.sql
      .exec<{ chars: number }>(query)
      .toArray()
      .map(({ chars }) => chars),
  );
}
