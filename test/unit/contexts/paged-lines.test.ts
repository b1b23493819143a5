/** The lines of a text that is read page by page, in slices. */
import { describe, expect, it } from "vitest";
import { LineReader } from "../../../src/contexts/line-reader.ts";
import type { TextLines } from "../../../src/contexts/lines.ts";
import { PagedLines } from "../../../src/http/contexts/chunks.ts";
import { SLICE_CHARS_MAX, SLICE_PIECE_CHARS, SPLIT_PIECE_BYTES } from "../../../src/limits.ts";

function whole(text: string, looks: boolean): TextLines | null {
  const reader = new LineReader(looks);
  reader.push(text);
  return reader.end();
}

/** The lines, and the pauses between slices. */
function paged(text: string, looks: boolean, pageBytes: number): { lines: TextLines | null; pauses: number } {
  const bytes = new TextEncoder().encode(text);
  const reading = new PagedLines(looks);
  let pauses = 0;
  for (let at = 0; at < bytes.length; at += pageBytes) {
    const page = reading.page(bytes.subarray(at, at + pageBytes), at + pageBytes >= bytes.length);
    while (page.next().done !== true) pauses += 1;
  }
  return { lines: reading.end(), pauses };
}

describe("a text whose lines are read page by page", () => {
  it("has the lines that it has as a whole, wherever pages and pieces cut it", () => {
    const lines = Array.from(
      { length: 4_000 },
      (_, at) => `${"# ".repeat(at % 3)}é😀 line ${at}${at % 7 === 0 ? "\n" : ""}`,
    );
    for (const text of [lines.join("\n"), lines.join("\r\n"), "😀".repeat(SPLIT_PIECE_BYTES)]) {
      for (const looks of [false, true]) {
        const expected = whole(text, looks);
        for (const pageBytes of [SPLIT_PIECE_BYTES - 1, SPLIT_PIECE_BYTES + 1, 10_000_000])
          expect(paged(text, looks, pageBytes).lines).toEqual(expected);
      }
    }
  });

  it("is read in slices, by its lines and by its length", () => {
    const bytes = 32 * SPLIT_PIECE_BYTES;
    const long = paged("x".repeat(bytes), false, bytes);
    // Each piece counts for itself too.
    const perSlice = Math.ceil(SLICE_CHARS_MAX / (SPLIT_PIECE_BYTES + SLICE_PIECE_CHARS));
    expect(long.pauses).toBe(Math.floor(32 / perSlice));
    // A line of two bytes is half a piece's bytes times as many lines: each piece is a slice.
    const short = paged("a\n".repeat(bytes / 2), false, bytes);
    expect(short.pauses).toBe(32);
  });
});
