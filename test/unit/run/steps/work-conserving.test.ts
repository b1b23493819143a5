/** The wall time of a batch in simulated time, with the latencies of language models. */
import { describe, expect, it } from "vitest";
import { seeded } from "../../../support/engine.ts";
import {
  chunkedWallMs,
  greedyWallMs,
  lognormalMs,
  simulate,
  type Workload,
} from "../../../support/engine-simulation.ts";

/** Median 10 s, one in a hundred above a minute. */
const LAW = { mu: 2.306, sigma: 0.796 };

const workload = (seed: number): Workload => ({ latenciesMs: lognormalMs(1_000, LAW, seeded(seed)), width: 16 });

describe("a batch of 1,000 calls at width 16, on lanes of six", () => {
  it.each([1, 20_261_121, 987_654_321])("takes no longer than greedy list scheduling, by 2 %% (seed %d)", (seed) => {
    const batch = workload(seed);
    const { wallMs, peak } = simulate(batch);
    expect(peak).toBe(16);
    expect(wallMs).toBeLessThanOrEqual(1.02 * greedyWallMs(batch));
    // No schedule can beat the work divided by the width.
    expect(wallMs).toBeGreaterThanOrEqual(batch.latenciesMs.reduce((sum, ms) => sum + ms, 0) / 16);
  });

  it("is more than twice as fast as chunks that wait for their slowest call", () => {
    const batch = workload(20_261_121);
    expect(chunkedWallMs(batch) / simulate(batch).wallMs).toBeGreaterThan(2);
  });

  it("starts its slots in input order", () => {
    const { startedAtMs } = simulate(workload(1));
    expect(startedAtMs).toEqual(startedAtMs.toSorted((a, b) => a - b));
    expect(startedAtMs).toHaveLength(1_000);
  });
});
