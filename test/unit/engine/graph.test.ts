/**
 * Random graphs with random answers, executed with crashes at any commit, against a reference that knows only what a graph
 * means: each slot ends once, none starts before its inputs are stored, and the outputs are the same.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Tier } from "../../../src/aggregate/tiers.ts";
import { graphs } from "../../support/frontier-graphs.ts";
import { GraphUnderTest } from "../../support/graph-run.ts";

const steps = fc.array(
  fc.record({
    pick: fc.nat({ max: 1_000 }),
    does: fc.constantFrom("settle", "settle", "settle", "settle", "crash", "lose"),
  }),
  { maxLength: 60 },
);

describe("a graph in the engine", () => {
  it("ends each slot once, as the reference does, whatever crashes in between", () => {
    fc.assert(
      fc.property(graphs, steps, fc.constantFrom(1, 3, 64), (drawn, script, width) => {
        const run = new GraphUnderTest(drawn, width);
        for (const { does, pick } of script) run.step(does, pick);
        run.finish();
        expect(run.outcome()).toEqual(run.expected());
      }),
      { numRuns: 400 },
    );
  });

  it("ends each slot as without tiers if it has strict ones, whatever crashes in between", () => {
    const tiers = fc.array(fc.constantFrom<Tier>(0, 1, 2), { minLength: 14, maxLength: 14 });
    fc.assert(
      fc.property(graphs, steps, tiers, (drawn, script, draws) => {
        const run = new GraphUnderTest(drawn, 3, draws);
        for (const { does, pick } of script) run.step(does, pick);
        run.finish();
        expect(run.outcome()).toEqual(run.expected());
      }),
      { numRuns: 200 },
    );
  });

  it("writes no row for what follows from the graph: one per slot that ran, one per slot that was skipped", () => {
    fc.assert(
      fc.property(graphs, (drawn) => {
        const run = new GraphUnderTest(drawn, 64);
        run.finish();
        const present = run.expected().filter(({ state }) => state !== "absent").length;
        expect(run.slotRows).toBe(present);
      }),
      { numRuns: 100 },
    );
  });
});
