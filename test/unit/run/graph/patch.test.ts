import { describe, expect, it } from "vitest";
import { patchGraph, type Patch, type Patched } from "../../../../src/run/graph/patch.ts";
import type { CompiledGraph } from "../../../../src/run/graph/types.ts";
import { positionsOf } from "../../../../src/run/graph/types.ts";
import { taskOf, valid } from "../../../support/graphs.ts";

/** find → draft → report, and an independent check. */
const { graph } = valid([
  taskOf("find"),
  taskOf("draft", "Draft {{find.output}}"),
  taskOf("report", { dependencies: ["draft"] }),
  taskOf("check"),
]);

const patched = (operations: Patch["operations"], changes: Partial<Patch> & { graph?: CompiledGraph } = {}): Patched =>
  patchGraph(changes.graph ?? graph, {
    version: 1,
    key: "change",
    hasStarted: (position) => position === 0,
    ...changes,
    operations,
  });

function changed(operations: Patch["operations"], changes?: Parameters<typeof patched>[1]): CompiledGraph {
  const result = patched(operations, changes);
  if (!result.ok) throw new Error(JSON.stringify(result.reason));
  return result.graph;
}

const refusal = (operations: Patch["operations"], changes?: Parameters<typeof patched>[1]): string => {
  const result = patched(operations, changes);
  return result.ok ? "accepted" : JSON.stringify(result.reason);
};

/** The edges of a graph by id, without what was removed. */
const edges = ({ tasks }: CompiledGraph): string[] =>
  tasks
    .filter(({ removed }) => removed === undefined)
    .flatMap(({ id, dependencies }) => dependencies.map((other) => `${id} ← ${tasks[other]?.id}`))
    .sort();

