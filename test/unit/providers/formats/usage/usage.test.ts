import { describe, expect, it } from "vitest";
import { readUsage } from "../../../../../src/providers/formats/usage/usage.ts";

const plain = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

describe("readUsage", () => {
  it("reads the counts, missing or null details as zero", () => {
    const read = { promptTokens: 10, completionTokens: 5, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null };
    expect(readUsage(plain)).toEqual(read);
    const nulls = { prompt_tokens_details: null, completion_tokens_details: null, cost: null };
    expect(readUsage({ ...plain, ...nulls })).toEqual(read);
  });

  it("counts cached and reasoning tokens as parts of the totals", () => {
    const usage = {
      ...plain,
      prompt_tokens_details: { cached_tokens: 10 },
      completion_tokens_details: { reasoning_tokens: 5 },
    };
    expect(readUsage(usage)).toMatchObject({
      promptTokens: 10,
      completionTokens: 5,
      cachedTokens: 10,
      reasoningTokens: 5,
    });
  });

  it("counts tokens written to the provider's cache, if any", () => {
    const details = (fields: object) => readUsage({ ...plain, prompt_tokens_details: fields });
    expect(details({ cache_write_tokens: 10 })?.cacheWriteTokens).toBe(10);
    expect(details({ cache_write_tokens: 0 })).not.toHaveProperty("cacheWriteTokens");
  });

  it("counts reasoning that only the total includes as completion", () => {
    const usage = { ...plain, total_tokens: 35, completion_tokens_details: { reasoning_tokens: 20 } };
    expect(readUsage(usage)).toMatchObject({ promptTokens: 10, completionTokens: 25, reasoningTokens: 20 });
  });

  it.each([
    [0, 0],
    [0.00015, 150_000],
    [1.1e-9, 2],
    [1e-12, 1],
    [1_000_000, 1e15],
  ])("reads a cost of %d USD as %d nano-USD", (cost, nano) => {
    expect(readUsage({ ...plain, cost })?.costNanoUsd).toBe(nano);
  });

  it("adds the provider's own charge if the operator's key was used behind a router", () => {
    const cost_details = { upstream_inference_cost: 0.002 };
    expect(readUsage({ ...plain, cost: 0.001, is_byok: true, cost_details })?.costNanoUsd).toBe(3_000_000);
    expect(readUsage({ ...plain, cost: 0.001, is_byok: false, cost_details })?.costNanoUsd).toBe(1_000_000);
  });

  it("accepts the largest count", () => {
    expect(readUsage({ prompt_tokens: 1e12, completion_tokens: 0 })?.promptTokens).toBe(1e12);
  });

  it.each([
    null,
    "10",
    [],
    {},
    { prompt_tokens: 10 },
    { ...plain, prompt_tokens: -1 },
    { ...plain, prompt_tokens: 1.5 },
    { ...plain, prompt_tokens: "10" },
    { ...plain, completion_tokens: Number.NaN },
    { ...plain, completion_tokens: 1e12 + 1 },
    { ...plain, total_tokens: Number.POSITIVE_INFINITY },
    { ...plain, prompt_tokens_details: { cached_tokens: 11 } },
    { ...plain, prompt_tokens_details: { cached_tokens: -1 } },
    { ...plain, prompt_tokens_details: { cache_write_tokens: 11 } },
    { ...plain, prompt_tokens_details: "none" },
    { ...plain, total_tokens: null, completion_tokens_details: { reasoning_tokens: 6 } },
    { ...plain, cost: -0.1 },
    { ...plain, cost: "0.1" },
    { ...plain, cost: Number.NaN },
    { ...plain, cost: 1_000_000.01 },
  ])("believes nothing of an impossible usage: %j", (usage) => {
    expect(readUsage(usage)).toBeNull();
  });
});
