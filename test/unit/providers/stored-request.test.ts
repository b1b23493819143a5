import { describe, expect, it } from "vitest";
import type { Endpoint } from "../../../src/call.ts";
import { UPSTREAM_ERROR_CHARS_MAX } from "../../../src/limits.ts";
import { buildRawRequest, classifyRaw } from "../../../src/providers/stored-request.ts";
import { KEY, makeAnthropic, makeLease, makeUpstream } from "./make.ts";
import { chat } from "./relay/make.ts";

const upstream = makeUpstream({
  prices: [{ pattern: "*", price: { inputPicoUsd: 1e6, cachedInputPicoUsd: 1e6, outputPicoUsd: 2e6 } }],
});

const answer = (text: string, status = 200, headers: Record<string, string> = {}) => ({
  status,
  headers: new Headers(headers),
  nowMs: 0,
  body: { ok: true, text } as const,
});

const raw = (json: string, endpoint: Endpoint = "chat") => ({ endpoint, json });

function builtOf(json: string, { endpoint = "chat" as Endpoint, lease = makeLease(), at = upstream } = {}) {
  const built = buildRawRequest(at, lease, { endpoint, json });
  if (!built.ok) throw new Error(JSON.stringify(built.reason));
  return built.request;
}

describe("a raw request", () => {
  it("is sent as it was written, but for model and cap", () => {
    const json = '{ "seed":12345678901234567890,"model":"acme\\/gpt-x", "max_tokens": 9000,"messages":[],"x":1.0e+2 }';
    const request = builtOf(json, { lease: makeLease({ capTokens: 100 }) });
    expect(request.body).toBe(
      '{ "seed":12345678901234567890,"model":"gpt-x", "max_tokens": 100,"messages":[],"x":1.0e+2 }',
    );
    expect(request.url).toBe("https://acme.test/v1/chat/completions");
    expect(request.headers).toMatchObject({ accept: "application/json", authorization: `Bearer ${KEY}` });
  });

  it.each([
    ["chat", '{"model":"gpt-x","messages":[]}', "/v1/chat/completions"],
    ["completions", '{"model":"gpt-x","prompt":"a"}', "/v1/completions"],
    ["embeddings", '{"model":"gpt-x","input":["a"]}', "/v1/embeddings"],
    ["responses", '{"model":"gpt-x","input":"a"}', "/v1/responses"],
  ] as const)("of %s goes to its place, the same bytes where nothing changes", (endpoint, json, path) => {
    const { url, body } = builtOf(json, { endpoint });
    expect([url, body]).toEqual([`https://acme.test${path}`, json]);
  });

  it("of messages goes to an anthropic upstream, with its key", () => {
    const json = '{"model":"gpt-x","max_tokens":5,"messages":[]}';
    const { url, body, headers } = builtOf(json, { endpoint: "messages", at: makeAnthropic() });
    expect([url, body]).toEqual(["https://acme.test/v1/messages", json]);
    expect(headers).toMatchObject({ "x-api-key": KEY, "anthropic-version": "2023-06-01" });
  });

  it("carries its cap in the field of its upstream where it names none", () => {
    const lease = makeLease({ capTokens: 100 });
    const json = '{"model":"gpt-x","messages":[]}';
    expect(builtOf(json, { lease }).body).toBe('{"model":"gpt-x","messages":[],"max_tokens":100}');
    const at = makeUpstream({ capField: "max_completion_tokens" });
    expect(builtOf(json, { lease, at }).body).toContain('"max_completion_tokens":100');
    const responses = builtOf('{"model":"gpt-x"}', { endpoint: "responses", lease });
    expect(responses.body).toBe('{"model":"gpt-x","max_output_tokens":100}');
  });

  it.each([
    ['{"model":"gpt-x","messages":[],"stream":true}', "stream"],
    ['{"model":"gpt-x"}', "messages"],
    ["[]", null],
    ['{"model":"gpt-x","messages":[]', null],
    ['{"model":1,"messages":[]}', "model"],
  ])("that would not be understood is refused: %s", (json, param) => {
    expect(buildRawRequest(upstream, makeLease(), raw(json))).toMatchObject({
      ok: false,
      reason: { reason: "invalid_request", param },
    });
  });

  it("that says stream: false is sent", () => {
    expect(builtOf('{"model":"gpt-x","messages":[],"stream":false}').body).toContain('"stream":false');
  });

  it("of another protocol than its upstream's is refused", () => {
    expect(buildRawRequest(makeAnthropic(), makeLease(), raw('{"messages":[]}'))).toMatchObject({ ok: false });
    expect(buildRawRequest(upstream, makeLease(), raw('{"messages":[]}', "messages"))).toMatchObject({ ok: false });
  });
});

