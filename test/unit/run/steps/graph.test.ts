/**
 * Random graphs with random answers, executed with crashes at any commit, against a reference that knows only what a graph
 * means: each slot ends once, none starts before its inputs are stored, and the outputs are the same.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EARLY_CALLS_PRICED_MAX } from "../../../../src/limits.ts";
import type { Tier } from "../../../../src/run/answers/tiers.ts";
import type { CompiledTask } from "../../../../src/run/graph/types.ts";
import { graphs } from "../../../support/frontier-graphs.ts";
import { DRAWN_PATTERN } from "../../../support/run-if-reference.ts";
import { GraphUnderTest } from "../../../support/graph-run.ts";

const step = fc.record({
  pick: fc.nat({ max: 1_000 }),
  does: fc.constantFrom("settle", "settle", "settle", "settle", "crash", "lose"),
});
const steps = fc.array(step, { maxLength: 60 });

/** Without alternatives: a task that runs cannot get one, so no prefix of such a graph can grow to it. */
const growing = graphs.map((drawn) => ({
  ...drawn,
  tasks: drawn.tasks.map(({ alternatives, alternativeOf, ...task }) => {
    void [alternatives, alternativeOf];
    return task;
  }),
}));

const PATTERN = { kind: "matches", source: DRAWN_PATTERN, flags: "" } as const;

/** Most calls that depend on an output start by what it says, so many could be made early. */
const branching = graphs.map((drawn) => ({
  ...drawn,
  tasks: drawn.tasks.map((task) => {
    const [first] = task.dependencies;
    const isCall = task.foreach === undefined && task.alternatives === undefined && task.alternativeOf === undefined;
    if (first === undefined || !isCall || drawn.tasks[first]?.foreach !== undefined) return task;
    return { ...task, runIf: { condition: { task: first, test: PATTERN } } };
  }),
}));

/** The slots that do not start although they are there: each has one event. */
function skippedIn(slots: readonly { state: string }[]): number[] {
  return slots.flatMap(({ state }, index) => (state === "skipped" || state === "unmet" ? [index] : []));
}

describe("a graph that grows while it runs", () => {
  it(
    "ends each slot once, with the same outputs as one that was opened whole, whatever crashes in between",
    { tags: ["slow"] },
    () => {
      const grows = fc.record({ pick: fc.integer({ min: 1, max: 3 }), does: fc.constant("grow" as const) });
      const script = fc.array(fc.oneof(step, grows), { maxLength: 60 });
      fc.assert(
        fc.property(growing, script, fc.constantFrom(1, 3, 64), fc.nat(), (drawn, steps, width, cut) => {
          const opened = 1 + (cut % drawn.tasks.length);
          const run = new GraphUnderTest(drawn, width, { opened });
          for (const { does, pick } of steps) {
            if (does === "grow") run.grow(pick);
            else run.step(does, pick);
          }
          run.finish();
          expect(run.outcome()).toEqual(run.expected());
        }),
        { numRuns: 400 },
      );
    },
  );
});

describe("a graph in the engine", () => {
  it("ends each slot once, as the reference does, whatever crashes in between", { tags: ["slow"] }, () => {
    fc.assert(
      fc.property(graphs, steps, fc.constantFrom(1, 3, 64), (drawn, script, width) => {
        const run = new GraphUnderTest(drawn, width);
        for (const { does, pick } of script) run.step(does, pick);
        run.finish();
        expect(run.outcome()).toEqual(run.expected());
        expect(run.skippedInLog).toEqual(skippedIn(run.expected()));
      }),
      { numRuns: 400 },
    );
  });

  it(
    "ends each slot as without early calls if it makes some, pays for no answer twice, and wastes no more than it may",
    { tags: ["slow"] },
    () => {
      let [started, used] = [0, 0];
      const bound = fc.constantFrom(0, 700, 1_000_000);
      fc.assert(
        fc.property(branching, steps, fc.constantFrom(1, 3, 64), bound, (drawn, script, width, nanoUsd) => {
          const run = new GraphUnderTest(drawn, width, { speculateNanoUsd: nanoUsd });
          for (const { does, pick } of script) run.step(does, pick);
          run.finish();
          expect(run.outcome()).toEqual(run.expected());
          expect(run.answeredTwice).toEqual([]);
          const { speculation } = run;
          expect(run.wastedNanoUsd).toBeLessThanOrEqual(nanoUsd);
          started += speculation?.started ?? 0;
          used += speculation?.used ?? 0;
        }),
        { numRuns: 200 },
      );
      expect(Math.min(used, started - used)).toBeGreaterThan(0);
    },
  );

  it("prices few of the early calls that its bound never pays for, however many could be made", () => {
    const waiting = Array.from({ length: 200 }, (_, at) => at + 1);
    const task = (first: number): CompiledTask => ({ id: `t${first}`, first, slots: 1, dependencies: [], rank: 0 });
    const conditional = waiting.map((first) => ({
      ...task(first),
      dependencies: [0],
      runIf: { condition: { otherwise: 0 } },
    }));
    const tasks = [task(0), ...conditional];
    const none = { elements: tasks.map(() => null), endings: tasks.map(() => "completed" as const), seed: 1 };
    const run = new GraphUnderTest({ tasks, slots: tasks.length, ...none }, 64, { speculateNanoUsd: 0 });
    // And the call that starts.
    expect(run.substitutions - 1).toBeGreaterThan(0);
    expect(run.substitutions - 1).toBeLessThanOrEqual(EARLY_CALLS_PRICED_MAX);
  });

  it("ends each slot as without tiers if it has strict ones, whatever crashes in between", { tags: ["slow"] }, () => {
    const tiers = fc.array(fc.constantFrom<Tier>(0, 1, 2), { minLength: 14, maxLength: 14 });
    fc.assert(
      fc.property(graphs, steps, tiers, (drawn, script, draws) => {
        const run = new GraphUnderTest(drawn, 3, { tiers: draws });
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
        expect(run.skippedInLog).toEqual(skippedIn(run.expected()));
      }),
      { numRuns: 100 },
    );
  });
});
