/** The lines of a text, packed. */
import { describe, expect, it } from "vitest";
import { LineCursor, LineWriter } from "../../../src/contexts/lines.ts";
import { LineReader } from "../../../src/contexts/line-reader.ts";
import { CONTEXT_BYTES_MAX, TEXT_LINES_BYTES_MAX } from "../../../src/limits.ts";

describe("packed lines", () => {
  it("have their levels and lengths, of one character as of a whole context", () => {
    const lines = [1, 31, 32, 4_095, 4_096, 524_287, 524_288, CONTEXT_BYTES_MAX, 5].map((chars, at) => ({
      level: 1 + (at % 3),
      chars,
    }));
    const writer = new LineWriter();
    for (const { level, chars } of lines) expect(writer.add(level, chars)).toBe(true);
    const packed = writer.lines();
    const read: { level: number; chars: number }[] = [];
    const cursor = new LineCursor(packed);
    while (cursor.at !== null) {
      const { at, level } = cursor;
      cursor.next();
      read.push({ level, chars: (cursor.at ?? packed.chars) - at });
    }
    expect(read).toEqual(lines);
  });

  it("take a byte for a short line, and are none of an empty text", () => {
    const reader = new LineReader(false);
    reader.push("ab\n".repeat(10_000));
    expect(reader.end()?.packed.length).toBe(10_000);
    const none = new LineReader(false).end();
    expect(none).toEqual({ packed: new Uint8Array(), chars: 0 });
    expect(none === null ? 0 : new LineCursor(none).at).toBeNull();
  });

  it("end at their bound", () => {
    const writer = new LineWriter();
    let added = 0;
    while (writer.add(1, 1)) added += 1;
    expect(added).toBeGreaterThan(TEXT_LINES_BYTES_MAX - 5);
    expect(added).toBeLessThanOrEqual(TEXT_LINES_BYTES_MAX);
    expect(writer.add(1, 1)).toBe(false);
  });
});
