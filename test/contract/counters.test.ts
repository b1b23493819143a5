/** What a run counts: its usage, its statistics, both shown from zero again; its window; and how long it is kept. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { logOf } from "./following.ts";
import { documentOf, errorOf, groupOf, replyOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

const amounts = { input_tokens: z.int(), output_tokens: z.int(), cost: z.number() };
const percentiles = z.strictObject({ p50: z.number(), p95: z.number(), p99: z.number() }).nullable();
const totals = z.strictObject({
  object: z.literal("usage"),
  llm_calls: z.int(),
  ...amounts,
  calls_by_model: z.record(z.string(), z.strictObject({ calls: z.int(), ...amounts })),
  latency_ms: percentiles,
  queued_ms: percentiles,
});

async function usageOf(run: RunAccess, query = ""): Promise<z.infer<typeof totals>> {
  return totals.parse((await run.send(`/runs/${run.id}/usage${query}`)).json);
}

const NOTHING = {
  ...{ object: "usage", llm_calls: 0, input_tokens: 0, output_tokens: 0, cost: 0, calls_by_model: {} },
  ...{ latency_ms: null, queued_ms: null },
};

describe("GET /runs/:id/usage", () => {
  it("totals all charges, overall and by model", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    expect(await usageOf(run)).toEqual(NOTHING);
    await run.send("/batch", { json: { prompts: ["abcdefgh", "abcd"], max_tokens: 100 } });
    await run.send("/query", { json: { prompt: "abcd", model: "up-2" } });
    const { budget } = await documentOf(run);
    const used = await usageOf(run);
    expect(Object.keys(used.calls_by_model).toSorted()).toEqual(["up/up-1", "up/up-2"]);
    expect(used.calls_by_model["up/up-1"]?.calls).toBe(2);
    expect([used.llm_calls, used.cost]).toEqual([3, budget.usd.spent]);
    expect([used.input_tokens, used.output_tokens]).toEqual([
      budget.prompt_tokens.spent,
      budget.completion_tokens.spent,
    ]);
    expect(await usageOf(run)).toEqual(used);
  });

  it("has the percentiles that the run's document and its only group have", async () => {
    const run = await world.openRun({ default_model: "up-1", max_parallel: 3 });
    const prompts = ["{{delay/80}} slow", "{{status/503/first/1}} twice", "{{status/400}} no", "d", "e"];
    const group = groupOf(await run.send("/batch", { json: { prompts } }));
    const { latency_ms, queued_ms } = await usageOf(run);
    expect(latency_ms?.p99).toBeGreaterThanOrEqual(80);
    expect((await documentOf(run)).metrics).toMatchObject({ latency_ms, queued_ms });
    expect(z.looseObject({ metrics: z.unknown() }).parse(group).metrics).toMatchObject({ latency_ms, queued_ms });
  });

  it("counts of a single call that is tried again the time of all its attempts, as its reply does", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const reply = replyOf(await run.send("/query", { json: { prompt: "{{delay/60}} {{status/503/first/1}}" } }));
    expect(reply.attempts).toBe(2);
    const { latency_ms, queued_ms } = await usageOf(run);
    const { latency_ms: latencyMs, queued_ms: queuedMs } = z
      .looseObject({ latency_ms: z.number(), queued_ms: z.number() })
      .parse(reply);
    expect([latency_ms?.p50, queued_ms?.p50]).toEqual([latencyMs, queuedMs]);
  });

  it("with reset=1 is returned once more and then starts at zero; the budget does not change", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    await run.send("/batch", { json: { prompts: ["a", "b", "c"] } });
    const { budget } = await documentOf(run);
    expect((await usageOf(run, "?reset=1")).llm_calls).toBe(3);
    expect(await usageOf(run)).toEqual(NOTHING);
    expect((await documentOf(run)).budget).toEqual(budget);
    await run.send("/query", { json: { prompt: "d" } });
    expect(await usageOf(run, "?reset=0")).toMatchObject({ llm_calls: 1, calls_by_model: { "up/up-1": { calls: 1 } } });
  });

  it("is also at /usage for the caller's own run", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    await run.send("/batch", { json: { prompts: ["a", "b"] } });
    expect(totals.parse((await run.send("/usage")).json)).toEqual(await usageOf(run));
    expect(totals.parse((await run.send("/usage?reset=1")).json).llm_calls).toBe(2);
    expect(await usageOf(run)).toEqual(NOTHING);
  });

  it.each(["reset=2", "reset=yes", "clear=1"])("refuses ?%s", async (query) => {
    const run = await world.openRun();
    const answer = await run.send(`/runs/${run.id}/usage?${query}`);
    expect([answer.status, errorOf(answer).param]).toEqual([400, query.split("=")[0]]);
  });
});

describe("POST /runs/:id/stats/reset", () => {
  it("resets statistics and metrics to zero, and does not change budget and usage", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    groupOf(await run.send("/batch", { json: { prompts: ["a", "{{status/503/first/1}}", "c"] } }));
    replyOf(await run.send("/query", { json: { prompt: "d" } }));
    const before = await documentOf(run);
    expect(before).toMatchObject({ stats: { total_queries: 4 }, metrics: { attempts: 5, retries: 1 } });
    const answer = await run.send(`/runs/${run.id}/stats/reset`, { method: "POST" });
    expect(answer.json).toEqual(await documentOf(run));
    expect(answer.json).toMatchObject({
      stats: {
        total_queries: 0,
        parallel_batches: 0,
        sequential_queries: 0,
        total_parallel_queries: 0,
        pending_queries: 0,
      },
      metrics: {
        ...{ attempts: 0, retries: 0, sequential_ms: 0, peak_parallel: 0, success_rate: null },
        ...{ latency_ms: null, queued_ms: null },
      },
      budget: before.budget,
    });
    // Five attempts were answered, the one with 503 among them.
    expect((await usageOf(run)).llm_calls).toBe(5);
    groupOf(await run.send("/batch", { json: { prompts: ["e", "f"] } }));
    expect(await documentOf(run)).toMatchObject({
      stats: { total_queries: 2, parallel_batches: 1, total_parallel_queries: 2 },
      metrics: { attempts: 2, retries: 0, success_rate: 1 },
    });
  });

  it("does not reset pending calls", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const pending = run.send("/query", { json: { prompt: "{{latch/pending}} pending" } });
    await expect.poll(async () => (await documentOf(run)).stats.pending_queries).toBe(1);
    const answer = await run.send(`/runs/${run.id}/stats/reset`, { method: "POST" });
    expect(answer.json).toMatchObject({ stats: { pending_queries: 1 } });
    world.upstream.open("pending");
    replyOf(await pending);
    expect((await documentOf(run)).stats.pending_queries).toBe(0);
  });
});

describe("POST /runs/:id/flush", () => {
  const send = async (run: RunAccess, prompt: string) => replyOf(await run.send("/query", { json: { prompt } }));

  it("closes the coalescing window: calls before and after it are not parallel", async () => {
    const run = await world.openRun({ default_model: "up-1", window_ms: 10_000 });
    await send(run, "a");
    const answer = await run.send(`/runs/${run.id}/flush`, { method: "POST" });
    expect([answer.status, answer.json]).toEqual([200, { object: "flush", flushed: true }]);
    expect((await send(run, "b")).parallel_group_id).toBeNull();
    expect((await send(run, "c")).parallel_group_id).toMatch(/^pg-/);
    expect((await documentOf(run)).stats).toMatchObject({
      total_queries: 3,
      sequential_queries: 1,
      parallel_batches: 1,
    });
  });

  it("ends the group of the coalescing window when its calls have ended, before the window closes", async () => {
    const run = await world.openRun({ default_model: "up-1", window_ms: 10_000 });
    await send(run, "a");
    await send(run, "b");
    const completed = async () => (await logOf(run)).filter(({ event_type }) => event_type === "group_completed");
    expect(await completed()).toEqual([]);
    await run.send(`/runs/${run.id}/flush`, { method: "POST" });
    await expect.poll(completed).toMatchObject([{ count: 2, completed: 2, status: "completed" }]);
  });
});

describe("retention_s", () => {
  it("is how long a run is kept after its end; after that it is not found", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ default_model: "up-1", retention_s: 1 });
    const group = groupOf(await run.send("/batch", { json: { prompts: ["a"] } }));
    await run.send(`/runs/${run.id}/close`, { method: "POST" });
    expect((await run.send(`/groups/${group.id}`)).status).toBe(200);
    expect(await listed()).toContain(run.id);
    await expect.poll(async () => (await run.send("/run")).status, { interval: 100 }).toBe(404);
    expect(await listed()).not.toContain(run.id);
    for (const path of [`/groups/${group.id}`, `/runs/${run.id}/log`, `/runs/${run.id}/events`, `/runs/${run.id}`]) {
      const answer = await run.send(path);
      expect([path, answer.status]).toEqual([path, 404]);
    }
    expect((await run.send("/query", { json: { prompt: "late" } })).status).toBeGreaterThanOrEqual(401);
    expect((await world.sendAsOperator(`/runs/${run.id}`)).status).toBe(404);
  });

  it("starts when the run ends", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ default_model: "up-1", retention_s: 0 });
    await send(run);
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect((await documentOf(run)).status).toBe("active");
    await run.send(`/runs/${run.id}/close`, { method: "POST" });
    await expect.poll(async () => (await run.send("/run")).status, { interval: 100 }).toBe(404);
  });

  it("keeps a run until it has passed", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ default_model: "up-1" });
    await send(run);
    await run.send(`/runs/${run.id}`, { method: "DELETE" });
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect((await documentOf(run)).status).toBe("cancelled");
  });

  it.each([-1, 2_592_001, 1.5, "1"])("refuses %s", async (retention_s) => {
    const answer = await world.sendAsOperator("/runs", { json: { retention_s } });
    expect([answer.status, errorOf(answer).param]).toEqual([400, "retention_s"]);
  });

  const send = (run: RunAccess) => run.send("/query", { json: { prompt: "p" } });

  async function listed(): Promise<string[]> {
    const list = z.looseObject({ data: z.array(z.looseObject({ id: z.string() })) });
    return list.parse((await world.sendAsOperator("/runs?limit=100")).json).data.map(({ id }) => id);
  }
});
