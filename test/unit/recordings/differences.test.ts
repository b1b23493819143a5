/** Differences between two requests, as an error shows them. */
import { describe, expect, it } from "vitest";
import { differenceLines, differences, distance } from "../../../src/recordings/differences.ts";
import { DIFFERENCES_SHOWN_MAX } from "../../../src/limits.ts";

const lines = (recorded: unknown, requested: unknown): string[] => differenceLines(differences(recorded, requested));

describe("differences", () => {
  it("of equal values are none, whatever the order of names", () => {
    expect(lines({ a: 1, b: [{ c: "x" }] }, { b: [{ c: "x" }], a: 1 })).toEqual([]);
  });

  it("name the place, the words that differ, and a little of what surrounds them", () => {
    const text = (word: string): object => ({ messages: [{ content: `${"so ".repeat(50)}${word} it ends` }] });
    expect(lines(text("there"), text("here"))).toEqual([
      'messages[0].content: recorded "…o so so so so so so there it ends", requested "…o so so so so so so here it ends"',
    ]);
  });

  it("show whole words", () => {
    expect(lines("in 1999", "in 1989")).toEqual([': recorded "in 1999", requested "in 1989"']);
  });

  it("show where one of the two has nothing, and values of other types", () => {
    expect(lines({ a: "x" }, { b: [1] })).toEqual([
      'a: recorded "x", requested nothing',
      'b: recorded nothing, requested "[1]"',
    ]);
    expect(lines({ a: null }, { a: { b: 1 } })).toEqual(['a: recorded "null", requested "{\\"b\\":1}"']);
  });

  it("beyond a handful are counted", () => {
    const many = (value: number, count: number): number[] => Array.from({ length: count }, () => value);
    expect(lines(many(1, DIFFERENCES_SHOWN_MAX), many(2, DIFFERENCES_SHOWN_MAX))).toHaveLength(DIFFERENCES_SHOWN_MAX);
    const more = lines(many(1, DIFFERENCES_SHOWN_MAX + 2), many(2, DIFFERENCES_SHOWN_MAX + 2));
    expect([more.length, more.at(-1)]).toEqual([DIFFERENCES_SHOWN_MAX + 1, "and 2 more"]);
  });

  it("of long texts and names stay short", () => {
    const [line = ""] = lines({ ["n".repeat(5_000)]: "a".repeat(10_000) }, { ["n".repeat(5_000)]: "b".repeat(10_000) });
    expect(line.length).toBeLessThan(400);
  });

  it("see names that objects inherit as any others", () => {
    const proto = JSON.parse('{"__proto__":"x"}');
    expect(lines(proto, {})).toEqual(['__proto__: recorded "x", requested nothing']);
    expect(lines({}, { constructor: "x" })).toEqual(['constructor: recorded nothing, requested "x"']);
  });

  it("measure how far two values are apart by what differs", () => {
    const far = (a: unknown, b: unknown): number => distance(differences(a, b));
    const base = `${"word ".repeat(100)}end`;
    expect(far(base, base)).toBe(0);
    expect(far(base, `${base} more`)).toBeLessThan(far(base, "another text"));
  });
});
