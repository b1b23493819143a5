import { describe, expect, it } from "vitest";
import { costNanoUsd } from "../../../../../src/run/money/money.ts";
import { catalogPrice } from "../../../../../src/run/money/prices.ts";
import { readAnthropicUsage } from "../../../../../src/providers/formats/usage/anthropic.ts";
import { type HttpAnswer, classify } from "../../../../../src/providers/classify.ts";
import { KEY, makeAnthropic, message } from "../../make.ts";

function answer(status: number, text: string | null, fields: Partial<HttpAnswer> = {}): HttpAnswer {
  const body = text === null ? null : { ok: true as const, text };
  return { status, headers: new Headers({ "content-type": "application/json" }), nowMs: 0, body, ...fields };
}

const verdictOf = (status: number, text: string | null, fields: Partial<HttpAnswer> = {}) =>
  classify(makeAnthropic(), "claude-x", answer(status, text, fields));

const errorBody = (type: string, words = "no", fields: object = {}) =>
  JSON.stringify({ type: "error", error: { type, message: words }, request_id: "req_1", ...fields });

const text = (words: string) => ({ type: "text", text: words });

describe("classify, an Anthropic message", () => {
  it("reads text, model, reason and usage", () => {
    expect(verdictOf(200, message([text("hello")]))).toEqual({
      kind: "success",
      text: "hello",
      model: "claude-x-20260901",
      finishReason: "stop",
      usage: { promptTokens: 10, completionTokens: 5, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null },
    });
  });

  it.each([
    ["text blocks, joined", [text("a"), text("b")], "ab"],
    ["no thoughts", [{ type: "thinking", thinking: "hm", signature: "s" }, text("a")], "a"],
    ["no tool calls", [text("a"), { type: "tool_use", id: "t", name: "n", input: {} }], "a"],
    ["no text", [], ""],
  ])("takes %s for the text", (_, content, expected) => {
    expect(verdictOf(200, message(content))).toMatchObject({ kind: "success", text: expected });
  });

  it.each([
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["max_tokens", "length"],
    ["tool_use", "tool_calls"],
    ["refusal", "content_filter"],
    ["pause_turn", "pause_turn"],
    ["model_context_window_exceeded", "model_context_window_exceeded"],
    [null, null],
  ])("calls the end %s %s", (stop_reason, finishReason) => {
    expect(verdictOf(200, message([text("a")], { stop_reason }))).toMatchObject({ finishReason });
  });

  it("is a success without a valid usage, so that its reservation stays charged", () => {
    for (const usage of [undefined, null, { input_tokens: -1, output_tokens: 1 }]) {
      expect(verdictOf(200, message([text("a")], { usage }))).toMatchObject({ kind: "success", usage: null });
    }
  });

  it.each([
    ["no content", '{"type":"message","usage":{"input_tokens":1,"output_tokens":1}}'],
    ["content that is a text", message("hello")],
    ["a block that is not an object", message(["hello"])],
    ["a text that is not a string", message([{ type: "text", text: 7 }])],
    ["a chat completion", '{"choices":[{"message":{"content":"a"}}]}'],
    ["a list", "[]"],
  ])("believes nothing of %s, which may have been billed", (_, body) => {
    expect(verdictOf(200, body)).toMatchObject({ class: "unknown", reason: { reason: "upstream_error", status: 200 } });
  });

  it("treats broken bodies like those of a chat completion", () => {
    for (const body of [null, "", '{"type":"message","content":[{"ty']) {
      expect(verdictOf(200, body)).toMatchObject({ class: "unknown", reason: { reason: "upstream_truncated" } });
    }
    expect(verdictOf(200, "<html>")).toMatchObject({ class: "unknown", reason: { reason: "upstream_error" } });
    const tooLarge = { body: { ok: false as const, why: "too_large" as const } };
    expect(verdictOf(200, "", tooLarge)).toMatchObject({ class: "unknown", reason: { retryable: false } });
  });

  it("blanks the key, but not the value of a public header, in an answer that repeats them", () => {
    const upstream = makeAnthropic({ headers: { "anthropic-beta": "context-1m-2025-08-07" } });
    const repeated = message([text(`key ${KEY}, beta context-1m-2025-08-07`)], { model: KEY, stop_reason: KEY });
    const verdict = classify(upstream, "claude-x", answer(200, repeated));
    expect(verdict).toMatchObject({ text: "key [redacted], beta context-1m-2025-08-07" });
    expect(JSON.stringify(verdict)).not.toContain(KEY);
  });
});

