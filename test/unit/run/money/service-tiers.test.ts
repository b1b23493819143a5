import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chargeOf, worstCase } from "../../../../src/run/money/estimate.ts";
import { NO_LIMITS, Ledger } from "../../../../src/run/money/ledger.ts";
import { admit } from "../../../../src/run/money/admit.ts";
import { completionTokensFor, costNanoUsd, highestPrice } from "../../../../src/run/money/money.ts";
import { catalogPrice } from "../../../../src/run/money/prices.ts";
import type { TierPrice, TokenPrice } from "../../../../src/run/money/token-price.ts";
import type { PriceFacts, Usage } from "../../../../src/call.ts";
import { makeFacts } from "../../../support/engine.ts";

const STANDARD = { inputPicoUsd: 1_000_000, cachedInputPicoUsd: 100_000, outputPicoUsd: 4_000_000 };
const FLEX = { inputPicoUsd: 500_000, cachedInputPicoUsd: 50_000, outputPicoUsd: 2_000_000 };
const PRIORITY = { inputPicoUsd: 2_000_000, cachedInputPicoUsd: 200_000, outputPicoUsd: 8_000_000 };
const tiered: TokenPrice = { ...STANDARD, serviceTiers: { flex: FLEX } };
const dear: TokenPrice = { ...STANDARD, serviceTiers: { flex: FLEX, priority: PRIORITY, fast: PRIORITY } };

const used = (serviceTier?: string): Usage => ({
  promptTokens: 1_000,
  completionTokens: 100,
  cachedTokens: 0,
  reasoningTokens: 0,
  costNanoUsd: null,
  ...(serviceTier === undefined ? {} : { serviceTier }),
});
const [STANDARD_COST, FLEX_COST, PRIORITY_COST] = [1_400_000, 700_000, 2_800_000];

describe("the charge of an answer", () => {
  it.each([
    [tiered, undefined, undefined, STANDARD_COST],
    [tiered, "flex", "flex", FLEX_COST],
    [tiered, undefined, "flex", FLEX_COST],
    [tiered, "flex", "default", STANDARD_COST],
    [tiered, "flex", undefined, STANDARD_COST],
    [tiered, "flex", "something new", STANDARD_COST],
    [tiered, undefined, "priority", STANDARD_COST],
    [dear, "priority", "priority", PRIORITY_COST],
    [dear, "priority", "default", STANDARD_COST],
    [dear, "priority", undefined, PRIORITY_COST],
    [dear, "auto", "something new", PRIORITY_COST],
    [dear, "default", "something new", STANDARD_COST],
    [dear, "on_demand", "on_demand", STANDARD_COST],
    [dear, "default", "priority", PRIORITY_COST],
    [dear, undefined, "toString", PRIORITY_COST],
  ] as const)("is that of the tier it names (case %#)", (price, serviceTier, answered, nanoUsd) => {
    const requested = serviceTier === undefined ? {} : { serviceTier };
    expect(chargeOf(used(answered), price, requested).usd).toBe(nanoUsd);
  });
});

