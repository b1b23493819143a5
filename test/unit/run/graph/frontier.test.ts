/** Which slots of a graph may start: single cases, and random graphs against a reference that looks at everything each time. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Frontier, type Advance, type SlotEnding } from "../../../../src/run/graph/frontier.ts";
import type { CompiledTask } from "../../../../src/run/graph/types.ts";
import { frontierOf, graphs, referenceOf, type DrawnGraph } from "../../../support/frontier-graphs.ts";

type Drawn = Partial<CompiledTask> & { dependencies: number[] };

/** A graph of tasks that are given by what differs from an ordinary one. */
function graphOf(drawn: readonly Drawn[]): { tasks: CompiledTask[]; slots: number } {
  let first = 0;
  const tasks = drawn.map((task, position) => {
    const compiled = { id: `t${position}`, slots: 1, rank: 0, ...task, first };
    first += compiled.slots;
    return compiled;
  });
  return { tasks, slots: first };
}

function frontier(
  drawn: readonly Drawn[],
  elements: (task: number) => number | null = () => null,
  holds: (task: number) => boolean = () => true,
): Frontier {
  return new Frontier(graphOf(drawn), elements, holds);
}

const NOTHING: Advance = { ready: [], skipped: [], unfed: [], absent: [] };

describe("the frontier of a graph", () => {
  it("starts the tasks without dependencies, and each other one when its last dependency has completed", () => {
    const diamond = frontier([
      { dependencies: [] },
      { dependencies: [0] },
      { dependencies: [0] },
      { dependencies: [1, 2] },
    ]);
    expect(diamond.start().ready).toEqual([0]);
    expect(diamond.ended(0, "completed").ready).toEqual([1, 2]);
    expect(diamond.ended(2, "completed")).toEqual(NOTHING);
    expect(diamond.ended(1, "completed").ready).toEqual([3]);
    expect(diamond.blocked).toBe(0);
  });

  it("skips everything that depends on a task that failed, however far away, and names the task that did not complete", () => {
    const chain = frontier([{ dependencies: [] }, { dependencies: [0] }, { dependencies: [1] }]);
    chain.start();
    expect(chain.ended(0, "failed").skipped).toEqual([
      { index: 1, because: 0 },
      { index: 2, because: 1 },
    ]);
  });

  it("skips a chain of 50,000 tasks without running out of stack", () => {
    const chain = frontier(Array.from({ length: 50_000 }, (_, at) => ({ dependencies: at === 0 ? [] : [at - 1] })));
    chain.start();
    expect(chain.ended(0, "failed").skipped).toHaveLength(49_999);
  });

  it("starts a task despite failures if its run_if allows them", () => {
    const rules = (runIf: CompiledTask["runIf"]): number[] => {
      const tasks = frontier([
        { dependencies: [] },
        { dependencies: [] },
        { dependencies: [0, 1], ...(runIf === undefined ? {} : { runIf }) },
      ]);
      tasks.start();
      tasks.ended(0, "completed");
      return tasks.ended(1, "failed").ready;
    };
    expect(rules("all_success")).toEqual([]);
    expect(rules("any")).toEqual([2]);
    expect(rules("always")).toEqual([2]);
    expect(rules({ atLeast: 0.5 })).toEqual([2]);
    expect(rules({ atLeast: 0.51 })).toEqual([]);
  });

  it("starts one slot per element, and those beyond the last do not exist", () => {
    const each = frontier(
      [{ dependencies: [] }, { dependencies: [0], slots: 5, foreach: { source: 0, path: [] } }, { dependencies: [1] }],
      () => 2,
    );
    each.start();
    expect(each.ended(0, "completed")).toEqual({ ...NOTHING, ready: [1, 2], absent: [[3, 6]] });
    expect(each.absentSlots).toBe(3);
    expect(each.ended(2, "completed").ready).toEqual([]);
    expect(each.ended(1, "completed").ready).toEqual([6]);
  });

  it("completes a foreach without elements at once, and fails one whose source has none to give", () => {
    const tasks: Drawn[] = [
      { dependencies: [] },
      { dependencies: [0], slots: 2, foreach: { source: 0, path: [] } },
      { dependencies: [1] },
    ];
    const empty = frontier(tasks, () => 0);
    empty.start();
    expect(empty.ended(0, "completed").ready).toEqual([3]);
    const unfed = frontier(tasks, () => null);
    unfed.start();
    expect(unfed.ended(0, "completed")).toEqual({
      ready: [],
      skipped: [{ index: 3, because: 1 }],
      unfed: [1],
      absent: [[2, 3]],
    });
  });

  it("starts an element of a pipeline when the same element of its source has completed, not when all have", () => {
    const pipeline = frontier(
      [
        { dependencies: [] },
        { dependencies: [0], slots: 3, foreach: { source: 0, path: [] } },
        { dependencies: [1], slots: 3, foreach: { source: 1, path: [], elementwise: true } },
      ],
      () => 2,
    );
    pipeline.start();
    expect(pipeline.ended(0, "completed").absent).toEqual([
      [3, 4],
      [6, 7],
    ]);
    expect(pipeline.ended(2, "completed").ready).toEqual([5]);
    expect(pipeline.ended(1, "failed").skipped).toEqual([{ index: 4, because: 1 }]);
  });

  it("tries alternatives in order, and the first that completes answers for the task that failed", () => {
    const tasks: Drawn[] = [
      { dependencies: [], alternatives: [1, 2, 3] },
      { dependencies: [], alternativeOf: 0 },
      { dependencies: [], alternativeOf: 0 },
      { dependencies: [], alternativeOf: 0 },
      { dependencies: [0] },
    ];
    const tried = frontier(tasks);
    expect(tried.start().ready).toEqual([0]);
    expect(tried.ended(0, "failed").ready).toEqual([1]);
    expect(tried.isLost(0)).toBe(false);
    expect(tried.ended(1, "failed").ready).toEqual([2]);
    expect(tried.ended(2, "completed")).toEqual({ ...NOTHING, ready: [4], absent: [[3, 4]] });
    expect(tried.answering(0)).toBe(2);
    expect(tried.replacedSlots).toBe(1);
    const unneeded = frontier(tasks);
    unneeded.start();
    expect(unneeded.ended(0, "completed")).toEqual({ ...NOTHING, ready: [4], absent: [[1, 4]] });
  });

  it("says that a task is lost once its last alternative has failed, not before", () => {
    const tried = frontier([
      { dependencies: [], alternatives: [1] },
      { dependencies: [], alternativeOf: 0 },
      { dependencies: [0] },
    ]);
    tried.start();
    tried.ended(0, "failed");
    expect([0, 1].map((index) => tried.isLost(index))).toEqual([false, false]);
    expect(tried.ended(1, "failed").skipped).toEqual([{ index: 2, because: 0 }]);
    expect([0, 1].map((index) => tried.isLost(index))).toEqual([true, true]);
  });

  it("skips a task whose condition does not hold, starts its else, and merges the branch that was taken", () => {
    const test = { kind: "equals", text: "x" } as const;
    const tasks: Drawn[] = [
      { dependencies: [] },
      { dependencies: [0], runIf: { condition: { task: 0, test } } },
      { dependencies: [1], runIf: { condition: { otherwise: 1 } } },
      { dependencies: [1] },
      { dependencies: [1, 2], runIf: { atLeast: 1 } },
    ];
    const branches = (taken: boolean): Frontier => {
      const graph: Frontier = frontier(
        tasks,
        () => null,
        (task) => (task === 2 ? graph.isDeclined(1) : taken),
      );
      graph.start();
      return graph;
    };
    const declined = branches(false);
    expect(declined.ended(0, "completed")).toEqual({
      ...NOTHING,
      ready: [2],
      skipped: [
        { index: 1, because: 0, isUnmet: true },
        { index: 3, because: 1, isUnmet: true },
      ],
    });
    expect(declined.unmetSlots).toBe(2);
    expect(declined.ended(2, "completed").ready).toEqual([4]);
    const taken = branches(true);
    expect(taken.ended(0, "completed").ready).toEqual([1]);
    expect(taken.ended(1, "completed")).toEqual({
      ...NOTHING,
      ready: [3, 4],
      skipped: [{ index: 2, because: 1, isUnmet: true }],
    });
    expect(
      branches(false)
        .ended(0, "failed")
        .skipped.map(({ isUnmet }) => isUnmet),
    ).toEqual(Array(4).fill(undefined));
  });

  it("starts no else of a branch that was not taken itself", () => {
    const test = { kind: "equals", text: "x" } as const;
    const nested: Frontier = frontier(
      [
        { dependencies: [] },
        { dependencies: [0], runIf: { condition: { task: 0, test } } },
        { dependencies: [1], runIf: { condition: { task: 1, test } } },
        { dependencies: [2], runIf: { condition: { otherwise: 2 } } },
      ],
      () => null,
      (task) => task === 3 && nested.isDeclined(2),
    );
    nested.start();
    expect(nested.ended(0, "completed").skipped.map(({ index }) => index)).toEqual([1, 2, 3]);
  });

  it("starts nothing once it was stopped, and one slot represents a foreach whose elements are not known", () => {
    const stopped = frontier(
      [{ dependencies: [] }, { dependencies: [0], slots: 4, foreach: { source: 0, path: [] } }],
      () => 4,
    );
    stopped.start();
    expect(stopped.stop().absent).toEqual([[2, 5]]);
    expect(stopped.ended(0, "completed")).toEqual(NOTHING);
    expect(stopped.absentRanges()).toEqual([[2, 5]]);
  });
});

