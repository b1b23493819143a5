import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { deltaBytes } from "../../../../../src/providers/formats/stream/delta-bytes.ts";

const PIECE = /"text"\s*:\s*"/g;
const utf8Bytes = (text: string): number => Buffer.byteLength(text);

describe("deltaBytes", () => {
  it("counts every delta, and no other string", () => {
    expect(deltaBytes('{"text":"ab","other":"cd","more":{"text" : "e"}}', PIECE)).toBe(3);
  });

  it.each(["", "a\nb", "ü", "Ж", "漢", "🦊", '"', "\\", '\\"', "\u0000"])(
    "counts %j as UTF-8, escaped or not",
    (text) => {
      expect(deltaBytes(JSON.stringify({ text }), PIECE)).toBe(utf8Bytes(text));
      const escaped = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at).toString(16).padStart(4, "0"));
      expect(deltaBytes(`{"text":"${escaped.map((hex) => `\\u${hex}`).join("")}"}`, PIECE)).toBe(utf8Bytes(text));
    },
  );

  it("counts any text", () => {
    const texts = fc.array(fc.string({ unit: "binary" }));
    fc.assert(
      fc.property(texts, (all) => {
        const json = JSON.stringify(all.map((text) => ({ text, other: text })));
        expect(deltaBytes(json, PIECE)).toBe(utf8Bytes(all.join("")));
      }),
    );
  });

  it("ends with the text if a string has no end", () => {
    expect(deltaBytes('{"text":"ab', PIECE)).toBe(2);
  });
});
