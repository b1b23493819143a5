import { describe, expect, it } from "vitest";
import { promptTokensMax } from "../../../../../src/run/money/estimate.ts";
import { PROMPT_TOKENS_FIXED_ANTHROPIC } from "../../../../../src/limits.ts";
import { parseUpstreams } from "../../../../../src/providers/upstreams.ts";
import { priceOf } from "../../../../../src/providers/config/registry.ts";

const parse = (fields: object, vars: Record<string, unknown> = {}) =>
  parseUpstreams({ claude: { kind: "anthropic", ...fields } }, vars);

function upstreamOf(fields: object = {}, vars: Record<string, unknown> = {}) {
  const parsed = parse(fields, vars);
  const upstream = parsed.ok ? parsed.upstreams[0] : undefined;
  if (upstream === undefined) throw new Error(JSON.stringify(parsed));
  return upstream;
}

const key = { api_key: "secret:ANTHROPIC_API_KEY" };

describe("an upstream of kind anthropic", () => {
  it("needs no more than its kind", () => {
    expect(upstreamOf()).toEqual({
      name: "claude",
      kind: "anthropic",
      batch: { pollMs: 60_000, marginMs: null },
      baseUrl: "https://api.anthropic.com",
      apiKey: null,
      headers: {},
      models: ["*"],
      maxInFlight: 4_096,
      timeoutMs: 600_000,
      maxAttempts: 3,
      errorsCost: "free",
      aggregate: "auto",
      abortCost: "reservation",
      promptCache: "auto",
      streamUsage: "auto",
      adaptive: { mode: "aimd" },
      capField: "max_tokens",
      allowParams: [],
      bounds: {
        tokensPerByte: 1,
        mediaTokensMax: null,
        fixedTokens: PROMPT_TOKENS_FIXED_ANTHROPIC,
        learnsTemplate: true,
      },
      prices: [],
    });
  });

  it("reads the fields that the other kinds have", () => {
    const fields = {
      ...key,
      models: ["claude-*"],
      max_in_flight: 4,
      timeout_ms: 1_000,
      max_attempts: 1,
      media_tokens_max: 5_000,
      prompt_tokens_per_byte: 0.5,
      headers: { "Anthropic-Beta": "a-1,b-2", "x-token": "secret:TOKEN" },
    };
    expect(upstreamOf(fields, { ANTHROPIC_API_KEY: "k", TOKEN: "t" })).toMatchObject({
      apiKey: "k",
      headers: { "anthropic-beta": "a-1,b-2", "x-token": "t" },
      models: ["claude-*"],
      maxInFlight: 4,
      timeoutMs: 1_000,
      maxAttempts: 1,
      bounds: { tokensPerByte: 0.5, mediaTokensMax: 5_000 },
    });
  });

  it.each([
    ["https://a.test", "https://a.test"],
    ["https://a.test/", "https://a.test"],
    ["https://a.test/v1", "https://a.test"],
    ["https://a.test/v1/", "https://a.test"],
    ["https://a.test/api/anthropic", "https://a.test/api/anthropic"],
    ["https://a.test/api/anthropic/v1", "https://a.test/api/anthropic"],
    ["https://a.test/v12", "https://a.test/v12"],
  ])("understands the base URL %s", (base_url, baseUrl) => {
    expect(upstreamOf({ base_url })).toMatchObject({ baseUrl });
  });

  it.each<[string, object]>([
    ["base_url", { base_url: "a.test" }],
    ["base_url", { base_url: "ftp://a.test" }],
    ["base_url", { base_url: "https://a.test/v1/messages" }],
    ["base_url", { base_url: "https://a.test/v1/messages/" }],
    ["base_url", { base_url: "https://hunter2:hunter2@a.test" }],
    ["api_key", { api_key: "hunter2\n" }],
    ["api_key", key],
    ["headers.X-Api-Key", { api_key: "hunter2", headers: { "X-Api-Key": "hunter2" } }],
    ["headers.authorization", { api_key: "hunter2", headers: { authorization: "Bearer hunter2" } }],
    ["headers.content-type", { headers: { "content-type": "text/plain" } }],
    ["cap_field", { cap_field: "max_tokens" }],
    ["prompt_tokens_per_call", { prompt_tokens_per_call: -1 }],
    ["prompt_tokens_per_call", { prompt_tokens_per_call: 100_001 }],
    ["prices.m.cache_write_1h", { prices: { m: { input: 1, output: 1, cache_write_1h: "2" } } }],
    ["prices.m.service_tiers", { prices: { m: { input: 1, output: 1, service_tiers: 2 } } }],
    [
      "prices.m.service_tiers.flex.output",
      { prices: { m: { input: 1, output: 1, service_tiers: { flex: { input: 1 } } } } },
    ],
    [
      "prices.m.service_tiers.flex.tiers",
      { prices: { m: { input: 1, output: 1, service_tiers: { flex: { input: 1, output: 1, tiers: 1 } } } } },
    ],
    ["prices.m.cache_write", { prices: { m: { input: 1, output: 1, cache_write: -1 } } }],
  ])("names %s when it is wrong, and no secret: %j", (field, fields) => {
    const parsed = parse(fields);
    expect(parsed).toMatchObject({ ok: false, path: `UPSTREAMS.claude.${field}` });
    expect(JSON.stringify(parsed)).not.toContain("hunter2");
  });

  it("takes a key in a configured header instead", () => {
    expect(upstreamOf({ headers: { authorization: "Bearer k" } })).toMatchObject({
      apiKey: null,
      headers: { authorization: "Bearer k" },
    });
  });
});

