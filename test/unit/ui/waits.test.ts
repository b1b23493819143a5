import { describe, expect, it } from "vitest";
import { addedUp, waitsIn } from "../../../ui/model/waits.ts";

describe("what queued calls wait for", () => {
  it.each([
    [{ permit: true }, /^one of the run.s calls to end/],
    [{ retry: true, ready_in_ms: 10 }, /^the pause before a retry$/],
    [{ budget: "usd" }, /^the budget in dollars/],
    [{ confirmation: true }, /^a confirmation/],
    [{ budget: "usd", exhausted: true }, /^a higher limit: the budget in dollars is used up$/],
    [{ dependency: ["a", "b", "c", "d"] }, /^other tasks: a, b, c$/],
    [
      { gate: "up", reason: "requests_per_minute", ready_in_ms: 3_000 },
      /^up: its requests per minute, for about 3\.0 s$/,
    ],
    [{ gate: "up#KEY", reason: "stopped", ready_in_ms: null }, /^up#KEY: the provider refuses its key$/],
    [{ gate: "up", reason: "new", ready_in_ms: 0 }, /^up: its limits$/],
    [{ gate: "up", reason: "width", model: "m", ready_in_ms: null }, /^up: its model m is overloaded$/],
  ])("is %j in words", (wait, words) => {
    const [found] = waitsIn({ waiting_for: [{ ...wait, slots: 3 }] });
    expect(found).toEqual({ slots: 3, cause: expect.stringMatching(words) });
  });

  it("is nothing where the gateway says nothing, or what the page does not know", () => {
    for (const group of [{}, { waiting_for: "x" }, { waiting_for: [null, 1, { slots: 2, moon: "full" }] }])
      expect(waitsIn(group)).toEqual([]);
  });

  it("adds up over groups, most calls first", () => {
    const waits = [
      { slots: 1, cause: "a" },
      { slots: 2, cause: "b" },
      { slots: 3, cause: "a" },
    ];
    expect(addedUp(waits)).toEqual([
      { slots: 4, cause: "a" },
      { slots: 2, cause: "b" },
    ]);
  });
});