describe("classify, an Anthropic error", () => {
  it.each([
    [400, "invalid_request_error", "rejected", "upstream_error"],
    [401, "authentication_error", "rejected", "upstream_error"],
    [402, "billing_error", "rejected", "upstream_error"],
    [403, "permission_error", "rejected", "upstream_error"],
    [404, "not_found_error", "rejected", "upstream_error"],
    [413, "request_too_large", "rejected", "upstream_error"],
    [429, "rate_limit_error", "rate_limited", "upstream_rate_limited"],
    [500, "api_error", "transient", "upstream_error"],
    [504, "timeout_error", "unknown", "upstream_error"],
    [529, "overloaded_error", "transient", "upstream_error"],
  ])("calls %d %s %s, and the same inside a 200", (status, type, failureClass, reason) => {
    const expected = { kind: "failure", class: failureClass, reason: { reason } };
    expect(verdictOf(status, errorBody(type, "the words"))).toMatchObject(expected);
    const inside = verdictOf(200, errorBody(type, "the words"));
    expect(inside).toMatchObject(expected);
    expect(JSON.stringify(inside)).toContain("the words");
  });

  it("keeps the words of the error", () => {
    const verdict = verdictOf(400, errorBody("invalid_request_error", "max_tokens: 9999999 > 64000"));
    expect(verdict).toMatchObject({ reason: { message: "acme answered 400: max_tokens: 9999999 > 64000" } });
  });

  it("waits for the delay that a 429 or a 529 requests", () => {
    const hinted = { headers: new Headers({ "retry-after": "2" }) };
    expect(verdictOf(429, errorBody("rate_limit_error"), hinted)).toMatchObject({ retryAfterMs: 2_000 });
    expect(verdictOf(529, errorBody("overloaded_error"), hinted)).toMatchObject({ retryAfterMs: 2_000 });
  });

  it.each([{ content: [text("half")] }, { usage: { input_tokens: 1, output_tokens: 1 } }])(
    "does not know whether an error beside %j was billed",
    (part) => {
      expect(verdictOf(200, errorBody("overloaded_error", "no", part))).toMatchObject({ class: "unknown" });
    },
  );

  it.each([KEY, "sk-ant-api03-0123456789abcdef", "sk-ant-a***cdef"])("blanks %s in the words", (key) => {
    for (const status of [400, 401, 529]) {
      const shown = JSON.stringify(verdictOf(status, errorBody("authentication_error", `invalid x-api-key ${key}`)));
      expect(shown).toContain("[redacted]");
      expect(shown).not.toContain(key);
    }
  });
});

