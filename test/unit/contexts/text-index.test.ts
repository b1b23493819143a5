import { describe, expect, it } from "vitest";
import { TextIndexer, TextRanges } from "../../../src/contexts/text-index.ts";
import { normalisedGrowth } from "../../../src/text/tokens/normalised-bytes.ts";
import { textTokensMax } from "../../../src/text/tokens/text-bound.ts";

const encoder = new TextEncoder();

function indexed(text: string, pieceBytes = 700) {
  const bytes = encoder.encode(text);
  const indexer = new TextIndexer();
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const fault = indexer.push(bytes.subarray(at, at + pieceBytes));
    if (fault !== null) throw new Error(fault.message);
  }
  const found = indexer.end();
  if ("message" in found) throw new Error(found.message);
  return { ...found, text, data: bytes };
}

/** The text that an executor would send of a range. */
function readBack({ index, chars, data }: ReturnType<typeof indexed>, from: number, to: number): string {
  const range = new TextRanges(index, chars).measure(from, to);
  const read = [...new TextDecoder().decode(data.subarray(range.from, range.to))];
  return read.slice(range.skip, range.take === null ? undefined : range.skip + range.take).join("");
}

const ENGLISH = "The quick brown fox jumps over the lazy dog, and nobody knows therefore why it does. ".repeat(120);
const MIXED = "ascii ünïcödé 漢字かな 😀👩‍👩‍👧 ﷺ\r\n".repeat(300);

describe("the index of a text", () => {
  it("counts code points, bytes and tokens of any text as if it were read at once", () => {
    for (const text of [ENGLISH, MIXED, "a", "😀", ENGLISH + MIXED + ENGLISH]) {
      const { chars, bytes, tokensMax } = indexed(text);
      expect(chars).toBe([...text].length);
      expect(bytes).toBe(encoder.encode(text).length);
      expect(tokensMax).toBe(textTokensMax(text));
    }
  });

  it("finds every range of code points, wherever it begins and ends", () => {
    for (const text of [ENGLISH, MIXED, ENGLISH + MIXED]) {
      const found = indexed(text);
      const points = [...text];
      for (const [from, to] of [
        [0, 1],
        [1_023, 1_024],
        [1_023, 1_025],
        [1_024, 2_048],
        [5, 3_000],
        [points.length - 3, points.length],
        [0, points.length],
        [7, 7],
      ]) {
        if (from === undefined || to === undefined) throw new Error("a range has two ends");
        expect(readBack(found, from, to)).toBe(points.slice(from, to).join(""));
      }
    }
  });

  it("measures no range below its bytes, its growth and its tokens, and plain text hardly above", () => {
    for (const text of [ENGLISH, MIXED, "therefore".repeat(2_000)]) {
      const { index, chars } = indexed(text);
      const ranges = new TextRanges(index, chars);
      const points = [...text];
      for (let from = 0; from < Math.min(points.length, 4_000); from += 397) {
        for (const size of [1, 50, 1_500]) {
          const part = points.slice(from, from + size).join("");
          const measured = ranges.measure(from, Math.min(points.length, from + size));
          expect(measured.bytesMax).toBeGreaterThanOrEqual(encoder.encode(part).length + normalisedGrowth(part));
          expect(measured.tokensMax).toBeGreaterThanOrEqual(Math.min(textTokensMax(part), measured.bytesMax) * 0.95);
        }
      }
    }
    const { index, chars, tokensMax } = indexed(ENGLISH);
    const half = new TextRanges(index, chars).measure(0, chars / 2);
    expect(half.bytesMax).toBe(chars / 2);
    expect(half.tokensMax).toBeLessThan(tokensMax * 0.6);
  });

  it("refuses bytes that are not UTF-8, cut characters and NUL", () => {
    const faultOf = (bytes: number[]): string | null => {
      const indexer = new TextIndexer();
      const pushed = indexer.push(Uint8Array.from(bytes));
      if (pushed !== null) return pushed.message;
      const ended = indexer.end();
      return "message" in ended ? ended.message : null;
    };
    expect(faultOf([0x61, 0xff])).toMatch(/UTF-8/);
    expect(faultOf([0xf0, 0x9f, 0x98])).toMatch(/UTF-8/);
    expect(faultOf(Array.from({ length: 20_000 }, () => 0x80))).toMatch(/UTF-8/);
    // Half of a surrogate pair, as some programs write it.
    expect(faultOf([0xed, 0xa0, 0xbd])).toMatch(/UTF-8/);
    expect(faultOf([0x61, 0x00])).toMatch(/NUL/);
    expect(faultOf([0xef, 0xbb, 0xbf, 0x61])).toBeNull();
  });
});
