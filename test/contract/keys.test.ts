/** An upstream with several keys: which of them its provider sees, and that none is shown. */
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { startByteUpstream } from "../support/byte-upstream.ts";
import type { UpstreamAnswer, UpstreamCall } from "../support/upstream.ts";
import { startUpstream } from "../support/upstream.ts";
import { answerOf, errorOf, groupOf, replyOf, startOwnGateway, type Answer } from "./world.ts";

const KEY_A = "sk-first-key-of-two-5f0c9d1e";
const KEY_B = "sk-second-key-of-two-7ab24c60";

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** A gateway whose upstream has two keys, and what its provider was sent with each. */
async function startTwoKeys(handler: (call: UpstreamCall) => UpstreamAnswer) {
  const calls: UpstreamCall[] = [];
  const upstream = await startUpstream((call) => {
    calls.push(call);
    return handler(call);
  });
  stops.push(() => upstream.stop());
  const { gateway, run } = await gatewayAt(upstream.baseUrl);
  const sentWith = (key: string): number => calls.filter(({ apiKey }) => apiKey === key).length;
  return { gateway, run, sentWith };
}

async function gatewayAt(baseUrl: string) {
  const up = { kind: "openai", base_url: baseUrl, keys: ["secret:KEY_A", "secret:KEY_B"], models: ["up-*"] };
  const UPSTREAMS = { up: { ...up, prices: { "*": { input: 1, output: 2 } } } };
  const gateway = await startOwnGateway({ vars: { UPSTREAMS, KEY_A, KEY_B } });
  const { id, token } = await gateway.openRun({ default_model: "up/up-1", max_parallel: 8, budget: { usd: 1 } });
  const send = async (path: string, json?: unknown): Promise<Answer> => {
    const answer = await answerOf(await gateway.fetch(path, { token, ...(json === undefined ? {} : { json }) }));
    for (const key of [KEY_A, KEY_B, "KEY_A", "KEY_B"]) expect(answer.text).not.toContain(key);
    return answer;
  };
  return { gateway, run: { id, send } };
}

const spent = z.object({ budget: z.object({ usd: z.object({ reserved: z.number() }) }) });

describe("an upstream with two keys", () => {
  it("is sent about as many calls with each, and its answers and the log name neither", async () => {
    const { run, sentWith } = await startTwoKeys(() => ({ delayMs: 5 }));
    const prompts = Array.from({ length: 40 }, (_, index) => `p${index}`);
    const group = groupOf(await run.send("/batch", { prompts }));
    expect(group.results).toEqual(prompts);
    expect(sentWith(KEY_A) + sentWith(KEY_B)).toBe(40);
    expect(Math.min(sentWith(KEY_A), sentWith(KEY_B))).toBeGreaterThanOrEqual(10);
    await run.send(`/runs/${run.id}/log`);
    expect(spent.parse((await run.send("/run")).json).budget.usd.reserved).toBe(0);
  });

  it.each([401, 402])("completes with the other key when one is answered with %i", async (status) => {
    const { run, sentWith } = await startTwoKeys(({ apiKey }) => (apiKey === KEY_A ? { status } : { delayMs: 5 }));
    const prompts = Array.from({ length: 40 }, (_, index) => `p${index}`);
    const group = groupOf(await run.send("/batch", { prompts }));
    expect(group.results).toEqual(prompts);
    expect(sentWith(KEY_A)).toBeLessThanOrEqual(8);
    expect(replyOf(await run.send("/query", { prompt: "one" })).text).toBe("one");
  });

  it("makes a call at once with the other key while one is rate-limited for a minute", async () => {
    const limited = { status: 429, retryAfterS: 50 };
    const { run, sentWith } = await startTwoKeys(({ apiKey }) => (apiKey === KEY_A ? limited : {}));
    expect(replyOf(await run.send("/query", { prompt: "one" }))).toMatchObject({ text: "one", attempts: 2 });
    expect(replyOf(await run.send("/query", { prompt: "two" }))).toMatchObject({ text: "two", attempts: 1 });
    expect([sentWith(KEY_A), sentWith(KEY_B)]).toEqual([1, 2]);
  });

  it("fails a call with the error of the last key when neither is accepted", async () => {
    const { run, sentWith } = await startTwoKeys(() => ({ status: 401 }));
    const answer = await run.send("/query", { prompt: "one" });
    expect([answer.status, errorOf(answer).code]).toEqual([502, "upstream_error"]);
    expect([sentWith(KEY_A), sentWith(KEY_B)]).toEqual([1, 1]);
  });

  it("is asked for a stored response with the key that stored it", async () => {
    const upstream = await startByteUpstream();
    stops.push(() => upstream.stop());
    const { promise: first, resolve: endFirst } = Promise.withResolvers<void>();
    upstream.serve(async ({ headers, body }, reply) => {
      if (body.includes("first")) await first;
      await reply.whole(`{"id":"${headers["authorization"] === `Bearer ${KEY_A}` ? "resp_a" : "resp_b"}"}`);
    });
    const { run } = await gatewayAt(`${upstream.origin}/v1`);
    const ask = (input: string) => run.send("/v1/responses", { model: "up/up-1", input, max_output_tokens: 16 });
    const held = ask("first");
    await expect.poll(() => upstream.calls.length).toBe(1);
    await ask("second");
    await run.send("/v1/responses/resp_b");
    endFirst();
    await held;
    await run.send("/v1/responses/resp_a");
    const seen = upstream.calls.map(({ method, headers }) => [method, headers["authorization"]]);
    expect(seen).toEqual([
      ["POST", `Bearer ${KEY_A}`],
      ["POST", `Bearer ${KEY_B}`],
      ["GET", `Bearer ${KEY_B}`],
      ["GET", `Bearer ${KEY_A}`],
    ]);
  });
});
