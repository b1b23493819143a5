/** The bound of a text's tokens, compared with OpenAI's tokenizers: o200k, cl100k, and the oldest, GPT-2's. */
import { readFileSync } from "node:fs";
import * as fc from "fast-check";
import { Tiktoken } from "js-tiktoken/lite";
import cl100k from "js-tiktoken/ranks/cl100k_base";
import o200k from "js-tiktoken/ranks/o200k_base";
import r50k from "js-tiktoken/ranks/r50k_base";
import { describe, expect, test } from "vitest";
import { normalisedGrowth } from "../../../../src/text/tokens/normalised-bytes.ts";
import { countingJsonTokens, jsonTokensMax, textTokensMax } from "../../../../src/text/tokens/text-bound.ts";

const TOKENIZERS = Object.entries({ o200k, cl100k, r50k }).map(([name, ranks]) => ({
  name,
  tokenizer: new Tiktoken(ranks),
}));
const OPTICKS = readFileSync("examples/data/opticks.txt", "utf8");
const PROPERTY = { seed: 11, numRuns: 400 };

function expectCovered(text: string): void {
  for (const { name, tokenizer } of TOKENIZERS) {
    const tokens = tokenizer.encode(text, [], []).length;
    if (tokens > textTokensMax(text)) {
      expect.fail(`${name}: ${tokens} tokens, bound ${textTokensMax(text)}: ${JSON.stringify(text.slice(0, 300))}`);
    }
  }
}

const lower = fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz");
const separator = fc.constantFrom(
  " ",
  " ",
  " ",
  "  ",
  "\n",
  "\n\n",
  "\t",
  "-",
  "_",
  "(",
  '"',
  "'",
  ", ",
  ". ",
  "/",
  "1",
  " '",
  "’s ",
  "…",
  "”",
  "é",
);
const OPTICKS_WORDS = [...new Set(OPTICKS.match(/[A-Za-z]+/g))];
const word = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...OPTICKS_WORDS) },
  fc.constantFrom(...OPTICKS_WORDS).map((text) => text.toUpperCase()),
  fc.constantFrom("don't", "it's", "WE'LL", "naïve", "ſt", "K", "iPhone", "JSON", "camelCase", "snake_case"),
  fc.string({ unit: lower, minLength: 1, maxLength: 20 }),
);
const mixed = fc
  .array(fc.tuple(word, fc.constantFrom("", "", "s", "ed", "ing", "ly", "'s", "'re"), separator), {
    minLength: 1,
    maxLength: 40,
  })
  .map((parts) => parts.flat().join(""));

describe("textTokensMax", () => {
  test("English counts at most 0.37 tokens a byte, and never less than it is", () => {
    expect(textTokensMax(OPTICKS) / Buffer.byteLength(OPTICKS)).toBeLessThan(0.37);
    expectCovered(OPTICKS.slice(0, 100_000));
  });

  test("every cut of an English text is covered", () => {
    const cut = fc.tuple(fc.nat(OPTICKS.length - 1), fc.integer({ min: 1, max: 300 }));
    fc.assert(
      fc.property(cut, ([from, length]) => expectCovered(OPTICKS.slice(from, from + length))),
      PROPERTY,
    );
  });

  test("words in any order, with any ending and any sign between them, are covered", () => {
    fc.assert(fc.property(mixed, expectCovered), PROPERTY);
  });

  test.each([
    ["random letters", fc.string({ unit: lower, minLength: 1, maxLength: 200 })],
    [
      "random letters in words",
      fc.string({ unit: fc.oneof({ weight: 4, arbitrary: lower }, fc.constant(" ")), maxLength: 200 }),
    ],
    [
      "letters of both cases and apostrophes",
      fc.string({ unit: fc.constantFrom(..."aeinorstlcdhxqzAEINTSQ' "), maxLength: 120 }),
    ],
    ["ASCII", fc.string({ unit: "binary-ascii", maxLength: 200 })],
    ["any Unicode", fc.string({ unit: "binary", maxLength: 100 })],
    ["digits", fc.bigInt({ min: 0n, max: 10n ** 80n }).map(String)],
    ["base64", fc.base64String({ maxLength: 300 })],
    ["JSON", fc.json({ maxDepth: 4 })],
    ["white space", fc.string({ unit: fc.constantFrom(" ", "  ", "\n", "\r\n", "\t", "x", "the"), maxLength: 80 })],
    [
      "emoji and rare scripts",
      fc.string({
        unit: fc.constantFrom("😀", "👩‍👩‍👧‍👦", "中", "漢", "й", "ы", "ไ", "ა", "ᄀ", " ", "\u0301"),
        maxLength: 60,
      }),
    ],
  ])("%s are covered", (_, texts) => {
    fc.assert(fc.property(texts, expectCovered), PROPERTY);
  });

  test("dense text after sparse text counts what it counts alone", () => {
    const sparse = OPTICKS.slice(0, 20_000);
    const dense = [..."0123456789+/=#$%&@^~"].join("").repeat(500);
    expect(textTokensMax(`${sparse}\n${dense}`)).toBeGreaterThanOrEqual(textTokensMax(sparse) + dense.length);
  });

  test.each(["0123456789", "+/=", "🤖", "Ω", "中"])("%s counts one token a byte", (text) => {
    const many = text.repeat(1_000);
    expect(textTokensMax(many)).toBe(Buffer.byteLength(many));
  });

  test("no text is more tokens than bytes once it is normalised, nor less than none", () => {
    fc.assert(
      fc.property(fc.oneof(mixed, fc.string({ unit: "binary" })), (text) => {
        expect(textTokensMax(text)).toBeLessThanOrEqual(Buffer.byteLength(text) + normalisedGrowth(text));
        expect(textTokensMax(text)).toBeGreaterThan(text === "" ? -1 : 0);
      }),
      PROPERTY,
    );
  });

  test("a text longer than the buffer counts as its parts do, but for the words at their edges", () => {
    const whole = textTokensMax(OPTICKS);
    const parts = OPTICKS.match(/[^]{1,9000} (?=\S)/g) ?? [];
    const sum = parts.reduce((tokens, part) => tokens + textTokensMax(part), 0);
    expect(Math.abs(whole - sum) / whole).toBeLessThan(0.02);
  });
});

