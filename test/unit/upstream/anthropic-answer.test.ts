import { describe, expect, it } from "vitest";
import { costNanoUsd } from "../../../src/budget/money.ts";
import { catalogPrice } from "../../../src/budget/prices.ts";
import { readAnthropicUsage } from "../../../src/upstream/anthropic-usage.ts";
import { type Answer, classify } from "../../../src/upstream/classify.ts";
import { KEY, makeAnthropic, message } from "./make.ts";

function answer(status: number, text: string | null, fields: Partial<Answer> = {}): Answer {
  const body = text === null ? null : { ok: true as const, text };
  return { status, headers: new Headers({ "content-type": "application/json" }), nowMs: 0, body, ...fields };
}

const verdictOf = (status: number, text: string | null, fields: Partial<Answer> = {}) =>
  classify(makeAnthropic(), "claude-x", answer(status, text, fields));

const errorBody = (type: string, words = "no", fields: object = {}) =>
  JSON.stringify({ type: "error", error: { type, message: words }, request_id: "req_1", ...fields });

const text = (words: string) => ({ type: "text", text: words });

describe("classify, a message of Anthropic's", () => {
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
    ["nothing where there is none", [], ""],
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

  it("is a success without a usage that can be believed, so that its reservation stays charged", () => {
    for (const usage of [undefined, null, { input_tokens: -1, output_tokens: 1 }]) {
      expect(verdictOf(200, message([text("a")], { usage }))).toMatchObject({ kind: "success", usage: null });
    }
  });

  it.each([
    ["no content", '{"type":"message","usage":{"input_tokens":1,"output_tokens":1}}'],
    ["content that is a text", message("hello")],
    ["a block that is none", message(["hello"])],
    ["a text that is none", message([{ type: "text", text: 7 }])],
    ["a chat completion", '{"choices":[{"message":{"content":"a"}}]}'],
    ["a list", "[]"],
  ])("believes nothing of %s, which may have been billed", (_, body) => {
    expect(verdictOf(200, body)).toMatchObject({ class: "unknown", reason: { reason: "upstream_error", status: 200 } });
  });

  it("treats broken bodies as it does a chat completion's", () => {
    for (const body of [null, "", '{"type":"message","content":[{"ty']) {
      expect(verdictOf(200, body)).toMatchObject({ class: "unknown", reason: { reason: "upstream_truncated" } });
    }
    expect(verdictOf(200, "<html>")).toMatchObject({ class: "unknown", reason: { reason: "upstream_error" } });
    const tooLarge = { body: { ok: false as const, why: "too_large" as const } };
    expect(verdictOf(200, "", tooLarge)).toMatchObject({ class: "unknown", reason: { retryable: false } });
  });

  it("blanks the key, and not the words of a public header, in an answer that repeats them", () => {
    const upstream = makeAnthropic({ headers: { "anthropic-beta": "context-1m-2025-08-07" } });
    const said = message([text(`key ${KEY}, beta context-1m-2025-08-07`)], { model: KEY, stop_reason: KEY });
    const verdict = classify(upstream, "claude-x", answer(200, said));
    expect(verdict).toMatchObject({ text: "key [redacted], beta context-1m-2025-08-07" });
    expect(JSON.stringify(verdict)).not.toContain(KEY);
  });
});

describe("classify, an error of Anthropic's", () => {
  it.each([
    [400, "invalid_request_error", "rejected", "upstream_error"],
    [401, "authentication_error", "rejected", "upstream_error"],
    [402, "billing_error", "rejected", "upstream_error"],
    [403, "permission_error", "rejected", "upstream_error"],
    [404, "not_found_error", "rejected", "upstream_error"],
    [413, "request_too_large", "rejected", "upstream_error"],
    [429, "rate_limit_error", "rate_limited", "upstream_rate_limited"],
    [500, "api_error", "transient", "upstream_error"],
    [504, "timeout_error", "transient", "upstream_error"],
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

  it("waits as long as a 429 and a 529 ask for", () => {
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

  it("counts what went through the cache as part of the prompt", () => {
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
    // 10 × $1 + 100 × $2 (kept for an hour) + 1,000 × $0.10 + 5 × $5, per million.
    expect(costNanoUsd(usage, price)).toBe(335_000);
  });

  it("takes absent and null counts of the cache for none, and names no writing then", () => {
    const nulls = { cache_creation_input_tokens: null, cache_read_input_tokens: null, output_tokens_details: null };
    expect(readAnthropicUsage({ ...plain, ...nulls })).toEqual(readAnthropicUsage(plain));
    expect(readAnthropicUsage(plain)).not.toHaveProperty("cacheWriteTokens");
  });

  it("counts thoughts as a part of the completion", () => {
    const usage = { ...plain, output_tokens_details: { thinking_tokens: 5 } };
    expect(readAnthropicUsage(usage)).toMatchObject({ completionTokens: 5, reasoningTokens: 5 });
  });

  it("reads the cost that a router names", () => {
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
