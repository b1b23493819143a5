import neurons from "../../../../src/run/money/neuron-prices.json" with { type: "json" };
import { readFileSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { admit } from "../../../../src/run/money/admit.ts";
import { chargeOf, worstCase } from "../../../../src/run/money/estimate.ts";
import { Ledger, NO_LIMITS } from "../../../../src/run/money/ledger.ts";
import type { PriceFacts } from "../../../../src/call.ts";
import { costNanoUsd } from "../../../../src/run/money/money.ts";
import { CATALOG_DATE, catalogPrice, providerAt, type Snapshot } from "../../../../src/run/money/prices.ts";
import { priceOf } from "../../../../src/providers/config/registry.ts";
import { makeUpstream } from "../../providers/make.ts";
import { expectLinear } from "../../../support/growth.ts";

const FILE = "src/run/money/price-snapshot.json";
const snapshot: Snapshot = JSON.parse(readFileSync(FILE, "utf8"));
const models = Object.entries(snapshot.providers).flatMap(([provider, listed]) =>
  listed.models.map((model) => ({ provider, model })),
);

/** Cost of one call at the catalogue's price, in nano-USD. */
function cost(
  provider: string,
  model: string,
  tokens: [prompt: number, cached: number, output: number, write?: number],
) {
  const price = catalogPrice(provider, model);
  if (price === null) throw new Error(`${provider} has no price of ${model}`);
  const [promptTokens, cachedTokens, completionTokens, cacheWriteTokens = 0] = tokens;
  return costNanoUsd({ promptTokens, cachedTokens, completionTokens, cacheWriteTokens }, price);
}

// Expected: calcPrice of @pydantic/genai-prices 0.1.8, total_price × 10⁹, at 2026-09-23T02:00Z (DeepSeek's peak hours).
describe("a catalogue price charges what the price data charges", () => {
  it.each([
    ["openai", "gpt-4o-mini", 195_000],
    ["openai", "o3", 2_500_000],
    ["openrouter", "openai/gpt-6-sol", 2_640_000],
    ["groq", "openai/gpt-oss-20b", 97_500],
    ["deepseek", "deepseek-chat", 340_000],
    ["deepseek", "deepseek-v4-pro", 1_460_800],
    ["mistral", "mistral-medium-latest", 1_980_000],
    ["together", "meta-llama/Llama-3.3-70B-Instruct-Turbo", 968_000],
    ["perplexity", "sonar-pro", 18_500_000],
    ["openrouter", "deepseek/deepseek-r1:free", 0],
  ])("at %s for %s, 1,000 tokens in (200 cached) and 100 out", (provider, model, nanoUsd) => {
    expect(cost(provider, model, [1_000, 200, 100])).toBe(nanoUsd);
  });

  it("for an embedding, which has no completion", () => {
    expect(cost("openai", "text-embedding-3-small", [1_000, 0, 0])).toBe(20_000);
  });

  it("for tokens written to a cache", () => {
    expect(cost("openai", "gpt-6-sol", [1_000, 0, 100, 200])).toBe(3_100_000);
  });

  it("on either side of a tier's edge, completion included", () => {
    expect(cost("openai", "gpt-6-sol", [272_000, 0, 100])).toBe(545_000_000);
    expect(cost("openai", "gpt-6-sol", [272_001, 0, 100])).toBe(1_089_504_000);
    expect(cost("anthropic", "claude-sonnet-4-5-20250929", [200_000, 100, 10])).toBe(599_880_000);
    expect(cost("anthropic", "claude-sonnet-4-5-20250929", [200_001, 100, 10])).toBe(1_199_691_000);
    expect(cost("google", "gemini-2.5-pro", [200_000, 0, 1])).toBe(250_010_000);
    expect(cost("google", "gemini-2.5-pro", [200_001, 0, 1])).toBe(500_017_500);
  });
});

describe("reserving and settling at a catalogue price", () => {
  const gpt6sol = catalogPrice("openai", "gpt-6-sol");
  if (gpt6sol === null) throw new Error("the catalogue has no price of gpt-6-sol");
  const usage = { completionTokens: 100, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null };

  it("reserves the higher tier once the prompt's bound reaches it", () => {
    // The cache's write price, 2.5 and 5 USD per million, is the most that a prompt token can cost.
    expect(worstCase(272_000, 100, gpt6sol).usd).toBe(272_000 * 2_500 + 100 * 10_000);
    expect(worstCase(272_001, 100, gpt6sol).usd).toBe(272_001 * 5_000 + 100 * 15_000);
  });

  it("settles by the prompt's true size, not by its bound", () => {
    expect(chargeOf({ ...usage, promptTokens: 272_000 }, gpt6sol).usd).toBe(545_000_000);
    expect(chargeOf({ ...usage, promptTokens: 272_001 }, gpt6sol).usd).toBe(1_089_504_000);
  });

  it("adds the price per call to both, but not to a cost that the upstream names itself", () => {
    const perCall = { inputPicoUsd: 1_000, cachedInputPicoUsd: 1_000, outputPicoUsd: 1_000, perCallNanoUsd: 7 };
    expect(worstCase(10, 100, perCall).usd).toBe(117);
    expect(chargeOf({ ...usage, promptTokens: 10 }, perCall).usd).toBe(117);
    expect(chargeOf({ ...usage, promptTokens: 10, costNanoUsd: 3 }, perCall).usd).toBe(3);
  });

  const PLAIN: readonly PriceFacts[] = [{}];
  const MARKED: readonly PriceFacts[] = [{}, { cacheTtl: "5m" }, { cacheTtl: "1h" }];

  it("reserves no less than any call within the bound can cost, for every price of the catalogue", () => {
    const sizes = [1, 128_000, 128_001, 200_000, 200_001, 272_000, 272_001, 512_001];
    const completionTokens = 50;
    const short: string[] = [];
    for (const { provider, model } of models) {
      const name = (model.match[0] ?? "").replaceAll("*", "").replaceAll("#", "1");
      const price = catalogPrice(provider, name);
      if (price === null) continue;
      for (const bound of sizes) {
        for (const requested of price.cacheWritePicoUsd === undefined ? PLAIN : MARKED) {
          const reserved = worstCase(bound, completionTokens, price, requested).usd;
          const writes = requested.cacheTtl !== undefined || price.writesWithoutMark === true;
          for (const promptTokens of sizes.filter((size) => size <= bound)) {
            const cost = (cachedTokens: number, cacheWriteTokens: number): number =>
              costNanoUsd({ promptTokens, cachedTokens, cacheWriteTokens, completionTokens }, price, requested);
            const most = Math.max(cost(0, 0), cost(promptTokens, 0), writes ? cost(0, promptTokens) : 0);
            if (most > reserved) short.push(`${provider} ${name}: ${promptTokens} of ${bound} tokens`);
          }
        }
      }
    }
    expect(short).toEqual([]);
  });

  it("caps the completion at what the higher tier leaves after the price per call", () => {
    const facts = {
      messageCount: 0,
      mediaParts: 0,
      model: null,
      maxTokens: 1_000,
      priority: 2 as const,
      timeoutMs: null,
    };
    const capAt = (promptBytes: number, perCallNanoUsd: number): number | null => {
      const ledger = new Ledger({ ...NO_LIMITS, usd: promptBytes * 5_000 + 100 * 15_000 });
      const price = { ...gpt6sol, perCallNanoUsd };
      const admission = admit({ ...facts, promptBytes }, price, ledger);
      return admission.kind === "reserve" ? admission.capTokens : null;
    };
    expect(capAt(272_001, 0)).toBe(100);
    expect(capAt(272_001, 15_000)).toBe(99);
    expect(capAt(272_000, 0)).toBe(1_000);
  });

  it("charges the more expensive part if the parts of a usage exceed its whole", () => {
    const rates = { inputPicoUsd: 2_000, cachedInputPicoUsd: 1_000, cacheWritePicoUsd: 3_000, outputPicoUsd: 0 };
    const tokens = { promptTokens: 10, cachedTokens: 8, cacheWriteTokens: 6, completionTokens: 0 };
    expect(costNanoUsd(tokens, rates)).toBe(6 * 3 + 4 * 1);
  });
});

describe("catalogPrice", () => {
  it("matches dated names by their digits, and nothing else", () => {
    expect(catalogPrice("openai", "gpt-6-sol-2026-09-01")).toEqual(catalogPrice("openai", "gpt-6-sol"));
    expect(catalogPrice("openai", "gpt-6-sol-2026-09-0x")).toBeNull();
    expect(catalogPrice("openai", "gpt-6-sol-2026-09-011")).toBeNull();
    expect(catalogPrice("openai", "gpt-6-sol-2026-09-0")).toBeNull();
  });

  it("ignores case, as the price data does", () => {
    expect(catalogPrice("openai", "GPT-4o-Mini")).toEqual(catalogPrice("openai", "gpt-4o-mini"));
  });

  it.each([
    ["openai", "gpt-unheard-of"],
    ["openai", ""],
    ["openai", "openai/gpt-4o-mini"],
    ["openrouter", "gpt-4o-mini"],
    ["openrouter", "openai/gpt-4o-mini:nitro"],
    ["unheard-of", "gpt-4o-mini"],
    ["constructor", "gpt-4o-mini"],
    [null, "gpt-4o-mini"],
  ])("has no price at %s for %j", (provider, model) => {
    expect(catalogPrice(provider, model)).toBeNull();
  });

  it.each([
    ["openai", "gpt-4o-mini-search-preview"],
    ["openai", "o3-deep-research"],
    ["openai", "gpt-audio"],
    ["google", "gemini-2.5-flash-image"],
    ["google", "gemini-2.5-pro-preview-tts"],
    ["perplexity", "sonar-deep-research"],
  ])("has no price at %s for %s, whose cost prompt and completion do not bound", (provider, model) => {
    expect(catalogPrice(provider, model)).toBeNull();
  });

  it.each<[string, (chars: number) => string]>([
    ["a", (chars) => "a".repeat(chars)],
    ["-tts", (chars) => `${"-tts".repeat(chars / 4 - 1)}x`],
    ["1", (chars) => `gpt-6-sol-${"1".repeat(chars - 10)}`],
    ["claude-v", (chars) => "claude-v".repeat(chars / 8)],
    ["İ", (chars) => "İ".repeat(chars)],
  ])("looks a name up in time that grows with it and no faster: many times %s", (_, nameOf) => {
    expectLinear(256, (chars) => {
      const name = nameOf(chars);
      return () => {
        for (const provider of Object.keys(snapshot.providers)) expect(catalogPrice(provider, name)).toBeNull();
      };
    });
  });
});

describe("Cloudflare's prices", () => {
  const listed = snapshot.providers["cloudflare"]?.models ?? [];

  it("are neurons, of which a million cost $11", () => {
    // 26,668 and 204,805 neurons per million tokens: $0.293348 and $2.252855, which the price list rounds.
    expect(catalogPrice("cloudflare", "@cf/meta/llama-3.3-70b-instruct-fp8-fast")).toMatchObject({
      inputPicoUsd: 293_348,
      cachedInputPicoUsd: 293_348,
      outputPicoUsd: 2_252_855,
    });
    expect(catalogPrice("cloudflare", "@cf/zai-org/glm-5.2")).toMatchObject({ cachedInputPicoUsd: 259_996 });
  });

  it("are the listed prices per token, but for their rounding", () => {
    let compared = 0;
    for (const { match, input, cached = input, output } of listed) {
      for (const name of match) {
        // Its requests are answered, and billed, as kimi-k2.6.
        if (name === "@cf/moonshotai/kimi-k2.5") continue;
        const price = catalogPrice("cloudflare", name);
        const found = [price?.inputPicoUsd, price?.cachedInputPicoUsd, price?.outputPicoUsd];
        for (const [at, rate] of [input, cached, output].entries()) {
          expect(Math.abs((found[at] ?? Infinity) - rate), name).toBeLessThanOrEqual(1_000);
        }
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(40);
  });

  it("are the snapshot's for a model that the table of neurons lacks", () => {
    expect(catalogPrice("cloudflare", "@cf/moondream/moondream3.1-9b-a2b")).toMatchObject({ outputPicoUsd: 1_000_000 });
    expect(catalogPrice("cloudflare", "@cf/none/such")).toBeNull();
  });

  it("have kimi-k2.5 at the price of the model that answers for it", () => {
    const [alias, itself] = ["k2.5", "k2.6"].map((name) => catalogPrice("cloudflare", `@cf/moonshotai/kimi-${name}`));
    expect(alias).toEqual(itself);
  });

  it("name their source and their day", () => {
    expect(neurons.source).toBe("https://developers.cloudflare.com/workers-ai/platform/pricing/");
    expect(neurons.date).toMatch(/^20\d\d-\d\d-\d\d$/);
  });
});

describe("providerAt", () => {
  it.each([
    ["https://api.openai.com/v1", "openai"],
    ["https://openrouter.ai/api/v1", "openrouter"],
    ["https://api.groq.com/openai/v1", "groq"],
    ["https://api.mistral.ai/v1", "mistral"],
    ["https://api.deepseek.com", "deepseek"],
    ["https://api.together.xyz/v1", "together"],
    ["https://generativelanguage.googleapis.com/v1beta/openai", "google"],
    ["https://api.anthropic.com/v1", "anthropic"],
  ])("knows %s as %s", (baseUrl, provider) => {
    expect(providerAt(baseUrl)).toBe(provider);
  });

  it.each([
    "http://127.0.0.1:11434/v1",
    "https://eu.api.openai.com/v1",
    "https://api.openai.com.example/v1",
    "https://api.openai.com:8443/v1",
    "https://example/api.openai.com",
    "",
  ])("knows no provider at %j", (baseUrl) => {
    expect(providerAt(baseUrl)).toBeNull();
  });
});

describe("the price of an upstream's model", () => {
  const openai = { baseUrl: "https://api.openai.com/v1" };

  it("is the catalogue's at a provider's own host", () => {
    const price = { inputPicoUsd: 150_000, cachedInputPicoUsd: 75_000, outputPicoUsd: 600_000 };
    expect(priceOf(makeUpstream(openai), "gpt-4o-mini")).toMatchObject(price);
  });

  it("is unknown at any other host, whatever the model's name", () => {
    expect(priceOf(makeUpstream(), "gpt-4o-mini")).toBeNull();
    expect(priceOf(makeUpstream({ kind: "simulated", baseUrl: "" }), "gpt-4o-mini")).toBeNull();
  });

  it("is the configured one if there is one, even if that is free", () => {
    const free = { inputPicoUsd: 0, cachedInputPicoUsd: 0, outputPicoUsd: 0 };
    const upstream = makeUpstream({ ...openai, prices: [{ pattern: "gpt-4o-mini", price: free }] });
    expect(priceOf(upstream, "gpt-4o-mini")).toBe(free);
    expect(priceOf(upstream, "gpt-4o")?.inputPicoUsd).toBe(2_500_000);
  });
});

describe("the snapshot", () => {
  it("has exact integer amounts, and tiers that rise", () => {
    const amounts = models.flatMap(({ model: { match: _match, unasked: _unasked, tiers = [], ...rates } }) => [
      ...Object.values(rates),
      ...tiers.flatMap((tier) => Object.values(tier)),
    ]);
    expect(amounts.length).toBeGreaterThan(1_000);
    expect(amounts.filter((amount) => amount === undefined || !Number.isSafeInteger(amount) || amount < 0)).toEqual([]);
    for (const { model } of models) {
      const starts = (model.tiers ?? []).map(({ from }) => from);
      expect(starts).toEqual(starts.toSorted((a, b) => a - b));
    }
  });

  it("has patterns in lower case with wildcards at their ends only", () => {
    const patterns = [
      ...models.flatMap(({ model }) => model.match),
      ...Object.values(snapshot.providers).flatMap(({ unpriced }) => unpriced),
    ];
    expect(patterns.filter((pattern) => !/^\*?[^*\p{Lu}]+\*?$/u.test(pattern))).toEqual([]);
    expect(patterns.filter((pattern) => /^\*.*#/.test(pattern))).toEqual([]);
  });

  it("stays small enough for a Worker, names its source and its day", () => {
    expect(statSync(FILE).size).toBeLessThan(150_000);
    expect(snapshot.source).toContain("@pydantic/genai-prices");
    expect(CATALOG_DATE).toMatch(/^20\d\d-\d\d-\d\d$/);
    expect(readFileSync("src/run/money/price-snapshot.LICENSE", "utf8")).toContain("MIT License");
  });
});
