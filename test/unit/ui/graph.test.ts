import { describe, expect, it } from "vitest";
import { layoutOf } from "../../../ui/model/graph/layout.ts";
import { readOutline, slotNamesOf, type Outline } from "../../../ui/model/graph/outline.ts";
import { viewOf } from "../../../ui/model/graph/task-states.ts";
import { RunState } from "../../../ui/model/run-state.ts";
import { GROUP, Lines } from "./lines.ts";

type Listed = { id: string; dependencies?: number[]; slots?: number; follows?: number; tier?: string; phase?: string };

/** Tasks as the gateway lists them, with their slots one after another. */
function outlineOf(tasks: readonly Listed[]): Outline {
  let slots = 0;
  const listed = tasks.map(({ slots: own = 1, dependencies = [], ...task }) => {
    const first = slots;
    slots += own;
    return { ...task, first, slots: own, dependencies };
  });
  const outline = readOutline({ slots, tasks: listed });
  if (outline === null) throw new Error("not an outline");
  return outline;
}

function callsOf(lines: Lines): RunState {
  const state = new RunState();
  for (const line of lines.all) state.apply(line);
  return state;
}

const DIAMOND = outlineOf([
  { id: "find" },
  { id: "each", dependencies: [0], slots: 3 },
  { id: "other", dependencies: [0] },
  { id: "report", dependencies: [1, 2] },
]);

describe("an outline", () => {
  it.each([
    null,
    [],
    { slots: 1 },
    { slots: 1, tasks: [null] },
    { slots: -1, tasks: [] },
    { slots: 1e12, tasks: [] },
    { slots: 1, tasks: [{ id: "a", first: 0, slots: 2 }] },
    { slots: 1, tasks: [{ id: "a", first: -1, slots: 1 }] },
    { slots: 1.5, tasks: [] },
  ])("is not %j", (value) => {
    expect(readOutline(value)).toBeNull();
  });

  it("leaves out positions that no task has", () => {
    const tasks = [{ id: "a", first: 0, slots: 1, dependencies: [7, -1, "x", 0.5], follows: 9, alternative_of: {} }];
    expect(readOutline({ slots: 1, tasks })?.tasks[0]).toEqual(
      expect.objectContaining({ id: "a", dependencies: [], tier: null, phase: null, estimatedMs: null }),
    );
  });

  it("names the call of each slot by its task", () => {
    const nameOf = slotNamesOf(DIAMOND);
    expect([0, 1, 3, 4, 5, 6].map(nameOf)).toEqual(["find", "each 0", "each 2", "other", "report", null]);
  });
});

describe("the layout of a graph", () => {
  it("has a box for each task, in the column of its level, and a line for each dependency", () => {
    const layout = layoutOf(DIAMOND);
    expect(layout?.boxes.map(({ name, column, row }) => [name, column, row])).toEqual([
      ["find", 0, 0],
      ["each", 1, 0],
      ["other", 1, 1],
      ["report", 2, 0],
    ]);
    expect(layout?.lines).toEqual([
      { from: 0, to: 1 },
      { from: 0, to: 2 },
      { from: 1, to: 3 },
      { from: 2, to: 3 },
    ]);
    expect([layout?.columns, layout?.rows, layout?.isWhole]).toEqual([3, 2, true]);
  });

  it("is null for tasks that wait for each other", () => {
    expect(
      layoutOf(
        outlineOf([
          { id: "a", dependencies: [1] },
          { id: "b", dependencies: [0] },
        ]),
      ),
    ).toBeNull();
  });

  const wide = (count: number, of: (i: number) => Partial<Listed> = () => ({})): Outline =>
    outlineOf([
      { id: "root" },
      ...Array.from({ length: count }, (_, i) => ({ id: `t${i}`, dependencies: [0], ...of(i) })),
    ]);
  const long = (count: number): Outline =>
    outlineOf(Array.from({ length: count }, (_, i) => ({ id: `t${i}`, dependencies: i === 0 ? [] : [i - 1] })));

  it.each([
    ["as many rows as a column may have", wide(24), true],
    ["one row more", wide(25), false],
    ["as many columns as there may be", long(40), true],
    ["one column more", long(41), false],
    ["10,000 tasks side by side", wide(9_999), false],
    ["10,000 tasks one after another", long(10_000), false],
    ["10,000 tasks of 10,000 phases", wide(9_999, (i) => ({ phase: `p${i}` })), false],
  ])("has few boxes, whatever the graph: %s", (_, outline, isWhole) => {
    const layout = layoutOf(outline);
    expect(layout?.isWhole).toBe(isWhole);
    expect(layout?.boxes.length).toBeLessThanOrEqual(150);
    expect(layout?.columns).toBeLessThanOrEqual(40);
    expect(layout?.rows).toBeLessThanOrEqual(24);
    const boxed = layout?.boxes.flatMap(({ tasks }) => tasks) ?? [];
    expect(boxed.toSorted((a, b) => a - b)).toEqual(outline.tasks.map((_task, position) => position));
  });

  it("puts tasks of one tier and phase of a level into one box", () => {
    const layout = layoutOf(wide(30, (i) => ({ tier: i < 10 ? "P0" : "P1", phase: i % 2 === 0 ? "read" : "write" })));
    expect(layout?.boxes.map(({ name, tasks }) => [name, tasks.length])).toEqual([
      ["root", 1],
      ["P0 read, level 2", 5],
      ["P0 write, level 2", 5],
      ["P1 read, level 2", 10],
      ["P1 write, level 2", 10],
    ]);
  });
});

