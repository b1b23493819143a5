/** Bytes that normalising adds, compared with `String.prototype.normalize` over all of Unicode. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonNormalisedGrowth, normalisedGrowth } from "../../../../src/text/tokens/normalised-bytes.ts";

const CODE_POINTS = [...codePoints()];
const PROPERTY = { seed: 12, numRuns: 3_000 };

function* codePoints(): Generator<string> {
  for (let code = 0; code < 0x110000; code++) {
    if (code < 0xd800 || code > 0xdfff) yield String.fromCodePoint(code);
  }
}

const bytesOf = (text: string): number => Buffer.byteLength(text);
const countOf = (text: string): number => bytesOf(text) + normalisedGrowth(text);
const jsonGrowth = (json: string): number => jsonNormalisedGrowth(Buffer.from(json));

/** Most that a tokenizer can make of a text: bytes after NFC or NFKC in either case, characters after NFD or NFKD. */
function mostOf(text: string): number {
  const folded = text.toLowerCase();
  const byBytes = [text, folded].flatMap((form) => [form, form.normalize("NFC"), form.normalize("NFKC")]);
  const composed = [text.normalize("NFC"), text.normalize("NFKC")].map((form) => form.toLowerCase());
  const decomposed = [text.normalize("NFD"), text.normalize("NFKD")].map((form) => [...form].length);
  return Math.max(...[...byBytes, ...composed].map(bytesOf), ...decomposed);
}

/** First places where a text counts too little, for a message that names them. */
function short(texts: Iterable<string>): string[] {
  const found: string[] = [];
  for (const text of texts) {
    if (found.length < 5 && countOf(text) < mostOf(text)) found.push(escaped(text));
  }
  return found;
}

function escaped(text: string): string {
  return [...text].map((char) => `U+${(char.codePointAt(0) ?? 0).toString(16)}`).join(" ");
}

/** Code points that their neighbours may change. */
const DECOMPOSED = CODE_POINTS.filter((char) => char.normalize("NFKD") !== char && !/[가-힣]/u.test(char));
const COMPOSING = new Set(
  CODE_POINTS.filter((char) => {
    const parts = char.normalize("NFD");
    return parts !== char && parts.normalize("NFC") === char && !/[가-힣]/u.test(char);
  }).flatMap((char) => [...char.normalize("NFD")].slice(1)),
);
/** Marks that sort before most others and take the base of those. */
const TAKING = [..."\u031b\u0323\u0324\u0325\u0326\u0327\u0328\u032d\u032e\u0330\u0331"];

describe("normalisedGrowth", () => {
  test.each([
    ["U+2036 is sent in 3 bytes and becomes 9 or 6", "\u2036", 3],
    ["U+FDFA becomes 33", "\ufdfa", 30],
    ["U+1D160 becomes 12 by NFC alone", "\u{1d160}", 8],
    ["U+0130 becomes 3 in lower case", "\u0130", 1],
  ])("%s", (_, text, growth) => {
    expect(normalisedGrowth(text)).toBe(growth);
  });

  test("no single code point of Unicode counts less than a form of it", { tags: ["slow"] }, () => {
    expect(short(CODE_POINTS)).toEqual([]);
  });

  test("none counts more than its largest form, but for marks that take another's base", { tags: ["slow"] }, () => {
    const wide = CODE_POINTS.filter((char) => !TAKING.includes(char) && countOf(char) > mostOf(char));
    expect(wide.map(escaped)).toEqual([]);
  });

  test("ASCII, Latin letters, Greek, Cyrillic, Hebrew, Arabic, kana, Hangul and CJK ideographs add nothing", () => {
    const plain =
      "~aZ \u00e9\u00fc\u00df\u00d8\u0151\u0219\u1ea5\u03b1\u03ac\u0439\u044f\u05d0\u0634\u0e01\u304c\u30d1\u6f22\u{20000}\ud55c\u{1f600}";
    for (const char of plain) expect(normalisedGrowth(char), escaped(char)).toBe(0);
    expect(normalisedGrowth(CODE_POINTS.filter((char) => /[가-힣\p{Unified_Ideograph}]/u.test(char)).join(""))).toBe(0);
  });

  test("composing never adds bytes", () => {
    const grown = CODE_POINTS.filter((char) => {
      const parts = char.normalize("NFD");
      return parts.normalize("NFC") === char && bytesOf(char) > bytesOf(parts);
    });
    expect(grown.map(escaped)).toEqual([]);
  });

  test("no code point and mark after it count less than a form of the two", () => {
    const pairs = DECOMPOSED.flatMap((char) => TAKING.map((mark) => char + mark));
    expect(short(pairs)).toEqual([]);
    expect(normalisedGrowth("\u01d6\u0323")).toBeGreaterThan(normalisedGrowth("\u01d6"));
  });

  test("no run of code points that normalising changes counts less than a form of it", () => {
    const unit = fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...DECOMPOSED) },
      { weight: 3, arbitrary: fc.constantFrom(...COMPOSING) },
      { weight: 2, arbitrary: fc.constantFrom(...TAKING) },
      fc.constantFrom(..."aeiouAEIOUsdhtnμαυιω<>=\u01d6\u1e1d\u1fb7"),
      // Hangul, as jamo and composed.
      fc.integer({ min: 0x1100, max: 0x11ff }).map((code) => String.fromCodePoint(code)),
      fc.integer({ min: 0xac00, max: 0xd7a3 }).map((code) => String.fromCodePoint(code)),
      fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    );
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 12 }), (text) => {
        expect(short([text])).toEqual([]);
      }),
      PROPERTY,
    );
  });
});

function escapeOf(char: string): string {
  let escape = "";
  for (let at = 0; at < char.length; at++) escape += `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`;
  return escape;
}

describe("jsonNormalisedGrowth", () => {
  test("is that of the text where nothing is escaped", () => {
    for (let at = 0; at < CODE_POINTS.length; at += 4_096) {
      const text = CODE_POINTS.slice(at, at + 4_096)
        .join("")
        .replaceAll("\\", "");
      expect(jsonGrowth(text), escaped(text.slice(0, 1))).toBe(normalisedGrowth(text));
    }
  });

  test("an escape counts its own bytes and what its character has beyond them", () => {
    const wrong = CODE_POINTS.filter((char) => {
      const escape = escapeOf(char);
      return escape.length + jsonGrowth(escape) !== Math.max(escape.length, countOf(char));
    });
    expect(wrong.map(escaped)).toEqual([]);
  });

  test.each([
    ["capital digits", String.raw`\uFDFA`, 27],
    ["JSON in a text of JSON", String.raw`\\\uFDFA \\uFDFA`, 54],
    ["a text that only looks like an escape", String.raw`uFDFA \uFDG \u`, 0],
    ["an escape that ends too soon", String.raw`\uFD`, 0],
  ])("%s", (_, json, growth) => {
    expect(jsonGrowth(json)).toBe(growth);
  });

  test("counts a part of the bytes alone", () => {
    const bytes = Buffer.from("\ufdfaa\ufdfa");
    expect(jsonNormalisedGrowth(bytes, 3)).toBe(30);
    expect(jsonNormalisedGrowth(bytes, 0, 4)).toBe(30);
  });
});
