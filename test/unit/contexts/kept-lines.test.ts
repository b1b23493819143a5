/** Lines of texts that were cut before. */
import { describe, expect, it } from "vitest";
import { KeptLines } from "../../../src/contexts/kept-lines.ts";
import type { Split } from "../../../src/contexts/types.ts";
import {
  TEXT_LINES_BYTES_MAX,
  TEXT_LINES_BYTES_MIN,
  TEXT_READER_GONE_MS,
  TEXT_READERS_MAX,
} from "../../../src/limits.ts";

const split: Split = { by: "lines", size: 100, overlap: 10 };
const lines = { packed: new Uint8Array(TEXT_LINES_BYTES_MAX / 4), chars: 1 };

describe("kept lines", () => {
  it("are those of a text for all sizes, and of nothing else", () => {
    const kept = new KeptLines();
    kept.keep("ctx_a", split, lines);
    expect(kept.of("ctx_a", { ...split, size: 5, overlap: 0 })).toBe(lines);
    expect(kept.of("ctx_a", { ...split, by: "paragraphs" })).toBeNull();
    expect(kept.of("ctx_b", split)).toBeNull();
    const looked = { ...lines, chars: 2 };
    kept.keep("ctx_a", { ...split, by: "paragraphs" }, looked);
    expect(kept.of("ctx_a", { ...split, by: "markdown" })).toBe(looked);
    expect(kept.of("ctx_a", split)).toBe(lines);
  });

  it("are bounded by their bytes: those that were not used for the longest time go", () => {
    const kept = new KeptLines();
    for (const id of ["a", "b", "c", "d"]) kept.keep(id, split, lines);
    expect(kept.of("a", split)).toBe(lines);
    // What is kept again counts once.
    kept.keep("d", split, lines);
    kept.keep("e", split, lines);
    expect(["a", "b", "c", "d", "e"].filter((id) => kept.of(id, split) === null)).toEqual(["b"]);
  });

  it("of texts of a few lines are bounded by their number", () => {
    const kept = new KeptLines();
    const most = TEXT_LINES_BYTES_MAX / TEXT_LINES_BYTES_MIN;
    for (let text = 0; text <= most; text++) kept.keep(`ctx_${text}`, split, { packed: new Uint8Array(1), chars: 1 });
    expect(kept.of("ctx_0", split)).toBeNull();
    expect(kept.of("ctx_1", split)).not.toBeNull();
  });

  it("are noted for a bounded number of readers: those that never end go", () => {
    const kept = new KeptLines();
    for (let text = 0; text <= TEXT_READERS_MAX; text++) kept.beginReading(`ctx_${text}`, split, 1_000);
    expect(kept.beginReading(`ctx_${TEXT_READERS_MAX}`, split, 1_000)).toBe(false);
    expect(kept.beginReading("ctx_0", split, 1_000)).toBe(true);
  });

  it("are found by one reader, until it ends or gives no sign of life", () => {
    const kept = new KeptLines();
    expect(kept.beginReading("ctx_a", split, 1_000)).toBe(true);
    expect(kept.beginReading("ctx_a", { ...split, size: 7 }, 1_000)).toBe(false);
    expect(kept.beginReading("ctx_b", split, 1_000)).toBe(true);
    kept.goOnReading("ctx_a", split, 1_500);
    expect(kept.beginReading("ctx_a", split, 1_000 + TEXT_READER_GONE_MS)).toBe(false);
    expect(kept.beginReading("ctx_a", split, 1_500 + TEXT_READER_GONE_MS)).toBe(true);
    kept.endReading("ctx_a", split);
    expect(kept.beginReading("ctx_a", split, 1_500 + TEXT_READER_GONE_MS)).toBe(true);
  });
});
