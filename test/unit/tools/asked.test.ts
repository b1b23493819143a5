/** Calls of tools as models write them, and results as models read them. */
import { describe, expect, it } from "vitest";
import { cutResult, readArguments } from "../../../src/tools/asked.ts";

describe("the arguments of a call", () => {
  it.each([
    ['{"a":1}', { a: 1 }],
    ["", {}],
    [" \n", {}],
    ["[1]", null],
    ["7", null],
    ["no JSON", null],
    [`{"a":${"[".repeat(200)}${"]".repeat(200)}}`, null],
  ])("%s are read as an object, or not at all", (written, input) => {
    expect(readArguments(written)).toEqual(input);
  });
});

describe("a result", () => {
  const bytesOf = (text: string): number => new TextEncoder().encode(JSON.stringify(text)).length;

  it.each(["a".repeat(5_000), 'é\u0001"'.repeat(2_000), "😀".repeat(3_000), "\\".repeat(9_000)])(
    "is cut to its bytes as JSON, and says so (%#)",
    (text) => {
      const cut = cutResult(text, 1_000);
      expect(bytesOf(cut)).toBeLessThanOrEqual(1_000);
      expect(bytesOf(cut)).toBeGreaterThan(900);
      expect(cut).toMatch(/ … \[cut: the result is too long\]$/);
      expect(cut.isWellFormed()).toBe(true);
    },
  );

  it("is left as it is up to its bytes, but for halves of characters", () => {
    expect(cutResult("x".repeat(998), 1_000)).toBe("x".repeat(998));
    expect(cutResult("\ud800", 1_000)).toBe("\ufffd");
  });

  it("is shorter than the note only where there is room for nothing", () => {
    expect(cutResult("x".repeat(100), 10)).toMatch(/^ … \[cut/);
  });
});
