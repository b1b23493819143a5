/** The budget as a client meets it: what is refused, in which words, with which figures, and that it is never passed. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { documentOf, errorOf, groupOf, replyOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const open = (budget: Record<string, number>) => world.openRun({ budget, default_model: "up-1", max_parallel: 8 });
const send = (run: RunAccess, body: Record<string, unknown>) => run.send("/query", { json: body });

describe("a run whose budget is spent", () => {
  it("of calls refuses the next one with 402, its figures and the message that agents match", async () => {
    const run = await open({ calls: 2 });
    for (const prompt of ["1", "2"]) replyOf(await send(run, { prompt }));
    const answer = await send(run, { prompt: "3" });
    expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([402, "false"]);
    expect(errorOf(answer)).toEqual({
      message: expect.stringMatching(/^Global call budget exceeded: 2 spent, limit is 2/),
      type: "insufficient_quota",
      code: "budget_exhausted",
      param: null,
      retryable: false,
      dimension: "calls",
      limit: 2,
      spent: 2,
      reserved: 0,
      remaining: 0,
      needed: 1,
    });
    expect(world.upstream.counters.requests).toBe(2);
  });

  it("in dollars names the limit in dollars", async () => {
    const run = await open({ usd: 0.00001 });
    const answer = await send(run, { prompt: "a prompt that is dearer than that", max_tokens: 100 });
    expect([answer.status, errorOf(answer).dimension]).toEqual([402, "usd"]);
    expect(errorOf(answer).message).toMatch(/^Budget exceeded: \$0\.00 spent, limit is \$0\.00001;/);
    expect(errorOf(answer)).toMatchObject({ limit: 0.00001, spent: 0, reserved: 0, remaining: 0.00001 });
  });

  it("of prompt tokens names that dimension", async () => {
    const run = await open({ prompt_tokens: 20 });
    const answer = await send(run, { prompt: "more than twenty bytes of it" });
    expect([answer.status, errorOf(answer).dimension]).toEqual([402, "prompt_tokens"]);
    expect(errorOf(answer).message).toMatch(/^Prompt token budget exceeded: 0 spent, limit is 20;/);
  });

  it("of completion tokens names that dimension", async () => {
    const run = await open({ completion_tokens: 10 });
    const answer = await send(run, { prompt: "p" });
    expect([answer.status, errorOf(answer).dimension]).toEqual([402, "completion_tokens"]);
    expect(errorOf(answer).message).toMatch(/^Completion token budget exceeded: 0 spent, limit is 10;/);
  });

  it("of zero refuses the first call", async () => {
    const run = await open({ usd: 0 });
    expect((await send(run, { prompt: "p" })).status).toBe(402);
    expect(world.upstream.counters.requests).toBe(0);
  });

  it("still allows GET /run and GET /budget", async () => {
    const run = await open({ calls: 1 });
    replyOf(await send(run, { prompt: "p" }));
    expect((await run.send("/budget")).json).toEqual((await documentOf(run)).budget);
    expect((await documentOf(run)).budget.calls).toEqual({ limit: 1, spent: 1, reserved: 0, remaining: 0 });
  });
});

describe("a batch that costs more than the remaining budget", () => {
  it("runs until the budget is spent, and ends every other slot as budget_exhausted", async () => {
    const run = await open({ calls: 5 });
    const prompts = Array.from({ length: 12 }, (_, index) => `${index}`);
    const group = groupOf(await run.send("/batch", { json: { prompts } }));
    expect(group.status).toBe("partial");
    expect(group.errors.filter((error) => error === null)).toHaveLength(5);
    for (const [index, error] of group.errors.entries()) {
      if (error === null) expect(group.results[index]).toBe(prompts[index]);
      else expect([error.code, error.attempts, error["dimension"]]).toEqual(["budget_exhausted", 0, "calls"]);
    }
    expect(world.upstream.counters.requests).toBe(5);
    expect((await documentOf(run)).budget.calls).toMatchObject({ spent: 5, reserved: 0 });
  });

  it("exceeds no limit at any time, whatever runs concurrently", { tags: ["slow"] }, async () => {
    const run = await open({ calls: 40, usd: 0.01 });
    const prompts = Array.from({ length: 30 }, (_, index) => `{{jitter/40/status/500/percent/20}} ${index}`);
    const all = Promise.all([
      run.send("/batch", { json: { prompts, max_tokens: 50 } }),
      run.send("/batch", { json: { prompts: prompts.toReversed(), max_tokens: 50 } }),
      ...prompts.slice(0, 10).map((prompt) => send(run, { prompt: `${prompt} alone`, max_tokens: 50 })),
    ]);
    const running = { ended: false };
    void all.finally(() => (running.ended = true));
    let looks = 0;
    for (; !running.ended; looks += 1) {
      for (const line of Object.values((await documentOf(run)).budget)) {
        if (line.limit !== null) expect(line.spent + line.reserved).toBeLessThanOrEqual(line.limit + 1e-12);
      }
    }
    expect(looks).toBeGreaterThan(5);
    await all;
    const { budget, stats } = await documentOf(run);
    expect([budget.calls.reserved, budget.usd.reserved, stats.pending_queries]).toEqual([0, 0, 0]);
    expect(budget.calls.spent).toBeLessThanOrEqual(40);
  });
});

describe("the remaining budget", () => {
  it("lowers the cap sent upstream to what it pays for before it refuses calls", async () => {
    const run = await open({ completion_tokens: 40 });
    const reply = replyOf(await send(run, { prompt: "x".repeat(400), max_tokens: 1_000 }));
    expect(reply).toMatchObject({ text: "x".repeat(160), finish_reason: "length" });
    expect((await documentOf(run)).budget.completion_tokens).toEqual({
      limit: 40,
      spent: 40,
      reserved: 0,
      remaining: 0,
    });
  });

  it("makes a call wait if a call in flight may release part of its reservation", async () => {
    const run = await open({ completion_tokens: 100 });
    const first = send(run, { prompt: "{{latch/first}}", max_tokens: 100 });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const second = send(run, { prompt: "second", max_tokens: 50 });
    await expect.poll(async () => (await documentOf(run)).stats.pending_queries).toBe(2);
    world.upstream.open("first");
    expect([replyOf(await first).text, replyOf(await second).text]).toEqual(["{{latch/first}}", "second"]);
    expect(world.upstream.counters.peakInFlight).toBe(1);
  });

  it("is charged for the tokens that the provider reports, at the configured price", async () => {
    const run = await open({ usd: 1 });
    const { usage } = replyOf(await send(run, { prompt: "abcd" }));
    expect(usage.cost).toBe(0.000006);
    expect((await documentOf(run)).budget).toMatchObject({
      usd: { spent: 0.000006 },
      calls: { limit: null, spent: 1, remaining: null },
      prompt_tokens: { spent: 4 },
      completion_tokens: { spent: 1 },
    });
  });
});
