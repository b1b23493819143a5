import { describe, expect, it } from "vitest";
import { cappedOf, endedAtCap, markCapped } from "../../../../src/run/money/capped.ts";
import type { CapKind, Outcome } from "../../../../src/call.ts";
import { failure, success } from "../../../support/engine.ts";

function answered(finishReason: string | null, completionTokens: number | null = 5): Outcome {
  const outcome = success(completionTokens === null ? null : { completionTokens });
  return outcome.kind === "success" ? { ...outcome, finishReason } : outcome;
}

describe("an answer", () => {
  it.each(["length", "max_tokens", "max_output_tokens"])("ended at its cap if its finish reason is %s", (reason) => {
    expect(endedAtCap(answered(reason, 3), { capTokens: 40 })).toBe(true);
  });

  it.each(["stop", "tool_calls", "end_turn", "completed", "content_filter"])(
    "did not where it finished by %s",
    (why) => {
      expect(endedAtCap(answered(why, 40), { capTokens: 40 })).toBe(false);
    },
  );

  it("without a finish reason is judged by its tokens", () => {
    expect(endedAtCap(answered(null, 40), { capTokens: 40 })).toBe(true);
    expect(endedAtCap(answered(null, 39), { capTokens: 40 })).toBe(false);
    expect(endedAtCap(answered(null, null), { capTokens: 40 })).toBe(false);
  });

  it("to a request without a cap did not end at one, and a failure is not an answer", () => {
    expect(endedAtCap(answered("length"), { capTokens: null })).toBe(false);
    expect(endedAtCap(failure("unknown"), { capTokens: 40 })).toBe(false);
  });
});

describe("the mark of the budget", () => {
  it("is set on an answer that ended at a cap that the budget had lowered", () => {
    const marked = markCapped(answered("length"), { capTokens: 40, capKind: "budget" });
    expect([marked, cappedOf(marked)]).toMatchObject([{ cappedBy: "budget" }, { cappedBy: "budget" }]);
  });

  it.each<[CapKind, string]>([
    ["budget", "stop"],
    ["client", "length"],
    ["default", "length"],
  ])("is not set on an answer with a cap of %s and the finish reason %s", (capKind, finishReason) => {
    expect(cappedOf(markCapped(answered(finishReason), { capTokens: 40, capKind }))).toEqual({});
  });
});
