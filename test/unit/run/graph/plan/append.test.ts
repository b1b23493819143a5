import { describe, expect, it } from "vitest";
import { appendPlan, EMPTY_PLAN, type PlanPart } from "../../../../../src/run/graph/plan/append.ts";
import type { TaskSource } from "../../../../../src/run/graph/read-task.ts";
import { patchGraph } from "../../../../../src/run/graph/patch.ts";
import { GRAPH_FAULTS_MAX, GRAPH_SLOTS_MAX, GRAPH_TASKS_MAX } from "../../../../../src/limits.ts";
import { taskOf } from "../../../../support/graphs.ts";

/** A part of a plan whose lines are these tasks, from a line on. */
function partOf(tasks: readonly TaskSource[], more: Partial<PlanPart> = {}, from = 1): PlanPart {
  const lines = tasks.map((task, at) => ({ line: from + at, task }));
  return { tasks: lines, faults: [], line: from + tasks.length - 1, state: "open", ...more };
}

const messages = (tasks: readonly TaskSource[]): string[] =>
  appendPlan(EMPTY_PLAN, partOf(tasks)).faults.map(({ line, message }) => `${line} ${message}`);

describe("a plan that is read in parts", () => {
  it("is the same graph as one that came at once, with a version for each part", () => {
    const tasks = [
      taskOf("find"),
      taskOf("each", { foreach: "{{find.output}}", maxItems: 3, body: { prompt: "{{item}}" } }),
      taskOf("polish", { foreach: "{{each.outputs}}", body: { prompt: "{{item}}" } }),
      taskOf("report", "{{polish.outputs}}"),
    ];
    const whole = appendPlan(EMPTY_PLAN, partOf(tasks)).graph;
    let graph = EMPTY_PLAN;
    tasks.forEach((task, at) => {
      graph = appendPlan(graph, partOf([task], {}, at + 1)).graph;
    });
    expect([whole.version, graph.version, graph.slots]).toEqual([1, 4, 8]);
    expect({ ...graph, version: 1 }).toEqual(whole);
    expect(graph.tasks.map(({ first, dependencies }) => [first, dependencies])).toEqual([
      [0, []],
      [1, [0]],
      [4, [1]],
      [7, [2]],
    ]);
  });

  it("refuses a line by itself: those around it are added", () => {
    const { graph, added, faults } = appendPlan(
      EMPTY_PLAN,
      partOf([taskOf("a"), taskOf("b", "{{later.output}}"), taskOf("c", "{{b.output}}"), taskOf("d", "{{a.output}}")]),
    );
    expect(graph.tasks.map(({ id }) => id)).toEqual(["a", "d"]);
    expect(added).toEqual([0, 3]);
    expect(faults.map(({ line, message }) => `${line} ${message}`)).toEqual([
      '2 prompt: no task has the id "later"',
      '3 prompt: no task has the id "b"',
    ]);
    expect(graph.plan).toEqual({ state: "open", line: 4, faults });
  });

  it("refuses an id that is there, alternatives, and a reference of a task to itself", () => {
    expect(messages([taskOf("a"), taskOf("a")])[0]).toMatch(/^2 "a" is the id of an earlier task/);
    expect(messages([taskOf("a"), taskOf("b", { alternatives: ["a"] })])[0]).toMatch(/^2 alternatives/);
    expect(messages([taskOf("a", "{{a.output}}")])[0]).toContain("depends on itself");
  });

  it("refuses what would exceed the slots or tasks of a graph, and takes what fits", () => {
    const wide = (id: string, maxItems: number) =>
      taskOf(id, { foreach: "{{find.output}}", maxItems, body: { prompt: "{{item}}" } });
    expect(messages([taskOf("find"), wide("fits", GRAPH_SLOTS_MAX - 1)])).toEqual([]);
    expect(messages([taskOf("find"), wide("big", GRAPH_SLOTS_MAX), taskOf("small")])).toEqual([
      `2 the graph would have more than ${GRAPH_SLOTS_MAX} calls`,
    ]);
    const tasks = Array.from({ length: GRAPH_TASKS_MAX + 1 }, (_, at) => taskOf(`t${at}`));
    expect(messages(tasks)).toEqual([`${GRAPH_TASKS_MAX + 1} the graph would have more than ${GRAPH_TASKS_MAX} tasks`]);
  });

  it("counts as cut after many faults, of which it keeps the first", () => {
    const bad = (line: number) => ({ line, message: "is not JSON" });
    const few = Array.from({ length: GRAPH_FAULTS_MAX - 1 }, (_, at) => bad(at + 1));
    const before = appendPlan(EMPTY_PLAN, partOf([], { faults: few, line: few.length })).graph;
    expect(before.plan?.state).toBe("open");
    const after = appendPlan(before, partOf([taskOf("a")], { faults: [bad(98), bad(99)], line: 99 }, 97)).graph;
    expect([after.plan?.state, after.plan?.faults.length, after.tasks.length]).toEqual(["cut", GRAPH_FAULTS_MAX, 1]);
    expect(after.plan?.faults.at(-1)?.line).toBe(98);
  });

  it("continues after a change, and knows the ids that it added and removed", () => {
    const { graph } = appendPlan(EMPTY_PLAN, partOf([taskOf("a"), taskOf("b")]));
    const change = { version: 1, key: "k", hasStarted: () => false };
    const patched = patchGraph(graph, {
      ...change,
      operations: [
        { op: "remove_task", id: "b" },
        { op: "add_task", task: taskOf("c", { alternatives: ["a"] }) },
      ],
    });
    if (!patched.ok) throw new Error("the change was refused");
    const next = appendPlan(patched.graph, partOf([taskOf("b", "{{c.output}}"), taskOf("d", "{{a.output}}")], {}, 3));
    expect(next.graph.tasks.map(({ id, removed }) => `${id}${removed === true ? " removed" : ""}`)).toEqual([
      "a",
      "b removed",
      "c",
      "b",
    ]);
    expect(next.faults[0]).toMatchObject({ line: 4, message: expect.stringContaining("only replaces another") });
  });
});
