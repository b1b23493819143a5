import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  addDuration,
  addDurations,
  durationsSince,
  noDurations,
  percentilesOf,
  type Durations,
} from "../../../../src/run/measures/percentiles.ts";

function durationsOf(durations: readonly number[]): Durations {
  const all = noDurations();
  for (const duration of durations) addDuration(all, duration);
  return all;
}

const lists = fc.array(fc.nat(600_000), { minLength: 1, maxLength: 300 });

describe("percentiles", () => {
  it("of nothing are null", () => {
    expect(percentilesOf(noDurations())).toBeNull();
  });

  it("are at least the exact ones, at most 5 % and a rounding above them, and never above the largest", () => {
    const property = fc.property(lists, (durations) => {
      const sorted = durations.toSorted((a, b) => a - b);
      const found = percentilesOf(durationsOf(durations));
      for (const [name, share] of [
        ["p50", 0.5],
        ["p95", 0.95],
        ["p99", 0.99],
      ] as const) {
        const exact = sorted[Math.ceil(sorted.length * share) - 1] ?? NaN;
        expect(found?.[name]).toBeGreaterThanOrEqual(exact - 1);
        expect(found?.[name]).toBeLessThanOrEqual(Math.min(exact * 1.05 + 1, sorted.at(-1) ?? 0));
      }
    });
    fc.assert(property, { numRuns: 300 });
  });

  it("of parts that are added up, and stored as JSON in between, are those of all", () => {
    const property = fc.property(lists, lists, (some, others) => {
      const sum: Durations = JSON.parse(JSON.stringify(durationsOf(some)));
      addDurations(sum, JSON.parse(JSON.stringify(durationsOf(others))));
      expect(sum).toEqual(durationsOf([...some, ...others]));
    });
    fc.assert(property, { numRuns: 100 });
  });

  it("of what came after a part leave the part out", () => {
    const property = fc.property(lists, lists, (before, after) => {
      const since = durationsSince(durationsOf([...before, ...after]), durationsOf(before));
      expect(since.counts).toEqual(durationsOf(after).counts);
    });
    fc.assert(property, { numRuns: 100 });
    expect(percentilesOf(durationsSince(durationsOf([7]), durationsOf([7])))).toBeNull();
  });

  it("need few hundred numbers for any durations", () => {
    const everything = noDurations();
    for (let ms = 0; ms < 30 * 86_400_000; ms = Math.ceil(ms * 1.01) + 1) addDuration(everything, ms);
    expect(Object.keys(everything.counts).length).toBeLessThan(450);
  });
});
