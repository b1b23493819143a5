import { describe, expect, it } from "vitest";
import { type HttpAnswer, classify } from "../../../src/providers/classify.ts";
import { readRetryAfterMs } from "../../../src/providers/retry-after.ts";
import { completion, KEY, makeUpstream } from "./make.ts";

function answer(status: number, text: string | null, fields: Partial<HttpAnswer> = {}): HttpAnswer {
  const body = text === null ? null : { ok: true as const, text };
  return { status, headers: new Headers({ "content-type": "application/json" }), nowMs: 0, body, ...fields };
}

const verdictOf = (status: number, text: string | null, fields: Partial<HttpAnswer> = {}) =>
  classify(makeUpstream(), "gpt-x", answer(status, text, fields));

const errorBody = (fields: Record<string, unknown>) => JSON.stringify({ error: { message: "no", ...fields } });

describe("classify, by status", () => {
  it.each([
    [429, "rate_limited", "upstream_rate_limited"],
    [408, "unknown", "upstream_error"],
    [409, "transient", "upstream_error"],
    [500, "transient", "upstream_error"],
    [503, "transient", "upstream_error"],
    [529, "transient", "upstream_error"],
    [401, "rejected", "upstream_error"],
    [402, "rejected", "upstream_error"],
    [403, "rejected", "upstream_error"],
    [404, "rejected", "upstream_error"],
    [422, "rejected", "upstream_error"],
    [302, "rejected", "upstream_error"],
    [0, "rejected", "upstream_error"],
  ])("calls %d %s", (status, failureClass, reason) => {
    for (const text of [errorBody({}), "<html>oops</html>", "", null]) {
      expect(verdictOf(status, text)).toMatchObject({ kind: "failure", class: failureClass, reason: { reason } });
    }
  });

  it("calls 400 rejected where its body can be read, for a filter's 400 is billed", () => {
    for (const text of [errorBody({}), "<html>oops</html>", ""]) {
      expect(verdictOf(400, text)).toMatchObject({ class: "rejected", reason: { reason: "upstream_error" } });
    }
    const unread = [
      verdictOf(400, null),
      verdictOf(400, null, { body: { ok: false, why: "too_large" } }),
      verdictOf(400, null, { body: { ok: false, why: "not_utf8" } }),
    ];
    for (const verdict of unread) expect(verdict).toMatchObject({ class: "unknown", reason: { retryable: false } });
  });

  it("tells whether a failure is worth another try, and the status", () => {
    expect(verdictOf(500, "")).toMatchObject({ reason: { status: 500, retryable: true } });
    expect(verdictOf(400, "")).toMatchObject({ reason: { status: 400, retryable: false } });
    expect(verdictOf(0, "")).toMatchObject({ reason: { status: null, retryable: false } });
  });

  it("passes the hint of a 429 and of a 503 on", () => {
    const hinted = { headers: new Headers({ "retry-after": "1.5" }) };
    expect(verdictOf(429, "", hinted)).toMatchObject({ retryAfterMs: 1_500, reason: { retryAfterMs: 1_500 } });
    expect(verdictOf(503, "", hinted)).toMatchObject({ retryAfterMs: 1_500 });
    expect(verdictOf(400, "", hinted)).toMatchObject({ retryAfterMs: null });
  });

  it.each([
    ['{"error":{"message":"bad model"}}', "acme answered 400: bad model"],
    ['{"error":"bad model"}', "acme answered 400: bad model"],
    ['{"message":"bad model"}', "acme answered 400: bad model"],
    ['{"detail":"bad model"}', "acme answered 400: bad model"],
    ["bad\n model ", "acme answered 400: bad model"],
    ["", "acme answered 400"],
    ["<!doctype html><h1>no</h1>", "acme answered 400: an HTML or XML page"],
  ])("shows the upstream's own words: %s", (text, message) => {
    expect(verdictOf(400, text)).toMatchObject({ reason: { message } });
  });

  it("says whose credentials a 401 or 403 is about", () => {
    for (const status of [401, 403]) {
      expect(verdictOf(status, errorBody({}))).toMatchObject({
        reason: { status, message: expect.stringContaining("the gateway's credentials") },
      });
    }
  });

  it.each([
    `the key ${KEY} is wrong`,
    "Incorrect API key provided: sk-te**********cdef.",
    "got header Authorization: Bearer abc.def-123",
    "use AIzaSyA1234567890 instead",
    "token gsk_0123456789abc was revoked",
  ])("blanks credentials in the words shown: %s", (message) => {
    const shown = JSON.stringify(verdictOf(401, errorBody({ message })));
    expect(shown).toContain("[redacted]");
    expect(shown).not.toMatch(/sk-te|0123456789ab|abc\.def|AIzaSy/);
  });

  it("blanks a key that has no known shape, and one that the cut would halve", () => {
    const upstream = makeUpstream({ apiKey: "hunter2", headers: { "x-key": "correct-horse" } });
    const text = `${"x".repeat(440)} hunter2 correct-horse hunter2 hunter2`;
    const shown = JSON.stringify(classify(upstream, "m", answer(400, text)));
    expect(shown).not.toMatch(/hunt|corr/);
  });

  it("cuts long words to 500 characters", () => {
    const verdict = verdictOf(400, "y".repeat(5_000));
    const message = verdict.kind === "failure" && "message" in verdict.reason ? verdict.reason.message : "";
    expect(message).toBe(`acme answered 400: ${"y".repeat(499)}…`);
  });
});

