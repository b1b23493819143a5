/** Tiers of a group: which slots may start, and which failures are listed. */
import { describe, expect, it } from "vitest";
import { Tiers, type Tier } from "../../../../src/run/answers/tiers.ts";
import { TIER_FAILURES_LISTED } from "../../../../src/limits.ts";

function tiersOf(mode: "strict" | "priority", tiers: readonly Tier[]): Tiers {
  const made = new Tiers(mode, tiers.length);
  for (const [index, tier] of tiers.entries()) made.set(index, tier);
  return made;
}

describe("strict tiers", () => {
  it("release a tier when every slot of those before it has ended, failed or not", () => {
    const tiers = tiersOf("strict", [2, 0, 1, 0, 1]);
    expect(tiers.takeReleased()).toEqual([1, 3]);
    expect([0, 1, 2, 3, 4].map((index) => tiers.isHeld(index))).toEqual([true, false, true, false, true]);
    expect(tiers.heldSlots).toBe(3);
    tiers.ended(1, true);
    expect(tiers.takeReleased()).toEqual([]);
    tiers.ended(3, false);
    expect(tiers.takeReleased()).toEqual([2, 4]);
    expect(tiers.heldSlots).toBe(1);
    tiers.ended(2, false);
    tiers.ended(4, false);
    expect([tiers.takeReleased(), tiers.takeReleased()]).toEqual([[0], []]);
  });

  it("skip a tier without slots", () => {
    const tiers = tiersOf("strict", [0, 2]);
    expect(tiers.takeReleased()).toEqual([0]);
    tiers.ended(0, false);
    expect(tiers.takeReleased()).toEqual([1]);
  });

  it("that some slots have ended of release what may start, as after a restart", () => {
    const tiers = tiersOf("strict", [0, 1, 2]);
    tiers.ended(0, false);
    expect(tiers.takeReleased()).toEqual([0, 1]);
    expect(tiers.isHeld(2)).toBe(true);
  });

  it("keep the tier of a slot that is set once more", () => {
    const tiers = tiersOf("strict", [0, 1]);
    tiers.ended(0, false);
    tiers.set(0, 0);
    expect(tiers.takeReleased()).toEqual([0, 1]);
  });
});

it("tiers that only order hold nothing back", () => {
  const tiers = tiersOf("priority", [2, 0]);
  expect([tiers.takeReleased(), tiers.isHeld(0), tiers.isStrict]).toEqual([[], false, false]);
});

it("list the failures of each tier, so many of them, and count all", () => {
  const count = TIER_FAILURES_LISTED + 1;
  const tiers = tiersOf("priority", [0, ...Array.from({ length: count }, () => 1 as const), 2]);
  expect(tiers.failures.counts[0]).toBe(0);
  for (let index = 1; index <= count; index++) tiers.ended(index, true);
  expect(tiers.failures.counts[0]).toBe(0);
  tiers.ended(0, true);
  tiers.ended(count + 1, false);
  expect(tiers.failures.counts[0]).toBe(1);
  expect(tiers.failures.counts).toEqual([1, count, 0]);
  expect(tiers.failures.indexes.map((indexes) => indexes.length)).toEqual([1, TIER_FAILURES_LISTED, 0]);
});
