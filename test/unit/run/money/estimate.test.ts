import { describe, expect, it } from "vitest";
import { chargeOf, promptTokensMax, worstCase } from "../../../../src/run/money/estimate.ts";
import { PLAIN_PRICE } from "../../../support/engine.ts";

describe("the bound of a prompt's tokens", () => {
  it("is a token per byte and eight per message", () => {
    expect(promptTokensMax({ promptBytes: 0, messageCount: 1 })).toBe(8);
    expect(promptTokensMax({ promptBytes: 1_000, messageCount: 3 })).toBe(1_024);
  });
});

describe("the worst case of an attempt", () => {
  it("is one call, its prompt's bound and its whole cap", () => {
    expect(worstCase(100, 50, PLAIN_PRICE)).toEqual({
      usd: 200,
      calls: 1,
      prompt_tokens: 100,
      completion_tokens: 50,
      new_tokens: 150,
    });
  });

  it("costs nothing without a price, but still counts", () => {
    expect(worstCase(100, 50, null)).toEqual({
      usd: 0,
      calls: 1,
      prompt_tokens: 100,
      completion_tokens: 50,
      new_tokens: 150,
    });
  });

  it("covers a prompt read from the cache, whichever price is higher", () => {
    expect(worstCase(100, 0, { ...PLAIN_PRICE, cachedInputPicoUsd: 500 }).usd).toBe(100);
    expect(worstCase(100, 0, { ...PLAIN_PRICE, cachedInputPicoUsd: 2_000 }).usd).toBe(200);
  });
});

describe("the charge of a reported usage", () => {
  const usage = { promptTokens: 10, completionTokens: 5, cachedTokens: 4, reasoningTokens: 3, costNanoUsd: null };
  const price = { ...PLAIN_PRICE, cachedInputPicoUsd: 500 };

  it("is tokens × price, cached tokens at their own; reasoning is part of the completion", () => {
    expect(chargeOf(usage, price)).toEqual({
      usd: 6 + 2 + 10,
      calls: 1,
      prompt_tokens: 10,
      completion_tokens: 5,
      new_tokens: 11,
    });
  });

  it("is the upstream's own figure if it names one, zero included", () => {
    expect(chargeOf({ ...usage, costNanoUsd: 77 }, price).usd).toBe(77);
    expect(chargeOf({ ...usage, costNanoUsd: 0 }, price).usd).toBe(0);
    expect(chargeOf({ ...usage, costNanoUsd: 77 }, null).usd).toBe(77);
  });

  it("is zero USD with neither a figure nor a price", () => {
    expect(chargeOf(usage, null)).toEqual({
      usd: 0,
      calls: 1,
      prompt_tokens: 10,
      completion_tokens: 5,
      new_tokens: 11,
    });
  });
});