describe("what a call to Anthropic costs", () => {
  it("has the catalogue's price at Anthropic's own host only", () => {
    const own = {
      inputPicoUsd: 1_000_000,
      cachedInputPicoUsd: 100_000,
      cacheWritePicoUsd: 1_250_000,
      cacheWrite1hPicoUsd: 2_000_000,
    };
    const batch = {
      inputPicoUsd: 500_000,
      cachedInputPicoUsd: 50_000,
      cacheWritePicoUsd: 625_000,
      cacheWrite1hPicoUsd: 1_000_000,
      outputPicoUsd: 2_500_000,
    };
    expect(priceOf(upstreamOf(), "claude-haiku-4-5-20251001")).toEqual({
      ...own,
      outputPicoUsd: 5_000_000,
      serviceTiers: { batch },
    });
    expect(priceOf(upstreamOf({ base_url: "https://api.anthropic.com/v1/" }), "claude-haiku-4-5")).toMatchObject(own);
    expect(priceOf(upstreamOf({ base_url: "https://a.test" }), "claude-haiku-4-5")).toBeNull();
  });

  it("prices writes to the cache at 1.25 times the input price, and for an hour at twice, unless told otherwise", () => {
    const prices = {
      told: { input: 3, output: 15, cache_write: 9 },
      both: { input: 3, output: 15, cache_write: 3, cache_write_1h: 4 },
      "*": { input: 3, cached_input: 0.3, output: 15 },
    };
    const upstream = upstreamOf({ prices });
    const other = { inputPicoUsd: 3_000_000, cachedInputPicoUsd: 300_000, outputPicoUsd: 15_000_000 };
    expect(priceOf(upstream, "any")).toEqual({
      ...other,
      cacheWritePicoUsd: 3_750_000,
      cacheWrite1hPicoUsd: 6_000_000,
    });
    expect(priceOf(upstream, "told")).toMatchObject({ cacheWritePicoUsd: 9_000_000, cacheWrite1hPicoUsd: 9_000_000 });
    expect(priceOf(upstream, "both")).toMatchObject({ cacheWritePicoUsd: 3_000_000, cacheWrite1hPicoUsd: 4_000_000 });
  });

  it("takes prices of service tiers, with writes by the same rule", () => {
    const prices = {
      "*": { input: 4, output: 8, service_tiers: { priority: { input: 8, cached_input: 1, output: 16 } } },
    };
    expect(priceOf(upstreamOf({ prices }), "any")?.serviceTiers).toEqual({
      priority: {
        inputPicoUsd: 8_000_000,
        cachedInputPicoUsd: 1_000_000,
        outputPicoUsd: 16_000_000,
        cacheWritePicoUsd: 10_000_000,
        cacheWrite1hPicoUsd: 16_000_000,
      },
    });
  });

  it("leaves the price of writing open for other kinds, unless told", () => {
    const prices = { told: { input: 3, output: 15, cache_write: 3.75 }, "*": { input: 3, output: 15 } };
    const parsed = parseUpstreams({ a: { kind: "openai", base_url: "https://a.test/v1", prices } }, {});
    const upstream = parsed.ok ? parsed.upstreams[0] : undefined;
    if (upstream === undefined) throw new Error("no upstream");
    // Such servers write without a mark in the request, so a price for it holds for any prompt.
    expect(priceOf(upstream, "told")).toMatchObject({ cacheWritePicoUsd: 3_750_000, writesWithoutMark: true });
    expect(priceOf(upstream, "any")).not.toHaveProperty("writesWithoutMark");
    expect(priceOf(upstream, "any")).not.toHaveProperty("cacheWritePicoUsd");
  });

  it("bounds a prompt by its bytes and what Anthropic adds for tools, unless told otherwise", () => {
    const facts = { promptBytes: 100, messageCount: 1 };
    // The largest text of Anthropic's own that its documents list is about 900 tokens.
    expect(promptTokensMax(facts, upstreamOf().bounds)).toBe(100 + 8 + 1_024);
    expect(promptTokensMax(facts, upstreamOf({ prompt_tokens_per_call: 0 }).bounds)).toBe(108);
    expect(promptTokensMax(facts, upstreamOf({ prompt_tokens_per_call: 100_000 }).bounds)).toBe(100_108);
  });
});