describe("the answer to a raw request", () => {
  const job = raw("{}");

  it("is the whole body as it was written, with its cost", () => {
    const verdict = classifyRaw(upstream, makeLease(), job, answer(chat()));
    expect(verdict).toMatchObject({
      kind: "success",
      model: "gpt-x-2026",
      finishReason: "stop",
      usage: { promptTokens: 10, completionTokens: 5 },
    });
    const written = '{"prompt_tokens":10, "completion_tokens":5,"total_tokens":15,"cost":0.00002}';
    expect(verdict.kind === "success" && verdict.text).toBe(chat(written));
  });

  it("keeps the cost that its upstream names", () => {
    const named = chat('{"prompt_tokens":10,"completion_tokens":5,"cost":1.50E-4}');
    const verdict = classifyRaw(upstream, makeLease(), job, answer(named));
    expect(verdict).toMatchObject({ text: named, usage: { costNanoUsd: 150_000 } });
  });

  it("without usage is a success whose usage is not known", () => {
    const text = '{"choices":[]}';
    expect(classifyRaw(upstream, makeLease(), job, answer(text))).toMatchObject({ text, usage: null, model: "gpt-x" });
  });

  it.each([
    [
      "completions",
      '{"choices":[{"text":"a","finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}',
      "length",
    ],
    ["embeddings", '{"data":[{"embedding":[0.10,1e5]}],"usage":{"prompt_tokens":1,"total_tokens":1}}', null],
    ["responses", '{"id":"resp_1","status":"completed","usage":{"input_tokens":1,"output_tokens":1}}', "completed"],
    ["messages", '{"id":"msg_1","stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}', "end_turn"],
  ] as const)("of %s is read by its protocol", (endpoint, text, finishReason) => {
    const verdict = classifyRaw(upstream, makeLease(), raw("{}", endpoint), answer(text));
    expect(verdict).toMatchObject({ kind: "success", finishReason, usage: { promptTokens: 1 } });
    expect(verdict.kind === "success" && verdict.text.replace(/,"cost":[\d.e-]+/, "")).toBe(text);
  });

  it("that is an error keeps the upstream's own words, redacted and bounded", () => {
    const body = (word: string) => `{"error":{"message":"bad ${word}","code":"c","n":1.0}}`;
    const verdict = classifyRaw(upstream, makeLease(), job, answer(body(KEY), 400));
    expect(verdict).toMatchObject({ class: "rejected", reason: { status: 400 }, body: body("[redacted]") });
    const long = classifyRaw(upstream, makeLease(), job, answer("x".repeat(UPSTREAM_ERROR_CHARS_MAX + 1), 500));
    expect(long).toMatchObject({ class: "transient", body: "x".repeat(UPSTREAM_ERROR_CHARS_MAX) });
  });

  it("that speaks of the gateway's key keeps nothing of it", () => {
    for (const status of [401, 403]) {
      const verdict = classifyRaw(upstream, makeLease(), job, answer(`{"error":{"message":"${KEY}"}}`, status));
      expect(verdict).not.toHaveProperty("body");
      expect(JSON.stringify(verdict)).not.toContain(KEY);
    }
  });

  it("that is an error in a 200 is a failure with its words", () => {
    const text = '{"error":{"message":"busy","code":503}}';
    expect(classifyRaw(upstream, makeLease(), job, answer(text))).toMatchObject({ class: "transient", body: text });
  });

  it("that broke off, or is no JSON, may have been billed", () => {
    const brokenOff = { ...answer(""), body: null };
    expect(classifyRaw(upstream, makeLease(), job, brokenOff)).toMatchObject({ class: "unknown" });
    expect(classifyRaw(upstream, makeLease(), job, answer('{"id":'))).toMatchObject({ class: "unknown" });
  });

  it("has the upstream's key blanked in a success", () => {
    const verdict = classifyRaw(upstream, makeLease(), job, answer(`{"id":"${KEY}"}`));
    expect(verdict).toMatchObject({ kind: "success", text: '{"id":"[redacted]"}' });
  });
});