describe("the tasks of a graph that runs", () => {
  const lines = (): Lines => new Lines().add(0, "group_started", { count: 6, tasks: 4 });
  const view = (log: Lines, nowMs: number, hasEnded = false) => {
    const state = callsOf(log);
    const skipped = state.groups.get(GROUP)?.skipped ?? new Set();
    return viewOf(DIAMOND, state.calls, { nowMs, hasEnded, skipped });
  };

  it("have the state of their calls", () => {
    const log = lines().started(0, 0).ended(10, 0).completed(10, 0).started(10, 1).ended(15, 1).completed(15, 1);
    log.started(10, 4).ended(30, 4, { outcome: "rejected" }).completed(30, 4, "failed", "no").skipped(30, 5);
    const now = view(log, 40);
    expect(now.tasks.map(({ state, begun, ended }) => [state, begun, ended])).toEqual([
      ["completed", 1, 1],
      // One of three elements has ended, and the others may still come.
      ["running", 1, 1],
      ["failed", 1, 1],
      // It depends on the one that failed.
      ["skipped", 0, 0],
    ]);
    const ended = view(log, 40, true);
    expect(ended.tasks.map(({ state }) => state)).toEqual(["completed", "completed", "failed", "skipped"]);
  });

  it("have the critical path that their durations make", () => {
    const log = lines().started(0, 0).ended(10, 0).completed(10, 0);
    log.started(10, 1).ended(15, 1).completed(15, 1).started(10, 4).ended(70, 4).completed(70, 4);
    log.started(70, 5).ended(100, 5).completed(100, 5);
    const { critical, criticalMs } = view(log, 200, true);
    expect([critical, criticalMs]).toEqual([[0, 2, 3], 100]);
  });

  it("count what has not begun at the mean of what has ended", () => {
    const log = lines().started(0, 0).ended(10, 0).completed(10, 0).started(10, 4);
    // 10 ms of the first, 20 so far of the second, and 10 for the report.
    expect(view(log, 30).criticalMs).toBe(40);
  });

  it("have no critical path before anything has begun", () => {
    expect(view(lines(), 5, true)).toMatchObject({ critical: [], criticalMs: 0 });
  });

  it("are counted as ended with their graph, if they did not start", () => {
    const log = lines().started(0, 0).ended(10, 0).completed(10, 0);
    expect(callsOf(log)).toMatchObject({ total: 6, endedCalls: 1, skipped: 0 });
    log.skipped(15, 5);
    expect(callsOf(log)).toMatchObject({ total: 6, endedCalls: 2, skipped: 1 });
    log.add(20, "group_completed", { count: 6, status: "partial" });
    expect(callsOf(log)).toMatchObject({ total: 6, endedCalls: 6, skipped: 5 });
  });

  it("give their names to calls that were seen before and to later ones", () => {
    const state = callsOf(lines().started(0, 0));
    state.nameTasks(GROUP, slotNamesOf(DIAMOND));
    const later = lines().started(0, 0).started(5, 2);
    for (const line of later.all) state.apply(line);
    expect(state.calls.map(({ task }) => task)).toEqual(["find", "each 1"]);
  });
});
