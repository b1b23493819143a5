/** Deciding by votes: by completed answers only, never by a tie, never by an error. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { VoteSpec } from "../../../../src/run/answers/vote.ts";
import { winnerOf } from "../../../../src/run/answers/vote.ts";
import { VOTE_CHOICES_SHOWN, VOTE_SHOWN_CHARS } from "../../../../src/limits.ts";
import { combined, membersOf } from "./members.ts";

const comparison = { by: "normalized" } as const;
const majority: VoteSpec = { strategy: "vote", comparison, rule: "majority" };
const unanimous: VoteSpec = { strategy: "vote", comparison, rule: "unanimous" };
const quorum = (of: number, agree: number): VoteSpec => ({ strategy: "vote", comparison, rule: "quorum", of, agree });

const decides = (spec: VoteSpec, answers: readonly (string | null)[], ids: string[] = []) => {
  const result = combined(spec, membersOf(answers, ids));
  return result.strategy === "vote" ? result.winner_index : undefined;
};

describe("a majority", () => {
  it("is more than half of the votes", () => {
    expect(decides(majority, ["no", "yes", "Yes"])).toBe(1);
    expect(decides(majority, ["no", "yes", "yes", "maybe"])).toBeNull();
    expect(decides(majority, ["no", "yes", "yes", "maybe", "YES"])).toBe(1);
  });

  it("is not a tie", () => {
    expect(combined(majority, membersOf(["a", "b"]))).toMatchObject({ decided: false, tie: true, agreement: 0.5 });
  });

  it("counts neither failed members nor empty answers", () => {
    const answers = ["a", null, null, null, "", "a", "b"];
    const result = combined(majority, membersOf(answers));
    expect(result).toMatchObject({ winner_index: 0, votes: 3, failed: 3, abstained: 1, agreement: 0.667 });
  });

  it("of nobody decides nothing", () => {
    for (const answers of [[], [null], [""]]) {
      expect(combined(majority, membersOf(answers))).toMatchObject({
        decided: false,
        winner_index: null,
        agreement: 0,
      });
    }
  });
});

describe("a weighted vote", () => {
  const weighted = (weights: Record<string, number>): VoteSpec => ({ ...majority, rule: "weighted", weights });

  it("is decided by more than half of the weight", () => {
    const ids = ["architect", "one", "two"];
    expect(decides(weighted({ architect: 3 }), ["a", "b", "b"], ids)).toBe(0);
    expect(decides(weighted({ architect: 2 }), ["a", "b", "b"], ids)).toBeNull();
    expect(decides(weighted({}), ["a", "b", "b"], ids)).toBe(1);
  });

  it("weighs a name that every object has like any other", () => {
    expect(decides(weighted({ x: 5 }), ["a", "b", "b"], ["constructor", "b", "c"])).toBe(1);
  });
});

describe("a quorum", () => {
  it("needs its votes and its share, both at least", () => {
    expect(decides(quorum(4, 0.75), ["a", "a", "a", "b"])).toBe(0);
    expect(decides(quorum(5, 0.75), ["a", "a", "a", "b"])).toBeNull();
    expect(decides(quorum(4, 0.76), ["a", "a", "a", "b"])).toBeNull();
    expect(decides(quorum(2, 0.5), ["a", "b"])).toBeNull();
  });
});

describe("unanimity", () => {
  it("needs the vote of every member", () => {
    expect(decides(unanimous, ["a", "A", "a."])).toBe(0);
    expect(decides(unanimous, ["a", "a", "b"])).toBeNull();
    expect(decides(unanimous, ["a", "a", null])).toBeNull();
    expect(decides(unanimous, ["a", "a", ""])).toBeNull();
  });
});

it("has the same result, in whatever order the answers ended", () => {
  const answers = fc.array(fc.constantFrom("a", "A", "b", "c", "", null), { maxLength: 10 });
  const specs = fc.constantFrom(majority, unanimous, quorum(3, 0.5));
  fc.assert(
    fc.property(
      answers.chain((texts) =>
        fc.tuple(fc.constant(texts), fc.shuffledSubarray([...texts.keys()], { minLength: texts.length })),
      ),
      specs,
      ([texts, order], spec) => {
        const members = membersOf(texts);
        const shuffled = order.flatMap((index) => members[index] ?? []);
        expect(combined(spec, shuffled)).toEqual(combined(spec, members));
      },
    ),
  );
});

it("lists the most frequent answers, cut, and counts the votes for others", () => {
  const answers = Array.from({ length: VOTE_CHOICES_SHOWN + 5 }, (_, at) => `${at} ${"x".repeat(VOTE_SHOWN_CHARS)}`);
  const result = combined(majority, membersOf([...answers, answers[7] ?? ""]));
  if (result.strategy !== "vote") throw new Error("expected a vote");
  expect([result.counts.length, result.other_votes]).toEqual([VOTE_CHOICES_SHOWN, 5]);
  expect(result.counts[0]).toMatchObject({ first_index: 7, votes: 2, answer: answers[7]?.slice(0, VOTE_SHOWN_CHARS) });
});

it("names as winner the whole answer, or the value at the key", () => {
  expect(winnerOf("Yes.", comparison)).toBe("Yes.");
  expect(winnerOf('so: {"v":{"a":1}}', { by: "json_key", key: "v" })).toEqual({ a: 1 });
});
