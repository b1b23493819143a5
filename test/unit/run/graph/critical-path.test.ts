import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TASK_DURATION_MS_DEFAULT } from "../../../../src/limits.ts";
import { taskOf, valid } from "../../../support/graphs.ts";

const timed = (id: string, estimatedDurationMs: number, ...dependencies: string[]) =>
  taskOf(id, { estimatedDurationMs, dependencies });

describe("the figures of a graph", () => {
  it("of ParallelQA with three branches: six search and math tasks, one that combines, one that joins", () => {
    const branches = [1, 2, 3].flatMap((at) => [
      taskOf(`search${at}`),
      taskOf(`math${at}`, `Of {{search${at}.output}}`),
    ]);
    const combine = taskOf("combine", "{{math1.output}} {{math2.output}} {{math3.output}}");
    const others = [...branches.map(({ id }) => id), "combine"];
    const join = taskOf("join", { dependencies: others });
    const { stats } = valid([...branches, combine, join]);
    expect(stats).toMatchObject({
      total: 8,
      edges: 13,
      roots: 3,
      parallelizable: 6,
      maxDepth: 4,
      maxWidth: 3,
      criticalPath: ["search1", "math1", "combine", "join"],
      criticalPathMs: 4 * TASK_DURATION_MS_DEFAULT,
    });
  });

  it("follow the estimates: the longest chain can have the fewest tasks", () => {
    const { stats } = valid([
      timed("a", 1_000),
      timed("b", 1_000, "a"),
      timed("c", 1_000, "b"),
      timed("long", 5_000),
      timed("end", 500, "c", "long"),
    ]);
    expect(stats.criticalPath).toEqual(["long", "end"]);
    expect(stats.criticalPathMs).toBe(5_500);
  });

  it("equal a naive reference on random graphs", () => {
    const graphs = fc.array(fc.tuple(fc.integer({ min: 0, max: 50_000 }), fc.array(fc.nat(100), { maxLength: 3 })), {
      minLength: 1,
      maxLength: 14,
    });
    fc.assert(
      fc.property(graphs, (rows) => {
        // A task depends on earlier ones only, so that there is no cycle.
        const dependencies = rows.map(([, picks], at) =>
          at === 0 ? [] : [...new Set(picks.map((pick) => pick % at))],
        );
        const tasks = rows.map(([ms], at) =>
          timed(`t${at}`, ms, ...(dependencies[at] ?? []).map((other) => `t${other}`)),
        );
        const endMs: number[] = [];
        const level: number[] = [];
        rows.forEach(([ms], at) => {
          const others = dependencies[at] ?? [];
          endMs[at] = ms + Math.max(0, ...others.map((other) => endMs[other] ?? 0));
          level[at] = 1 + Math.max(0, ...others.map((other) => level[other] ?? 0));
        });
        const { stats } = valid(tasks);
        expect(stats.criticalPathMs).toBe(Math.max(...endMs));
        expect(stats.maxDepth).toBe(Math.max(...level));
        expect(stats.roots).toBe(dependencies.filter((list) => list.length === 0).length);
        const pathMs = stats.criticalPath.reduce((sum, id) => sum + (rows[Number(id.slice(1))]?.[0] ?? NaN), 0);
        expect(pathMs).toBe(stats.criticalPathMs);
      }),
    );
  });
});

describe("ranks", () => {
  const tasks = [timed("a", 10_000), timed("b", 1_000), timed("c", 100_000, "b"), timed("d", 1_000, "b")];
  const ranks = (schedule: "critical_path" | "fifo" | "weight"): string[] => {
    const ranked = [...valid(tasks, { schedule }).graph.tasks].sort((one, other) => other.rank - one.rank);
    return ranked.map(({ id }) => id);
  };

  it("put first what has the longest rest", () => {
    expect(ranks("critical_path")).toEqual(["b", "c", "a", "d"]);
  });

  it("are equal with fifo", () => {
    expect(valid(tasks, { schedule: "fifo" }).graph.tasks.map(({ rank }) => rank)).toEqual([0, 0, 0, 0]);
  });

  it("with weight, count duration and the tasks that wait", () => {
    // c: 0.6 × log10(100) = 1.2; b: 0.4 × 2 = 0.8; a: 0.6 × log10(10) = 0.6; d: 0.
    expect(ranks("weight")).toEqual(["c", "b", "a", "d"]);
    expect(valid(tasks, { schedule: "weight" }).graph.tasks.map(({ rank }) => rank)).toEqual([60, 80, 120, 0]);
  });
});
