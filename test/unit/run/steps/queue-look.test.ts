/** What the calls of a run that have not ended wait for, all at one moment: the parts add up to the counts, whatever happens to the run. */
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { queueLook } from "../../../../src/run/steps/queue-look.ts";
import { planArbitrary } from "../../../support/engine-plan.ts";
import { RunUnderTest } from "../../../support/engine-run.ts";

it(
  "adds up in every look at every history: the waits to what is queued, and that to what the groups and calls say",
  { tags: ["slow"] },
  () => {
    const plans = planArbitrary({ stepsMax: 40, lying: false });
    let looks = 0;
    const causes = new Set<string>();
    fc.assert(
      fc.property(plans, (plan) => {
        const run = new RunUnderTest(plan);
        for (const step of plan.steps) {
          run.turn(step);
          const { state, nowMs } = run;
          const look = queueLook(state, nowMs);
          const inGroups = [...state.groups.values()].filter(({ done }) => !done).map(({ counts }) => counts.queued);
          expect(look.queued).toBe(inGroups.reduce((sum, queued) => sum + queued, state.calls.size));
          expect(look.waits.reduce((sum, { slots }) => sum + slots, 0)).toBe(look.queued);
          expect(look.waits.every(({ slots }) => slots > 0)).toBe(true);
          expect(look.inFlight).toBe(state.attempts.size);
          for (const { waitingFor } of look.waits) causes.add(waitingFor.kind);
          looks += 1;
        }
      }),
      // A seed in whose histories calls wait for all three.
      { numRuns: 120, seed: 7 },
    );
    expect(looks).toBeGreaterThan(500);
    expect([...causes]).toEqual(expect.arrayContaining(["permit", "budget", "gate"]));
  },
);
