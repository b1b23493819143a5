/** A text that is searched in others: where it is found, when JSON need not be parsed, and what is shown of the place. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Needle } from "../../../src/text/needle.ts";

describe("a needle", () => {
  it("is found in any case, and not where it is not", () => {
    expect([new Needle("HeRoN").isIn("two herons"), new Needle("heron").isIn("two swans")]).toEqual([true, false]);
  });

  it("never says that JSON cannot have it when a text inside has it, however the JSON writes that text", () => {
    const escaped = (text: string): string =>
      [...text].map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 4 }), fc.string(), fc.string(), (text, before, behind) => {
        const whole = `${before}${text}${behind}`;
        const needle = new Needle(text.toUpperCase());
        if (!needle.isIn(whole)) return;
        expect(needle.mayBeIn(JSON.stringify({ whole }))).toBe(true);
        // A request inside of which a request is a text.
        expect(needle.mayBeIn(JSON.stringify({ raw: JSON.stringify({ whole }) }))).toBe(true);
        if (/^[ -~]+$/.test(text)) expect(needle.mayBeIn(`{"whole":"${escaped(text)}"}`)).toBe(true);
      }),
    );
  });

  it("passes over JSON that does not have it", () => {
    expect(new Needle("heron").mayBeIn('{"prompt":"two swans"}')).toBe(false);
  });

  it("is shown with what surrounds it, on one line, cut where the text goes on", () => {
    expect(new Needle("heron").excerptOf("A\n  grey heron.")).toBe("A grey heron.");
    expect(new Needle("swan").excerptOf("A grey heron.")).toBeNull();
    const long = `${"a".repeat(100)} heron ${"b".repeat(200)}`;
    const excerpt = new Needle("heron").excerptOf(long) ?? "";
    expect(excerpt).toMatch(/^… a+ heron b+ …$/);
    expect(excerpt.length).toBeLessThan(140);
  });

  it("cuts no character in two", () => {
    const excerpt = new Needle("heron").excerptOf(`${"😀".repeat(40)} heron ${"😀".repeat(90)}`) ?? "";
    expect(excerpt.isWellFormed()).toBe(true);
  });
});
