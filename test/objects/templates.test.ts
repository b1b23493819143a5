/** What upstreams add to prompts: learned from what they bill, kept for all runs, whatever restarts. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { evict } from "../support/objects-direct.ts";
import { logOf, ofType } from "../support/objects-log.ts";
import { late } from "../support/objects-paces.ts";
import { expectSettled, openRun, prompts, type TestRun } from "../support/objects-run.ts";

const started = z.array(z.looseObject({ reserved: z.looseObject({ prompt_tokens: z.number() }) }));
const upstream = () => env.UPSTREAM.getByName("hidden");

/** What is kept of a model's template. */
async function keptOf(model: string) {
  return (await upstream().templates()).find((row) => row.model === model);
}

async function overrunsOf(run: TestRun): Promise<number> {
  return ofType(await logOf(run), "overrun").length;
}

/** What one call of each of two runs shows. */
async function seenByTwo(model: string, prompt: string): Promise<[TestRun, TestRun]> {
  const runs: [TestRun, TestRun] = [await openRun({ budget: { usd: 1 } }), await openRun({ budget: { usd: 1 } })];
  for (const run of runs) await run.query({ prompt, model: `hidden/${model}` });
  await expect.poll(async () => (await keptOf(model))?.witnesses?.length).toBe(2);
  return runs;
}

/** A run whose limit pays for `calls` calls of a template of 350 tokens, and for no caution beside them. */
const tight = (calls: number) => openRun({ budget: { usd: (calls * 400) / 1e6 }, max_parallel: 20 });

describe("an unknown template", () => {
  it("overruns one reservation at most, however many calls wait for budget", async () => {
    const run = await tight(8);
    const answer = await run.batch({ prompts: prompts(60, "hi"), model: "hidden/template/350/one", max_tokens: 16 });
    expect(answer.status).toBe("partial");
    expect(await overrunsOf(run)).toBe(1);
    expectSettled(await run.budget(), answer.usage.cost);
  });

  it("is reserved cautiously, at full width, while enough budget is left", async () => {
    const run = await openRun({ budget: { usd: 1 }, max_parallel: 30 });
    const answer = await run.batch({ prompts: prompts(30), model: late("hidden/template/350/barrier/30") });
    expect(answer.status).toBe("completed");
    expect(await overrunsOf(run)).toBe(0);
  });
});

describe("a known template", () => {
  it("is kept for other runs across restarts", async () => {
    const model = "template/350/kept";
    await seenByTwo(model, "hi");
    // Two bytes and a message are at most 10 tokens, and four were billed beside the template.
    await expect.poll(() => keptOf(model)).toMatchObject({ leastTokens: 354, excessTokens: 344, shape: "chat" });
    await evict(upstream());
    await abortAllDurableObjects();
    expect(await keptOf(model)).toMatchObject({ leastTokens: 354, excessTokens: 344 });
    const third = await tight(8);
    const answer = await third.batch({ prompts: prompts(60, "hi"), model: `hidden/${model}`, max_tokens: 16 });
    expect([answer.status, await overrunsOf(third)]).toEqual(["partial", 0]);
  });

  it("counts at once for the tree of runs that has seen it, across restarts", async () => {
    const model = "template/350/tree";
    const root = await openRun({ budget: { usd: 1 }, max_depth: 1 });
    await root.query({ prompt: "hi", model: `hidden/${model}` });
    await expect.poll(() => keptOf(model)).toMatchObject({ witnesses: [{ root: root.id }] });
    await evict(upstream());
    await abortAllDurableObjects();
    const child = await root.openChild({ budget: { usd: (8 * 400) / 1e6 }, max_parallel: 20 });
    const answer = await child.batch({ prompts: prompts(60, "hi"), model: `hidden/${model}`, max_tokens: 16 });
    expect([answer.status, await overrunsOf(child)]).toEqual(["partial", 0]);
  });

  it("keeps its measured tokens per byte for other runs across restarts", async () => {
    const model = "template/35/texts";
    const prompt = "The light of the sun is made of rays that are not the same. ".repeat(400);
    const reservedOf = async (run: TestRun) =>
      started.parse(ofType(await logOf(run), "attempt_started")).map((event) => event.reserved.prompt_tokens);
    const [first] = await seenByTwo(model, prompt);
    expect((await reservedOf(first))[0]).toBeGreaterThan(prompt.length);
    await expect.poll(async () => (await keptOf(model))?.textRatio).toBeGreaterThan(0.4);
    await evict(upstream());
    await abortAllDurableObjects();
    expect((await keptOf(model))?.textRatio).toBeGreaterThan(0.4);
    const third = await openRun({ budget: { usd: 1 } });
    // Too short to show anything of its own: the run reads what is known.
    await third.query({ prompt: "hi", model: `hidden/${model}` });
    await third.query({ prompt, model: `hidden/${model}` });
    expect((await reservedOf(third))[1]).toBeLessThan(prompt.length);
  });

  it("is written when it changes, and has what two trees agree on of all that report it", async () => {
    const row = { model: "m", shape: "chat+tools", leastTokens: 500, excessTokens: -3 };
    await upstream().learn([{ ...row, root: "a" }]);
    await upstream().learn([{ ...row, root: "b", leastTokens: 400, excessTokens: -9 }]);
    await upstream().learn([{ ...row, root: "c", leastTokens: 900, excessTokens: 20 }]);
    expect(await keptOf("m")).toMatchObject({ ...row, leastTokens: 500, excessTokens: -3 });
    await upstream().learn([{ ...row, root: "a", leastTokens: 300, excessTokens: 30 }]);
    expect(await keptOf("m")).toMatchObject({ ...row, leastTokens: 400, excessTokens: 20 });
  });

  it("bounds templates that do not fit the table", async () => {
    const rows = Array.from({ length: 300 }, (_, at) => ({
      ...{ model: `m${at}`, shape: "chat", root: `r${at}`, leastTokens: 9, excessTokens: at },
    }));
    const kept = await env.UPSTREAM.getByName("crowded").learn(rows);
    expect(kept.length).toBe(257);
    // Of the two largest, the smaller is what two have seen.
    expect(kept.find(({ model }) => model === "*")).toMatchObject({ excessTokens: 298 });
  });
});
