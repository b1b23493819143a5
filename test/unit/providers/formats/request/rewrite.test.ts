import { describe, expect, it } from "vitest";
import { readRequest, type Endpoint } from "../../../../../src/providers/formats/request/read.ts";
import { rewriteRequest, type Rewrite } from "../../../../../src/providers/formats/request/rewrite.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const SAME: Rewrite = { model: "m", cap: null, includeUsage: false };

/** The rewritten text; null where the very same bytes come back. */
function rewrite(endpoint: Endpoint, body: string, changes: Partial<Rewrite>): string | null {
  const bytes = encoder.encode(body);
  const parsed = readRequest(endpoint, bytes);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.reason));
  const rewritten = rewriteRequest(bytes, parsed.value, { ...SAME, ...changes });
  return rewritten === bytes ? null : decoder.decode(rewritten);
}

describe("rewriteRequest", () => {
  it("returns the same bytes if nothing changes", () => {
    const body =
      '{ "model":"\\u006d", "messages":[], "max_tokens": 1.0e+2, "stream":true,"stream_options":{"include_usage":true} }';
    expect(rewrite("chat", body, {})).toBeNull();
    expect(rewrite("chat", body, { cap: 100, includeUsage: true })).toBeNull();
  });

  it("changes the model, the cap and the stream's usage, and no other byte", () => {
    const body = `{ "seed":12345678901234567890,"model" : "openai/gpt-x",\n "messages":[ ],"max_tokens":1e3, "x":1.0e+2,"stream":true }`;
    expect(rewrite("chat", body, { model: "gpt-x", cap: 16, includeUsage: true })).toBe(
      `{ "seed":12345678901234567890,"model" : "gpt-x",\n "messages":[ ],"max_tokens":16, "x":1.0e+2,"stream":true,"stream_options":{"include_usage":true} }`,
    );
  });

  it("adds the model if the client named none", () => {
    expect(rewrite("chat", '{"messages":[]}', { model: 'a"b' })).toBe('{"messages":[],"model":"a\\"b"}');
    expect(rewrite("chat", '{"model":null,"messages":[]}', {})).toBe('{"model":"m","messages":[]}');
  });

  it("sends one cap, the smallest, in the field that the upstream reads", () => {
    const body = '{"model":"m","max_tokens":100, "messages":[],"max_completion_tokens":50}';
    const old = (cap: number) => `{"model":"m","max_tokens":${cap}, "messages":[]}`;
    expect(rewrite("chat", body, {})).toBe(old(50));
    expect(rewrite("chat", body, { cap: 50 })).toBe(old(50));
    expect(rewrite("chat", body, { cap: 30 })).toBe(old(30));
    expect(rewrite("chat", body, { cap: 100 })).toBe(old(50));
    expect(rewrite("chat", body, { cap: 30, capField: "max_completion_tokens" })).toBe(
      '{"model":"m", "messages":[],"max_completion_tokens":30}',
    );
  });

  it.each<[Endpoint, string, Partial<Rewrite>, string]>([
    ["chat", '{"model":"m","messages":[],"max_completion_tokens":1}', {}, '{"model":"m","messages":[],"max_tokens":1}'],
    ["chat", '{"n_predict":9,"model":"m","messages":[]}', { cap: 5 }, '{"model":"m","messages":[],"max_tokens":5}'],
    ["responses", '{"model":"m","max_tokens":7}', {}, '{"model":"m","max_output_tokens":7}'],
    [
      "messages",
      '{"model":"m","messages":[],"max_completion_tokens":7}',
      {},
      '{"model":"m","messages":[],"max_tokens":7}',
    ],
    [
      "chat",
      '{"model":"m","messages":[],"max_tokens":null,"max_completion_tokens":3}',
      { capField: "max_completion_tokens" },
      '{"model":"m","messages":[],"max_completion_tokens":3}',
    ],
  ])("renames the cap of %s: %s", (endpoint, body, changes, expected) => {
    expect(rewrite(endpoint, body, changes)).toBe(expected);
  });

  it.each(["max_tokens", "max_completion_tokens"] as const)("leaves a cap in %s as its client wrote it", (capField) => {
    expect(rewrite("chat", `{"model":"m","messages":[],"${capField}": 1.0e+2 }`, { cap: 100, capField })).toBeNull();
    expect(rewrite("chat", `{"model":"m","messages":[],"${capField}":null}`, { capField })).toBeNull();
  });

  it.each<[Endpoint, string, Partial<Rewrite>, string]>([
    ["chat", '{"model":"m","messages":[]}', {}, '{"model":"m","messages":[],"max_tokens":9}'],
    [
      "chat",
      '{"model":"m","messages":[]}',
      { capField: "max_completion_tokens" },
      '{"model":"m","messages":[],"max_completion_tokens":9}',
    ],
    ["chat", '{"model":"m","messages":[],"max_tokens":null}', {}, '{"model":"m","messages":[],"max_tokens":9}'],
    ["completions", '{"model":"m"}', { capField: "max_completion_tokens" }, '{"model":"m","max_tokens":9}'],
    ["responses", '{"model":"m"}', {}, '{"model":"m","max_output_tokens":9}'],
    ["messages", '{"model":"m","messages":[]}', {}, '{"model":"m","messages":[],"max_tokens":9}'],
  ])("puts a cap that the client did not name where %s takes it: %s", (endpoint, body, changes, expected) => {
    expect(rewrite(endpoint, body, { cap: 9, ...changes })).toBe(expected);
  });

  it("adds no cap to embeddings", () => {
    expect(rewrite("embeddings", '{"model":"m","input":"x"}', { cap: 9 })).toBeNull();
  });

  it.each<[Endpoint, string, string | null]>([
    [
      "chat",
      '{"model":"m","messages":[],"stream":true,"stream_options":null}',
      '{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}',
    ],
    [
      "chat",
      '{"model":"m","messages":[],"stream":true,"stream_options":{ "x":1 }}',
      '{"model":"m","messages":[],"stream":true,"stream_options":{ "x":1,"include_usage":true }}',
    ],
    [
      "completions",
      '{"model":"m","stream":true,"stream_options":{"include_usage":false}}',
      '{"model":"m","stream":true,"stream_options":{"include_usage":true}}',
    ],
    ["chat", '{"model":"m","messages":[]}', null],
    ["chat", '{"model":"m","messages":[],"stream":false}', null],
    ["responses", '{"model":"m","stream":true}', null],
    ["messages", '{"model":"m","messages":[],"stream":true}', null],
  ])("requests the usage of a stream of %s: %s", (endpoint, body, expected) => {
    expect(rewrite(endpoint, body, { includeUsage: true })).toBe(expected);
  });
});
