import { describe, expect, it } from "vitest";
import { printable } from "../../../cli/text/printable.ts";
import { cut, widthOf } from "../../../cli/watch/text.ts";
import { durationText } from "../../../cli/watch/units.ts";

describe("printable", () => {
  it("removes escape sequences whole", () => {
    expect(printable("a\u001b[31mred\u001b[0m\u001b]0;title\u0007b")).toBe("aredb");
  });

  it.each([
    ["a lone escape", "a\u001bb"],
    ["8-bit control sequences", "a\u009b\u009db"],
    ["a bell and a backspace", "a\u0007\u0008b"],
    ["a direction override", "a\u202eb"],
    ["a zero-width space", "a\u200bb"],
    ["a lone surrogate", "a\ud800b"],
    ["a variation selector", "a\ufe0fb"],
  ])("removes %s", (_, text) => {
    expect(printable(text)).not.toMatch(/[\p{C}\ufe0f]/u);
  });

  it("keeps no control character of any code point below U+0100", () => {
    const all = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).join("");
    expect(printable(all)).not.toMatch(/\p{Cc}/u);
    expect(printable(all)).toContain("ABC");
  });

  it("leaves no sequence that a removed one has held apart", () => {
    expect(printable("\u001b\u001b[31m[32mx")).not.toContain("\u001b");
  });

  it("makes one line of many", () => {
    expect(printable(" one\r\n\ttwo\u2028three ")).toBe("one two three");
  });

  it("keeps letters of any script", () => {
    expect(printable("modèle/模型-é")).toBe("modèle/模型-é");
  });

  it("stops after 500 characters", () => {
    expect(printable("x".repeat(500))).toHaveLength(500);
    expect(printable("x".repeat(501))).toHaveLength(500);
  });
});

describe("cut", () => {
  it("leaves a text alone that just fits", () => {
    expect(cut("12345", 5)).toBe("12345");
  });

  it("ends a longer one with an ellipsis in the last column", () => {
    expect(cut("123456", 5)).toBe("1234…");
  });

  it("counts wide characters as two columns, and marks as none", () => {
    expect(widthOf("⚡模é")).toBe(5);
    expect(widthOf("e\u0301")).toBe(1);
    // A vowel sign beside its letter; Kana of the supplementary plane; a hexagram's trigram.
    expect(widthOf("का")).toBe(2);
    expect(widthOf("\u{1b002}\u{1b170}\u2630")).toBe(6);
    expect(cut("模模模", 5)).toBe("模模…");
    expect(cut("模模模", 4)).toBe("模…");
  });

  it("gives nothing where there is no room", () => {
    expect(cut("abc", 1)).toBe("…");
    expect(cut("abc", 0)).toBe("");
  });
});

describe("units", () => {
  it.each([
    [1_230, "1.23s"],
    [59_990, "59.99s"],
    [59_999, "1m00s"],
    [65_000, "1m05s"],
    [3_599_400, "59m59s"],
    [7_380_000, "2h03m"],
    [-5, "0.00s"],
  ])("shows %d ms as %s", (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });
});