describe("readAnthropicUsage", () => {
  const plain = { input_tokens: 10, output_tokens: 5 };

  it("counts the tokens of the cache as part of the prompt", () => {
    const usage = { ...plain, cache_creation_input_tokens: 100, cache_read_input_tokens: 1_000 };
    expect(readAnthropicUsage(usage)).toEqual({
      promptTokens: 1_110,
      completionTokens: 5,
      cachedTokens: 1_000,
      cacheWriteTokens: 100,
      reasoningTokens: 0,
      costNanoUsd: null,
    });
  });

  it("prices each part of the prompt at its own rate", () => {
    const usage = readAnthropicUsage({ ...plain, cache_creation_input_tokens: 100, cache_read_input_tokens: 1_000 });
    const price = catalogPrice("anthropic", "claude-haiku-4-5");
    if (usage === null || price === null) throw new Error("no usage or no price");
    // 10 × $1 + 100 × $1.25 (kept for five minutes) + 1,000 × $0.10 + 5 × $5, per million.
    expect(costNanoUsd(usage, price)).toBe(260_000);
    // A write whose lifetime the answer does not name is priced as the dearest that the request marked.
    expect(costNanoUsd(usage, price, { cacheTtl: "5m" })).toBe(260_000);
    expect(costNanoUsd(usage, price, { cacheTtl: "1h" })).toBe(335_000);
  });

  it.each([
    [{ ephemeral_5m_input_tokens: 60, ephemeral_1h_input_tokens: 40 }, 40, 290_000],
    [{ ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 100 }, 100, 335_000],
    [{ ephemeral_5m_input_tokens: 100 }, 0, 260_000],
  ])("prices writes by the split %j, whatever the request marked", (split, hourTokens, nanoUsd) => {
    const usage = readAnthropicUsage({
      ...plain,
      cache_creation_input_tokens: 100,
      cache_read_input_tokens: 1_000,
      cache_creation: split,
    });
    const price = catalogPrice("anthropic", "claude-haiku-4-5");
    if (usage === null || price === null) throw new Error("no usage or no price");
    expect(usage.cacheWrite1hTokens).toBe(hourTokens);
    for (const asked of [{}, { cacheTtl: "5m" }, { cacheTtl: "1h" }] as const) {
      expect(costNanoUsd(usage, price, asked)).toBe(nanoUsd);
    }
  });

  it.each([
    null,
    [],
    {},
    { ephemeral_5m_input_tokens: 60, ephemeral_1h_input_tokens: 41 },
    { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 99 },
    { ephemeral_5m_input_tokens: -1, ephemeral_1h_input_tokens: 101 },
  ])("does not believe a split that does not add up: %j", (split) => {
    const usage = readAnthropicUsage({ ...plain, cache_creation_input_tokens: 100, cache_creation: split });
    expect(usage?.cacheWriteTokens).toBe(100);
    expect(usage).not.toHaveProperty("cacheWrite1hTokens");
  });

  it.each([
    [{ service_tier: "standard" }, "standard"],
    [{ service_tier: "priority", speed: "standard" }, "priority"],
    [{ service_tier: "standard", speed: "fast" }, "fast"],
  ])("names the tier that served it: %j is %s", (fields, tier) => {
    expect(readAnthropicUsage({ ...plain, ...fields })?.serviceTier).toBe(tier);
    expect(readAnthropicUsage(plain)).not.toHaveProperty("serviceTier");
  });

  it("reads missing and null counts of the cache as zero, and reports no writes then", () => {
    const nulls = { cache_creation_input_tokens: null, cache_read_input_tokens: null, output_tokens_details: null };
    expect(readAnthropicUsage({ ...plain, ...nulls })).toEqual(readAnthropicUsage(plain));
    expect(readAnthropicUsage(plain)).not.toHaveProperty("cacheWriteTokens");
  });

  it("counts thinking as part of the completion", () => {
    const usage = { ...plain, output_tokens_details: { thinking_tokens: 5 } };
    expect(readAnthropicUsage(usage)).toMatchObject({ completionTokens: 5, reasoningTokens: 5 });
  });

  it("reads the cost that a router reports", () => {
    expect(readAnthropicUsage({ ...plain, cost: 0.00015 })?.costNanoUsd).toBe(150_000);
  });

  it("accepts the largest prompt", () => {
    expect(readAnthropicUsage({ ...plain, input_tokens: 1e12 })?.promptTokens).toBe(1e12);
  });

  it.each([
    null,
    [],
    { input_tokens: 10 },
    { output_tokens: 5 },
    { prompt_tokens: 10, completion_tokens: 5 },
    { ...plain, input_tokens: -1 },
    { ...plain, input_tokens: null },
    { ...plain, input_tokens: 1e12, cache_read_input_tokens: 1 },
    { ...plain, output_tokens: 1.5 },
    { ...plain, cache_creation_input_tokens: -1 },
    { ...plain, cache_read_input_tokens: "1" },
    { ...plain, output_tokens_details: { thinking_tokens: 6 } },
    { ...plain, output_tokens_details: "none" },
    { ...plain, cost: -1 },
  ])("believes nothing of an impossible usage: %j", (usage) => {
    expect(readAnthropicUsage(usage)).toBeNull();
  });
});
