import { describe, expect, it } from "vitest";
import { hostsOf } from "../../../../scripts/prices/hosts.ts";
import { patternsOf } from "../../../../scripts/prices/patterns.ts";
import { providersSchema, snapshotOf } from "../../../../scripts/prices/snapshot.ts";

describe("patternsOf", () => {
  it.each([
    [{ equals: "Model-X" }, ["model-x"]],
    [{ starts_with: "gpt-" }, ["gpt-*"]],
    [{ ends_with: "-it" }, ["*-it"]],
    [{ contains: "claude" }, ["*claude*"]],
    [{ or: [{ equals: "a" }, { or: [{ equals: "b" }, { equals: "a" }] }] }, ["a", "b"]],
    [{ regex: "^gpt-5\\.6-\\d{4}-\\d{2}$" }, ["gpt-5.6-####-##"]],
    [{ regex: "^flash-\\d" }, ["flash-#*"]],
    [{ regex: "^x\\[fast=true\\]$" }, ["x[fast=true]"]],
  ])("writes %j plainly", (match, patterns) => {
    expect(patternsOf(match)).toEqual({ patterns, except: [] });
  });

  it("sets speech models apart where a rule excludes them", () => {
    const match = { and: [{ starts_with: "pro" }, { regex: "^(?!.*-[tT][tT][sS](?:$|-))" }] };
    expect(patternsOf(match)).toEqual({ patterns: ["pro*"], except: ["*-tts", "*-tts-*"] });
  });

  it.each([
    { regex: "(a+)+$" },
    { regex: "^a|b$" },
    { regex: "^a.c$" },
    { equals: "a*b" },
    { starts_with: "" },
    { and: [{ equals: "a" }, { equals: "b" }] },
  ])("stops at %j, for a person to decide", (match) => {
    expect(() => patternsOf(match)).toThrow("cannot write this match rule");
  });
});

describe("hostsOf", () => {
  it.each([
    ["https://api\\.x\\.ai", ["api.x.ai"]],
    ["https://api\\.x\\.ai(?:/|$)", ["api.x.ai"]],
    ["https://(api\\.)?x\\.ai", ["api.x.ai", "x.ai"]],
    ["https://api\\.x\\.(?:ai|com)", ["api.x.ai", "api.x.com"]],
    ["https://(.*\\.)?x\\.ai", []],
    ["https://[^/]+\\.x\\.ai", []],
    ["https://x\\.ai/path", []],
    ["https://api\\.x\\.", []],
  ])("reads %s", (pattern, hosts) => {
    expect(hostsOf("someone", pattern)).toEqual(hosts);
  });
});

describe("snapshotOf", () => {
  const made = (...models: { id: string; prices: unknown }[]) => {
    const source = models.map((model) => ({ ...model, match: { equals: model.id } }));
    const providers = providersSchema.parse([{ id: "p", api_pattern: "https://p\\.ai", models: source }]);
    const { snapshot } = snapshotOf(providers, { source: "s", date: "2026-09-23" });
    const listed = snapshot.providers["p"];
    return { models: listed?.models, unpriced: listed?.unpriced };
  };

  it("takes the dearest of the prices that apply on its day or later", () => {
    const from = (start_date: string) => ({ type: "start_date", start_date });
    const hours = { type: "time_of_date", start_time: "01:00:00Z", end_time: "04:00:00Z" };
    const prices = [
      { prices: { input_mtok: 9, output_mtok: 9 } },
      { constraint: from("2026-09-23"), prices: { input_mtok: 1, output_mtok: 2 } },
      { constraint: from("2026-09-24"), prices: { input_mtok: 2, output_mtok: 1 } },
      { constraint: hours, prices: { input_mtok: 0.5, output_mtok: 3 } },
    ];
    expect(made({ id: "m", prices }).models).toEqual([{ match: ["m"], input: 2e6, output: 3e6 }]);
  });

  it("starts a tier at the first token beyond the data's, and keeps what is flat", () => {
    const prices = {
      input_mtok: { base: 1, tiers: [{ start: 200_000, price: 2 }] },
      output_mtok: 5,
      cache_read_mtok: 0.1,
    };
    const tiers = [{ from: 200_001, input: 2e6, cached: 1e5, output: 5e6 }];
    expect(made({ id: "m", prices }).models).toEqual([{ match: ["m"], input: 1e6, cached: 1e5, output: 5e6, tiers }]);
  });

  it("tells writes to a cache by their lifetime and by who asks for them, and what each call costs", () => {
    const writes = { cache_write_mtok: 1.25, cache_write_1h_mtok: 2 };
    const prices = { input_mtok: 1, output_mtok: 1, requests_kcount: 5, ...writes };
    const rates = { input: 1e6, write: 1.25e6, write1h: 2e6, output: 1e6, call: 5e6 };
    expect(made({ id: "m", prices }).models).toEqual([{ match: ["m"], ...rates, unasked: true }]);
    expect(made({ id: "Claude-m", prices }).models).toEqual([{ match: ["claude-m"], ...rates }]);
    const plain = { input_mtok: 1, output_mtok: 1, cache_write_mtok: 1 };
    expect(made({ id: "m", prices: plain }).models).toEqual([{ match: ["m"], input: 1e6, output: 1e6 }]);
  });

  it("rounds prices up to whole pico-USD per token", () => {
    const prices = { input_mtok: 0.0833333333, output_mtok: 4.03 };
    expect(made({ id: "m", prices }).models).toEqual([{ match: ["m"], input: 83_334, output: 4_030_000 }]);
  });

  it("leaves unpriced what text prices do not bound, and what has no figures", () => {
    const { models, unpriced } = made(
      { id: "known", prices: { input_mtok: 1, output_mtok: 1, web_searches_kcount: 10 } },
      { id: "no-figures", prices: {} },
      { id: "no-output", prices: { input_mtok: 1 } },
      { id: "speaks", prices: { input_mtok: 1, output_mtok: 1, output_audio_mtok: 9 } },
      { id: "novel", prices: { input_mtok: 1, output_mtok: 1, unheard_of_mtok: 9 } },
      { id: "known-audio", prices: { input_mtok: 1, output_mtok: 1 } },
      { id: "text-embed", prices: { input_mtok: 1 } },
      { id: "m:free", prices: {} },
    );
    expect(models).toEqual([
      { match: ["known"], input: 1e6, output: 1e6 },
      { match: ["text-embed"], input: 1e6, output: 0 },
      { match: ["m:free"], input: 0, output: 0 },
    ]);
    expect(unpriced).toEqual(["no-figures", "no-output", "speaks", "novel", "known-audio"]);
  });

  it.each([
    { input_mtok: -1, output_mtok: 1 },
    { input_mtok: 10_001, output_mtok: 1 },
  ])("refuses %j", (prices) => {
    expect(() => made({ id: "m", prices })).toThrow("prices");
  });
});
