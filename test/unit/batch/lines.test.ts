import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LineSplitter, type Line } from "../../../src/batch/lines.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

type Seen = { number: number; start: number; text: string | null };

function shown({ number, start, bytes }: Line): Seen {
  return { number, start, text: bytes === null ? null : decoder.decode(bytes) };
}

/** Lines of a text that arrives in pieces; each piece is overwritten once it was pushed, as a reused buffer is. */
function split(bytes: Uint8Array, { pieces = [], max = 1_000 }: { pieces?: readonly number[]; max?: number } = {}) {
  const splitter = new LineSplitter(max);
  const lines: Seen[] = [];
  let from = 0;
  for (const size of [...pieces, bytes.length]) {
    const chunk = bytes.slice(from, from + size);
    lines.push(...splitter.push(chunk).map(shown));
    chunk.fill(0x0a);
    from += size;
  }
  const last = splitter.finish();
  return last === null ? lines : [...lines, shown(last)];
}

const texts = (text: string, max?: number) =>
  split(encoder.encode(text), max === undefined ? {} : { max }).map((line) => line.text);

describe("splitting a file into lines", () => {
  it("ends a line at \\n and drops one \\r before it", () => {
    expect(texts("a\nb\r\nc\r\r\nd")).toEqual(["a", "b", "c\r", "d"]);
  });

  it("reads the last line with and without a line feed", () => {
    expect(texts("a\nb")).toEqual(["a", "b"]);
    expect(texts("a\nb\n")).toEqual(["a", "b"]);
    expect(texts("a\nb\r")).toEqual(["a", "b"]);
  });

  it("does not end a line at other line separators of Unicode", () => {
    const line = "a\u2028b\u2029c\u0085d\ve\ff\rg\u001ch\u001di\u001ej";
    expect(texts(`${line}\nz`)).toEqual([line, "z"]);
  });

  it("skips blank lines and counts them", () => {
    expect(split(encoder.encode("\n\r\n  \t\na\n\nb\n\n"))).toEqual([
      { number: 4, start: 7, text: "a" },
      { number: 6, start: 10, text: "b" },
    ]);
  });

  it("finds no line in a blank file", () => {
    for (const text of ["", "\n", "\r\n\r\n", "\ufeff", "\ufeff\n", "   "]) expect(texts(text)).toEqual([]);
  });

  it("strips a byte order mark at the file's start and nowhere else", () => {
    expect(split(encoder.encode("\ufeffa\n\ufeffb"))).toEqual([
      { number: 1, start: 3, text: "a" },
      { number: 2, start: 5, text: "\ufeffb" },
    ]);
  });

  it("reports where a line ends, without its carriage return", () => {
    const [line] = new LineSplitter(10).push(encoder.encode("\ufeffabc\r\n"));
    expect(line).toMatchObject({ start: 3, end: 6 });
  });

  it("keeps a line of the longest length, and drops a longer one", () => {
    expect(texts("12345\n67890\r\nabcdef\nghijkl\r\nxyz", 5)).toEqual(["12345", "67890", null, null, "xyz"]);
    expect(texts("\ufeff12345\r\nz", 5)).toEqual(["12345", "z"]);
    expect(texts("\ufeff123456\r\nz", 5)).toEqual([null, "z"]);
  });

  it("mixes nothing of a line that turns out to be too long into the next line", () => {
    const bytes = encoder.encode(`${"x".repeat(20)}\nbc\n`);
    expect(split(bytes, { pieces: [6, 16, 1], max: 10 })).toEqual([
      { number: 1, start: 0, text: null },
      { number: 2, start: 21, text: "bc" },
    ]);
  });

  it("reports number and range of the lines after one that was too long, for all chunk borders", () => {
    const bytes = encoder.encode(`a\n${"x".repeat(5_000)}\nb\n`);
    for (const size of [1, 7, 64, 5_004]) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, () => size);
      expect(split(bytes, { pieces, max: 10 })).toEqual([
        { number: 1, start: 0, text: "a" },
        { number: 2, start: 2, text: null },
        { number: 3, start: 5_003, text: "b" },
      ]);
    }
  });
});

const ALPHABET = ["a", "é", "𝄞", "\n", "\r\n", "\r", " ", "\u2028", "\ufeff", '"'];
const files = fc.array(fc.constantFrom(...ALPHABET), { maxLength: 60 }).map((parts) => encoder.encode(parts.join("")));
const cuts = fc.array(fc.nat({ max: 7 }), { maxLength: 100 });

describe("for all chunk borders", () => {
  it("lines are the same", () => {
    fc.assert(
      fc.property(files, cuts, fc.integer({ min: 1, max: 20 }), (bytes, pieces, max) => {
        expect(split(bytes, { pieces, max })).toEqual(split(bytes, { max }));
      }),
    );
  });

  it("lines are those of a split at line feeds, with the bytes of their range", () => {
    fc.assert(
      fc.property(files, cuts, (bytes, pieces) => {
        const expected = decoder
          .decode(bytes)
          .split("\n")
          .map((text, index) => (index === 0 ? text.replace(/^\ufeff/, "") : text).replace(/\r$/, ""))
          .flatMap((text, index) => (/^[ \t\r]*$/.test(text) ? [] : [{ number: index + 1, text }]));
        const lines = split(bytes, { pieces });
        expect(lines.map(({ number, text }) => ({ number, text }))).toEqual(expected);
        for (const { start, text } of lines) {
          const length = encoder.encode(text ?? "").length;
          expect(decoder.decode(bytes.subarray(start, start + length))).toBe(text);
        }
      }),
    );
  });

  it("a ranged read can resume at any line", () => {
    fc.assert(
      fc.property(files, fc.nat(), (bytes, pick) => {
        const lines = split(bytes);
        if (lines.length === 0) return;
        const at = pick % lines.length;
        const { number = 0, start = 0 } = lines[at] ?? {};
        const splitter = new LineSplitter(1_000, { number, start });
        const again = splitter.push(bytes.subarray(start));
        const last = splitter.finish();
        expect([...again, ...(last === null ? [] : [last])].map(shown)).toEqual(lines.slice(at));
      }),
    );
  });
});
