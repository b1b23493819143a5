/** When a group may stop: by the answers that it has, in whatever order they came. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EarlyStop, type StopRule } from "../../../../src/run/answers/early-stop.ts";

const comparison = { by: "normalized" } as const;
const quorum = (of: number, agree: number): StopRule => ({ kind: "quorum", of, agree, comparison, shadow: false });

/** After how many of the answers the rule is met; null = after none. */
function metAfter(rule: StopRule, answers: readonly string[]): number | null {
  const stop = new EarlyStop(rule, answers.length);
  for (const [index, text] of answers.entries()) {
    stop.completed(index, text);
    if (stop.isMet) return index + 1;
  }
  return null;
}

describe("n_success", () => {
  it("is met by so many answers, empty ones included", () => {
    const rule: StopRule = { kind: "n_success", n: 3, shadow: false };
    expect(metAfter(rule, ["a", "", "b", "c"])).toBe(3);
    expect(metAfter(rule, ["a", "b"])).toBeNull();
  });
});

describe("a quorum", () => {
  it("is met once enough have voted and enough of them agree", () => {
    expect(metAfter(quorum(3, 1), ["yes", "Yes.", "YES"])).toBe(3);
    expect(metAfter(quorum(3, 0.75), ["yes", "no", "yes", "yes"])).toBe(4);
    expect(metAfter(quorum(2, 1), ["yes", "no", "yes", "yes"])).toBeNull();
    expect(metAfter(quorum(1, 1), ["no"])).toBe(1);
  });

  it("needs exactly the share that it names", () => {
    expect(metAfter(quorum(4, 0.75), ["a", "a", "a", "b"])).toBe(4);
    expect(metAfter(quorum(4, 0.76), ["a", "a", "a", "b"])).toBeNull();
  });

  it("does not count an answer without a vote", () => {
    expect(metAfter(quorum(2, 1), ["", " ", "yes", "...", "yes"])).toBe(5);
  });

  it("has a verdict that does not depend on the order of the answers", () => {
    const answers = fc.array(fc.constantFrom("a", "b", "c", ""), { maxLength: 12 });
    fc.assert(
      fc.property(answers, fc.integer({ min: 1, max: 6 }), fc.constantFrom(0.4, 0.5, 0.75, 1), (texts, of, agree) => {
        const votes = texts.filter((text) => text !== "");
        const most = Math.max(0, ...["a", "b", "c"].map((each) => votes.filter((vote) => vote === each).length));
        const stop = new EarlyStop(quorum(of, agree), 10);
        // Until it is met, what counts is how many voted for what.
        const before = [...texts.keys()].find((index) => {
          stop.completed(index, texts[index] ?? "");
          return stop.isMet;
        });
        if (votes.length >= of && most >= agree * votes.length) expect(before).not.toBeUndefined();
      }),
    );
  });
});

describe("a pattern", () => {
  it("is met by the first answer that matches", () => {
    const rule: StopRule = { kind: "regex", source: "^found: \\d+", flags: "i", shadow: false };
    expect(metAfter(rule, ["none", "not found: 1", "FOUND: 7", "x"])).toBe(3);
  });

  it("that would make a backtracking engine hang gives its verdict at once", () => {
    const rule: StopRule = { kind: "regex", source: "^(a+)+$", flags: "", shadow: false };
    expect(metAfter(rule, [`${"a".repeat(5_000)}!`, "aaa"])).toBe(2);
  });
});

it("stays met, whatever comes later", () => {
  const stop = new EarlyStop(quorum(1, 1), 1);
  for (const [index, text] of ["a", "b", "c"].entries()) stop.completed(index, text);
  expect(stop.isMet).toBe(true);
});

describe("a pattern over the answers of a group", () => {
  const rule: StopRule = { kind: "regex", source: "(?:a|b|c|d){1,200}e", flags: "", shadow: false };
  const found = (count: number, chars: number): boolean => {
    const stop = new EarlyStop(rule, count);
    stop.completed(0, `${"abcd".repeat(chars / 4)}e`);
    return stop.isMet;
  };

  it("takes a number of steps that all answers share, whatever their order", () => {
    expect(found(1, 4_000)).toBe(true);
    expect(found(50_000, 4_000)).toBe(false);
    expect(found(50_000, 20)).toBe(true);
  });
});
