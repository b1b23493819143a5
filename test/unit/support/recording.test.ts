import { describe, expect, it } from "vitest";
import { comparableState, missingIn, Present } from "../../support/wire/recording.ts";

describe("a replay", () => {
  it("sends the ids of its own replies in place of the recorded ones, also inside of longer texts", () => {
    const present = new Present(0, 0);
    present.learnFrom(
      { lease: { attemptId: "call_17/1", text: "two words 12" } },
      { lease: { attemptId: "call_99/1", text: "other" } },
    );
    expect(present.of(["call_17/1", { "grp/call_17/1": "of call_17/1" }, "two words 12"])).toEqual([
      "call_99/1",
      { "grp/call_99/1": "of call_99/1" },
      "two words 12",
    ]);
  });

  it("moves times to the present, and no other numbers", () => {
    const at = Date.UTC(2026, 10, 22);
    const present = new Present(at, at + 5_000);
    expect(present.of({ createdAtMs: at, expiresAtMs: at + 86_400_000, limit: 500, usd: 2_471_400 })).toEqual({
      createdAtMs: at + 5_000,
      expiresAtMs: at + 86_405_000,
      limit: 500,
      usd: 2_471_400,
    });
  });
});

describe("what a reader of a recorded reply misses", () => {
  it.each([
    ["nothing where a field was added", { a: 1, b: 2 }, { a: 1 }, []],
    ["nothing where a value differs", { a: 2, list: [{ x: "b" }, 1] }, { a: 1, list: [{ x: "a" }] }, []],
    ["nothing where it was null", { a: 7 }, { a: null }, []],
    ["a field that is gone", { b: 1 }, { a: 1 }, ["reply.a is gone"]],
    ["a field that is null", { a: null }, { a: 1 }, ["reply.a is null"]],
    ["a field of another type", { a: "1" }, { a: 1 }, ["reply.a has another type"]],
    ["a list that is an object", { a: {} }, { a: [] }, ["reply.a has another type"]],
    ["a list without its items", { a: [] }, { a: [1] }, ["reply.a is empty"]],
    ["a field of an item", { a: [{}] }, { a: [{ x: 1 }] }, ["reply.a[0].x is gone"]],
    ["the form that it knows", { ok: "blocked" }, { ok: true, lease: {} }, ["reply.ok differs", "reply.lease is gone"]],
    ["the whole reply", null, { a: 1 }, ["reply is null"]],
  ])("is %s", (_, now, before, expected) => {
    expect(missingIn(now, before)).toEqual(expected);
  });
});

describe("the recorded state of a group", () => {
  const recorded = { counts: { queued: 2 }, status: "running", waitsFor: [{ slots: 2 }], queuedAhead: 0 };

  it("says what its slots wait for while some are queued, and no more when none is", () => {
    expect(comparableState(recorded, { counts: { queued: 1 } })).toEqual(recorded);
    expect(comparableState(recorded, { counts: { queued: 0 } })).toEqual({ counts: { queued: 2 }, status: "running" });
  });

  it("is compared as a whole with what is no state of a group", () => {
    expect(comparableState(recorded, null)).toEqual(recorded);
    expect(comparableState(recorded, {})).toEqual(recorded);
    expect(comparableState({ counts: { queued: 2 } }, { counts: { queued: 0 } })).toEqual({ counts: { queued: 2 } });
  });
});