describe("classify, the provider's own code", () => {
  it.each([
    [{ code: "context_length_exceeded", type: "invalid_request_error" }, "context_length_exceeded"],
    [{ code: null, type: "overloaded_error" }, "overloaded_error"],
    [{ code: 400, status: "INVALID_ARGUMENT" }, "INVALID_ARGUMENT"],
    [{ code: "400", type: "BadRequestError" }, "BadRequestError"],
    [{ code: "3051" }, "3051"],
    [{ code: "a\n b", type: "x" }, "a b"],
  ])("is kept: %j", (fields, upstreamCode) => {
    expect(verdictOf(400, errorBody(fields))).toMatchObject({ reason: { upstreamCode } });
    expect(verdictOf(200, errorBody(fields))).toMatchObject({ reason: { upstreamCode } });
  });

  it.each([
    ['{"code":"permission-denied","error":"Content violates usage guidelines."}', "permission-denied"],
    ['{"object":"error","message":"no","type":"BadRequestError","code":400}', "BadRequestError"],
    ['[{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}]', "INVALID_ARGUMENT"],
  ])("is found in %s", (text, upstreamCode) => {
    expect(verdictOf(400, text)).toMatchObject({ reason: { upstreamCode } });
  });

  it("is kept for a rate limit", () => {
    const reason = { reason: "upstream_rate_limited", upstreamCode: "insufficient_quota" };
    expect(verdictOf(429, errorBody({ code: "insufficient_quota" }))).toMatchObject({ class: "rate_limited", reason });
  });

  it.each([[{}], [{ code: null }], [{ code: 429 }], [{ code: "" }], [{ code: {} }], [{ type: "error" }]])(
    "is absent where there is none: %j",
    (fields) => {
      const verdict = verdictOf(400, errorBody(fields));
      expect(verdict.kind === "failure" && "upstreamCode" in verdict.reason).toBe(false);
    },
  );

  it("shows no credential, and is no longer than a name", () => {
    const shown = JSON.stringify(verdictOf(400, errorBody({ code: `bad ${KEY} sk-ant-0123456789ab` })));
    expect(shown).toContain("bad [redacted] [redacted]");
    const long = verdictOf(400, errorBody({ code: "c".repeat(5_000) }));
    expect(long).toMatchObject({ reason: { upstreamCode: "c".repeat(256) } });
  });
});