describe("the reservation of a request", () => {
  it.each([
    ["that names no tier covers those that its upstream may choose", {}, PRIORITY_COST],
    ["for auto does the same", { serviceTier: "auto" }, PRIORITY_COST],
    ["for the standard tier covers that alone", { serviceTier: "default" }, STANDARD_COST],
    ["for flex covers the standard tier, to which routers fall back", { serviceTier: "flex" }, STANDARD_COST],
    ["for a dearer tier covers it", { serviceTier: "priority" }, PRIORITY_COST],
  ] as const)("%s", (_, requested, nanoUsd) => {
    expect(worstCase(1_000, 100, dear, requested).usd).toBe(nanoUsd);
  });

  it("does not cover fast mode unless the request selects it", () => {
    const fast: TokenPrice = { ...STANDARD, serviceTiers: { fast: PRIORITY } };
    expect(worstCase(1_000, 100, fast, {}).usd).toBe(STANDARD_COST);
    expect(worstCase(1_000, 100, fast, { serviceTier: "fast" }).usd).toBe(PRIORITY_COST);
  });

  it.each([
    [{}, 1_000_000],
    [{ cacheTtl: "5m" }, 1_250_000],
    [{ cacheTtl: "1h" }, 2_000_000],
  ] as const)("covers cache writes if the request marks them: %j", (requested, picoUsd) => {
    const price = { ...STANDARD, cacheWritePicoUsd: 1_250_000, cacheWrite1hPicoUsd: 2_000_000 };
    expect(highestPrice(price, 10, requested).inputPicoUsd).toBe(picoUsd);
    const writing = { ...price, writesWithoutMark: true } as const;
    expect(highestPrice(writing, 10, requested).inputPicoUsd).toBe(Math.max(1_250_000, picoUsd));
  });

  it("is 1.0 times a Claude prompt without marks, and 1.25 times any prompt of GPT-5.6", () => {
    const [claude, gpt] = [catalogPrice("anthropic", "claude-haiku-4-5"), catalogPrice("openai", "gpt-5.6-sol")];
    if (claude === null || gpt === null) throw new Error("the catalogue lacks a price");
    expect(highestPrice(claude, 100).inputPicoUsd).toBe(claude.inputPicoUsd);
    expect(highestPrice(gpt, 100).inputPicoUsd).toBe(1.25 * gpt.inputPicoUsd);
  });

  it("is half of every rate for OpenAI's flex, for large prompts too", () => {
    const price = catalogPrice("openai", "gpt-5.6-sol");
    if (price === null) throw new Error("the catalogue lacks a price");
    for (const promptTokens of [1_000, 300_000]) {
      const tokens = { promptTokens, cachedTokens: 100, cacheWriteTokens: 10, completionTokens: 50 };
      const standard = costNanoUsd({ ...tokens, serviceTier: "default" }, price);
      expect(costNanoUsd({ ...tokens, serviceTier: "flex" }, price)).toBe(standard / 2);
    }
  });
});

describe("a tier with a higher price", () => {
  const unbounded = [
    { field: "service_tier", why: "It costs more.", spends: ["usd"], allowedBy: "service_tier" },
  ] as const;
  const ledger = () => new Ledger({ ...NO_LIMITS, usd: 1_000_000_000 });

  it("is refused under a limit without a price, and reserved with one", () => {
    const facts = makeFacts({ serviceTier: "priority", unbounded });
    expect(admit(facts, tiered, ledger())).toMatchObject({ kind: "refuse", reason: { param: "service_tier" } });
    const admitted = admit(facts, dear, ledger());
    expect(admitted).toMatchObject({ kind: "reserve" });
    const plain = admit(makeFacts({ serviceTier: "default" }), dear, ledger());
    if (admitted.kind !== "reserve" || plain.kind !== "reserve") throw new Error("refused");
    expect(admitted.amounts.usd).toBe(2 * plain.amounts.usd);
  });

  it("does not cover another field that could cost more", () => {
    const both = [
      ...unbounded,
      { field: "speed", why: "It costs more.", spends: ["usd"], allowedBy: "speed" } as const,
    ];
    const facts = makeFacts({ serviceTier: "priority", unbounded: both });
    expect(admit(facts, dear, ledger())).toMatchObject({ kind: "refuse", reason: { param: "speed" } });
    const fast = makeFacts({ serviceTier: "fast", unbounded: both });
    expect(admit(fast, dear, ledger())).toMatchObject({ kind: "refuse", reason: { param: "service_tier" } });
  });
});

// ---- any price, any request, any answer within the reservation's bounds ----

const pico = fc.integer({ min: 0, max: 100_000_000 });
const rates = fc.record(
  {
    inputPicoUsd: pico,
    cachedInputPicoUsd: pico,
    outputPicoUsd: pico,
    cacheWritePicoUsd: pico,
    cacheWrite1hPicoUsd: pico,
  },
  { requiredKeys: ["inputPicoUsd", "cachedInputPicoUsd", "outputPicoUsd"] },
);
const tierPrice: fc.Arbitrary<TierPrice> = fc
  .tuple(rates, fc.array(fc.tuple(rates, fc.integer({ min: 1, max: 2_000 })), { maxLength: 2 }))
  .map(([base, steps]) => ({
    ...base,
    tiers: steps
      .map(([more, from]) => ({ ...more, fromPromptTokens: from }))
      .toSorted((a, b) => a.fromPromptTokens - b.fromPromptTokens),
  }));
