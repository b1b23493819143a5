/** An upstream with several keys: which of them its provider sees, and that none is shown. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { startUpstream, type TestUpstream, type UpstreamAnswer, type UpstreamCall } from "../support/upstream.ts";
import { answerOf, errorOf, groupOf, replyOf, type Answer } from "./world.ts";

const KEY_A = "sk-first-key-of-two-5f0c9d1e";
const KEY_B = "sk-second-key-of-two-7ab24c60";

let upstream: TestUpstream;
let bytes: ByteUpstream;
let gateway: Gateway;
/** What the provider answers in the present test, and what it was sent. */
let answers: (call: UpstreamCall) => UpstreamAnswer;
let calls: UpstreamCall[];

beforeAll(async () => {
  upstream = await startUpstream((call) => {
    calls.push(call);
    return answers(call);
  });
  bytes = await startByteUpstream();
  const at = (baseUrl: string) => ({
    ...{ kind: "openai", base_url: baseUrl, keys: ["secret:KEY_A", "secret:KEY_B"], models: [] },
    prices: { "*": { input: 1, output: 2 } },
  });
  const UPSTREAMS = { up: at(upstream.baseUrl), bytes: at(`${bytes.origin}/v1`) };
  gateway = await startGateway({ vars: { UPSTREAMS, KEY_A, KEY_B } });
});
beforeEach(() => {
  calls = [];
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all([upstream.stop(), bytes.stop()]);
});

const sentWith = (key: string): number => calls.filter(({ apiKey }) => apiKey === key).length;

/** A run of a test's own: what a run knows of keys is its own. */
async function openRun(handler: (call: UpstreamCall) => UpstreamAnswer = () => ({})) {
  answers = handler;
  const { id, token } = await gateway.openRun({ default_model: "up/m", max_parallel: 8, budget: { usd: 1 } });
  const send = async (path: string, json?: unknown): Promise<Answer> => {
    const answer = await answerOf(await gateway.fetch(path, { token, ...(json === undefined ? {} : { json }) }));
    for (const key of [KEY_A, KEY_B, "KEY_A", "KEY_B"]) expect(answer.text).not.toContain(key);
    return answer;
  };
  return { id, send };
}

const spent = z.object({ budget: z.object({ usd: z.object({ reserved: z.number() }) }) });

describe("an upstream with two keys", () => {
  it("is sent about as many calls with each, and its answers and the log name neither", async () => {
    const run = await openRun(() => ({ delayMs: 5 }));
    const prompts = Array.from({ length: 40 }, (_, index) => `p${index}`);
    const group = groupOf(await run.send("/batch", { prompts }));
    expect(group.results).toEqual(prompts);
    expect(sentWith(KEY_A) + sentWith(KEY_B)).toBe(40);
    expect(Math.min(sentWith(KEY_A), sentWith(KEY_B))).toBeGreaterThanOrEqual(10);
    await run.send(`/runs/${run.id}/log`);
    expect(spent.parse((await run.send("/run")).json).budget.usd.reserved).toBe(0);
  });

  it.each([401, 402])("completes with the other key when one is answered with %i", async (status) => {
    const run = await openRun(({ apiKey }) => (apiKey === KEY_A ? { status } : { delayMs: 5 }));
    const prompts = Array.from({ length: 40 }, (_, index) => `p${index}`);
    const group = groupOf(await run.send("/batch", { prompts }));
    expect(group.results).toEqual(prompts);
    expect(sentWith(KEY_A)).toBeLessThanOrEqual(8);
    expect(replyOf(await run.send("/query", { prompt: "one" })).text).toBe("one");
  });

  it("makes a call at once with the other key while one is rate-limited for a minute", async () => {
    const limited = { status: 429, retryAfterS: 50 };
    const run = await openRun(({ apiKey }) => (apiKey === KEY_A ? limited : {}));
    expect(replyOf(await run.send("/query", { prompt: "one" }))).toMatchObject({ text: "one", attempts: 2 });
    expect(replyOf(await run.send("/query", { prompt: "two" }))).toMatchObject({ text: "two", attempts: 1 });
    expect([sentWith(KEY_A), sentWith(KEY_B)]).toEqual([1, 2]);
  });

  it("fails a call with the error of the last key when neither is accepted", async () => {
    const run = await openRun(() => ({ status: 401 }));
    const answer = await run.send("/query", { prompt: "one" });
    expect([answer.status, errorOf(answer).code]).toEqual([502, "upstream_error"]);
    expect([sentWith(KEY_A), sentWith(KEY_B)]).toEqual([1, 1]);
  });

  it("is asked for a stored response with the key that stored it", async () => {
    const { promise: first, resolve: endFirst } = Promise.withResolvers<void>();
    bytes.serve(async ({ headers, body }, reply) => {
      if (body.includes("first")) await first;
      await reply.whole(`{"id":"${headers["authorization"] === `Bearer ${KEY_A}` ? "resp_a" : "resp_b"}"}`);
    });
    const run = await openRun();
    const ask = (input: string) => run.send("/v1/responses", { model: "bytes/m", input, max_output_tokens: 16 });
    const held = ask("first");
    await expect.poll(() => bytes.calls.length).toBe(1);
    await ask("second");
    await run.send("/v1/responses/resp_b");
    endFirst();
    await held;
    await run.send("/v1/responses/resp_a");
    const seen = bytes.calls.map(({ method, headers }) => [method, headers["authorization"]]);
    expect(seen).toEqual([
      ["POST", `Bearer ${KEY_A}`],
      ["POST", `Bearer ${KEY_B}`],
      ["GET", `Bearer ${KEY_B}`],
      ["GET", `Bearer ${KEY_A}`],
    ]);
  });
});
