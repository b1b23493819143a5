/** A text that is split page by page, in slices. */
import { describe, expect, it } from "vitest";
import { PagedSplit } from "../../../src/http/contexts/find.ts";
import { Splitter, type Chunk } from "../../../src/contexts/split.ts";
import type { Split } from "../../../src/contexts/types.ts";
import { SLICE_CHARS_MAX, SLICE_PIECE_CHARS, SPLIT_PIECE_BYTES } from "../../../src/limits.ts";

function whole(text: string, split: Split): Chunk[] {
  const found: Chunk[] = [];
  const splitter = new Splitter(split, (chunk) => found.push(chunk));
  splitter.push(text);
  splitter.end();
  return found;
}

/** The chunks, and the pauses between slices. */
function paged(text: string, split: Split, pageBytes: number): { found: Chunk[]; pauses: number } {
  const bytes = new TextEncoder().encode(text);
  const found: Chunk[] = [];
  const splitting = new PagedSplit(split, (chunk) => found.push(chunk));
  let pauses = 0;
  for (let at = 0; at < bytes.length; at += pageBytes) {
    const page = splitting.page(bytes.subarray(at, at + pageBytes), at + pageBytes >= bytes.length);
    while (page.next().done !== true) pauses += 1;
  }
  splitting.end();
  return { found, pauses };
}

describe("a text that is split page by page", () => {
  it("has the chunks that it has as a whole, wherever pages and pieces cut it", () => {
    const lines = Array.from(
      { length: 4_000 },
      (_, at) => `${"# ".repeat(at % 3)}é😀 line ${at}${at % 7 === 0 ? "\n" : ""}`,
    );
    for (const text of [lines.join("\n"), lines.join("\r\n"), "😀".repeat(SPLIT_PIECE_BYTES)]) {
      for (const by of ["lines", "paragraphs", "markdown"] as const) {
        const split = { by, size: 900, overlap: 200 };
        const expected = whole(text, split);
        for (const pageBytes of [SPLIT_PIECE_BYTES - 1, SPLIT_PIECE_BYTES + 1, 10_000_000])
          expect(paged(text, split, pageBytes).found).toEqual(expected);
      }
    }
  });

  it("is split in slices, by its lines and by its length", () => {
    const split: Split = { by: "lines", size: 500_000, overlap: 0 };
    const bytes = 32 * SPLIT_PIECE_BYTES;
    const long = paged("x".repeat(bytes), split, bytes);
    // Each piece counts for itself too.
    const perSlice = Math.ceil(SLICE_CHARS_MAX / (SPLIT_PIECE_BYTES + SLICE_PIECE_CHARS));
    expect(long.pauses).toBe(Math.floor(32 / perSlice));
    // A line of two bytes is half a piece's bytes times as many lines: each piece is a slice.
    const short = paged("a\n".repeat(bytes / 2), split, bytes);
    expect(short.pauses).toBe(32);
  });
});
