import { describe, expect, it } from "vitest";
import { BATCH_URLS } from "../../../src/batch/endpoints.ts";
import { readLine, type LineRules } from "../../../src/batch/validate.ts";
import { BATCH_LINE_BYTES_MAX, CUSTOM_ID_CHARS_MAX } from "../../../src/limits.ts";
import { bytesOf, makeLine, makeRules, MODEL } from "./make.ts";

const decoder = new TextDecoder();

function faultOf(line: unknown, rules: Partial<LineRules> = {}) {
  const read = readLine(line === null ? null : bytesOf(line), makeRules(rules));
  return read.ok ? null : read.fault;
}

function valueOf(line: unknown, rules: Partial<LineRules> = {}) {
  const read = readLine(bytesOf(line), makeRules(rules));
  if (!read.ok) throw new Error(JSON.stringify(read.fault));
  return read.value;
}

describe("a line that can be run", () => {
  it("returns the facts for admission", () => {
    expect(valueOf(makeLine({ custom_id: "row-7" }, { max_tokens: 50, temperature: 0 }))).toMatchObject({
      customId: "row-7",
      endpoint: "chat",
      model: MODEL,
      facts: { maxTokens: 50, messageCount: 1, stream: false },
    });
  });

  it("returns the range of its body, byte for byte as written", () => {
    const body = `{ "messages":[{"role":"user","content":"é\u2028"}],\t"seed": 12345678901234567890, "model":"${MODEL}" }`;
    const line = `  {"custom_id":"𝄞", "body" : ${body} ,"url":"/v1/chat/completions","method":"POST"} `;
    const { bodyStart, bodyEnd } = valueOf(line);
    expect(decoder.decode(bytesOf(line).subarray(bodyStart, bodyEnd))).toBe(body);
  });

  it.each(BATCH_URLS)("accepts %s", (url) => {
    const body = { model: MODEL, messages: [{ role: "user", content: "hi" }], input: "hi", prompt: "hi" };
    const endpoint = url.split("/")[2];
    expect(valueOf(makeLine({ url, body }), { url }).endpoint).toBe(endpoint);
  });

  it("keeps any characters of its custom_id", () => {
    for (const id of ["", " ", 'a"b\\c', "line\nfeed", "\u2028\u0085", "𝄞", "\ud800", "../x"]) {
      expect(valueOf(makeLine({ custom_id: id })).customId).toBe(id);
    }
  });

  it("accepts unknown fields, and a stream that is off", () => {
    expect(valueOf(makeLine({ note: 1 }, { stream: false, unknown: [] })).customId).toBe("a");
  });

  it("has the default model if it names none", () => {
    const line = makeLine({}, { model: undefined });
    expect(valueOf(line, { defaultModel: "other/model" }).model).toBe("other/model");
    expect(valueOf(line, { defaultModel: "other/model" }).facts.model).toBeNull();
  });

  it("may have the longest custom_id, counted in characters", () => {
    expect(valueOf(makeLine({ custom_id: "𝄞".repeat(CUSTOM_ID_CHARS_MAX) })).customId).toHaveLength(
      2 * CUSTOM_ID_CHARS_MAX,
    );
  });
});

