/** Figures of a tree, split budgets, quotes, and upstreams that bill more than they were allowed to. */
import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { RunStore } from "../../durable-objects/run/store/store.ts";
import type { RunObject } from "../../src/index.ts";
import { asOperator, openRun, prompts, upstreamStats, type TestRun } from "../support/objects-run.ts";
import { begin, holdsNothing, priceOf, refusalOf, spend, used } from "../support/objects-tree.ts";

const line = z.object({ spent: z.number(), in_flight: z.number() });
const subtreeAnswer = z.looseObject({
  subtree: z.object({
    runs: z.number(),
    complete: z.boolean(),
    budget: z.object({ usd: line, calls: line, prompt_tokens: line, completion_tokens: line, new_tokens: line }),
  }),
});

async function subtreeOf(run: TestRun) {
  const response = await asOperator("GET", `/runs/${run.id}?subtree=1`);
  return subtreeAnswer.parse(await response.json()).subtree;
}

describe("the figures of a subtree", () => {
  it("total what all its runs have spent and have in flight, each once", async () => {
    const root = await openRun({ budget: { usd: 1, calls: 100 } });
    const child = await root.openChild({ budget: { usd: 0.5, calls: 50 } });
    const grandchild = await child.openChild({ budget: { usd: 0.2, calls: 20 } });
    const ended = await child.openChild({ budget: { usd: 0.1, calls: 10 } });
    for (const run of [root, child, grandchild, ended]) await spend(run, 10, 10);
    await ended.post(`/runs/${ended.id}/close`, {});
    await begin(grandchild, 100);
    const { runs, complete, budget } = await subtreeOf(root);
    expect([runs, complete]).toEqual([3, true]);
    expect(budget.calls).toEqual({ spent: 4, in_flight: 1 });
    expect(budget.usd.spent).toBeCloseTo((4 * priceOf(10, 10)) / 1e9, 12);
    expect(budget.usd.in_flight).toBeCloseTo(priceOf(100, 100) / 1e9, 12);
    expect((await subtreeOf(child)).budget.calls).toEqual({ spent: 3, in_flight: 1 });
    expect((await subtreeOf(grandchild)).budget.completion_tokens).toEqual({ spent: 10, in_flight: 100 });
  });
});

describe('a batch with budget_policy "split"', () => {
  const model = "up/key/split";

  it("gives each slot an equal share, so that an expensive slot does not use the others' shares", async () => {
    const split = await openRun({ budget: { completion_tokens: 80 }, max_parallel: 1 });
    const asked = ["long ".repeat(100), ...prompts(3)];
    const answer = await split.batch({ prompts: asked, model, budget_policy: "split" });
    expect(answer.items.map(({ status }) => status)).toEqual(Array(4).fill("completed"));
    expect(answer.items[0]?.usage?.completion_tokens).toBe(20);
    const shared = await openRun({ budget: { completion_tokens: 80 }, max_parallel: 1 });
    const first = await shared.batch({ prompts: asked, model });
    expect(first.items[0]?.usage?.completion_tokens).toBe(80);
    expect(first.errors.slice(1).map((error) => error?.code)).toEqual(Array(3).fill("budget_exhausted"));
  });

  it("refuses a slot whose share does not cover its minimum, and no other", async () => {
    const run = await openRun({ budget: { prompt_tokens: 60 } });
    const answer = await run.batch({ prompts: ["x".repeat(13), "y".repeat(12), "z"], model, budget_policy: "split" });
    expect(answer.errors.map((error) => error?.code ?? null)).toEqual(["budget_exhausted", null, null]);
  });

  it("refuses any other policy", async () => {
    const run = await openRun();
    const refused = await refusalOf(await run.post("/batch", { prompts: ["p"], budget_policy: "equal" }));
    expect(refused).toMatchObject({ status: 400, param: "budget_policy" });
  });
});

