/** Clients' regular expressions: the same verdicts as the runtime's engine, without its backtracking. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PATTERN_CHARS_MAX, PATTERN_STATES_MAX, PATTERN_STEPS_MAX } from "../../../../src/limits.ts";
import { compilePattern } from "../../../../src/text/pattern/pattern.ts";

function patternOf(source: string, flags?: string) {
  const compiled = compilePattern(source, flags);
  if (!compiled.ok) throw new Error(compiled.message);
  return compiled.pattern;
}

const messageOf = (source: string) => {
  const compiled = compilePattern(source);
  return compiled.ok ? null : compiled.message;
};

/** Expressions over a small alphabet, so that they often match. */
const atom = fc.constantFrom(
  "a",
  "b",
  "c",
  ".",
  "\\d",
  "\\w",
  "\\s",
  "[ab]",
  "[^a]",
  "[a\\]c-]",
  "\\b",
  "\\B",
  "^",
  "$",
);
const expression = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    atom,
    fc.tuple(tie("node"), tie("node")).map(([a, b]) => `${a}${b}`),
    fc.tuple(tie("node"), tie("node")).map(([a, b]) => `(?:${a}|${b})`),
    fc
      .tuple(tie("node"), fc.constantFrom("*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "{0}"))
      .map(([a, quantifier]) => `(${a})${quantifier}`),
  ),
})).node;

describe("a client's pattern", () => {
  it("matches the texts that the runtime's engine matches", () => {
    const texts = fc.string({ unit: fc.constantFrom("a", "b", "c", "1", " ", "\n", "]", "-", "é"), maxLength: 8 });
    fc.assert(
      fc.property(expression, texts, (source, text) => {
        expect(patternOf(source).test(text)).toBe(new RegExp(source, "u").test(text));
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ["^\\p{Lu}\\w+$", "Éé", false],
    ["^\\p{Lu}\\p{L}+$", "Émile", true],
    ["\\u{1F600}", "so 😀", true],
    ["^\\uD83D\\uDE00$", "😀", true],
    ["^.$", "😀", true],
    ["\\x41\\u0042\\cJ", "AB\n", true],
    ["(?<year>\\d{4})-\\d\\d", "on 2026-11-22", true],
    ["[\\]x]\\]", "x]", true],
    ["a{2}b{0,1}$", "aab", true],
    ["^(?:)*$", "", true],
    ["\\/\\.\\*", "/.*", true],
  ])("reads %s as the runtime does, on %j", (source, text, expected) => {
    expect(new RegExp(source, "u").test(text)).toBe(expected);
    expect(patternOf(source).test(text)).toBe(expected);
  });

  it("heeds its flags", () => {
    expect([patternOf("yes").test("YES"), patternOf("yes", "i").test("YES")]).toEqual([false, true]);
    expect([patternOf("^a.b").test("a\nb"), patternOf("^a.b", "s").test("a\nb")]).toEqual([false, true]);
  });

  it.each(["(a+)+$", "^(a|a)*$", "(.*.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$", "(a?){30}a{30}$"])(
    "that makes a backtracking engine hang, %s, takes steps in proportion to the text",
    (source) => {
      expect(patternOf(source).test(`${"a".repeat(20_000)}!`)).toBe(false);
    },
  );

  it("has no verdict once a match takes too many steps", { tags: ["slow"] }, () => {
    const wide = patternOf(`(?:${"a?".repeat(400)}){2}b`);
    expect(wide.test("a".repeat(100))).toBe(false);
    expect(wide.test("a".repeat(PATTERN_STEPS_MAX / 1_000))).toBe(null);
  });

  it.each([
    ["(?=a)b", "look-around"],
    ["(?!a)b", "look-around"],
    ["(?<=a)b", "look-around"],
    ["(?<!a)b", "look-around"],
    ["(a)\\1", "back-reference"],
    ["(?<x>a)\\k<x>", "back-reference"],
    ["(", "Invalid regular expression"],
    ["a**", "Invalid regular expression"],
    ["a{9999999}", "states"],
    ["((a{99}){99}){99}", "states"],
  ])("is refused with a reason if it has no bounded match: %s", (source, reason) => {
    expect(messageOf(source)).toContain(reason);
  });

  it("has a bounded length and a bounded number of states", () => {
    expect(messageOf("a".repeat(PATTERN_CHARS_MAX))).toBeNull();
    expect(messageOf("a".repeat(PATTERN_CHARS_MAX + 1))).toContain(`${PATTERN_CHARS_MAX}`);
    expect(messageOf(`a{${PATTERN_STATES_MAX / 2}}`)).toBeNull();
    expect(messageOf(`a{${PATTERN_STATES_MAX / 2 + 1}}`)).toContain("states");
  });
});
