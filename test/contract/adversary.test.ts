/** The short form of `npm run bench:adversary`: whatever clients send and upstreams bill, the budget holds. */
import { describe, expect, it } from "vitest";
import { campaign } from "../../bench/adversary/campaign.ts";

/** All of it is processor time: half a minute of a quiet machine, and as many times that as a busy one has programs for a core. */
const ADVERSARY_MS_MAX = 900_000;

describe("a run's limit", () => {
  it(
    "holds against the upstream's own bill for 5,000 hostile calls at 34 kinds of upstream",
    { tags: ["slow"], timeout: ADVERSARY_MS_MAX },
    async () => {
      const result = await campaign({ requests: 5_000, runs: 75, seed: 11, abreast: 6, batches: 0 });
      expect(result.holes).toEqual([]);
      // One text, so that the message of a failure has all of it.
      const faults = result.faults.map(
        ({ kind, run, personality, what }) => `${kind}, run ${run}, ${personality}: ${what}`,
      );
      expect(faults.join("\n")).toBe("");
      expect(result.unmarked).toEqual([]);
      expect(result.calls).toBeGreaterThanOrEqual(5_000);
      // Refusals alone would hold any budget.
      expect(result.upstreamRequests).toBeGreaterThan(800);
    },
  );
});