describe("a tokenizer that normalises first", () => {
  const marks = fc.constantFrom(..."\u0300\u0301\u0302\u0303\u0304\u0307\u0308\u0323\u0327\u031b");
  const compatible = fc.constantFrom(
    ..."\ufdfa\u2036\u3316\u00bd\ufb01\uff21\u2026\u210e\u01c4\u1e1d\u3000\u00a0\u{1d160}\u{1d4d0}",
  );
  const texts = fc
    .array(fc.tuple(fc.oneof(word, lower), fc.oneof(marks, compatible, separator, fc.constant(""))), { maxLength: 30 })
    .map((parts) => parts.flat().join(""));

  test.each(["NFC", "NFKC"] as const)("%s is covered", (form) => {
    fc.assert(
      fc.property(texts, (text) => {
        for (const { name, tokenizer } of TOKENIZERS) {
          for (const sent of [text, text.toLowerCase()]) {
            const tokens = tokenizer.encode(sent.normalize(form), [], []).length;
            expect(textTokensMax(text), name).toBeGreaterThanOrEqual(tokens);
            expect(jsonTokensMax(Buffer.from(text)), name).toBeGreaterThanOrEqual(tokens);
          }
        }
      }),
      PROPERTY,
    );
  });

  test("adds a token for each byte that its form has more", () => {
    expect(textTokensMax("\ufdfa".repeat(1_000))).toBe(33_000);
    expect(jsonTokensMax(Buffer.from(String.raw`\ufdfa`.repeat(1_000)))).toBe(33_000);
  });
});

describe("jsonTokensMax", () => {
  const bound = (value: unknown) => jsonTokensMax(Buffer.from(JSON.stringify(value)));

  test("covers the texts in JSON, whatever is escaped", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          mixed,
          fc.string({ unit: "binary" }),
          fc.string({ unit: fc.constantFrom("\n", '"', "\\", "n", "the", " ") }),
        ),
        (text) => {
          const messages = [{ role: "user", content: text }];
          expect(bound(messages)).toBeGreaterThanOrEqual(bound([{ role: "user", content: "" }]));
          for (const { tokenizer } of TOKENIZERS) {
            expect(bound(messages)).toBeGreaterThanOrEqual(tokenizer.encode(text, [], []).length);
            expect(bound(messages)).toBeGreaterThanOrEqual(tokenizer.encode(JSON.stringify(messages), [], []).length);
          }
        },
      ),
      PROPERTY,
    );
  });

  test("covers parts that an upstream glues together", () => {
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 30 }), (texts) => {
        const parts = texts.map((text) => ({ type: "text", text }));
        for (const { tokenizer } of TOKENIZERS) {
          expect(bound(parts)).toBeGreaterThanOrEqual(tokenizer.encode(texts.join(""), [], []).length);
        }
      }),
      PROPERTY,
    );
  });

  test("counts escapes with all their bytes and the words between them as words", () => {
    expect(bound("\n".repeat(1_000))).toBe(2_002);
    expect(bound("the light of the sun\n".repeat(1_000))).toBeLessThan(9_000);
  });

  test("a letter in digits is no end of the word before it, nor less than its escape", () => {
    const words = String.raw` information\u0073 information\\u0073 information\u00e9`;
    const plain = jsonTokensMax(Buffer.from(" information information information"));
    expect(jsonTokensMax(Buffer.from(words))).toBeGreaterThan(plain + 6 + 7 + 6);
    expect(jsonTokensMax(Buffer.from(String.raw`\ubead`.repeat(5_000)))).toBe(30_000);
    expect(jsonTokensMax(Buffer.from(String.raw`\\ubead`.repeat(5_000)))).toBe(35_000);
  });

  test("counts a part of the bytes alone", () => {
    const bytes = Buffer.from('{"a":"012345","b":"6789"}');
    expect(jsonTokensMax(bytes, 6, 12)).toBe(6);
  });

  test("is the same in slices, whatever else is counted in their pauses", () => {
    const words = String.raw`the light of informations\n\u0073 \\u0073 "é漢😀" 0123456789 `;
    const json = Buffer.from(JSON.stringify(words.repeat(4_000)));
    const whole = { from: 0, to: json.length, growth: 7 };
    for (const sliceBytes of [1, 30_000, 100_000, json.length]) {
      const count = countingJsonTokens(json, { ...whole, sliceBytes });
      let pauses = 0;
      let step = count.next();
      for (; step.done !== true; step = count.next()) {
        pauses += 1;
        textTokensMax("OTHER words, as many as fit ".repeat(700));
      }
      expect(step.value).toBe(jsonTokensMax(json, 0, json.length, 7));
      // What is looked at together has 16 KB.
      expect(pauses).toBeGreaterThanOrEqual(Math.floor(json.length / (sliceBytes + 16_384)) - 1);
      expect(pauses).toBeLessThanOrEqual(Math.ceil(json.length / 16_000));
    }
  });
});
