/** What the slots of a graph wait for that may not start yet. */
import { describe, expect, it } from "vitest";
import { GroupGraph } from "../../../../src/run/group/group-graph.ts";
import { Group } from "../../../../src/run/group/group.ts";
import type { EngineState } from "../../../../src/run/state.ts";
import { blockedSlots } from "../../../../src/run/group/dependencies.ts";
import { waitsBySlot, waitsOf } from "../../../../src/run/steps/waiting-for.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import type { CompiledTask } from "../../../../src/run/graph/types.ts";
import { WAITS_NAMED_MAX } from "../../../../src/limits.ts";
import { makeHeader, TestEngine } from "../../../support/engine.ts";

type Drawn = Pick<CompiledTask, "id" | "dependencies"> & Partial<CompiledTask>;

/** A group of tasks with one slot each, before the first of them starts. */
function groupOf(drawn: readonly Drawn[]): { group: Group; graph: GroupGraph; state: EngineState } {
  const tasks = drawn.map((task, first) => ({ first, slots: 1, rank: 0, ...task }));
  const rules = { version: 1, schedule: "fifo", onError: "continue", inject: "template" } as const;
  const graph = new GroupGraph({ ...rules, tasks, slots: tasks.length }, 1, {
    countElements: () => ({ ok: true, count: 1 }),
    outputOf: () => null,
  });
  graph.frontier.start();
  const group = new Group(makeHeader({ count: tasks.length, graph: { tasks: tasks.length } }), graph);
  return { group, graph, state: new TestEngine().state };
}

const CHAIN: Drawn[] = [
  { id: "a", dependencies: [] },
  { id: "b", dependencies: [0] },
  { id: "c", dependencies: [0, 1] },
];

describe("a slot of a graph", () => {
  it("waits for the tasks before it that have not ended, and no more when the last of them has", () => {
    const { group, graph } = groupOf(CHAIN);
    expect(blockedSlots(group)).toEqual([
      { indexes: [1], tasks: ["a"] },
      { indexes: [2], tasks: ["a", "b"] },
    ]);
    graph.frontier.ended(0, "completed");
    expect(blockedSlots(group)).toEqual([{ indexes: [2], tasks: ["b"] }]);
    graph.frontier.ended(1, "completed");
    expect(blockedSlots(group)).toEqual([]);
  });

  it("that replaces another one waits for its failure", () => {
    const { group } = groupOf([
      { id: "a", dependencies: [], alternatives: [1] },
      { id: "instead", dependencies: [], alternativeOf: 0 },
    ]);
    expect(blockedSlots(group)).toEqual([{ indexes: [1], tasks: ["a"] }]);
  });

  it("is shown so by itself and in the sum of its group", () => {
    const { group, state } = groupOf(CHAIN);
    expect(waitsOf(state, group, 0)).toEqual([{ waitingFor: { kind: "dependency", tasks: ["a", "b"] }, slots: 2 }]);
    expect(waitsBySlot(state, group, 0)).toEqual(
      new Map([
        [slotIdOf(1, 1), { kind: "dependency", tasks: ["a"] }],
        [slotIdOf(1, 2), { kind: "dependency", tasks: ["a", "b"] }],
      ]),
    );
  });

  it(`names ${WAITS_NAMED_MAX} tasks at most`, () => {
    const before = Array.from({ length: WAITS_NAMED_MAX + 1 }, (_, at) => ({ id: `t${at}`, dependencies: [] }));
    const { group } = groupOf([...before, { id: "last", dependencies: before.map((_, at) => at) }]);
    expect(blockedSlots(group)[0]?.tasks).toEqual(before.slice(0, WAITS_NAMED_MAX).map(({ id }) => id));
  });
});
