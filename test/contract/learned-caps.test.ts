/** Calls of a batch that name no cap: what the upstream is sent, what is delivered, what is charged. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { COMPLETION_TOKENS_DEFAULT, LEARNED_ANSWERS_MIN, LEARNED_CAP_TOKENS_MIN } from "../../src/limits.ts";
import type { UpstreamCall } from "../support/upstream.ts";
import { startWorld, type RunAccess, type World } from "./world.ts";

/** The caps that arrived, by prompt. */
const caps = new Map<string, (number | null)[]>();

/** Answers with as many tokens as the prompt says. */
function answerOf({ prompt, capTokens }: UpstreamCall): { text: string } {
  caps.set(prompt, [...(caps.get(prompt) ?? []), capTokens]);
  return { text: "word".repeat(Number(/^(\d+) tokens/.exec(prompt)?.[1] ?? 1)) };
}

let world: World;
beforeAll(async () => void (world = await startWorld(answerOf)));
beforeEach(() => caps.clear());
afterAll(() => world.stop());

const slot = z.looseObject({ attempts: z.int(), finish_reason: z.string().nullable(), usage: z.looseObject({}) });
const group = z.looseObject({ results: z.array(z.string()), items: z.array(slot) });

async function batch(run: RunAccess, json: Record<string, unknown>): Promise<z.infer<typeof group>> {
  return group.parse((await run.send("/batch", { json })).json);
}

/** A run that has had as many short answers as it takes. */
async function taught(budget: Record<string, number>): Promise<RunAccess> {
  const run = await world.openRun({ budget, default_model: "up-1" });
  const prompts = Array.from({ length: LEARNED_ANSWERS_MIN }, (_, at) => `10 tokens, ${at}`);
  const { items } = await batch(run, { prompts, reserve: "worst" });
  expect(items.map(({ attempts }) => attempts)).toEqual(prompts.map(() => 1));
  for (const prompt of prompts) expect(caps.get(prompt)).toEqual([COMPLETION_TOKENS_DEFAULT]);
  return run;
}

const LONG = ["1500 tokens, a", "32 tokens, b", "3000 tokens, c", "12 tokens, d"];
/** Less than four full caps, at $2 per million tokens: so learned ones are used. */
const TIGHT = { usd: 0.03 };
const OTHERS = ["1 tokens, e", "1 tokens, f", "1 tokens, g"];
const BOTH = [LEARNED_CAP_TOKENS_MIN, COMPLETION_TOKENS_DEFAULT];

async function logged(run: RunAccess, type: string): Promise<unknown[]> {
  const { text } = await run.send(`/runs/${run.id}/log`);
  const lines = text
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
  return lines.filter((line) => z.looseObject({ event_type: z.string() }).parse(line).event_type === type);
}

describe("a batch whose calls name no cap", () => {
  it("delivers whole answers: one that a learned cap cut is requested again, and both are charged", async () => {
    const run = await taught(TIGHT);
    const { results, items } = await batch(run, { prompts: LONG });
    expect(results.map((text) => text.length / 4)).toEqual([1_500, 32, 3_000, 12]);
    expect(items).toMatchObject([
      { attempts: 2, finish_reason: "stop", usage: { completion_tokens: LEARNED_CAP_TOKENS_MIN + 1_500 } },
      { attempts: 1, finish_reason: "stop", usage: { completion_tokens: 32 } },
      { attempts: 2, finish_reason: "stop", usage: { completion_tokens: LEARNED_CAP_TOKENS_MIN + 3_000 } },
      { attempts: 1, finish_reason: "stop", usage: { completion_tokens: 12 } },
    ]);
    for (const item of items) expect(item).not.toHaveProperty("capped_by");
    expect(LONG.map((prompt) => caps.get(prompt))).toEqual([BOTH, [BOTH[0]], BOTH, [BOTH[0]]]);
    const again = { attempt: 2, delay_ms: 0, code: "cap_too_low" };
    const expected = [expect.objectContaining({ index: 0, ...again }), expect.objectContaining({ index: 2, ...again })];
    expect(await logged(run, "retry_scheduled")).toEqual(expect.arrayContaining(expected));
    expect(await logged(run, "retry_scheduled")).toHaveLength(2);
    const told = LEARNED_ANSWERS_MIN * 10 + 2 * LEARNED_CAP_TOKENS_MIN + 1_500 + 32 + 3_000 + 12;
    expect((await run.send("/budget")).json).toMatchObject({ completion_tokens: { spent: told, reserved: 0 } });
  });

  it("has the full cap from the start with reserve: worst, for all of it or an item", async () => {
    const run = await taught(TIGHT);
    await batch(run, {
      items: [{ prompt: LONG[2], reserve: "worst" }, { prompt: LONG[3] }, ...OTHERS.map((prompt) => ({ prompt }))],
    });
    expect(caps.get(LONG[2] ?? "")).toEqual([COMPLETION_TOKENS_DEFAULT]);
    expect(caps.get(LONG[3] ?? "")).toEqual([LEARNED_CAP_TOKENS_MIN]);
    await batch(run, { prompts: LONG.slice(0, 1), reserve: "worst" });
    expect(caps.get(LONG[0] ?? "")).toEqual([COMPLETION_TOKENS_DEFAULT]);
  });

  it("keeps the caps that its calls name", async () => {
    const run = await taught(TIGHT);
    const { items } = await batch(run, { prompts: LONG.slice(0, 1), max_tokens: 1_200 });
    expect(items).toMatchObject([{ attempts: 1, finish_reason: "length" }]);
    expect(caps.get(LONG[0] ?? "")).toEqual([1_200]);
  });

  it("delivers the cut answer, marked, where the budget does not pay for a longer one", async () => {
    const run = await taught({ completion_tokens: LEARNED_ANSWERS_MIN * 10 + 4_900 });
    await run.send("/query", { json: { prompt: "3900 tokens", max_tokens: 3_900 } });
    const { results, items } = await batch(run, { prompts: [LONG[0], LONG[3]] });
    expect(results[0]).toHaveLength(4 * LEARNED_CAP_TOKENS_MIN);
    expect(items).toMatchObject([
      { attempts: 1, finish_reason: "length", capped_by: "budget" },
      { attempts: 1, finish_reason: "stop" },
    ]);
    expect(caps.get(LONG[0] ?? "")).toEqual([LEARNED_CAP_TOKENS_MIN]);
  });
});

describe("a single call that names no cap", () => {
  it("has the full cap, whatever the run has learned", async () => {
    const run = await taught(TIGHT);
    for (const json of [{ prompt: LONG[0] }, { prompt: LONG[0], reserve: "learned" }]) {
      const answer = await run.send("/query", { json });
      expect(answer.json).toMatchObject({ attempts: 1, finish_reason: "stop" });
    }
    expect(caps.get(LONG[0] ?? "")).toEqual([COMPLETION_TOKENS_DEFAULT, COMPLETION_TOKENS_DEFAULT]);
  });
});
