/** `/query` and `/batch` against a provider that speaks Anthropic's protocol, beside one that speaks OpenAI's. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startAnthropicServer, type AnthropicServer } from "../support/anthropic-server.ts";
import { startGateway, type Gateway, type GatewayRequest } from "../support/gateway.ts";
import { startUpstream, type TestUpstream } from "../support/upstream.ts";
import { answerOf, documentOf, errorOf, groupOf, PROVIDER_KEY, replyOf, type RunAccess } from "./world.ts";

const PRICES = { "*": { input: 1, cached_input: 0.1, cache_write: 1.25, output: 5 } };
const PRICES_NANO = { input: 1_000, cacheRead: 100, cacheWrite: 1_250, output: 5_000 };
/** A key that the provider does not know. */
const WRONG_KEY = "sk-ant-wrong-7d1f0a44b2";

let server: AnthropicServer;
let openai: TestUpstream;
let gateway: Gateway;

beforeAll(async () => {
  server = await startAnthropicServer({ apiKey: PROVIDER_KEY, prices: PRICES_NANO }, (prompt, earlier) => {
    if (prompt === "cached") return { cache: { read: 200, write: 300 } };
    if (prompt === "overloaded once" && earlier === 0) return { error: { status: 529, type: "overloaded_error" } };
    if (prompt === "limited once" && earlier === 0) {
      return { error: { status: 429, type: "rate_limit_error", retryAfterS: 0.2 } };
    }
    if (prompt === "refused") {
      return { error: { status: 400, type: "invalid_request_error", words: "messages.0: not like this" } };
    }
    return {};
  });
  openai = await startUpstream();
  const claude = { kind: "anthropic", base_url: server.baseUrl, api_key: "secret:PROVIDER_KEY", prices: PRICES };
  const UPSTREAMS = {
    claude: { ...claude, models: ["claude-*"], headers: { "anthropic-beta": "some-beta-2026-01-01" } },
    locked: { ...claude, base_url: `${server.baseUrl}/v1/`, api_key: WRONG_KEY, models: [] },
    up: { kind: "openai", base_url: openai.baseUrl, models: ["up-*"], prices: { "*": { input: 1, output: 2 } } },
  };
  gateway = await startGateway({ vars: { UPSTREAMS, PROVIDER_KEY } });
});
beforeEach(() => {
  server.forget();
  openai.forget();
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all([server.stop(), openai.stop()]);
});

async function open(body: Record<string, unknown> = {}): Promise<RunAccess> {
  const { id, token } = await gateway.openRun({ default_model: "claude-x", ...body });
  const send = async (path: string, request?: GatewayRequest) =>
    answerOf(await gateway.fetch(path, { token, ...request }));
  return { id, token, send };
}

const query = (run: RunAccess, json: Record<string, unknown>) => run.send("/query", { json });

const spentNanoUsd = async (run: RunAccess) => Math.round((await documentOf(run)).budget.usd.spent * 1e9);