describe("a line that cannot be run", () => {
  it.each(["{invalid json here", "", "{}{}", '{"custom_id":"a"', "{'a':1}", '{"a":"\u0001"}', "NaN"])(
    "is not JSON: %j",
    (line) => {
      expect(faultOf(line)).toEqual({
        code: "invalid_json_line",
        message: "This line is not parseable as valid JSON.",
        param: null,
      });
    },
  );

  it("is not UTF-8", () => {
    const bytes = bytesOf(makeLine());
    bytes[bytes.indexOf(0x61)] = 0xff;
    expect(readLine(bytes, makeRules())).toMatchObject({ ok: false, fault: { code: "invalid_json_line" } });
  });

  it.each(["[]", "3", '"text"', "null", "true"])("is JSON but not an object: %s", (line) => {
    expect(faultOf(line)).toMatchObject({
      code: "invalid_json_line",
      message: expect.stringMatching("not a JSON object"),
    });
  });

  it("is longer than the limit", () => {
    expect(faultOf(null)).toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining(String(BATCH_LINE_BYTES_MAX)),
    });
  });

  it.each(["custom_id", "method", "url", "body"])("lacks %s", (field) => {
    const expected = {
      code: "missing_required_parameter",
      message: `Missing required parameter: '${field}'.`,
      param: field,
    };
    expect(faultOf(makeLine({ [field]: undefined }))).toEqual(expected);
    expect(faultOf(makeLine({ [field]: null }))).toEqual(expected);
  });

  it.each([
    ["custom_id", 7, "a string, but got an integer instead"],
    ["custom_id", ["a"], "a string, but got an array instead"],
    ["method", true, "a string, but got a boolean instead"],
    ["url", {}, "a string, but got an object instead"],
    ["body", "{}", "an object, but got a string instead"],
    ["body", [], "an object, but got an array instead"],
  ])("has a %s of a wrong type: %j", (field, value, text) => {
    expect(faultOf(makeLine({ [field]: value }))).toEqual({
      code: "invalid_type",
      message: `Invalid type for '${field}': expected ${text}.`,
      param: field,
    });
  });

  it.each(["GET", "post", "PUT", ""])("has the method %j", (method) => {
    expect(faultOf(makeLine({ method }))).toMatchObject({ code: "invalid_value", param: "method" });
  });

  it.each(["/v1/embeddings", "/v1/chat/completions/", "/chat/completions", "https://x/v1/chat/completions", ""])(
    "asks another url than the batch: %j",
    (url) => {
      expect(faultOf(makeLine({ url }))).toEqual({
        code: "invalid_url",
        message: "The URL provided for this request does not match the batch endpoint.",
        param: "url",
      });
    },
  );

  it("has a custom_id that is too long", () => {
    expect(faultOf(makeLine({ custom_id: "x".repeat(CUSTOM_ID_CHARS_MAX + 1) }))).toMatchObject({
      code: "string_above_max_length",
      param: "custom_id",
    });
  });

  it("repeats a field, of which parsers differ which counts", () => {
    const line = JSON.stringify(makeLine()).replace("{", '{"custom_id":"b",');
    expect(faultOf(line)).toMatchObject({ code: "invalid_request", param: "custom_id" });
  });

  it("names a model that is not served", () => {
    expect(faultOf(makeLine({}, { model: "nonexistent-model-xyz" }))).toEqual({
      code: "model_not_found",
      message: "The provided model 'nonexistent-model-xyz' is not supported by the Batch API.",
      param: "body.model",
    });
  });

  it("names no model, without a default", () => {
    const expected = { code: "invalid_request", message: "Model parameter is required.", param: "body.model" };
    expect(faultOf(makeLine({}, { model: undefined }))).toEqual(expected);
    expect(faultOf(makeLine({}, { model: null }))).toEqual(expected);
  });

  it("has no messages", () => {
    expect(faultOf(makeLine({}, { messages: undefined }))).toEqual({
      code: "invalid_request",
      message: "Messages parameter is required.",
      param: "body.messages",
    });
  });

  it("has no input to embed", () => {
    const url = "/v1/embeddings";
    expect(faultOf(makeLine({ url, body: { model: MODEL } }), { url })).toEqual({
      code: "invalid_request",
      message: "Input parameter is required.",
      param: "body.input",
    });
  });

  it.each([
    [{ messages: "hi" }, "body.messages"],
    [{ model: 7 }, "body.model"],
    [{ max_tokens: 0 }, "body.max_tokens"],
    [{ stream: "yes" }, "body.stream"],
  ])("has a body that admission cannot judge: %j", (body, param) => {
    expect(faultOf(makeLine({}, body))).toMatchObject({ code: "invalid_request", param });
  });

  it.each([
    ["/v1/chat/completions", "Chat Completions"],
    ["/v1/completions", "Completions"],
    ["/v1/responses", "Responses"],
  ] as const)("asks %s for a stream", (url, title) => {
    const body = { model: MODEL, messages: [{ role: "user", content: "hi" }], prompt: "hi", stream: true };
    expect(faultOf(makeLine({ url, body }), { url })).toEqual({
      code: "streaming_unsupported",
      message: `${title}: Streaming is not supported in the Batch API.`,
      param: "body.stream",
    });
  });
});
