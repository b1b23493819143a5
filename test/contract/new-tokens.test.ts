/** A run that is limited by new tokens: what the provider's cache had does not count. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { answerOf, errorOf, groupOf } from "./world.ts";

const USAGE = { prompt_tokens: 200, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 190 } };
/** 10 prompt tokens that no cache had, and 5 of the completion. */
const NEW_TOKENS = 15;
const LIMIT = 1_000;

let upstream: ByteUpstream;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startByteUpstream();
  upstream.serve((_, reply) => {
    const message = { role: "assistant", content: "Yes." };
    const answer = { id: "c", object: "chat.completion", model: "m", choices: [{ index: 0, message }], usage: USAGE };
    reply.whole(JSON.stringify(answer), { headers: { "content-type": "application/json" } });
  });
  const own = { kind: "openai", base_url: `${upstream.origin}/v1`, prompt_tokens_per_call: 0 };
  const UPSTREAMS = { one: { ...own, prices: { "*": { input: 1, output: 2 } } } };
  gateway = await startGateway({ vars: { UPSTREAMS, DEFAULT_MODEL: "one/m" } });
});
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

const line = z.object({
  limit: z.number().nullable(),
  spent: z.number(),
  reserved: z.number(),
  remaining: z.number().nullable(),
});
const budget = z.looseObject({ new_tokens: line, prompt_tokens: line });
const PROMPT = "x".repeat(192);

describe("a run with a limit of new tokens", () => {
  it("makes more calls than its prompts alone would allow, stops by it, and shows it like every other limit", async () => {
    const { token } = await gateway.openRun({ budget: { new_tokens: LIMIT }, max_parallel: 4 });
    const prompts = Array.from({ length: 200 }, () => PROMPT);
    const json = { prompts, max_tokens: 20 };
    const group = groupOf(await answerOf(await gateway.fetch("/batch", { token, json })));
    const made = group.items.filter(({ status }) => status === "completed").length;
    expect(group.errors.find((error) => error !== null)).toMatchObject({
      code: "budget_exhausted",
      dimension: "new_tokens",
    });
    // 220 are reserved for the last call, and what the others left is less.
    expect(made).toBeGreaterThanOrEqual(Math.floor((LIMIT - 220) / NEW_TOKENS));
    expect(made * 205).toBeGreaterThan(LIMIT);
    const shown = budget.parse((await answerOf(await gateway.fetch("/budget", { token }))).json);
    expect(shown.new_tokens).toEqual({
      limit: LIMIT,
      spent: made * NEW_TOKENS,
      reserved: 0,
      remaining: LIMIT - made * NEW_TOKENS,
    });
    expect(shown.prompt_tokens).toMatchObject({ limit: null, spent: made * 200 });
  });

  it("refuses a call that it cannot cover, and names the limit", async () => {
    const { token } = await gateway.openRun({ budget: { new_tokens: 20 } });
    const refused = await answerOf(await gateway.fetch("/query", { token, json: { prompt: PROMPT } }));
    expect([refused.status, errorOf(refused).dimension]).toEqual([402, "new_tokens"]);
    expect(errorOf(refused).message).toMatch(/^New token budget exceeded: 0 spent, limit is 20;/);
  });

  it("gives its child runs equal parts, which they cannot exceed", async () => {
    const parent = await gateway.openRun({ budget: { new_tokens: LIMIT }, max_parallel: 4 });
    const opened = await answerOf(await gateway.fetch("/runs", { token: parent.token, json: {} }));
    const child = z.looseObject({ budget }).parse(opened.json);
    expect(child.budget.new_tokens.limit).toBe(LIMIT / 4);
    const more = await answerOf(
      await gateway.fetch("/runs", { token: parent.token, json: { budget: { new_tokens: LIMIT } } }),
    );
    expect([more.status, errorOf(more).param]).toEqual([402, "budget.new_tokens"]);
  });
});
