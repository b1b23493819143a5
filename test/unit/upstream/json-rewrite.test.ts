import { describe, expect, it } from "vitest";
import { floatsToBase64 } from "../../../src/upstream/json-floats.ts";
import { readRequest, type Endpoint } from "../../../src/upstream/json-request.ts";
import { fillCost, rewriteRequest, type Rewrite, type UsagePath } from "../../../src/upstream/json-rewrite.ts";

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
  it("returns the same bytes where nothing changes", () => {
    const body =
      '{ "model":"\\u006d", "messages":[], "max_tokens": 1.0e+2, "stream":true,"stream_options":{"include_usage":true} }';
    expect(rewrite("chat", body, {})).toBeNull();
    expect(rewrite("chat", body, { cap: 100, includeUsage: true })).toBeNull();
  });

  it("changes the model, the cap and the stream's usage, and not one byte more", () => {
    const body = `{ "seed":12345678901234567890,"model" : "openai/gpt-x",\n "messages":[ ],"max_tokens":1e3, "x":1.0e+2,"stream":true }`;
    expect(rewrite("chat", body, { model: "gpt-x", cap: 16, includeUsage: true })).toBe(
      `{ "seed":12345678901234567890,"model" : "gpt-x",\n "messages":[ ],"max_tokens":16, "x":1.0e+2,"stream":true,"stream_options":{"include_usage":true} }`,
    );
  });

  it("adds the model where the client named none", () => {
    expect(rewrite("chat", '{"messages":[]}', { model: 'a"b' })).toBe('{"messages":[],"model":"a\\"b"}');
    expect(rewrite("chat", '{"model":null,"messages":[]}', {})).toBe('{"model":"m","messages":[]}');
  });

  it("lowers every cap above the new one, so that it holds whichever the upstream obeys", () => {
    const body = '{"model":"m","messages":[],"max_tokens":100,"max_completion_tokens":50}';
    expect(rewrite("chat", body, { cap: 50 })).toBe(body.replace("100", "50"));
    expect(rewrite("chat", body, { cap: 30 })).toBe(body.replace("100", "30").replace("50", "30"));
    expect(rewrite("chat", body, { cap: 100 })).toBeNull();
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

  it("puts no cap on embeddings", () => {
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
  ])("asks for the usage of a stream of %s: %s", (endpoint, body, expected) => {
    expect(rewrite(endpoint, body, { includeUsage: true })).toBe(expected);
  });
});

function fill(body: string, costUsd: number, path?: UsagePath): string | null {
  const bytes = encoder.encode(body);
  const filled = fillCost(bytes, costUsd, path);
  return filled === bytes ? null : decoder.decode(filled);
}

describe("fillCost", () => {
  it("adds the cost to the usage and keeps all other bytes", () => {
    expect(fill('{"id":1.0e+2,\n"usage": {"prompt_tokens":5 } , "x":12345678901234567890}', 0.001)).toBe(
      '{"id":1.0e+2,\n"usage": {"prompt_tokens":5,"cost":0.001 } , "x":12345678901234567890}',
    );
    expect(fill('{"usage":{}}', 1.25e-7)).toBe('{"usage":{"cost":1.25e-7}}');
  });

  it("replaces another cost, and leaves the same one as it is written", () => {
    expect(fill('{"usage":{"cost":null,"a":1}}', 0.5)).toBe('{"usage":{"cost":0.5,"a":1}}');
    expect(fill('{"usage":{"cost":0.25,"a":1}}', 0.5)).toBe('{"usage":{"cost":0.5,"a":1}}');
    expect(fill('{"usage":{"cost":5.0e-1,"a":1}}', 0.5)).toBeNull();
  });

  it("finds the usage of an event by its path", () => {
    const event = '{"type":"response.completed","response":{"id":"r","usage":{"input_tokens":1}}}';
    expect(fill(event, 2, ["response", "usage"])).toBe(event.replace("1}", '1,"cost":2}'));
    expect(fill(event, 2)).toBeNull();
  });

  it.each(['{"usage":null}', "{}", "[]", "not JSON", '{"usage":[]}', '{"usage":{"a":1}', ""])(
    "leaves %j as it is",
    (body) => {
      expect(fill(body, 1)).toBeNull();
    },
  );
});

/** What the client makes of base64: little-endian float32. */
function decoded(base64: string): number[] {
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / 4 }, (_, at) => view.getFloat32(at * 4, true));
}

describe("floatsToBase64", () => {
  it("re-encodes each list of numbers, and keeps all other bytes", () => {
    const body =
      '{"object":"list","data":[ {"index":0 ,"embedding":[0.5, -1, 1e-3]},{"embedding":[],"index":12345678901234567890}],"usage":{"x":1.0}}';
    const encoded = decoder.decode(floatsToBase64(encoder.encode(body)));
    const [first, second] = JSON.parse(encoded).data;
    expect(decoded(first.embedding)).toEqual([0.5, -1, Math.fround(1e-3)]);
    expect(second.embedding).toBe("");
    expect(encoded.replace(first.embedding, "").replaceAll('""', "")).toBe(
      body.replace("[0.5, -1, 1e-3]", "").replace("[]", "").replaceAll('""', ""),
    );
  });

  it("encodes vectors of any length in one piece", () => {
    for (const length of [1_535, 1_536, 1_537, 4_096]) {
      const embedding = Array.from({ length }, (_, at) => Math.fround(Math.sin(at)));
      const encoded = decoder.decode(floatsToBase64(encoder.encode(JSON.stringify({ data: [{ embedding }] }))));
      expect(decoded(JSON.parse(encoded).data[0].embedding)).toEqual(embedding);
    }
  });

  it.each([
    '{"data":[{"embedding":"AAAA"}]}',
    '{"data":[{"embedding":[1,"x"]}]}',
    '{"data":[{"embedding":[1e39]}]}',
    '{"data":[5,{"x":1}]}',
    '{"data":{}}',
    '{"error":{}}',
    "not JSON",
  ])("leaves %s as it is", (body) => {
    const bytes = encoder.encode(body);
    expect(floatsToBase64(bytes)).toBe(bytes);
  });
});
