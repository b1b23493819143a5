import { describe, expect, it, vi } from "vitest";
import { FIELD_BYTES_MAX, USAGE_BYTES_MAX } from "../../../../../src/providers/formats/response/fields.ts";
import { readJsonAnswer } from "../../../../../src/providers/formats/response/read.ts";
import type { Endpoint } from "../../../../../src/call.ts";
import { answers, factsOf, manyFloats } from "./recorded.ts";
import { bytesOf } from "../stream/recorded.ts";

const ENDPOINTS: Endpoint[] = ["chat", "completions", "embeddings", "responses", "messages"];
const NOTHING = { usage: null, model: null, finishReason: null, id: null, hasError: false };

/** What an answer is read as, without the object that it is. */
function read(text: string, endpoint: Endpoint = "chat") {
  const answer = readJsonAnswer(endpoint, bytesOf(text));
  if (!answer.ok) return answer;
  const { object: _, ...facts } = answer;
  return facts;
}

describe("readJsonAnswer", () => {
  it.each(Object.entries(answers))("reads an answer of %s", (_, recorded) => {
    expect(read(recorded.text, recorded.endpoint)).toEqual({ ok: true, ...factsOf(recorded) });
  });

  it.each(["", " ", "null", "[]", '"usage"', "7", "{", '{"id":"a"', '{"id":"a"}}', "{'id':1}", "<html>", "data: {}"])(
    "knows nothing of %j",
    (text) => {
      for (const endpoint of ENDPOINTS) expect(read(text, endpoint)).toEqual({ ok: false, ...NOTHING });
    },
  );

  it("reads nothing of bytes that are not UTF-8", () => {
    const bytes = new Uint8Array([...bytesOf('{"id":"'), 0xff, ...bytesOf('"}')]);
    expect(readJsonAnswer("chat", bytes)).toEqual({ ok: false, ...NOTHING });
  });

  it("reads an empty object as an answer without facts", () => {
    for (const endpoint of ENDPOINTS) expect(read("{}", endpoint)).toEqual({ ok: true, ...NOTHING });
  });

  it("parses only the small values that it reads", () => {
    const text = "x".repeat(1_000_000);
    const body = `{"id":"i","choices":[{"message":{"content":"${text}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`;
    const parse = vi.spyOn(JSON, "parse");
    const { usage, finishReason } = read(body);
    const parsedChars = parse.mock.calls.reduce((sum, [json]) => sum + json.length, 0);
    parse.mockRestore();
    expect([usage?.promptTokens, finishReason]).toEqual([1, "stop"]);
    expect(parsedChars).toBeLessThan(100);
  });

  it("reads the usage behind 10,000 floats", () => {
    expect(read(manyFloats, "embeddings").usage).toMatchObject({ promptTokens: 8, completionTokens: 0 });
  });

  it("counts completion tokens of embeddings if an upstream reports some", () => {
    const { usage } = read('{"usage":{"prompt_tokens":8,"completion_tokens":2}}', "embeddings");
    expect(usage).toMatchObject({ promptTokens: 8, completionTokens: 2 });
  });

  it("reads the cost that an upstream reports", () => {
    const { usage } = read('{"usage":{"prompt_tokens":1,"completion_tokens":1,"cost":0.25}}');
    expect(usage?.costNanoUsd).toBe(250_000_000);
  });

  it.each([
    ["chat", '{"usage":{"prompt_tokens":1}}'],
    ["chat", '{"usage":{"prompt_tokens":-1,"completion_tokens":1}}'],
    ["completions", '{"usage":null}'],
    ["embeddings", '{"usage":{"prompt_tokens":1.5}}'],
    ["embeddings", '{"usage":[]}'],
    ["responses", '{"usage":{"prompt_tokens":1,"completion_tokens":1}}'],
    ["messages", '{"usage":{"prompt_tokens":1,"completion_tokens":1}}'],
    ["chat", '{"metadata":{"usage":{"prompt_tokens":1,"completion_tokens":1}}}'],
  ] as const)("reads no usage of %s from %s", (endpoint, text) => {
    expect(read(text, endpoint)).toEqual({ ok: true, ...NOTHING });
  });

  it("reads a usage up to its largest size", () => {
    const usage = '{"prompt_tokens":1,"completion_tokens":1';
    const padded = (bytes: number) => `{"usage":${usage}${" ".repeat(bytes - usage.length - 1)}}}`;
    expect(read(padded(USAGE_BYTES_MAX)).usage?.promptTokens).toBe(1);
    expect(read(padded(USAGE_BYTES_MAX + 1)).usage).toBeNull();
  });

  it("cuts a long name, and ignores one above the bound", () => {
    expect(read(`{"id":"${"é".repeat(1_000)}"}`).id).toMatch(/^é+$/);
    expect(read(`{"id":"${"a".repeat(FIELD_BYTES_MAX - 2)}"}`).id).toMatch(/^a+$/);
    expect(read(`{"id":"${"a".repeat(FIELD_BYTES_MAX - 1)}"}`).id).toBeNull();
  });

  it("reads the last of repeated fields", () => {
    const text =
      '{"id":"a","choices":[{"finish_reason":"stop"}],"id":"b","choices":[{"finish_reason":"x","finish_reason":"length"}]}';
    expect(read(text)).toMatchObject({ id: "b", finishReason: "length" });
  });

  it.each([
    ["chat", '{"choices":[]}', null],
    ["chat", '{"choices":{"finish_reason":"stop"}}', null],
    ["chat", '{"choices":[null,{"finish_reason":"stop"}]}', null],
    ["chat", '{"choices":[{"finish_reason":null}]}', null],
    ["chat", '{"finish_reason":"stop","stop_reason":"stop","status":"stop"}', null],
    ["responses", '{"status":"completed","incomplete_details":null}', "completed"],
    ["responses", '{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}', "content_filter"],
    ["messages", '{"stop_reason":null,"stop_sequence":"x"}', null],
    ["embeddings", '{"choices":[{"finish_reason":"stop"}]}', null],
  ] as const)("reads of %s %s the reason %j", (endpoint, text, reason) => {
    expect(read(text, endpoint).finishReason).toBe(reason);
  });

  it.each(ENDPOINTS)("finds an error in the body of %s", (endpoint) => {
    const bodies = [
      '{"error":{"message":"no","code":429}}',
      '{"error":{}}',
      '{"error":"no"}',
      '{"object":"error","message":"no"}',
      `{"error":"${"x".repeat(10_000)}"}`,
      `{"type":"error","error":{"message":"${"x".repeat(10_000)}"}}`,
    ];
    for (const body of bodies) expect(read(body, endpoint).hasError).toBe(true);
  });

  it.each(ENDPOINTS)("finds no error in the body of %s if the field is empty or nested deeper", (endpoint) => {
    const bodies = ['{"error":null}', '{"error":""}', '{"error":false}', '{"data":{"error":{"message":"no"}}}'];
    for (const body of bodies) expect(read(body, endpoint)).toMatchObject({ ok: true, hasError: false });
  });

  it("finds the error that cut the first choice short", () => {
    const body = '{"choices":[{"message":{},"finish_reason":"error","error":{"code":502,"message":"lost"}}]}';
    expect(read(body)).toMatchObject({ hasError: true, finishReason: "error" });
    expect(read(body.replace('{"code":502,"message":"lost"}', "null")).hasError).toBe(false);
  });

  it("reads a failed response as an answer, and an error without a response as an error", () => {
    const failed = '{"status":"failed","error":{"code":"server_error","message":"no"},"usage":null}';
    expect(read(failed, "responses")).toMatchObject({ hasError: false, finishReason: "failed" });
    expect(read(failed, "chat").hasError).toBe(true);
    expect(read(failed.replace("failed", "completed"), "responses").hasError).toBe(true);
  });
});
