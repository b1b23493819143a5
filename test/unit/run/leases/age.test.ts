import { describe, expect, it } from "vitest";
import { STOOD_STILL_MS_MAX } from "../../../../src/limits.ts";
import { ageOf } from "../../../../src/run/leases/age.ts";

describe("the age of a single call", () => {
  it("is the time that its Worker had it, and that it was on its way", () => {
    expect(ageOf({ ageMs: 30, sentAtMs: 1_000 }, 1_400)).toBe(430);
    expect(ageOf({ ageMs: 30 }, 1_400)).toBe(30);
    expect(ageOf({}, 1_400)).toBe(0);
  });

  it("has nothing of a way that a clock ahead of the object's makes negative, and of an age that is", () => {
    expect(ageOf({ ageMs: 30, sentAtMs: 2_000 }, 1_400)).toBe(30);
    expect(ageOf({ ageMs: -30, sentAtMs: 1_390 }, 1_400)).toBe(10);
  });

  it("has no more of a way than for which a process may stand still: a clock may be behind", () => {
    const sentAtMs = 1_000_000;
    expect(ageOf({ sentAtMs }, sentAtMs + STOOD_STILL_MS_MAX)).toBe(STOOD_STILL_MS_MAX);
    expect(ageOf({ sentAtMs }, sentAtMs + STOOD_STILL_MS_MAX + 1)).toBe(STOOD_STILL_MS_MAX);
  });
});
