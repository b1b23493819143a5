/** What a batch would cost, and how its budget is shared out. In this world a token costs $1 (in) or $2 (out) per million. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { MANY_CALLS } from "../support/busy-machine.ts";
import { documentOf, errorOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const quoted = z.looseObject({ worst_usd: z.number() });
const open = (budget: Record<string, number>, more: Record<string, unknown> = {}): Promise<RunAccess> =>
  world.openRun({ budget, default_model: "up-1", ...more });
const quote = (run: RunAccess, json: unknown, query = "quote=1") => run.send(`/batch?${query}`, { json });

describe("POST /batch?quote=1", () => {
  it("returns worst-case and likely cost per slot and in total, from bytes, caps and prices", async () => {
    const run = await open({ usd: 1 });
    const items = [
      { prompt: "x".repeat(100), max_tokens: 50 },
      { prompt: "y".repeat(400), max_tokens: 1_000 },
      { prompt: "naïve", max_tokens: 16 },
    ];
    const answer = await quote(run, { items });
    // Worst: a token per byte, 8 per message and 128 for the template, and the whole cap. Likely: four bytes a token, at most 312 tokens out.
    expect([answer.status, answer.json]).toEqual([
      200,
      {
        object: "quote",
        worst_usd: 0.003046,
        likely_usd: 0.000883,
        remaining_usd: 1,
        fits: true,
        items: [
          { index: 0, worst_usd: 0.000336, likely_usd: 0.000125, prompt_tokens_max: 236, completion_tokens_max: 50 },
          { index: 1, worst_usd: 0.002536, likely_usd: 0.000724, prompt_tokens_max: 536, completion_tokens_max: 1_000 },
          { index: 2, worst_usd: 0.000174, likely_usd: 0.000034, prompt_tokens_max: 142, completion_tokens_max: 16 },
        ],
      },
    ]);
  });

  it("is made in parts: all calls together have more facts than one RPC carries, 32 MB", MANY_CALLS, async () => {
    const run = await open({ calls: 50_000 });
    // Each call carries the fields that no reservation covers, with the reason of each.
    const params = Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`unknown_field_${index}`, 1]));
    const answer = await quote(run, { prompt: "p", n: 50_000, max_tokens: 1, params });
    const { items } = z.looseObject({ items: z.array(z.looseObject({ index: z.int() })) }).parse(answer.json);
    expect([items.length, items.every(({ index }, at) => index === at)]).toEqual([50_000, true]);
  });

  it("reserves nothing, sends nothing and counts nothing", async () => {
    const run = await open({ usd: 1, calls: 10 });
    const before = (await run.send("/run")).json;
    expect((await quote(run, { prompts: Array.from({ length: 500 }, (_, at) => `${at}`) })).status).toBe(200);
    expect((await run.send("/run")).json).toEqual(before);
    expect(world.upstream.counters.requests).toBe(0);
  });

  it("reports exactly, to the nano-USD, whether the batch fits the remaining budget", async () => {
    const batch = { prompts: ["x".repeat(92)], max_tokens: 50 };
    expect((await quote(await open({ usd: 0.000328 }), batch)).json).toMatchObject({ worst_usd: 0.000328, fits: true });
    expect((await quote(await open({ usd: 0.000327999 }), batch)).json).toMatchObject({
      remaining_usd: 0.000327999,
      fits: false,
    });
    const unlimited = await world.openRun({ default_model: "up-1" });
    expect((await quote(unlimited, batch)).json).toMatchObject({ remaining_usd: null, fits: true });
  });

  it("equals the later reservation, once an answer has shown what the upstream adds to a prompt", async () => {
    const run = await open({ usd: 1 });
    expect((await run.send("/query", { json: { prompt: "p" } })).status).toBe(200);
    const batch = { prompts: ["{{latch/quoted}}", "{{latch/quoted}} and more"], max_tokens: 70 };
    const { worst_usd: worst } = quoted.parse((await quote(run, batch)).json);
    const running = run.send("/batch", { json: batch });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(2);
    expect((await documentOf(run)).budget.usd.reserved).toBe(worst);
    world.upstream.open("quoted");
    groupOf(await running);
  });

  it("equals the later reservation of a long English text, once an answer has confirmed its estimate", async () => {
    // A model of its own, for what is learned of one holds for all runs.
    const run = await open({ usd: 1 }, { default_model: "up-english" });
    const text = "The light of the sun is made of rays that are not the same. ".repeat(200);
    // The short one shows how little the upstream adds, the long one how it cuts texts.
    for (const prompt of ["p", text]) expect((await run.send("/query", { json: { prompt } })).status).toBe(200);
    const batch = { prompts: [`{{latch/english}} ${text}`], max_tokens: 70 };
    const { worst_usd: worst } = quoted.parse((await quote(run, batch)).json);
    expect(worst).toBeLessThan(text.length / 1e6);
    const running = run.send("/batch", { json: batch });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    expect((await documentOf(run)).budget.usd.reserved).toBe(worst);
    world.upstream.open("english");
    groupOf(await running);
  });

  it("of an empty batch is zero", async () => {
    expect((await quote(await open({ usd: 1 }), { prompts: [] })).json).toMatchObject({ worst_usd: 0, items: [] });
  });

  it("refuses what POST /batch refuses", async () => {
    const run = await open({ usd: 1 });
    expect((await quote(run, { prompts: [1] })).status).toBe(400);
    expect((await quote(run, { prompts: ["p"], model: "free-1" })).status).toBe(422);
    expect((await world.send("/batch?quote=1", { json: { prompts: ["p"] } })).status).toBe(401);
    await run.send(`/runs/${run.id}/close`, { method: "POST" });
    expect((await quote(run, { prompts: ["p"] })).status).toBe(401);
  });

  it("requires the value 1: another value is refused, because it would otherwise run the batch", async () => {
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

  it("split limits each slot to an equal share; shared lets the first slots reserve what they need", async () => {
    const tokensOf = async (policy: string) => {
      const run = await open({ completion_tokens: 200 });
      const json = { prompts: long(4), max_tokens: 100, budget_policy: policy };
      const group = groupOf(await run.send("/batch", { json }));
      return group.items.map(({ usage }) => usage?.completion_tokens ?? 0);
    };
    expect(await tokensOf("split")).toEqual([50, 50, 50, 50]);
    expect(await tokensOf("shared")).toEqual([100, 100, 0, 0]);
  });

  it("split refuses a slot that exceeds its share, even if the whole budget covers it", async () => {
    const run = await open({ prompt_tokens: 1_000 });
    const prompts = ["short", "x".repeat(600), "short"];
    const group = groupOf(await run.send("/batch", { json: { prompts, budget_policy: "split" } }));
    expect(group.errors.map((error) => error?.code ?? null)).toEqual([null, "budget_exhausted", null]);
    expect(group.errors[1]).toMatchObject({ dimension: "prompt_tokens", needed: 736 });
    expect((await documentOf(run)).budget.prompt_tokens.reserved).toBe(0);
  });

  it("with an unknown value is refused", async () => {
    const answer = await (await open({ usd: 1 })).send("/batch", { json: { prompts: ["p"], budget_policy: "fair" } });
    expect([answer.status, errorOf(answer).param]).toEqual([400, "budget_policy"]);
  });
});