describe("classify, at 200", () => {
  it("reads text, model, finish reason and usage", () => {
    expect(verdictOf(200, completion("hi"))).toEqual({
      kind: "success",
      text: "hi",
      model: "gpt-x-2026",
      finishReason: "stop",
      usage: { promptTokens: 10, completionTokens: 5, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null },
    });
  });

  it.each([
    ["an empty string", { content: "" }, ""],
    ["text parts", { content: [{ type: "text", text: "a" }, { type: "x" }, { type: "text", text: "b" }] }, "ab"],
    ["null beside tool calls", { content: null, tool_calls: [{ id: "1" }] }, ""],
    ["a refusal", { content: null, refusal: "I will not" }, "I will not"],
    ["nothing at all", {}, ""],
  ])("takes %s for the text", (_, message, text) => {
    const body = completion(null, { choices: [{ message, finish_reason: "stop" }] });
    expect(verdictOf(200, body)).toMatchObject({ kind: "success", text });
  });

  it("stands in the asked model, and no usage, where the answer names none", () => {
    const body = JSON.stringify({ choices: [{ message: { content: "a" } }] });
    expect(verdictOf(200, body)).toMatchObject({ model: "gpt-x", finishReason: null, usage: null });
  });

  it("keeps the provider key out of a text that repeats it", () => {
    expect(verdictOf(200, completion(`you sent ${KEY}`))).toMatchObject({ text: "you sent [redacted]" });
  });

  it.each([
    ["no choices", "{}"],
    ["empty choices", completion("", { choices: [] })],
    ["no message", completion("", { choices: [{}] })],
    ["content that is a number", completion(7)],
    ["an array", "[]"],
    ["a bare string", '"hi"'],
    ["null", "null"],
    ["an event stream", 'data: {"choices":[]}\n\n'],
    ["plain text", "Hello"],
    ["an HTML page", "<html></html>"],
  ])("does not know what %s cost", (_, text) => {
    expect(verdictOf(200, text)).toMatchObject({
      kind: "failure",
      class: "unknown",
      reason: { reason: "upstream_error", status: 200 },
    });
  });

  it.each([
    ["JSON that breaks off", completion("hi").slice(0, -1)],
    ["malformed JSON", '{"choices":[}'],
    ["an empty body", ""],
    ["white space", " \n"],
    ["a lost connection", null],
  ])("calls %s truncated, with its cost unknown", (_, text) => {
    expect(verdictOf(200, text)).toMatchObject({ class: "unknown", reason: { reason: "upstream_truncated" } });
  });

  it.each([["too_large" as const], ["not_utf8" as const]])("does not know what an answer that is %s cost", (why) => {
    const verdict = verdictOf(200, null, { body: { ok: false, why } });
    expect(verdict).toMatchObject({ class: "unknown", reason: { reason: "upstream_error", status: 200 } });
  });

  it.each([
    [{ code: 429 }, "rate_limited"],
    [{ code: "429" }, "rate_limited"],
    [{ code: "rate_limit_exceeded" }, "rate_limited"],
    [{ type: "rate_limit_error", code: null }, "rate_limited"],
    [{ code: 502 }, "transient"],
    [{ code: "503" }, "transient"],
    [{ type: "overloaded_error" }, "transient"],
    [{ code: 408 }, "unknown"],
    [{ code: 402 }, "rejected"],
    [{ code: 400 }, "rejected"],
    [{ code: "model_not_found" }, "rejected"],
    [{ type: "invalid_request_error" }, "rejected"],
    [{ code: "content_policy" }, "unknown"],
    [{ code: 200 }, "unknown"],
    [{}, "unknown"],
  ])("takes an error in a 200 by its code: %j", (fields, failureClass) => {
    expect(verdictOf(200, errorBody(fields))).toMatchObject({ kind: "failure", class: failureClass });
  });

  it("passes the hint of an error in a 200 on", () => {
    const headers = new Headers({ "retry-after-ms": "20" });
    expect(verdictOf(200, errorBody({ code: 429 }), { headers })).toMatchObject({ retryAfterMs: 20 });
  });

  it("reads an error that is a string, and one without an envelope", () => {
    expect(verdictOf(200, '{"error":"no"}')).toMatchObject({ class: "unknown", reason: { retryable: false } });
    expect(verdictOf(200, '{"object":"error","message":"no","code":500}')).toMatchObject({ class: "transient" });
  });

  it("does not know the cost of an error that struck after the answer had begun", () => {
    const error = { code: 502, message: "provider died" };
    const inChoice = completion("par", { choices: [{ message: { content: "par" }, error }] });
    expect(verdictOf(200, inChoice)).toMatchObject({ class: "unknown", reason: { status: 502 } });
    expect(verdictOf(200, completion("par", { error }))).toMatchObject({ class: "unknown" });
  });

  it("takes error: null for no error", () => {
    expect(verdictOf(200, completion("hi", { error: null }))).toMatchObject({ kind: "success" });
  });
});

describe("readRetryAfterMs", () => {
  const nowMs = Date.parse("2026-11-21T10:00:00Z");
  it.each([
    [{}, null],
    [{ "retry-after": "2" }, 2_000],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": "0.25" }, 250],
    [{ "retry-after-ms": "1.2" }, 2],
    [{ "retry-after-ms": "30", "retry-after": "9" }, 30],
    [{ "retry-after-ms": "soon", "retry-after": "9" }, 9_000],
    [{ "retry-after": "Sat, 21 Nov 2026 10:00:05 GMT" }, 5_000],
    [{ "retry-after": "Sat, 21 Nov 2026 09:00:00 GMT" }, 0],
    [{ "retry-after": "-5" }, null],
    [{ "retry-after": "1e3" }, null],
    [{ "retry-after": "Infinity" }, null],
    [{ "retry-after": "tomorrow" }, null],
    [{ "retry-after": "" }, null],
    [{ "retry-after": "99999999999" }, 2_592_000_000],
  ])("reads %j as %s", (headers, ms) => {
    expect(readRetryAfterMs(new Headers(headers), nowMs)).toBe(ms);
  });
});
