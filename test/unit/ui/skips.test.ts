/** Tasks that the run page shows as skipped while their graph runs: the same that the frontier of the graph skips. */
import { describe, expect, it } from "vitest";
import { Frontier } from "../../../src/run/graph/frontier.ts";
import type { CompiledTask } from "../../../src/run/graph/types.ts";
import { outlineOf } from "../../../src/http/replies/graph/outline.ts";
import { readOutline } from "../../../ui/model/graph/outline.ts";
import { viewOf } from "../../../ui/model/graph/task-states.ts";

import { GROUP, Lines, stateOf } from "./lines.ts";

type Short = Partial<Omit<CompiledTask, "id" | "first" | "rank">>;

function compiled(tasks: Readonly<Record<string, Short>>): { tasks: CompiledTask[]; slots: number } {
  let slots = 0;
  const listed = Object.entries(tasks).map(([id, task]) => {
    const first = slots;
    slots += task.slots ?? 1;
    return { id, first, slots: 1, dependencies: [], rank: 0, ...task };
  });
  return { tasks: listed, slots };
}

/** The states that the page shows after calls have ended in this order, and the slots that the frontier has skipped or dropped. */
function after(
  tasks: Readonly<Record<string, Short>>,
  ...ends: readonly (readonly [number, "completed" | "failed"])[]
) {
  const graph = compiled(tasks);
  const frontier = new Frontier(
    graph,
    () => 2,
    () => false,
  );
  frontier.start();
  const lines = new Lines().add(0, "group_started", { count: graph.slots, tasks: graph.tasks.length });
  const skipped = new Set<number>();
  for (const [index, status] of ends) {
    lines.started(1, index).ended(2, index).completed(2, index, status);
    for (const { index: slot } of frontier.ended(index, status).skipped) {
      skipped.add(slot);
      lines.skipped(2, slot);
    }
  }
  const rest = { schedule: "fifo", onError: "continue", inject: "template", version: 1 } as const;
  const outline = readOutline(outlineOf({ id: "g", status: "running" }, { ...graph, ...rest }));
  if (outline === null) throw new Error("not an outline");
  const state = stateOf(lines);
  const told = state.groups.get(GROUP)?.skipped ?? new Set();
  const { tasks: views } = viewOf(outline, state.calls, { nowMs: 10, hasEnded: false, skipped: told });
  const shown = views.filter(({ state }) => state === "skipped").map(({ task }) => task.id);
  const dropped = graph.tasks.filter(({ first }) => skipped.has(first) || frontier.isAbsent(first));
  return { shown, skipped: dropped.map(({ id }) => id), states: views.map(({ state }) => state) };
}

describe("a task is shown as skipped", () => {
  it("as soon as what it depends on failed, with all that depend on it", () => {
    const { shown, skipped, states } = after(
      { bad: {}, never: { dependencies: [0] }, nor: { dependencies: [1] }, other: {}, last: { dependencies: [3] } },
      [0, "failed"],
    );
    expect([shown, skipped]).toEqual([
      ["never", "nor"],
      ["never", "nor"],
    ]);
    expect(states).toEqual(["failed", "skipped", "skipped", "idle", "idle"]);
  });

  it("not while a share of its dependencies may do, of which a condition has skipped one", () => {
    const tasks: Record<string, Short> = {
      a: {},
      b: {},
      unmet: { dependencies: [0], runIf: { condition: { task: 0, test: { kind: "equals", text: "x" } } } },
      most: { dependencies: [1, 2], runIf: { atLeast: 0.8 } },
    };
    const { shown, skipped } = after(tasks, [0, "completed"]);
    expect([shown, skipped]).toEqual([["unmet"], ["unmet"]]);
  });

  it("unless its run_if still holds", () => {
    const two: Record<string, Short> = { a: {}, b: {} };
    const of = (runIf: CompiledTask["runIf"]): Record<string, Short> => ({
      ...two,
      c: { dependencies: [0, 1], ...(runIf === undefined ? {} : { runIf }) },
    });
    const failed = [
      [0, "failed"],
      [1, "failed"],
    ] as const;
    expect(after(of("any"), [0, "failed"]).shown).toEqual([]);
    expect(after(of("any"), ...failed)).toMatchObject({ shown: ["c"], skipped: ["c"] });
    expect(after(of("always"), ...failed)).toMatchObject({ shown: [], skipped: [] });
    expect(after(of({ atLeast: 0.5 }), [0, "failed"]).shown).toEqual([]);
    expect(after(of({ atLeast: 0.5 }), ...failed)).toMatchObject({ shown: ["c"], skipped: ["c"] });
    expect(after(of({ atLeast: 0 }), ...failed)).toMatchObject({ shown: [], skipped: [] });
  });

  it("if it is an alternative of a task that completed, or comes after one that did", () => {
    const tasks = {
      a: { alternatives: [1, 2] },
      b: { alternativeOf: 0 },
      c: { alternativeOf: 0 },
      last: { dependencies: [0] },
    };
    expect(after(tasks, [0, "completed"])).toMatchObject({ shown: ["b", "c"], skipped: ["b", "c"] });
    expect(after(tasks, [0, "failed"])).toMatchObject({ shown: [], skipped: [] });
    expect(after(tasks, [0, "failed"], [1, "completed"])).toMatchObject({ shown: ["c"], skipped: ["c"] });
    const all = [
      [0, "failed"],
      [1, "failed"],
      [2, "failed"],
    ] as const;
    expect(after(tasks, ...all)).toMatchObject({ shown: ["last"], skipped: ["last"] });
  });

  it("once a foreach has ended on which it depends, and as a pipeline with the last of its calls", () => {
    const each = { source: 0, path: [] };
    const tasks = {
      find: {},
      each: { dependencies: [0], slots: 2, foreach: each },
      follow: { dependencies: [1], slots: 2, foreach: { source: 1, path: [], elementwise: true as const } },
      report: { dependencies: [1] },
    };
    expect(after(tasks, [0, "completed"], [1, "failed"]).shown).toEqual([]);
    expect(after(tasks, [0, "completed"], [1, "failed"], [2, "completed"]).shown).toEqual(["report"]);
    expect(after(tasks, [0, "failed"])).toMatchObject({ shown: ["each", "follow", "report"] });
    const both = [
      [1, "failed"],
      [2, "failed"],
    ] as const;
    expect(after(tasks, [0, "completed"], ...both).shown).toEqual(["follow", "report"]);
  });
});
