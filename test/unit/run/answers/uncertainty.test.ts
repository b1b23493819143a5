/** The formula of uncertainty, with sums that a reader can check. */
import { describe, expect, it } from "vitest";
import {
  DEFAULT_WEIGHTS,
  type UncertaintySpec,
  type UncertaintyResult,
} from "../../../../src/run/answers/uncertainty.ts";
import { combined, membersOf } from "./members.ts";

const spec: UncertaintySpec = { strategy: "uncertainty", weights: DEFAULT_WEIGHTS };

function judged(answers: readonly (string | null)[], weights = DEFAULT_WEIGHTS): UncertaintyResult {
  const result = combined({ ...spec, weights }, membersOf(answers));
  if (result.strategy !== "uncertainty") throw new Error("expected a verdict");
  return result;
}

const SURE = "CONFIDENCE: 1\nEVIDENCE: src/a.ts:12; the test";

describe("a team", () => {
  it("that is sure, with evidence, is trusted without doubt", () => {
    expect(judged([SURE, SURE])).toMatchObject({
      verdict: "trusted",
      confidence: 1,
      uncertainty: { intra: 0, inter: 0, system: 0 },
      signals: [],
    });
  });

  it("that states nothing is half sure and without evidence", () => {
    // intra = .26 × .5 + .20 = .33, inter = .10, system = .45 × .33 + .35 × .10 = .1835
    expect(judged(["a", "b"])).toMatchObject({
      verdict: "trusted",
      uncertainty: { intra: 0.33, inter: 0.1, system: 0.1835 },
      confidence: 0.8899,
      signals: ["insufficient_evidence"],
    });
  });

  it("with a failed member is never trusted", () => {
    // failed 1/4; the failed one is half sure, without evidence: low confidence .125, spread √.046875 / .5 = .4330
    const { verdict, uncertainty, signals } = judged([SURE, SURE, SURE, null]);
    expect([verdict, signals]).toEqual(["partial", []]);
    expect(uncertainty.intra).toBeCloseTo(0.38 / 4 + 0.26 / 8 + 0.2 / 4, 4);
    expect(uncertainty.inter).toBeCloseTo(0.28 * (Math.sqrt(0.046875) / 0.5) + 0.2 / 4 + 0.1 / 4, 4);
  });

  it("with a member that said nothing has a failed member, and one of empty answers is untrusted", () => {
    expect(judged([SURE, " "]).verdict).toBe("partial");
    expect(judged(["", "\n"])).toMatchObject({
      verdict: "untrusted",
      signals: expect.arrayContaining(["teammate_failures"]),
    });
  });

  it("that answers in JSON is as sure as it says there", () => {
    const form = (confidence: number) => JSON.stringify({ answer: "a", evidence: "src/a.ts:12", confidence });
    expect(judged([form(0.9), form(0.9)])).toMatchObject({ verdict: "trusted", uncertainty: { intra: 0.026 } });
  });

  it.each([0.6, 0.9, 1])("of which %d fail is partial or untrusted, whatever the others say", (share) => {
    const failed = Math.round(10 * share);
    const answers = Array.from({ length: 10 }, (_, at) => (at < failed ? null : SURE));
    expect(judged(answers).verdict).toBe(share === 1 ? "untrusted" : "partial");
    expect(judged(answers).signals).toContain("teammate_failures");
  });

  it("of which all fail, and one of nobody, is untrusted", () => {
    expect(judged([null, null])).toMatchObject({ verdict: "untrusted", confidence: 0.1 });
    expect(judged([])).toMatchObject({
      verdict: "untrusted",
      confidence: 0.1,
      uncertainty: { intra: 1, inter: 1, system: 1 },
      signals: ["no_member_results"],
    });
  });

  it("that speaks of contradictions and conflicts is less certain, in the part where it belongs", () => {
    const { uncertainty: plain } = judged([SURE]);
    const { uncertainty: within } = judged([`${SURE}\nThe log contradicts the code.`]);
    const { uncertainty: between } = judged([`${SURE}\nThe reviewers disagree.`]);
    expect(within.intra - plain.intra).toBeCloseTo(0.16, 4);
    expect(within.inter).toBe(plain.inter);
    expect(between.inter - plain.inter).toBeCloseTo(0.42, 4);
    expect(between.intra).toBe(plain.intra);
  });

  it("whose members are unlike in confidence disagrees by the spread", () => {
    // sd of 0 and 1 is .5, the widest that there is
    const { uncertainty } = judged([SURE, "CONFIDENCE: 0\nEVIDENCE: a"]);
    expect(uncertainty.inter).toBeCloseTo(0.28, 4);
  });
});

it.each([
  ["CONFIDENCE: 0.8", 0.8],
  ["confidence: 80%", 0.8],
  ["**CONFIDENCE:** .8", 0.8],
  ["CONFIDENCE: 80", 0.8],
  ["CONFIDENCE: 900%", 1],
  ["CONFIDENCE: high", 0.5],
  ["no word of it", 0.5],
])("reads %j as %d", (text, confidence) => {
  const only = { ...DEFAULT_WEIGHTS, intra: { failed: 0, low_confidence: 1, no_evidence: 0, contradiction: 0 } };
  expect(judged([text], only).uncertainty.intra).toBeCloseTo(1 - confidence, 4);
});

it.each(["EVIDENCE: a", "see lib/x_y.py:3", "evidence: a; b", "at ./src/main.rs:120."])(
  "finds evidence in %j",
  (text) => expect(judged([text]).signals).toEqual([]),
);

it("finds none in long texts of one word, in no time", () => {
  expect(judged(["a".repeat(100_000), "a.".repeat(50_000), "EVIDENCE:".repeat(10_000)]).verdict).toBe("trusted");
});

it("is bounded by 1 with any weights", () => {
  const ones = {
    intra: { failed: 1, low_confidence: 1, no_evidence: 1, contradiction: 1 },
    inter: { conflict: 1, confidence_spread: 1, failed: 1, no_evidence: 1 },
    system: { intra: 1, inter: 1, failed: 1 },
  };
  expect(judged(["contradicts, conflict", null], ones).uncertainty).toEqual({ intra: 1, inter: 1, system: 1 });
});
