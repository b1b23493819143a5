import { describe, expect, it } from "vitest";
import { matchesPattern } from "../../../../src/providers/config/pattern.ts";
import { modelAllowed, priceOf, resolveModel } from "../../../../src/providers/config/registry.ts";
import { makeUpstream } from "../make.ts";
import { expectLinear } from "../../../support/growth.ts";

describe("matchesPattern", () => {
  it.each([
    ["gpt-x", "gpt-x", true],
    ["gpt-x", "gpt-xy", false],
    ["gpt-*", "gpt-", true],
    ["gpt-*", "gp", false],
    ["*", "", true],
    ["*mini", "gpt-mini", true],
    ["*mini", "minis", false],
    ["a*b*c", "a-b-b-c", true],
    ["a*b*c", "ac", false],
    ["ab*ba", "aba", false],
    ["a*b*b", "ab", false],
    ["**", "x", true],
    ["a.c", "abc", false],
    ["org/*", "org/team/m", true],
    ["GPT", "gpt", false],
  ])("says of %s and %s: %s", (pattern, name, matches) => {
    expect(matchesPattern(pattern, name)).toBe(matches);
  });

  it("reads a name in time that grows with it, on a pattern that makes a backtracking matcher take years", () => {
    const pattern = "*a".repeat(5_000) + "*b*";
    expect(matchesPattern(pattern, "a".repeat(20_000))).toBe(false);
    expectLinear(40_000, (chars) => {
      const name = "a".repeat(chars);
      return () => matchesPattern(pattern, name);
    });
  });
});

describe("resolveModel", () => {
  const openai = makeUpstream({ name: "openai", models: ["gpt-*", "o*"] });
  const router = makeUpstream({ name: "router", models: ["*"] });
  const upstreams = [openai, router];

  it.each([
    ["openai/gpt-x", "openai", "gpt-x"],
    ["openai/anything", "openai", "anything"],
    ["router/openai/gpt-x", "router", "openai/gpt-x"],
    ["gpt-x", "openai", "gpt-x"],
    ["meta/llama", "router", "meta/llama"],
    ["llama", "router", "llama"],
  ])("sends %s to %s as %s", (asked, name, model) => {
    const resolved = resolveModel(upstreams, asked);
    expect([resolved?.upstream.name, resolved?.model]).toEqual([name, model]);
  });

  it("takes the first match in the order listed", () => {
    expect(resolveModel([router, openai], "gpt-x")?.upstream.name).toBe("router");
  });

  it("knows no upstream for an unmatched, empty or half name", () => {
    expect(resolveModel([openai], "llama")).toBeNull();
    expect(resolveModel(upstreams, "")).toBeNull();
    expect(resolveModel(upstreams, "openai/")).toBeNull();
  });
});

describe("priceOf", () => {
  const cheap = { inputPicoUsd: 1, cachedInputPicoUsd: 1, outputPicoUsd: 1 };
  const dear = { inputPicoUsd: 9, cachedInputPicoUsd: 9, outputPicoUsd: 9 };

  it("takes the first matching pattern, and is null without one", () => {
    const upstream = makeUpstream({
      prices: [
        { pattern: "gpt-x-mini", price: cheap },
        { pattern: "gpt-x*", price: dear },
      ],
    });
    expect(priceOf(upstream, "gpt-x-mini")).toBe(cheap);
    expect(priceOf(upstream, "gpt-x")).toBe(dear);
    expect(priceOf(upstream, "o9")).toBeNull();
  });
});

describe("modelAllowed", () => {
  it.each([
    [null, "openai", "gpt-x", "gpt-x", true],
    [[], "openai", "gpt-x", "gpt-x", false],
    [["openai/*"], "openai", "gpt-x", "gpt-x", true],
    [["openai/*"], "openai", "gpt-x", "openai/gpt-x", true],
    [["gpt-*"], "openai", "gpt-x", "openai/gpt-x", true],
    [["*"], "router", "a/b", "router/a/b", true],
    [["openai/*"], "router", "openai/gpt-x", "router/openai/gpt-x", false],
    [["meta/*"], "router", "meta/llama", "meta/llama", true],
    [["openai/gpt-x"], "openai", "gpt-xl", "gpt-xl", false],
  ])("says of %j for %s/%s asked as %s: %s", (patterns, upstream, model, asked, allowed) => {
    expect(modelAllowed(patterns, upstream, model, asked)).toBe(allowed);
  });
});
