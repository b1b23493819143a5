/**
 * The engine under random histories, crashes included. `FANOUT_PROPERTY_RUNS` histories per property (default 1,000); a
 * failure prints its seed and its shortest history.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Invariants, mustBeJust } from "../../support/engine-invariants.ts";
import { planArbitrary, type Plan, type PlannedOutcome } from "../../support/engine-plan.ts";
import { RunUnderTest } from "../../support/engine-run.ts";

const RUNS = Number(process.env["FANOUT_PROPERTY_RUNS"] ?? 1_000);
const TIMEOUT_MS = 60_000 + RUNS * 100;

const HONEST: PlannedOutcome = { kind: "usage", promptShare: 1, completionShare: 1, cachedShare: 0, costShare: null };

function live(plan: Plan, { lying }: { lying: boolean }): { overruns: number; shared: number; short: number } {
  const run = new RunUnderTest(plan);
  const invariants = new Invariants(run, { lying });
  for (const step of plan.steps) {
    for (const reason of run.turn(step)) mustBeJust(reason);
    invariants.check();
  }
  run.finish(HONEST);
  invariants.check();
  invariants.checkOver();
  return { overruns: run.books.charged.overruns, shared: invariants.log.shared, short: run.books.short.answers };
}

describe("whatever happens to a run", () => {
  it(
    "its limits hold, every slot ends once, nothing is lost or cut before the budget ends, and its log says so",
    { tags: ["slow"], timeout: TIMEOUT_MS },
    () => {
      const plans = planArbitrary({ stepsMax: 80, lying: false });
      let shared = 0;
      let short = 0;
      fc.assert(
        fc.property(plans, (plan) => {
          const lived = live(plan, { lying: false });
          shared += lived.shared;
          short += lived.short;
        }),
        { numRuns: RUNS },
      );
      expect(shared).toBeGreaterThan(0);
      expect(short).toBeGreaterThan(0);
    },
  );

  it(
    "an upstream that bills too much is recorded, and nothing starts after it that does not fit",
    { tags: ["slow"], timeout: TIMEOUT_MS },
    () => {
      const plans = planArbitrary({ stepsMax: 80, lying: true });
      let overruns = 0;
      fc.assert(
        fc.property(plans, (plan) => {
          overruns += live(plan, { lying: true }).overruns;
        }),
        { numRuns: RUNS },
      );
      expect(overruns).toBeGreaterThan(0);
    },
  );
});