describe("a call to an Anthropic upstream", () => {
  it("that its protocol has no place for is not sent, and made no attempt", async () => {
    const run = await open();
    const call = { messages: [{ role: "function", content: "a" }] };
    const refused = errorOf(await query(run, call));
    expect(refused).toMatchObject({ code: "invalid_request", param: "messages[0].role" });
    expect(refused).not.toHaveProperty("attempts");
    const whole = groupOf(await run.send("/batch", { json: { items: [call, { prompt: "b" }] } }));
    expect(whole.items).toMatchObject([
      { status: "failed", attempts: 0, usage: null },
      { status: "completed", attempts: 1 },
    ]);
    expect(whole.errors[0]).toMatchObject({ attempts: 0, charged_usd: 0 });
    const ends = (await run.send(`/runs/${run.id}/log`)).text.match(/.*"slot_completed".*/g) ?? [];
    expect(ends.map((line) => (JSON.parse(line) as { attempts: number }).attempts).toSorted()).toEqual([0, 0, 1]);
    expect(server.seen).toHaveLength(1);
  });

  it("is sent in Anthropic's protocol and answered in the gateway's", async () => {
    const run = await open();
    const messages = [
      { role: "system", content: "be kind" },
      { role: "user", content: [{ type: "text", text: "how are you?" }] },
    ];
    const params = { stop_sequences: ["x"], top_k: 3 };
    const reply = replyOf(await query(run, { messages, system: "be brief", temperature: 0.5, params }));
    expect(reply).toMatchObject({
      text: "how are you?",
      model: "claude-x-20260901",
      finish_reason: "stop",
      attempts: 1,
      usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10, cost: 0.000022 },
    });
    const [seen] = server.seen;
    expect(seen).toMatchObject({
      path: "/v1/messages",
      headers: {
        "x-api-key": PROVIDER_KEY,
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "some-beta-2026-01-01",
      },
      body: {
        model: "claude-x",
        max_tokens: 4_096,
        system: [
          { type: "text", text: "be brief" },
          { type: "text", text: "be kind" },
        ],
        messages: [messages[1]],
        temperature: 0.5,
        ...params,
      },
    });
    expect(seen?.headers).not.toHaveProperty("authorization");
  });

  it("is charged what the provider bills, with cached tokens at their own prices", async () => {
    const run = await open({ budget: { usd: 1 } });
    expect(replyOf(await query(run, { prompt: "cached" })).usage).toMatchObject({ prompt_tokens: 502 });
    replyOf(await query(run, { prompt: "not cached" }));
    expect(server.billedNanoUsd()).toBe(2_000 + 20_000 + 375_000 + 10_000 + 3_000 + 15_000);
    expect(await spentNanoUsd(run)).toBe(server.billedNanoUsd());
    expect((await documentOf(run)).budget.usd.reserved).toBe(0);
  });

  it("is clamped to what a small budget pays for after the tokens that the provider may add to the prompt", async () => {
    // Two bytes, a message's 8 tokens and the provider's own 1,024 at the input price leave 366,000 nano-USD.
    const run = await open({ budget: { usd: 0.0014 } });
    replyOf(await query(run, { prompt: "hi", max_tokens: 1_000 }));
    expect(server.seen).toMatchObject([{ body: { max_tokens: 73 } }]);
  });

  it("has finish_reason length if its cap cut the answer", async () => {
    const reply = replyOf(await query(await open(), { prompt: "123456789", max_tokens: 2 }));
    expect(reply).toMatchObject({ text: "12345678", finish_reason: "length" });
  });

  it.each(["overloaded once", "limited once"])("is retried when the provider is %s", async (prompt) => {
    const run = await open();
    expect(replyOf(await query(run, { prompt }))).toMatchObject({ text: prompt, attempts: 2 });
    expect(await spentNanoUsd(run)).toBe(server.billedNanoUsd());
  });

  it("fails with the provider's error message, free of charge", async () => {
    const run = await open();
    const answer = await query(run, { prompt: "refused" });
    expect([answer.status, errorOf(answer)]).toMatchObject([
      502,
      {
        code: "upstream_error",
        status: 400,
        retryable: false,
        message: "claude answered 400: messages.0: not like this",
      },
    ]);
    expect(await spentNanoUsd(run)).toBe(0);
  });

  it("never shows a refused key, even if the provider's error quotes it", async () => {
    const answer = await query(await open(), { prompt: "p", model: "locked/claude-x" });
    expect([answer.status, errorOf(answer)]).toMatchObject([502, { code: "upstream_error", status: 401 }]);
    expect(answer.text).not.toContain(WRONG_KEY);
    expect(server.seen).toMatchObject([{ headers: { "x-api-key": WRONG_KEY } }]);
  });

  it("is refused before it is sent if a field does not exist in Anthropic's protocol; the error names the field", async () => {
    const run = await open();
    const messages = [
      { role: "user", content: "a" },
      { role: "function", name: "f", content: "b" },
    ];
    const answer = await query(run, { messages });
    expect([answer.status, errorOf(answer)]).toMatchObject([
      400,
      { code: "invalid_request", param: "messages[1].role", retryable: false },
    ]);
    expect(server.seen).toEqual([]);
    expect(await spentNanoUsd(run)).toBe(0);
  });
});

describe("a batch over upstreams of both protocols", () => {
  it("returns answers in order, isolates a failed slot, and is charged the sum of both bills", async () => {
    const run = await open({ budget: { usd: 1 }, max_parallel: 4 });
    const items = [
      { prompt: "to claude" },
      { prompt: "to up", model: "up-1" },
      { prompt: "refused" },
      { messages: [{ role: "user", content: "a", name: "bob" }] },
      { prompt: "cached", model: "claude/claude-y" },
      { prompt: "to up again", model: "up-1" },
    ];
    const group = groupOf(await run.send("/batch", { json: { items } }));
    expect(group.status).toBe("partial");
    expect([0, 1, 4, 5].map((index) => group.results[index])).toEqual(["to claude", "to up", "cached", "to up again"]);
    expect(group.errors).toMatchObject([
      null,
      null,
      { code: "upstream_error", status: 400 },
      { code: "invalid_request", param: "messages[0].name" },
      null,
      null,
    ]);
    expect([server.seen.length, openai.counters.requests]).toEqual([3, 2]);
    const billed = server.billedNanoUsd() + openaiBillNanoUsd(group.items[1], group.items[5]);
    expect(await spentNanoUsd(run)).toBe(billed);
    expect(Math.round(group.usage.cost * 1e9)).toBe(billed);
  });
});

type Item = ReturnType<typeof groupOf>["items"][number] | undefined;

/** $1 per million prompt tokens and $2 per million completion tokens. */
function openaiBillNanoUsd(...items: Item[]): number {
  return items.reduce(
    (sum, item) => sum + (item?.usage?.prompt_tokens ?? 0) * 1_000 + (item?.usage?.completion_tokens ?? 0) * 2_000,
    0,
  );
}