const priceOfAny: fc.Arbitrary<TokenPrice> = fc
  .tuple(
    tierPrice,
    fc.dictionary(fc.constantFrom("flex", "priority", "fast", "batch"), tierPrice),
    fc.boolean(),
    fc.integer({ min: 0, max: 9 }),
  )
  .map(([base, serviceTiers, unasked, perCallNanoUsd]) => ({
    ...base,
    perCallNanoUsd,
    serviceTiers,
    ...(unasked ? { writesWithoutMark: true as const } : {}),
  }));
const tierName = fc.constantFrom(undefined, "auto", "default", "flex", "priority", "fast", "batch", "standard");
const ttl = fc.constantFrom(undefined, "5m" as const, "1h" as const);

describe("for any price, request and answer within its bounds", () => {
  const bounds = fc.record({ prompt: fc.nat(3_000), completion: fc.nat(500) });
  const share = fc.double({ min: 0, max: 1, noNaN: true });

  it("the charge is at most the reservation, and at least the standard price if the answer's tier is not known", () => {
    fc.assert(
      fc.property(
        priceOfAny,
        tierName,
        ttl,
        bounds,
        fc.array(share, { minLength: 5, maxLength: 5 }),
        fc.boolean(),
        (price, serviceTier, cacheTtl, bound, parts, isSplit) => {
          const requested: PriceFacts = {
            ...(serviceTier === undefined ? {} : { serviceTier }),
            ...(cacheTtl === undefined ? {} : { cacheTtl }),
          };
          const part = (at: number, of: number): number => Math.floor((parts[at] ?? 0) * of);
          const promptTokens = part(0, bound.prompt);
          const mayWrite = cacheTtl !== undefined || price.writesWithoutMark === true;
          const cacheWriteTokens = mayWrite ? part(1, promptTokens) : 0;
          const cacheWrite1hTokens = cacheTtl === "1h" ? part(2, cacheWriteTokens) : 0;
          const tokens = {
            promptTokens,
            cachedTokens: part(3, promptTokens - cacheWriteTokens),
            cacheWriteTokens,
            ...(isSplit ? { cacheWrite1hTokens } : {}),
            completionTokens: part(4, bound.completion),
          };
          const reserved = worstCase(bound.prompt, bound.completion, price, requested).usd;
          const reachable = [undefined, "default", "something new", ...reachableNames(price, serviceTier)];
          for (const answered of reachable) {
            const charged = costNanoUsd(
              answered === undefined ? tokens : { ...tokens, serviceTier: answered },
              price,
              requested,
            );
            expect(charged).toBeLessThanOrEqual(reserved);
            if (answered === undefined || answered === "something new") {
              expect(charged).toBeGreaterThanOrEqual(
                costNanoUsd({ ...tokens, serviceTier: "default" }, price, requested),
              );
            }
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it("the completion that a sum pays for stays within it", () => {
    fc.assert(
      fc.property(
        priceOfAny,
        tierName,
        ttl,
        fc.nat(3_000),
        fc.nat(1e9),
        (price, serviceTier, cacheTtl, prompt, sum) => {
          const requested: PriceFacts = {
            ...(serviceTier === undefined ? {} : { serviceTier }),
            ...(cacheTtl === undefined ? {} : { cacheTtl }),
          };
          const highest = highestPrice(price, prompt, requested);
          const tokens = completionTokensFor(sum, prompt, highest);
          fc.pre(Number.isFinite(tokens) && tokens > 0);
          expect(worstCase(prompt, tokens, price, requested).usd).toBeLessThanOrEqual(sum);
        },
      ),
    );
  });
});

/** Tiers beside the standard one in which a request may be served. */
function reachableNames({ serviceTiers = {} }: TokenPrice, requested: string | undefined): string[] {
  const names = Object.keys(serviceTiers);
  if (requested === undefined || requested === "auto") return names.filter((name) => name !== "fast");
  return names.filter((name) => name === requested);
}
