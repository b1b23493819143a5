/** What a batch would cost, and how its budget is shared out. In this world a token costs $1 (in) or $2 (out) per million. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { documentOf, errorOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const quoted = z.looseObject({ worst_usd: z.number() });
const open = (budget: Record<string, number>, more: Record<string, unknown> = {}): Promise<RunAccess> =>
  world.openRun({ budget, default_model: "up-1", ...more });
const quote = (run: RunAccess, json: unknown, query = "quote=1") => run.ask(`/batch?${query}`, { json });

describe("POST /batch?quote=1", () => {
  it("tells worst case and likely cost of each slot and of all, from bytes, caps and prices", async () => {
    const run = await open({ usd: 1 });
    const items = [
      { prompt: "x".repeat(100), max_tokens: 50 },
      { prompt: "y".repeat(400), max_tokens: 1_000 },
      { prompt: "naïve", max_tokens: 16 },
    ];
    const answer = await quote(run, { items });
    // Worst: a token per byte and 8 per message, and the whole cap. Likely: four bytes a token, at most 312 tokens out.
    expect([answer.status, answer.json]).toEqual([
      200,
      {
        object: "quote",
        worst_usd: 0.002662,
        likely_usd: 0.000883,
        remaining_usd: 1,
        fits: true,
        items: [
          { index: 0, worst_usd: 0.000208, likely_usd: 0.000125, prompt_tokens_max: 108, completion_tokens_max: 50 },
          { index: 1, worst_usd: 0.002408, likely_usd: 0.000724, prompt_tokens_max: 408, completion_tokens_max: 1_000 },
          { index: 2, worst_usd: 0.000046, likely_usd: 0.000034, prompt_tokens_max: 14, completion_tokens_max: 16 },
        ],
      },
    ]);
  });

  it("reserves nothing, sends nothing and counts nothing", async () => {
    const run = await open({ usd: 1, calls: 10 });
    const before = (await run.ask("/run")).json;
    expect((await quote(run, { prompts: Array.from({ length: 500 }, (_, at) => `${at}`) })).status).toBe(200);
    expect((await run.ask("/run")).json).toEqual(before);
    expect(world.upstream.counters.requests).toBe(0);
  });

  it("says whether all of it fits what is left, to the nano-USD", async () => {
    const batch = { prompts: ["x".repeat(92)], max_tokens: 50 };
    expect((await quote(await open({ usd: 0.0002 }), batch)).json).toMatchObject({ worst_usd: 0.0002, fits: true });
    expect((await quote(await open({ usd: 0.000199999 }), batch)).json).toMatchObject({
      remaining_usd: 0.000199999,
      fits: false,
    });
    const unlimited = await world.openRun({ default_model: "up-1" });
    expect((await quote(unlimited, batch)).json).toMatchObject({ remaining_usd: null, fits: true });
  });

  it("is what is then reserved", async () => {
    const run = await open({ usd: 1 });
    const batch = { prompts: ["{{delay/500}}", "{{delay/500}} and more"], max_tokens: 70 };
    const { worst_usd: worst } = quoted.parse((await quote(run, batch)).json);
    const running = run.ask("/batch", { json: batch });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(2);
    expect((await documentOf(run)).budget.usd.reserved).toBe(worst);
    groupOf(await running);
  });

  it("of nothing is nothing", async () => {
    expect((await quote(await open({ usd: 1 }), { prompts: [] })).json).toMatchObject({ worst_usd: 0, items: [] });
  });

  it("refuses what the batch itself would be refused for", async () => {
    const run = await open({ usd: 1 });
    expect((await quote(run, { prompts: [1] })).status).toBe(400);
    expect((await quote(run, { prompts: ["p"], model: "free-1" })).status).toBe(422);
    expect((await world.ask("/batch?quote=1", { json: { prompts: ["p"] } })).status).toBe(401);
    await run.ask(`/runs/${run.id}/close`, { method: "POST" });
    expect((await quote(run, { prompts: ["p"] })).status).toBe(401);
  });

  it("is asked with 1: another word is refused, for it would spend what was to be quoted", async () => {
    const run = await open({ usd: 1 });
    for (const word of ["true", "yes", ""]) {
      const answer = await quote(run, { prompts: ["p"] }, `quote=${word}`);
      expect([word, answer.status, errorOf(answer).param]).toEqual([word, 400, "quote"]);
    }
    expect(world.upstream.counters.requests).toBe(0);
    expect(groupOf(await quote(run, { prompts: ["p"] }, "quote=0")).results).toEqual(["p"]);
  });
});

describe("budget_policy", () => {
  const long = (count: number) => Array.from({ length: count }, (_, at) => `${at}`.padEnd(400, "x"));

  it("split bounds each slot by its equal share; shared lets the first take what they ask for", async () => {
    const tokensOf = async (policy: string) => {
      const run = await open({ completion_tokens: 200 });
      const json = { prompts: long(4), max_tokens: 100, budget_policy: policy };
      const group = groupOf(await run.ask("/batch", { json }));
      return group.items.map(({ usage }) => usage?.completion_tokens ?? 0);
    };
    expect(await tokensOf("split")).toEqual([50, 50, 50, 50]);
    expect(await tokensOf("shared")).toEqual([100, 100, 0, 0]);
  });

  it("split refuses a slot that its share does not pay for, though the whole would", async () => {
    const run = await open({ prompt_tokens: 1_000 });
    const prompts = ["short", "x".repeat(600), "short"];
    const group = groupOf(await run.ask("/batch", { json: { prompts, budget_policy: "split" } }));
    expect(group.errors.map((error) => error?.code ?? null)).toEqual([null, "budget_exhausted", null]);
    expect(group.errors[1]).toMatchObject({ dimension: "prompt_tokens", needed: 608 });
    expect((await documentOf(run)).budget.prompt_tokens.reserved).toBe(0);
  });

  it("of another name is refused", async () => {
    const answer = await (await open({ usd: 1 })).ask("/batch", { json: { prompts: ["p"], budget_policy: "fair" } });
    expect([answer.status, errorOf(answer).param]).toEqual([400, "budget_policy"]);
  });
});
