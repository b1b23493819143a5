import { describe, expect, it } from "vitest";
import { fillCost } from "../../../../../src/providers/formats/usage/cost.ts";
import { scanObject } from "../../../../../src/text/json/scan.ts";
import { floatsToBase64 } from "../../../../../src/providers/formats/response/embeddings.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function fill(body: string, costUsd: number): string | null {
  const bytes = encoder.encode(body);
  const scan = scanObject(bytes);
  if (!scan.ok) throw new Error(`${body} ${scan.problem}`);
  const filled = fillCost(bytes, scan.object, costUsd);
  return filled === bytes ? null : decoder.decode(filled);
}

describe("fillCost", () => {
  it("adds the cost to the usage and keeps all other bytes", () => {
    expect(fill('{"id":1.0e+2,\n"usage": {"prompt_tokens":5 } , "x":12345678901234567890}', 0.001)).toBe(
      '{"id":1.0e+2,\n"usage": {"prompt_tokens":5,"cost":0.001 } , "x":12345678901234567890}',
    );
    expect(fill('{"usage":{}}', 1.25e-7)).toBe('{"usage":{"cost":1.25e-7}}');
  });

  it("replaces another cost, and keeps an equal one as it is written", () => {
    expect(fill('{"usage":{"cost":null,"a":1}}', 0.5)).toBe('{"usage":{"cost":0.5,"a":1}}');
    expect(fill('{"usage":{"cost":0.25,"a":1}}', 0.5)).toBe('{"usage":{"cost":0.5,"a":1}}');
    expect(fill('{"usage":{"cost":5.0e-1,"a":1}}', 0.5)).toBeNull();
  });

  it("sets the last of several, which is the one that counts, and none outside of the usage", () => {
    expect(fill('{"usage":{"a":1},"cost":1,"usage":{"cost":1,"cost":2}}', 3)).toBe(
      '{"usage":{"a":1},"cost":1,"usage":{"cost":1,"cost":3}}',
    );
  });

  it.each(['{"usage":null}', "{}", '{"usage":[]}', '{"choices":[{"usage":{}}]}'])("leaves %j as it is", (body) => {
    expect(fill(body, 1)).toBeNull();
  });
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
