/** When the samples of a call decide, which answer is delivered, and when no further one is made. */
import { describe, expect, it } from "vitest";
import { withSample, type Samples } from "../../../../src/run/answers/samples.ts";
import type { Sampling } from "../../../../src/call.ts";

const RULE: Sampling = { min: 2, max: 8, agree: 0.75, comparison: { by: "normalized" } };

/** Adds samples until no more is needed; null = one that failed. Returns what was made, and which one is delivered. */
function course(answers: readonly (string | null)[], rule: Sampling = RULE) {
  let samples: Samples | undefined;
  let delivered: number | null = null;
  for (const [index, text] of answers.entries()) {
    const next = withSample(samples, text, rule);
    samples = next.samples;
    if (next.leads) delivered = index;
    if (next.isEnough) break;
  }
  return { made: samples?.made, failed: samples?.failed, decided: samples?.decided, delivered };
}

describe("samples", () => {
  it.each<[string, (string | null)[], Partial<Sampling>, ReturnType<typeof course>]>([
    ["that agree at once are as many as min", ["a", "A."], {}, { made: 2, failed: 0, decided: true, delivered: 0 }],
    [
      "that agree are min, however early they do",
      ["a", "a", "a"],
      { min: 3 },
      { made: 3, failed: 0, decided: true, delivered: 0 },
    ],
    ["go on until the share is there", ["a", "b", "a", "a"], {}, { made: 4, failed: 0, decided: true, delivered: 0 }],
    [
      "deliver the answer that leads, not the last",
      ["b", "a", "a", "a", "x"],
      {},
      { made: 4, failed: 0, decided: true, delivered: 2 },
    ],
    [
      "end undecided when no later one could decide",
      ["a", "b", "c", "a"],
      { max: 4 },
      { made: 3, failed: 0, decided: false, delivered: 0 },
    ],
    [
      "end undecided at max",
      ["a", "b", "a", "c"],
      { max: 4, agree: 0.7 },
      { made: 4, failed: 0, decided: false, delivered: 0 },
    ],
    ["that failed are no votes", ["a", null, null, "a"], {}, { made: 4, failed: 2, decided: true, delivered: 0 }],
    [
      "that failed never decide",
      [null, null, null, null],
      { max: 4 },
      { made: 3, failed: 3, decided: false, delivered: null },
    ],
    [
      "deliver an answer without a vote if there is no other",
      ["", ""],
      { max: 2 },
      { made: 2, failed: 0, decided: false, delivered: 1 },
    ],
  ])("%s", (_, answers, rule, expected) => {
    expect(course(answers, { ...RULE, ...rule })).toEqual(expected);
  });

  it("decide at the share itself, and not below it", () => {
    const rule = { ...RULE, min: 4, max: 4 };
    expect(course(["a", "a", "b", "a"], rule).decided).toBe(true);
    expect(course(["a", "a", "b", "a"], { ...rule, agree: 0.76 }).decided).toBe(false);
  });
});
