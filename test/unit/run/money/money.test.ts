import { describe, expect, it } from "vitest";
import { completionTokensFor, costNanoUsd, limitNanoUsd, nanoUsdOf, usdOf } from "../../../../src/run/money/money.ts";
import { MAX_TOKENS_MAX } from "../../../../src/limits.ts";
import { PLAIN_PRICE } from "../../../support/engine.ts";

const price = (inputPicoUsd: number, outputPicoUsd: number, cachedInputPicoUsd = inputPicoUsd) => ({
  inputPicoUsd,
  outputPicoUsd,
  cachedInputPicoUsd,
});
const tokens = (promptTokens: number, completionTokens: number, cachedTokens = 0) => ({
  promptTokens,
  completionTokens,
  cachedTokens,
});

describe("a limit in USD", () => {
  it.each([
    [0, 0],
    [0.07, 70_000_000],
    [0.29, 290_000_000],
    [0.57, 570_000_000],
    [1.1, 1_100_000_000],
    [4.35, 4_350_000_000],
    [1_000_000, 1_000_000_000_000_000],
    [0.000_000_001, 1],
    [0.000_000_003, 3],
  ])("of %d is exactly %d nano-USD", (usd, nanoUsd) => {
    expect(limitNanoUsd(usd)).toBe(nanoUsd);
  });

  it("keeps every cent exact", () => {
    for (let cents = 0; cents <= 10_000; cents++) expect(limitNanoUsd(cents / 100)).toBe(cents * 10_000_000);
  });

  it("is rounded down, never up, if it has fractions of a nano-USD", () => {
    expect(limitNanoUsd(0.000_000_001_999)).toBe(1);
    expect(limitNanoUsd(0.000_000_000_999)).toBe(0);
    expect(limitNanoUsd(0.123_456_789_9)).toBe(123_456_789);
  });

  it("is the same on the wire as in the request", () => {
    for (const usd of [0.07, 0.5, 1.1, 4.35, 123_456.78]) expect(usdOf(limitNanoUsd(usd))).toBe(usd);
  });

  it("is read back from the wire to the nano-USD, where binary decimals are above and below", () => {
    for (const nano of [0, 1, 7, 70_000_001, 4_350_000_003, 999_999_999_999_999])
      expect(nanoUsdOf(usdOf(nano))).toBe(nano);
  });
});

describe("the cost of tokens", () => {
  it("adds prompt and completion at their own prices", () => {
    expect(costNanoUsd(tokens(10, 3), price(150_000, 600_000))).toBe(10 * 150 + 3 * 600);
  });

  it("rounds the sum up, once", () => {
    expect(costNanoUsd(tokens(1, 0), price(1, 0))).toBe(1);
    expect(costNanoUsd(tokens(1_000, 0), price(1, 0))).toBe(1);
    expect(costNanoUsd(tokens(1_001, 0), price(1, 0))).toBe(2);
    expect(costNanoUsd(tokens(1, 1), price(500, 500))).toBe(1);
    expect(costNanoUsd(tokens(0, 0), price(500, 500))).toBe(0);
  });

  it("prices cached tokens as a part of the prompt, and never more than all of it", () => {
    const cheap = price(1_000, 0, 100);
    expect(costNanoUsd(tokens(100, 0, 40), cheap)).toBe(60 + 4);
    expect(costNanoUsd(tokens(100, 0, 100), cheap)).toBe(10);
    expect(costNanoUsd(tokens(100, 0, 101), cheap)).toBe(10);
  });

  it("is exact for ten million tokens at a high price, where doubles are not", () => {
    // 9,999,999 × 9,999,999,999 + 1 pico-USD is above 2^53 and ends in digits that a double drops.
    const dear = price(9_999_999_999, 9_999_999_999);
    expect(costNanoUsd(tokens(MAX_TOKENS_MAX - 1, 0), dear)).toBe(99_999_989_990_001);
    expect(costNanoUsd(tokens(MAX_TOKENS_MAX, MAX_TOKENS_MAX), dear)).toBe(199_999_999_980_000);
    expect(costNanoUsd(tokens(MAX_TOKENS_MAX, 0), price(999_999_999_999, 0))).toBe(9_999_999_999_990_000);
  });

  it("is exact on both sides of the largest sum that doubles hold", () => {
    // 2^53 - 1 = 9,007,199,254,740,991: sums of up to that are added as doubles, larger ones as BigInts.
    for (const [pico, nano] of [
      [9_007_199_254_740_000, 9_007_199_254_740],
      [9_007_199_254_740_001, 9_007_199_254_741],
      [9_007_199_254_740_991, 9_007_199_254_741],
    ] as const)
      expect(costNanoUsd(tokens(1, 0), price(pico, 0))).toBe(nano);
    // One more, of a completion: the double of their sum ends in …992, and that of two more as well.
    expect(costNanoUsd(tokens(1, 9), price(9_007_199_254_740_991, 1))).toBe(9_007_199_254_741);
    expect(costNanoUsd(tokens(1, 10), price(9_007_199_254_740_991, 1))).toBe(9_007_199_254_742);
    expect(costNanoUsd(tokens(1, 1), price(9_007_199_254_740_991, 9_007_199_254_740_010))).toBe(18_014_398_509_482);
    expect(costNanoUsd(tokens(0, 999), price(0, 9_007_199_254_740))).toBe(8_998_192_055_486);
  });
});

describe("the completion that a sum pays for", () => {
  it("is the most whose cost together with the prompt is within the sum", () => {
    for (const own of [price(300, 41), price(150_000, 600_000), price(1_000, 999), price(7, 2_000_000)]) {
      for (let nanoUsd = 0; nanoUsd < 400; nanoUsd++) {
        const most = completionTokensFor(nanoUsd, 9, own);
        if (most > 0) expect(costNanoUsd(tokens(9, most), own)).toBeLessThanOrEqual(nanoUsd);
        expect(costNanoUsd(tokens(9, most + 1), own)).toBeGreaterThan(nanoUsd);
      }
    }
  });

  it("is zero if the prompt alone costs as much, or nothing is left", () => {
    expect(completionTokensFor(101, 100, PLAIN_PRICE)).toBe(0);
    expect(completionTokensFor(102, 100, PLAIN_PRICE)).toBe(1);
    expect(completionTokensFor(100, 100, PLAIN_PRICE)).toBe(0);
    expect(completionTokensFor(99, 100, PLAIN_PRICE)).toBe(0);
    expect(completionTokensFor(-5, 0, PLAIN_PRICE)).toBe(0);
  });

  it("is infinite if the completion is free", () => {
    expect(completionTokensFor(0, 100, price(1_000, 0))).toBe(Number.POSITIVE_INFINITY);
  });

  it("leaves room for the price per call", () => {
    expect(completionTokensFor(110, 100, { ...PLAIN_PRICE, perCallNanoUsd: 6 })).toBe(2);
    expect(completionTokensFor(5, 0, { ...PLAIN_PRICE, perCallNanoUsd: 6 })).toBe(0);
  });
});
