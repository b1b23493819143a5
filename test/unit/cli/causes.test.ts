import { describe, expect, it } from "vitest";
import { Causes } from "../../../cli/batch/causes.ts";

function report(failures: readonly (readonly [name: string, message: string])[]): string[] {
  const causes = new Causes();
  for (const [name, message] of failures) causes.add(name, message);
  return causes.report((name: string) => (name === "" ? "" : `Line ${name}`));
}

const times = (count: number, message: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => [String(index + 1), message(index)] as const);

describe("Causes", () => {
  it("reports a cause that many lines share once, with their number and the first of them", () => {
    expect(report(times(100, () => "no such model"))).toEqual(["100 lines (1, 2, 3, …): no such model"]);
    expect(report(times(2, () => "no such model"))).toEqual(["2 lines (1, 2): no such model"]);
    expect(report(times(1, () => "no such model"))).toEqual(["Line 1: no such model"]);
    expect(report([])).toEqual([]);
  });

  it("takes messages that differ in figures alone for one cause, and shows the first", () => {
    expect(report(times(40, (index) => `needs $0.${100 + index}, $0.05 remain`))).toEqual([
      "40 lines (1, 2, 3, …): needs $0.100, $0.05 remain",
    ]);
  });

  it("reports the most frequent causes first, five at most, and counts the rest", () => {
    const letters = ["a", "b", "c", "d", "e", "f", "g"];
    const failures = letters.flatMap((letter, index) => times(index + 1, () => letter));
    expect(report(failures)).toEqual([
      "7 lines (1, 2, 3, …): g",
      "6 lines (1, 2, 3, …): f",
      "5 lines (1, 2, 3, …): e",
      "4 lines (1, 2, 3, …): d",
      "3 lines (1, 2, 3): c",
      "3 more lines, for other reasons",
    ]);
  });

  it("counts every line where each fails for a reason of its own", () => {
    const word = (index: number) => index.toString(2).replaceAll("0", "a").replaceAll("1", "b");
    const lines = report(times(50_000, word));
    expect(lines).toHaveLength(6);
    expect(lines.at(-1)).toBe("49,995 more lines, for other reasons");
  });

  it("names no line where the fault belongs to none, and writes no control characters", () => {
    expect(report([["", "the file is empty \u001b[31m"]])).toEqual(["the file is empty"]);
  });
});