describe("random graphs", () => {
  it("release, skip and leave out exactly the slots that a reference does, whatever ends in whatever order", () => {
    fc.assert(
      fc.property(graphs, (drawn) => {
        const { tested, endings } = play(drawn);
        expect(stateOf(drawn, tested)).toEqual(referenceOf(drawn, endings));
      }),
      { numRuns: 500 },
    );
  });

  it("are in the same state after a restart, which gives the ended slots in another order", () => {
    fc.assert(
      fc.property(graphs, fc.double({ min: 0, max: 1, noNaN: true }), (drawn, share) => {
        const { tested: before, endings } = play(drawn, share);
        const after = frontierOf(drawn, endings);
        after.start();
        after.restored([...endings].sort(([a], [b]) => a - b));
        expect(stateOf(drawn, after)).toEqual(stateOf(drawn, before));
        expect(after.blocked).toBe(before.blocked);
        expect(after.unmetSlots).toBe(before.unmetSlots);
        expect(after.absentSlots).toBe(before.absentSlots);
      }),
      { numRuns: 500 },
    );
  });
});

/** Ends ready slots in a random order, a share of them or all. Returns every ending, those of skipped slots among them. */
function play(drawn: DrawnGraph, share = 1): { tested: Frontier; endings: Map<number, SlotEnding> } {
  const endings = new Map<number, SlotEnding>();
  const tested = frontierOf(drawn, endings);
  const ready: number[] = [];
  const take = (advance: Advance): void => {
    for (const index of advance.ready) ready.push(index);
    for (const { index, isUnmet } of advance.skipped) endings.set(index, isUnmet === true ? "unmet" : "other");
    for (const index of advance.unfed) endings.set(index, "failed");
  };
  take(tested.start());
  const limit = Math.ceil(share * drawn.slots);
  for (let step = 0; ready.length > 0 && step < limit; step++) {
    const pick = (drawn.seed + step * 7) % ready.length;
    const [index = 0] = ready.splice(pick, 1);
    expect(endings.has(index), `slot ${index} is released once`).toBe(false);
    const ending = drawn.endings[index] ?? "completed";
    endings.set(index, ending);
    take(tested.ended(index, ending));
  }
  return { tested, endings };
}

/** By slot: absent, blocked, or released, ended or skipped. */
function stateOf({ slots }: DrawnGraph, tested: Frontier): string[] {
  return Array.from({ length: slots }, (_, index) =>
    tested.isAbsent(index) ? "absent" : tested.isBlocked(index) ? "blocked" : "begun",
  );
}
