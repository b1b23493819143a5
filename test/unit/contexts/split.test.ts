import { describe, expect, it } from "vitest";
import { looksAtLines } from "../../../src/contexts/kept-lines.ts";
import { LineReader } from "../../../src/contexts/line-reader.ts";
import { chunksByChars, LineSplit, type Chunk } from "../../../src/contexts/split.ts";
import type { Split } from "../../../src/contexts/types.ts";
import { SPLIT_SLICE_LINES } from "../../../src/limits.ts";
import { atOnce } from "../../../src/text/bytes/slices.ts";
import { expectLinear } from "../../support/growth.ts";

/** The lines of a text that arrives in pieces of so many characters. */
function linesOf(text: string, split: Split, pieceChars = text.length) {
  const points = [...text];
  const reader = new LineReader(looksAtLines(split));
  for (let at = 0; at < points.length; at += pieceChars) reader.push(points.slice(at, at + pieceChars).join(""));
  const lines = reader.end();
  if (lines === null) throw new Error("too many lines");
  return lines;
}

function found(text: string, split: Split, pieceChars?: number): Chunk[] {
  if (split.by === "chars") return [...chunksByChars([...text].length, split)];
  const chunks: Chunk[] = [];
  atOnce(new LineSplit(linesOf(text, split, pieceChars), split, (chunk) => chunks.push(chunk)).chunks());
  return chunks;
}

function chunks(text: string, split: Split, pieceChars = 7): string[] {
  const points = [...text];
  return found(text, split, pieceChars).map(({ from, to }) => points.slice(from, to).join(""));
}

const TEXT = [
  "# One",
  "first line",
  "second line",
  "",
  "a paragraph of two 😀",
  "lines",
  "",
  "```",
  "# no heading",
  "```",
  "## Two",
  "end",
].join("\n");

describe("a split", () => {
  it.each(["chars", "lines", "paragraphs", "markdown"] as const)("by %s keeps every character and no size", (by) => {
    for (const text of [TEXT, TEXT.replaceAll("\n", "\r\n"), TEXT.replaceAll("\n", "\r"), "x".repeat(100), "\n\n\n"]) {
      for (const size of [1, 2, 5, 13, 40, 1_000]) {
        for (const pieceChars of [1, 3, 1_000]) {
          const texts = chunks(text, { by, size, overlap: 0 }, pieceChars);
          expect(texts.join("")).toBe(text);
          for (const chunk of texts) expect([...chunk].length).toBeLessThanOrEqual(size);
          expect(texts).toEqual(chunks(text, { by, size, overlap: 0 }, 11));
        }
      }
    }
  });

  it.each(["chars", "lines", "paragraphs", "markdown"] as const)(
    "by %s with an overlap goes on and misses nothing",
    (by) => {
      const points = [...TEXT];
      for (const size of [2, 5, 13, 40]) {
        for (const overlap of [1, Math.floor(size / 2), size - 1]) {
          const all = found(TEXT, { by, size, overlap });
          expect(all[0]?.from).toBe(0);
          expect(all.at(-1)?.to).toBe(points.length);
          all.forEach((chunk, number) => {
            const before = all[number - 1];
            expect(chunk.to - chunk.from).toBeLessThanOrEqual(size);
            if (before === undefined) return;
            expect(chunk.from).toBeGreaterThan(before.from);
            expect(chunk.from).toBeLessThanOrEqual(before.to);
            expect(before.to - chunk.from).toBeLessThanOrEqual(overlap);
            expect(chunk.to).toBeGreaterThan(before.to);
          });
        }
      }
    },
  );

  it("by lines ends behind a line break of any kind, and never between CR and LF", () => {
    expect(chunks("one\ntwo\nthree", { by: "lines", size: 8, overlap: 0 })).toEqual(["one\ntwo\n", "three"]);
    expect(chunks("one\r\ntwo\r\nthree", { by: "lines", size: 9, overlap: 0 }, 1)).toEqual([
      "one\r\n",
      "two\r\n",
      "three",
    ]);
    expect(chunks("one\rtwo\rthree", { by: "lines", size: 8, overlap: 0 }, 1)).toEqual(["one\rtwo\r", "three"]);
  });

  it("by paragraphs ends before a paragraph, by Markdown before a heading that is none in code", () => {
    expect(chunks("a\nb\n\nc\nd\n\ne", { by: "paragraphs", size: 5, overlap: 0 })).toEqual([
      "a\nb\n\n",
      "c\nd\n\n",
      "e",
    ]);
    expect(chunks(TEXT, { by: "markdown", size: 80, overlap: 0 })).toEqual([
      TEXT.slice(0, TEXT.indexOf("## Two")),
      "## Two\nend",
    ]);
  });

  it("repeats whole lines where a chunk ends with one", () => {
    expect(chunks("aa\nbb\ncc\ndd\n", { by: "lines", size: 6, overlap: 3 })).toEqual([
      "aa\nbb\n",
      "bb\ncc\n",
      "cc\ndd\n",
    ]);
  });
});

it("finds places in time that grows with the text, though chunks repeat nearly all of each other", () => {
  expectLinear(400_000, (chars) => {
    const text = "ab\n".repeat(chars / 3);
    const split: Split = { by: "lines", size: chars / 2, overlap: chars / 2 - 600 };
    return () => {
      const reader = new LineReader(false);
      reader.push(text);
      const lines = reader.end();
      let count = 0;
      if (lines !== null) atOnce(new LineSplit(lines, split, () => (count += 1)).chunks());
      return count;
    };
  });
});

it("passes the lines of a text in slices, for the ends of chunks as for their beginnings", () => {
  const split: Split = { by: "lines", size: 600_000, overlap: 599_000 };
  const lines = linesOf("\n".repeat(2 * SPLIT_SLICE_LINES), split);
  let pauses = 0;
  let last: Chunk | null = null;
  const cutting = new LineSplit(lines, split, (chunk) => (last = chunk)).chunks();
  while (cutting.next().done !== true) pauses += 1;
  expect(last).toEqual({ from: 400_000, to: 1_000_000 });
  // The lines up to the end of the last chunk but one, and those up to the beginning of the last.
  expect(pauses).toBe(Math.floor((999_000 + 400_000) / SPLIT_SLICE_LINES));
});
