/** Strict tiers of graphs: what is refused, and random graphs in which no tier starts before those before it have ended. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Tier } from "../../../../src/run/answers/tiers.ts";
import { Frontier, type Advance } from "../../../../src/run/graph/frontier.ts";
import type { CompiledTask } from "../../../../src/run/graph/types.ts";
import { graphs, tiered, type DrawnGraph } from "../../../support/frontier-graphs.ts";
import { faultsOf, taskOf, valid } from "../../../support/graphs.ts";

describe("strict tiers of a graph", () => {
  const late = [taskOf("a", { tier: 1 }), taskOf("b", { tier: 0, dependencies: ["a"] })];

  it("refuse a task that depends on one of a later tier, which would wait for it", () => {
    expect(faultsOf(late, { tiers: "strict" })).toEqual(["invalid_tier tasks[1].tier"]);
    expect(faultsOf(late)).toEqual([]);
  });

  it("count a task without a tier as one of P2", () => {
    const tasks = [taskOf("a"), taskOf("b", { tier: 1, dependencies: ["a"] })];
    expect(faultsOf(tasks, { tiers: "strict" })).toEqual(["invalid_tier tasks[1].tier"]);
    expect(faultsOf([taskOf("a"), taskOf("b", { tier: 2, dependencies: ["a"] })], { tiers: "strict" })).toEqual([]);
  });

  it("refuse an alternative of another tier than its task", () => {
    const withTier = (tier: Tier) => [taskOf("a", { tier: 1, alternatives: ["b"] }), taskOf("b", { tier })];
    expect(faultsOf(withTier(2), { tiers: "strict" })).toEqual(["invalid_tier tasks[1].tier"]);
    expect(faultsOf(withTier(0), { tiers: "strict" })).toEqual(["invalid_tier tasks[1].tier"]);
    expect(faultsOf(withTier(1), { tiers: "strict" })).toEqual([]);
  });

  it("start a tier when the last task of the tier before it has ended, even if that one failed", () => {
    const { graph } = valid([taskOf("late"), taskOf("a", { tier: 0 }), taskOf("b", { tier: 0 })], { tiers: "strict" });
    const frontier = new Frontier(
      graph,
      () => null,
      () => true,
    );
    expect(frontier.start().ready).toEqual([1, 2]);
    expect(frontier.ended(1, "completed").ready).toEqual([]);
    expect(frontier.isHeld(0)).toBe(true);
    expect(frontier.ended(2, "failed")).toMatchObject({ ready: [0], skipped: [] });
    expect(frontier.isHeld(0)).toBe(false);
  });

  it("skip tiers that no task has", () => {
    const { graph } = valid([taskOf("a", { tier: 1 }), taskOf("b")], { tiers: "strict" });
    const frontier = new Frontier(
      graph,
      () => null,
      () => true,
    );
    expect(frontier.start().ready).toEqual([0]);
    expect(frontier.ended(0, "completed").ready).toEqual([1]);
  });

  it("hold back in random graphs whatever is of a later tier than an open task, and let all of it end", () => {
    fc.assert(
      fc.property(
        graphs,
        fc.array(fc.constantFrom<Tier>(0, 1, 2), { minLength: 14, maxLength: 14 }),
        (drawn, draws) => {
          const tasks = tiered(drawn.tasks, draws);
          const frontier = new Frontier(
            { ...drawn, tasks, tiers: "strict" },
            (task) => drawn.elements[task] ?? null,
            () => true,
          );
          const { order, open } = play(drawn, tasks, frontier);
          expect(open).toBe(0);
          expect(frontier.blocked).toBe(0);
          expect(order).toEqual(order.toSorted((a, b) => a - b));
        },
      ),
      { numRuns: 400 },
    );
  });
});

/** Ends slots in a random order. The tiers in the order in which their slots were released, and how many are left open. */
function play(
  { endings, seed, slots }: DrawnGraph,
  tasks: readonly CompiledTask[],
  frontier: Frontier,
): { order: number[]; open: number } {
  const ready: number[] = [];
  const order: number[] = [];
  const ended = new Set<number>();
  const take = (advance: Advance): void => {
    for (const index of advance.ready) {
      ready.push(index);
      order.push(tasks[frontier.taskOf(index)]?.tier ?? 2);
    }
    for (const { index } of advance.skipped) ended.add(index);
    for (const index of advance.unfed) ended.add(index);
  };
  take(frontier.start());
  for (let step = 0; ready.length > 0; step++) {
    const [index = 0] = ready.splice((seed + step * 7) % ready.length, 1);
    ended.add(index);
    take(frontier.ended(index, endings[index] ?? "completed"));
  }
  const open = Array.from({ length: slots }, (_, at) => at).filter((at) => !ended.has(at) && !frontier.isAbsent(at));
  return { order, open: open.length };
}