describe("a change of a graph", () => {
  it("appends tasks, which may refer to each other in any order, and adds 1 to the version", () => {
    const result = patched([
      { op: "add_task", task: taskOf("end", "{{middle.output}}") },
      { op: "add_task", task: taskOf("middle", "{{find.output}}") },
    ]);
    expect(result).toMatchObject({ ok: true, appended: [0, 1], graph: { version: 2, slots: 6 } });
    expect(result.ok && result.graph.tasks.slice(0, 4).map(({ id, first }) => [id, first])).toEqual(
      graph.tasks.map(({ id, first }) => [id, first]),
    );
    expect(result.ok && edges(result.graph)).toContain("end ← middle");
  });

  it("replaces a task by a new one with its id, to which its dependents move", () => {
    const next = changed([{ op: "update_task", id: "draft", task: taskOf("draft", "Draft anew {{check.output}}") }]);
    expect(edges(next)).toEqual(["draft ← check", "report ← draft"]);
    expect(next.tasks[1]).toMatchObject({ id: "draft", removed: true, first: 1, slots: 1 });
    expect(positionsOf(next.tasks).get("draft")).toBe(4);
    expect(next.tasks[4]).toMatchObject({ first: 4, slots: 1 });
  });

  it("removes a task that nothing needs, and frees its id", () => {
    const next = changed([{ op: "remove_task", id: "report" }]);
    expect(next.tasks[2]).toMatchObject({ removed: true, dependencies: [] });
    const again = changed([{ op: "add_task", task: taskOf("report") }], { graph: next, version: 2 });
    expect(positionsOf(again.tasks).get("report")).toBe(4);
  });

  it("gives an alternative the condition under which it is tried, over the tasks as they are afterwards", () => {
    const test = { kind: "equals" as const, text: "good" };
    const alternatives = [{ id: "report", when: { task: "check", test } }];
    const next = changed([
      { op: "add_task", task: taskOf("essay", { alternatives }) },
      { op: "update_task", id: "check", task: taskOf("check") },
    ]);
    expect(edges(next)).toEqual(["draft ← find", "report ← check", "report ← draft"]);
    const at = positionsOf(next.tasks).get("check");
    expect(next.tasks[2]).toMatchObject({ alternativeOf: 4, runIf: { condition: { task: at, test } } });
    // The same once more is no second condition; another one is.
    const essay = taskOf("essay", { alternatives });
    const repeated = { graph: next, version: 2 };
    expect(changed([{ op: "update_task", id: "essay", task: essay }], repeated).tasks[2]?.runIf).toEqual(
      next.tasks[2]?.runIf,
    );
    const other = taskOf("essay", { alternatives: [{ id: "report", when: { task: "find", test } }] });
    expect(refusal([{ op: "update_task", id: "essay", task: other }], repeated)).toContain("expected one of both");
  });

  it("adds and removes dependencies", () => {
    const next = changed([
      { op: "remove_dependency", id: "report", dependency: "draft" },
      { op: "add_dependency", id: "report", dependency: "check" },
    ]);
    expect(edges(next)).toEqual(["draft ← find", "report ← check"]);
  });

  it("ranks the tasks anew", () => {
    const next = changed([{ op: "add_dependency", id: "find", dependency: "check" }], { hasStarted: () => false });
    expect(next.tasks.map(({ rank }) => rank)).toEqual([300, 200, 100, 400]);
  });

  it("is refused under a version that is no longer that of the graph", () => {
    expect(refusal([], { version: 2 })).toBe(JSON.stringify({ reason: "stale_version", version: 1 }));
  });

  it("is refused for a task that has started, by its id", () => {
    expect(refusal([{ op: "remove_task", id: "find" }])).toContain('task \\"find\\" has started');
    expect(refusal([{ op: "update_task", id: "find", task: taskOf("find") }])).toContain("has started");
    expect(refusal([{ op: "add_dependency", id: "find", dependency: "check" }])).toContain("has started");
  });

  it("is refused for a cycle, with its path", () => {
    const result = patched([{ op: "add_dependency", id: "draft", dependency: "report" }]);
    expect(result).toMatchObject({
      ok: false,
      reason: { reason: "invalid_graph", cycle: ["draft", "report", "draft"] },
    });
  });

  it("is refused for what is not there, there already, or still needed", () => {
    expect(refusal([{ op: "remove_task", id: "none" }])).toContain('\\"none\\"');
    expect(refusal([{ op: "add_task", task: taskOf("check") }])).toContain("already");
    expect(refusal([{ op: "remove_task", id: "draft" }])).toContain('\\"report\\" needs the removed task \\"draft\\"');
    expect(refusal([{ op: "remove_dependency", id: "report", dependency: "check" }])).toContain("does not depend");
    expect(refusal([{ op: "add_task", task: taskOf("x", "{{none.output}}") }])).toContain("operations[0].task.prompt");
  });

  it("keeps a dependency that the prompt refers to", () => {
    expect(refusal([{ op: "remove_dependency", id: "draft", dependency: "find" }])).toContain("refers to");
  });

  it("with markdown, inserts an added dependency, and takes back one that no reference names", () => {
    const sections = valid([taskOf("a"), taskOf("b"), taskOf("c", { dependencies: ["a"] })], {
      inject: "markdown",
    }).graph;
    const next = changed([{ op: "add_dependency", id: "c", dependency: "b" }], { graph: sections });
    expect(next.tasks[2]?.inserted).toEqual([
      [0, 1],
      [1, 1],
    ]);
    const less = changed([{ op: "remove_dependency", id: "c", dependency: "a" }], { graph: sections });
    expect(less.tasks[2]).toMatchObject({ dependencies: [], inserted: [] });
  });

  it("applies all of its operations or none: the graph that was given never changes", () => {
    const before = JSON.stringify(graph);
    expect(
      refusal([
        { op: "add_task", task: taskOf("new") },
        { op: "remove_task", id: "find" },
      ]),
    ).toContain("started");
    changed([{ op: "update_task", id: "draft", task: taskOf("draft") }]);
    expect(JSON.stringify(graph)).toBe(before);
  });

  it("keeps the widths of a pipeline", () => {
    const pipeline = valid([
      taskOf("find"),
      taskOf("draft", { foreach: "{{find.output}}", maxItems: 3, body: { prompt: "Draft {{item}}" } }),
      taskOf("polish", { foreach: "{{draft.outputs}}", body: { prompt: "Polish {{item}}" } }),
    ]).graph;
    const draft = (maxItems: number) =>
      taskOf("draft", { foreach: "{{find.output}}", maxItems, body: { prompt: "Draft anew {{item}}" } });
    const next = changed([{ op: "update_task", id: "draft", task: draft(3) }], { graph: pipeline });
    expect(next.tasks[2]?.foreach).toEqual({ source: 3, path: [], elementwise: true });
    expect(refusal([{ op: "update_task", id: "draft", task: draft(4) }], { graph: pipeline })).toContain("3 slots");
    expect(refusal([{ op: "update_task", id: "draft", task: taskOf("draft") }], { graph: pipeline })).toContain(
      "foreach",
    );
  });
});

describe("a change of a graph with strict tiers", () => {
  const tiered: CompiledGraph = {
    ...graph,
    tiers: "strict",
    tasks: graph.tasks.map((task, at) => ({ ...task, tier: at === 0 ? (0 as const) : (1 as const) })),
  };
  const add = (tier: 0 | 1 | 2): Patch["operations"] => [{ op: "add_task", task: taskOf("more", { tier }) }];

  it("may add to the tier that runs and to later ones, and not to one that has passed", () => {
    expect(refusal(add(0), { graph: tiered })).toBe("accepted");
    const later = { graph: tiered, hasStarted: (position: number) => position <= 1 };
    expect(refusal(add(0), later)).toContain('\\"more\\" is of P0, but tasks of P1 have started or ended');
    expect([refusal(add(1), later), refusal(add(2), later)]).toEqual(["accepted", "accepted"]);
  });

  it("may add anywhere if its tiers are no barrier", () => {
    const { tiers: _, ...loose } = tiered;
    expect(refusal(add(0), { graph: loose, hasStarted: () => true })).toBe("accepted");
  });

  it("is refused if a task would wait for a later tier", () => {
    const waits = [{ op: "add_dependency", id: "draft", dependency: "late" } as const];
    const late: Patch["operations"] = [{ op: "add_task", task: taskOf("late", { tier: 2 }) }, ...waits];
    expect(refusal(late, { graph: tiered })).toContain("invalid_graph");
  });
});
