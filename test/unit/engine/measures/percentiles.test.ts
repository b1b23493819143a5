import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Durations } from "../../../../src/engine/measures/percentiles.ts";

function percentilesOf(durations: readonly number[]) {
  const all = new Durations();
  for (const duration of durations) all.add(duration);
  return all.percentiles;
}

describe("percentiles", () => {
  it("of nothing are null", () => {
    expect(percentilesOf([])).toBeNull();
  });

  it("are at least the exact ones, at most 5 % and a rounding above them, and never above the largest", () => {
    const property = fc.property(fc.array(fc.nat(600_000), { minLength: 1, maxLength: 300 }), (durations) => {
      const sorted = durations.toSorted((a, b) => a - b);
      const found = percentilesOf(durations);
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
});
