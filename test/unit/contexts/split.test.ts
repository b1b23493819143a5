import { describe, expect, it } from "vitest";
import { chunksByChars, Splitter, type Chunk } from "../../../src/contexts/split.ts";
import type { Split } from "../../../src/contexts/types.ts";
import { expectLinear } from "../../support/growth.ts";

function chunks(text: string, split: Split, pieceChars = 7): string[] {
  const points = [...text];
  const found: Chunk[] = [];
  if (split.by === "chars") found.push(...chunksByChars(points.length, split));
  else {
    const splitter = new Splitter(split, (chunk) => found.push(chunk));
    for (let at = 0; at < points.length; at += pieceChars) splitter.push(points.slice(at, at + pieceChars).join(""));
    splitter.end();
  }
  return found.map(({ from, to }) => points.slice(from, to).join(""));
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
          const found = chunks(text, { by, size, overlap: 0 }, pieceChars);
          expect(found.join("")).toBe(text);
          for (const chunk of found) expect([...chunk].length).toBeLessThanOrEqual(size);
          expect(found).toEqual(chunks(text, { by, size, overlap: 0 }, 11));
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
          const found: Chunk[] = [];
          if (by === "chars") found.push(...chunksByChars(points.length, { by, size, overlap }));
          else {
            const splitter = new Splitter({ by, size, overlap }, (chunk) => found.push(chunk));
            splitter.push(TEXT);
            splitter.end();
          }
          expect(found[0]?.from).toBe(0);
          expect(found.at(-1)?.to).toBe(points.length);
          found.forEach((chunk, number) => {
            const before = found[number - 1];
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
      let found = 0;
      const splitter = new Splitter(split, () => (found += 1));
      splitter.push(text);
      splitter.end();
      return found;
    };
  });
});
