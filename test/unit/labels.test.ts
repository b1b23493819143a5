/** The labels of a call: which of its facts they are, what is read of a line that anybody may have written, and how people see them. */
import { describe, expect, it } from "vitest";
import { isLabelled, labelsIn, labelsOf, labelTexts, type CallLabels } from "../../src/labels.ts";
import { makeFacts } from "../support/engine.ts";

const CASES: [facts: CallLabels, labels: CallLabels | undefined, texts: string[]][] = [
  [{}, undefined, []],
  [{ step: 3 }, { step: 3 }, ["step 3"]],
  [{ step: 3, steps: 20 }, { step: 3, steps: 20 }, ["step 3/20"]],
  // It says how many steps there are, not at which one the call is.
  [{ steps: 20 }, undefined, []],
];

describe.each(CASES)("the facts %j", (facts, labels, texts) => {
  it("have these labels alone", () => {
    expect(labelsOf(makeFacts(facts))).toEqual(labels);
    expect(isLabelled(makeFacts(facts))).toBe(labels !== undefined);
    expect(labelsIn({ index: 0, item_id: "a", ...facts })).toEqual(labels ?? {});
    expect(labelTexts(labels ?? {})).toEqual(texts);
  });
});

describe("a line of the log", () => {
  it.each([[null], ["3"], [0], [-1], [1.5], [1e300], [Number.NaN], [{}], [[3]]])(
    "has no step if it says %j",
    (step) => {
      expect(labelsIn({ step, steps: 20 })).toEqual({});
    },
  );

  it("has its texts cleaned before they are read, those of labels only", () => {
    const seen: string[] = [];
    const cleaned = (text: string) => `${seen.push(text)}`;
    labelsIn({ step: "\u001B[31m3", call_id: "other" }, cleaned);
    expect(seen).toEqual(["\u001B[31m3"]);
  });
});