describe("a quote", () => {
  const quoteAnswer = z.looseObject({
    object: z.literal("quote"),
    worst_usd: z.number(),
    likely_usd: z.number(),
    remaining_usd: z.number().nullable(),
    fits: z.boolean(),
    items: z.array(
      z.looseObject({
        index: z.number(),
        worst_usd: z.number(),
        likely_usd: z.number(),
        prompt_tokens_max: z.number(),
      }),
    ),
  });

  it("returns worst-case and likely cost per slot and in total, and reserves nothing", async () => {
    const run = await openRun({ budget: { usd: 0.001, calls: 2 } });
    const body = { prompts: ["p".repeat(92), "q".repeat(192)], model: "up/key/quoted", max_tokens: 50 };
    const response = await run.post("/batch?quote=1", body);
    const quote = quoteAnswer.parse(await response.json());
    const worst = [priceOf(100, 50), priceOf(200, 50)];
    expect(quote.items.map(({ worst_usd }) => worst_usd)).toEqual(worst.map((nano) => nano / 1e9));
    expect(quote.items.map(({ prompt_tokens_max }) => prompt_tokens_max)).toEqual([100, 200]);
    expect(quote.items.map(({ likely_usd }) => likely_usd)).toEqual([priceOf(23, 50) / 1e9, priceOf(48, 50) / 1e9]);
    expect(quote.worst_usd).toBeCloseTo((priceOf(100, 50) + priceOf(200, 50)) / 1e9, 12);
    expect(quote).toMatchObject({ remaining_usd: 0.001, fits: true });
    expect(await holdsNothing(run)).toBe(true);
    expect((await upstreamStats("quoted")).requests).toBe(0);
    expect((await run.document()).stats).toMatchObject({ total_queries: 0, pending_queries: 0 });
  });

  it("reports when the worst case does not fit, and refuses what could not run at all", async () => {
    const run = await openRun({ budget: { usd: 0.00001 } });
    const quote = quoteAnswer.parse(
      await (await run.post("/batch?quote=1", { prompts: prompts(3), model: "up/x" })).json(),
    );
    expect(quote.fits).toBe(false);
    const unpriced = await refusalOf(await run.post("/batch?quote=1", { prompts: ["p"], model: "unpriced/x" }));
    expect(unpriced).toMatchObject({ status: 422, code: "unpriced_model" });
  });
});

describe("images under a limit", () => {
  it("are refused if nothing bounds their tokens, and reach no upstream", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA" } };
    const messages = [{ role: "user", content: [{ type: "text", text: "what is this" }, image] }];
    const end = await run.tryQuery({ messages, model: "up/key/image" });
    expect(end).toMatchObject({ status: 422, error: { code: "infeasible" } });
    expect(end.error?.message).toContain("media_tokens_max");
    expect((await upstreamStats("image")).requests).toBe(0);
    const free = await openRun();
    expect((await free.tryQuery({ messages, model: "up/key/image" })).status).toBe(200);
  });
});

describe("an upstream that bills more than it was allowed to", () => {
  it("is charged in full, and the run's next reservation is refused", async () => {
    const root = await openRun({ budget: { usd: 0.0002 } });
    const child = await root.openChild({ budget: { usd: 0.0001 } });
    const attemptId = await begin(child, 100);
    const settled = await child.object.settle({ attemptId, outcome: used(100, 1_000), stored: null });
    expect(settled.costNanoUsd).toBe(priceOf(100, 1_000));
    expect((await child.budget()).usd).toMatchObject({ spent: priceOf(100, 1_000) / 1e9, remaining: 0 });
    expect((await child.tryQuery({ prompt: "p", model: "up/key/lied" })).error?.code).toBe("budget_exhausted");
    expect((await child.post("/runs", { budget: { usd: 0 } })).status).toBe(402);
    await child.post(`/runs/${child.id}/close`, {});
    expect((await root.budget()).usd).toMatchObject({ spent: priceOf(100, 1_000) / 1e9, reserved: 0, remaining: 0 });
    expect((await root.tryQuery({ prompt: "p", model: "up/key/lied" })).error?.code).toBe("budget_exhausted");
    expect((await upstreamStats("lied")).requests).toBe(0);
    expect(await overrunsOf(child)).toBe(1);
  });
});

function overrunsOf(run: TestRun): Promise<number> {
  return runInDurableObject(run.object, (_: RunObject, state) =>
    new RunStore(state.storage).shards().shards.reduce((sum, { shard }) => sum + shard.totals.overruns, 0),
  );
}
