/** The bound of early calls, and what they have come to. */
import { describe, expect, it } from "vitest";
import { EarlyCalls } from "../../../../src/run/group/early-calls.ts";
import type { SlotState } from "../../../../src/run/queue/slot.ts";

const stateOf =
  (states: Record<number, SlotState>) =>
  (index: number): SlotState =>
    states[index] ?? "queued";
const queued = stateOf({});

describe("the bound of early calls", () => {
  it("pays for what open ones may cost, and for what ended ones have cost", () => {
    const calls = new EarlyCalls(100);
    expect([calls.hasRoomFor(100, queued), calls.hasRoomFor(101, queued)]).toEqual([true, false]);
    calls.opened(0, { seq: 7, worstNanoUsd: 60 });
    expect([calls.hasRoomFor(40, queued), calls.hasRoomFor(41, queued)]).toEqual([true, false]);
    calls.ended(0, { state: "completed", costNanoUsd: 10 });
    expect([calls.hasRoomFor(90, queued), calls.hasRoomFor(91, queued)]).toEqual([true, false]);
  });

  it("does not pay for an answer that its task has, and pays for ever for one that nobody has", () => {
    const calls = new EarlyCalls(100);
    calls.opened(0, { seq: 7, worstNanoUsd: 60 });
    calls.ended(0, { state: "completed", costNanoUsd: 60 });
    expect(calls.hasRoomFor(100, stateOf({ 0: "completed" }))).toBe(true);
    expect(calls.hasRoomFor(41, stateOf({ 0: "skipped" }))).toBe(false);
  });

  it("pays for a failed call whose task has completed by itself", () => {
    const calls = new EarlyCalls(100);
    calls.opened(0, { seq: 7, worstNanoUsd: 60 });
    calls.ended(0, { state: "failed", costNanoUsd: 60 });
    expect(calls.hasRoomFor(41, stateOf({ 0: "completed" }))).toBe(false);
  });
});

describe("what early calls have come to", () => {
  it("has those that were used, those that were not, and those that may be", () => {
    const calls = new EarlyCalls(1_000);
    for (const index of [0, 1, 2, 3, 4, 5]) calls.opened(index, { seq: 10 + index, worstNanoUsd: 100 });
    for (const index of [0, 1, 2]) calls.ended(index, { state: "completed", costNanoUsd: 10 + index });
    calls.ended(3, { state: "failed", costNanoUsd: 5 });
    calls.ended(4, { state: "cancelled", costNanoUsd: 0 });
    const states = stateOf({ 0: "completed", 1: "skipped", 3: "completed", 4: "skipped" });
    expect(calls.summary(states)).toEqual({
      started: 5,
      used: 1,
      spentNanoUsd: 38,
      wastedNanoUsd: 16,
      open: [15],
    });
  });

  it("names the group of the answer, and of the call that has not ended", () => {
    const calls = new EarlyCalls(1_000);
    calls.opened(3, { seq: 7, worstNanoUsd: 1 });
    expect([calls.openFor(3), calls.answerFor(3), calls.has(3), calls.has(4)]).toEqual([7, null, true, false]);
    calls.ended(3, { state: "completed", costNanoUsd: 1 });
    expect([calls.openFor(3), calls.answerFor(3), calls.open]).toEqual([null, 7, []]);
  });
});
