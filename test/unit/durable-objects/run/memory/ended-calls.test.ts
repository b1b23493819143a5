import { describe, expect, it } from "vitest";
import { EndedCalls, type EndReply } from "../../../../../durable-objects/run/memory/ended-calls.ts";
import type { Outcome } from "../../../../../src/call.ts";
import { ENDED_CALLS_CHARS_MAX, ENDED_CALLS_KEPT } from "../../../../../src/limits.ts";
import { success } from "../../../../support/engine.ts";

const refused: EndReply = { ok: false, reason: { reason: "idempotency_conflict" }, remainingNanoUsd: null };

const shared = (outcome: Outcome): EndReply => ({
  ok: "shared",
  outcome,
  parallelGroupId: null,
  remainingNanoUsd: null,
});

const longAnswer = (chars: number): Outcome => ({ ...success(), text: "x".repeat(chars) }) as Outcome;

describe("the ends of calls whose Workers are away", () => {
  it("are remembered until they are forgotten, and are none of other calls", () => {
    const ends = new EndedCalls();
    ends.add("a", refused);
    expect([ends.of("a"), ends.of("b")]).toEqual([refused, null]);
    ends.delete("a");
    expect(ends.of("a")).toBeNull();
  });

  it("are as many as the bound: the oldest is forgotten", () => {
    const ends = new EndedCalls();
    for (let at = 0; at <= ENDED_CALLS_KEPT; at++) ends.add(`${at}`, refused);
    expect([ends.of("0"), ends.of("1"), ends.of(`${ENDED_CALLS_KEPT}`)]).toEqual([null, refused, refused]);
  });

  it("keep no more text than the bound, where one text that many share counts once; the newest stays", () => {
    const ends = new EndedCalls();
    const half = shared(longAnswer(ENDED_CALLS_CHARS_MAX / 2));
    for (const callId of ["a", "b", "c"]) ends.add(callId, half);
    ends.add("d", shared(longAnswer(ENDED_CALLS_CHARS_MAX / 2)));
    expect(["a", "b", "c", "d"].filter((callId) => ends.of(callId) === null)).toEqual([]);
    ends.add("e", shared(longAnswer(1)));
    expect(["a", "b", "c", "d", "e"].filter((callId) => ends.of(callId) === null)).toEqual(["a", "b", "c"]);
    ends.add("f", shared(longAnswer(ENDED_CALLS_CHARS_MAX + 1)));
    expect([ends.of("e"), ends.of("f")?.ok]).toEqual([null, "shared"]);
  });
});
