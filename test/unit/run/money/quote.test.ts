import { describe, expect, it } from "vitest";
import { ANY_TOKENS } from "../../../../src/run/money/estimate.ts";
import { quoteOf } from "../../../../src/run/money/quote.ts";
import { COMPLETION_TOKENS_DEFAULT, LIKELY_COMPLETION_TOKENS } from "../../../../src/limits.ts";
import { makeFacts, PLAIN_PRICE } from "../../../support/engine.ts";

describe("a quote", () => {
  it("has the worst case that would be reserved, and the likely cost of English text of that size", () => {
    const facts = makeFacts({ promptBytes: 400, messageCount: 1, maxTokens: 1_000 });
    expect(quoteOf(facts, PLAIN_PRICE, ANY_TOKENS)).toEqual({
      worstNanoUsd: 408 + 2 * 1_000,
      likelyNanoUsd: 100 + 2 * LIKELY_COMPLETION_TOKENS,
      promptTokensMax: 408,
      completionTokensMax: 1_000,
    });
  });

  it("assumes the default cap if none is requested, and at most a small cap as likely", () => {
    const open = quoteOf(makeFacts({ maxTokens: null }), PLAIN_PRICE, ANY_TOKENS);
    expect(open.completionTokensMax).toBe(COMPLETION_TOKENS_DEFAULT);
    const small = quoteOf(makeFacts({ promptBytes: 92, maxTokens: 5 }), PLAIN_PRICE, ANY_TOKENS);
    expect([small.worstNanoUsd, small.likelyNanoUsd]).toEqual([110, 23 + 10]);
  });

  it("has its worst case in the highest tier within its bound, and its likely cost in the tier of its likely size", () => {
    const price = { ...PLAIN_PRICE, tiers: [{ ...PLAIN_PRICE, inputPicoUsd: 5_000, fromPromptTokens: 300 }] };
    const { worstNanoUsd, likelyNanoUsd } = quoteOf(makeFacts({ promptBytes: 400, maxTokens: 0 }), price, ANY_TOKENS);
    expect([worstNanoUsd, likelyNanoUsd]).toEqual([408 * 5, 100]);
  });

  it("never has a likely cost above its worst case", () => {
    const bounds = { tokensPerByte: 0.01, mediaTokensMax: 0 };
    for (const promptBytes of [0, 1, 40, 4_000]) {
      const facts = makeFacts({ promptBytes, messageCount: 0, maxTokens: 10 });
      const { worstNanoUsd, likelyNanoUsd } = quoteOf(facts, PLAIN_PRICE, bounds);
      expect(likelyNanoUsd).toBeLessThanOrEqual(worstNanoUsd);
    }
  });

  it("costs nothing without a price, and counts media by the upstream's bound", () => {
    const facts = makeFacts({ promptBytes: 92, messageCount: 1, mediaParts: 3 });
    const quote = quoteOf(facts, null, { tokensPerByte: 1, mediaTokensMax: 500 });
    expect(quote).toMatchObject({ worstNanoUsd: 0, likelyNanoUsd: 0, promptTokensMax: 1_600 });
  });
});
