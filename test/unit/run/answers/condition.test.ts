/** Conditions on outputs: what each comparison says of a text, and how they combine. */
import { describe, expect, it } from "vitest";
import { holds, type Condition, type OutputTest } from "../../../../src/run/answers/condition.ts";
import { CONDITION_OUTPUT_CHARS_MAX } from "../../../../src/limits.ts";

function says(test: OutputTest, output: string | null): boolean {
  return holds({ task: 0, test }, { outputOf: () => output, isDeclined: () => false, slots: 1 });
}

const above: OutputTest = { kind: "json", key: "score", operator: ">", value: 0.5 };

describe("a comparison with an output", () => {
  it.each<[name: string, test: OutputTest, output: string | null, expected: boolean]>([
    ["a number above", above, '{"score": 0.6}', true],
    ["a number that is not above", above, '{"score": 0.5}', false],
    ["JSON in a fenced block", above, 'Here:\n```json\n{"score": 1}\n```', true],
    ["a missing value", above, '{"other": 1}', false],
    ["null", above, '{"score": null}', false],
    ["a text where a number is wanted", above, '{"score": "0.9"}', false],
    ["an output that is no JSON", above, "the score is 0.9", false],
    ["no output", above, null, false],
    ["null, which differs from nothing", { kind: "json", key: "x", operator: "!=", value: 1 }, '{"x": null}', false],
    ["any value", { kind: "json", key: "x", operator: "!=", value: null }, '{"x": false}', true],
    ["a missing one", { kind: "json", key: "x", operator: "!=", value: null }, "{}", false],
    ["a text in a list", { kind: "json", key: "tags.0", operator: "==", value: "bug" }, '{"tags": ["bug"]}', true],
    ["the whole text", { kind: "equals", text: "yes" }, " yes\n", true],
    ["a longer text", { kind: "equals", text: "yes" }, "yes, it is", false],
    ["another case", { kind: "equals", text: "yes" }, "Yes", false],
    ["a part", { kind: "contains", text: "urgent" }, "this is urgent!", true],
    ["no such part", { kind: "contains", text: "urgent" }, "this is not", false],
    ["a pattern", { kind: "matches", source: "^(?:bug|crash)$", flags: "i" }, "Crash", true],
    ["a pattern that matches nowhere", { kind: "matches", source: "^(?:bug|crash)$", flags: "" }, "Crash", false],
  ])("%s", (_, test, output, expected) => {
    expect(says(test, output)).toBe(expected);
  });

  it("reads a bounded part of a text, and JSON whole or not at all", () => {
    const filler = " ".repeat(CONDITION_OUTPUT_CHARS_MAX);
    expect(says({ kind: "contains", text: "end" }, `${filler.slice(3)}end`)).toBe(true);
    expect(says({ kind: "contains", text: "end" }, `${filler}end`)).toBe(false);
    expect(says(above, `${filler.slice(12)}{"score": 1}`)).toBe(true);
    expect(says(above, `${filler}{"score": 1}`)).toBe(false);
  });

  it("ends soon for a pattern that backtracks without end elsewhere, and is not met by what it has not seen", () => {
    expect(says({ kind: "matches", source: "^(?:a+)+$", flags: "" }, `${"a".repeat(40)}!`)).toBe(false);
  });
});

describe("comparisons together", () => {
  const equals = (task: number, text: string): Condition => ({ task, test: { kind: "equals", text } });
  const outputs: Readonly<Record<number, string>> = { 0: "a", 1: "b" };
  const met = (condition: Condition): boolean =>
    holds(condition, { outputOf: (task) => outputs[task] ?? null, isDeclined: (task) => task === 7, slots: 2 });

  it("hold all, or one of them", () => {
    expect(met({ all: [equals(0, "a"), equals(1, "b")] })).toBe(true);
    expect(met({ all: [equals(0, "a"), equals(1, "a")] })).toBe(false);
    expect(met({ any: [equals(0, "x"), equals(1, "b")] })).toBe(true);
    expect(met({ any: [equals(0, "x"), equals(2, "b")] })).toBe(false);
    expect(met({ any: [{ all: [equals(0, "a"), equals(1, "x")] }, equals(1, "b")] })).toBe(true);
  });

  it("hold for the else of a task that its own condition has skipped", () => {
    expect(met({ otherwise: 7 })).toBe(true);
    expect(met({ all: [{ otherwise: 7 }, equals(0, "x")] })).toBe(false);
    expect(met({ otherwise: 0 })).toBe(false);
  });
});
