/** Where a body's chunks end must not matter: to no byte that the client gets, and to nothing that is read. */
import { createHash } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AnswerObserverOptions } from "../../../../../src/providers/formats/response/observer.ts";
import { answers, manyFloats, playJson } from "./recorded.ts";
import { jsonText } from "../../../text/json/texts.ts";
import { bytesOf, textOf } from "../stream/recorded.ts";

function cutAt(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const within = cuts.map((cut) => Math.min(cut, bytes.length));
  const borders = [0, ...within.toSorted((a, b) => a - b), bytes.length];
  return borders.slice(1).map((end, at) => bytes.subarray(borders[at], end));
}

/** All that comes of a body, as one short text: comparing bytes one by one would take most of the time. */
function played(chunks: readonly Uint8Array[], options: Partial<AnswerObserverOptions>): string {
  const { sent, outcome } = playJson(chunks, options);
  return `${createHash("sha256").update(sent).digest("hex")}\n${JSON.stringify(outcome)}`;
}

const byteByByte = (bytes: Uint8Array) => Array.from(bytes, (byte) => new Uint8Array([byte]));
const cuts = fc.array(fc.nat({ max: 4_000 }), { maxLength: 40 });

const bodies = [
  ...Object.entries(answers).map(([name, { endpoint, text }]) => ({ name, endpoint, text })),
  {
    name: "chat, two usages and an error",
    endpoint: "chat",
    text: String.raw`{"usage":{"a\\":"\"}"},"\u0075sage":{"prompt_tokens":1,"completion_tokens":1},"error":"\\","choices":[[{}]],"id":"\\\"🦊"}`,
  } as const,
  {
    name: "chat, invalid from some byte on",
    endpoint: "chat",
    text: '{"id":"🦊","usage":{"a":1},,"error":{}}',
  } as const,
];

describe.each(bodies)("a body of $name", ({ endpoint, text }) => {
  const bytes = bytesOf(text);
  const whole = played([bytes], { endpoint });

  it("is the same for every border of two chunks, and byte by byte", () => {
    for (let cut = 1; cut < bytes.length; cut++) expect(played(cutAt(bytes, [cut]), { endpoint })).toBe(whole);
    expect(played(byteByByte(bytes), { endpoint })).toBe(whole);
  });

  it("is the same in any chunks, empty ones too", () => {
    fc.assert(
      fc.property(cuts, (at) => {
        expect(played(cutAt(bytes, at), { endpoint })).toBe(whole);
      }),
    );
  });

  it("is the same up to the byte at which it breaks off", () => {
    fc.assert(
      fc.property(fc.nat({ max: bytes.length }), cuts, (end, at) => {
        const begun = bytes.subarray(0, end);
        expect(played(cutAt(begun, at), { endpoint })).toBe(played([begun], { endpoint }));
      }),
    );
  });
});

describe("a body of 10,000 floats", () => {
  it("is the same in chunks of any size", () => {
    const bytes = bytesOf(manyFloats);
    const whole = played([bytes], { endpoint: "embeddings" });
    for (const size of [7, 1_000, 4_096, 65_536]) {
      const at = Array.from({ length: Math.floor(bytes.length / size) }, (_, index) => (index + 1) * size);
      expect(played(cutAt(bytes, at), { endpoint: "embeddings" })).toBe(whole);
    }
  });
});

describe("a body of long strings", () => {
  it.each([String.raw`\"`, String.raw`\\`, String.raw`\\\"`, String.raw`\"x\\y`])(
    "with %s far behind their beginning is the same cut in two anywhere",
    (escapes) => {
      const text = `${"x".repeat(600)}${escapes.repeat(10)}`;
      const bytes = bytesOf(`{"a":"${text}","b":["${text}"],"usage":{"prompt_tokens":1,"completion_tokens":1}}`);
      const whole = played([bytes], {});
      expect(whole).toContain('"complete":true');
      for (let cut = 1; cut < bytes.length; cut++) expect(played(cutAt(bytes, [cut]), {})).toBe(whole);
    },
  );
});

describe("any JSON", () => {
  const usage = '{ "prompt_tokens":1e0, "x":[{"usage":{}}],"completion_tokens":2 }';
  const priced = usage.replace(" }", ',"cost":0.003 }');
  const space = fc.constantFrom("", " ", "\n\t");

  it("around a usage is unchanged, in any chunks, and the usage gets its cost", () => {
    fc.assert(
      fc.property(jsonText, jsonText, jsonText, space, cuts, (before, choice, after, gap, at) => {
        const text = `{"a":${before},"choices":[${choice}],"usage"${gap}:${gap}${usage}${gap},"b":${after}}${gap}`;
        const { sent, outcome } = playJson(cutAt(bytesOf(text), at));
        expect(textOf([sent])).toBe(text.replace(usage, priced));
        expect(outcome).toMatchObject({ complete: true, usage: { promptTokens: 1, completionTokens: 2 } });
      }),
    );
  });
});

describe("any bytes", () => {
  const piece = fc.constantFrom(
    ...'"\\{}[]:, 1n🦊'.split(""),
    "usage",
    '"usage":',
    '{"prompt_tokens":1}',
    '"a"',
    '{"a":',
  );

  it("are unchanged and read alike, in any chunks", () => {
    let complete = 0;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), cuts, (pieces, at) => {
        const bytes = bytesOf(`{${pieces.join("")}}`);
        const chunks = cutAt(
          bytes,
          at.map((cut) => cut % (bytes.length + 1)),
        );
        const { sent, outcome } = playJson(chunks);
        expect(Buffer.compare(sent, bytes)).toBe(0);
        expect(outcome).toEqual(playJson([bytes]).outcome);
        if (isJson(bytes)) expect(outcome.complete).toBe(true);
        complete += outcome.complete ? 1 : 0;
      }),
      { numRuns: 2_000 },
    );
    expect(complete).toBeGreaterThan(0);
  });
});

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(textOf([bytes]));
    return true;
  } catch {
    return false;
  }
}
