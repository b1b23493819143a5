/** A run's counters: by model, shown from zero again, and the grouping window that is closed by hand. */
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { crash, evict, storedLeases } from "../support/objects-direct.ts";
import { openRun, prompts, type TestRun } from "../support/objects-run.ts";
import { isHit } from "../support/steering.ts";

const counted = z.object({ calls: z.number(), input_tokens: z.number(), output_tokens: z.number(), cost: z.number() });
const usage = z.object({
  object: z.literal("usage"),
  llm_calls: z.number(),
  input_tokens: z.number(),
  output_tokens: z.number(),
  cost: z.number(),
  calls_by_model: z.record(z.string(), counted),
  latency_ms: z.object({ p50: z.number(), p95: z.number(), p99: z.number() }).nullable(),
});

describe("usage", () => {
  it("is reported by model, over batches, queries, retries and restarts, and its total is what was spent", async () => {
    const run = await openRun();
    await run.batch({ prompts: prompts(3), model: "up/cheap" });
    await run.query({ prompt: "one", model: "up/cheap" });
    await run.query({ prompt: "two", model: "dear/good" });
    await run.batch({ prompts: ["again"], model: "free/status/503/first/1" });
    await expect.poll(() => storedLeases(run)).toBe(0);
    await evict(run.object);
    const told = await usageOf(run);
    const { cheap, good, free } = modelsOf(told);
    // The attempt with 503 was answered, so it is a call as well.
    expect([told.llm_calls, cheap?.calls, good?.calls, free?.calls]).toEqual([7, 4, 1, 2]);
    const sum = (name: "input_tokens" | "output_tokens" | "cost"): number =>
      Object.values(told.calls_by_model).reduce((total, model) => total + model[name], 0);
    const { budget } = await run.document();
    expect(told.cost).toBeCloseTo(sum("cost"), 12);
    expect(told.cost).toBeCloseTo(budget.usd.spent, 12);
    expect([sum("input_tokens"), sum("output_tokens")]).toEqual([told.input_tokens, told.output_tokens]);
    expect([told.input_tokens, told.output_tokens]).toEqual([
      budget.prompt_tokens.spent,
      budget.completion_tokens.spent,
    ]);
  });

  it("starts at zero after it was read with reset, also after a crash, and does not change the budget", async () => {
    const run = await openRun({ budget: { calls: 10 } });
    await run.batch({ prompts: prompts(3), model: "up/cheap" });
    expect((await usageOf(run, "?reset=1")).llm_calls).toBe(3);
    expect(await usageOf(run)).toMatchObject({ llm_calls: 0, cost: 0, calls_by_model: {} });
    await crash(run.object);
    await run.batch({ prompts: prompts(2), model: "dear/good" });
    expect(await usageOf(run)).toMatchObject({ llm_calls: 2, calls_by_model: { "dear/good": { calls: 2 } } });
    const { budget, stats } = await run.document();
    expect(budget.calls).toMatchObject({ spent: 5, remaining: 5 });
    // What it is asked for is one thing, the run's statistics another.
    expect(stats.total_queries).toBe(5);
  });

  it("keeps how long calls took over a crash, and counts them from a reset on", async () => {
    const run = await openRun();
    await run.batch({ prompts: prompts(2), model: "up/delay/40" });
    const { latency_ms } = await usageOf(run);
    expect(latency_ms?.p50).toBeGreaterThanOrEqual(40);
    await crash(run.object);
    expect((await usageOf(run, "?reset=1")).latency_ms).toEqual(latency_ms);
    await crash(run.object);
    expect((await usageOf(run)).latency_ms).toBeNull();
  });

  it("is not reset by a read without reset", async () => {
    const run = await openRun();
    await run.query({ prompt: "one" });
    for (const query of ["", "?reset=0", ""]) expect((await usageOf(run, query)).llm_calls).toBe(1);
    expect((await run.send("GET", `/runs/${run.id}/usage?reset=yes`)).status).toBe(400);
  });
});

describe("the statistics", () => {
  it("start at zero when they are reset, also after a crash; usage and budget are not reset", async () => {
    const run = await openRun({ budget: { calls: 100 }, max_parallel: 4, window_ms: 0 });
    const asked = prompts(6);
    const againCount = asked.filter((prompt) => isHit(prompt, 50)).length;
    await run.batch({ prompts: asked, model: "up/key/statistics/status/503/first/1/percent/50" });
    await run.query({ prompt: "one" });
    const reset = await run.post(`/runs/${run.id}/stats/reset`, {});
    expect(reset.status).toBe(200);
    const zero = { total_queries: 0, parallel_batches: 0, sequential_queries: 0, total_parallel_queries: 0 };
    const nothing = { wall_ms: 0, sequential_ms: 0, attempts: 0, retries: 0, peak_parallel: 0, success_rate: null };
    expect(await reset.json()).toMatchObject({ stats: zero, metrics: nothing });
    await crash(run.object);
    expect(await run.document()).toMatchObject({ stats: zero, metrics: nothing });
    await run.batch({ prompts: prompts(2) });
    await run.query({ prompt: "two" });
    const { stats, metrics, budget } = await run.document();
    expect(stats).toMatchObject({ total_queries: 3, parallel_batches: 1, sequential_queries: 1 });
    expect(metrics).toMatchObject({ attempts: 3, retries: 0, success_rate: 1 });
    expect(metrics.peak_parallel).toBeLessThanOrEqual(2);
    const spent = asked.length + againCount + 1 + 2 + 1;
    expect(budget.calls.spent).toBe(spent);
    expect((await usageOf(run)).llm_calls).toBe(spent);
  });
});

describe("a flush", () => {
  it("closes the coalescing window: later calls form another group or are single", async () => {
    const run = await openRun({ window_ms: 10_000, max_parallel: 8 });
    const pair = await Promise.all([run.query({ prompt: "a" }), run.query({ prompt: "b" })]);
    expect((await run.post(`/runs/${run.id}/flush`, {})).status).toBe(200);
    const alone = await run.query({ prompt: "c" });
    const fourth = await run.query({ prompt: "d" });
    const first = pair[1].parallel_group_id ?? pair[0].parallel_group_id;
    expect(first).toMatch(/^pg-/);
    expect(alone.parallel_group_id).toBeNull();
    expect(fourth.parallel_group_id).toMatch(/^pg-/);
    expect(fourth.parallel_group_id).not.toBe(first);
  });
});

async function usageOf(run: TestRun, query = ""): Promise<z.infer<typeof usage>> {
  const response = await run.send("GET", `/runs/${run.id}/usage${query}`);
  expect(response.status).toBe(200);
  return usage.parse(await response.json());
}

function modelsOf({ calls_by_model: models }: z.infer<typeof usage>) {
  return { cheap: models["up/cheap"], good: models["dear/good"], free: models["free/status/503/first/1"] };
}
