/** Random changes of random graphs that run: what has started stays possible, and a restart finds the same as the change made. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hasTaskStarted } from "../../../../durable-objects/run/groups/change-graph.ts";
import { Group } from "../../../../src/run/group/group.ts";
import { GroupGraph, type ElementCount, type ElementSource } from "../../../../src/run/group/group-graph.ts";
import { indexOf } from "../../../../src/run/queue/slot.ts";
import type { Advance } from "../../../../src/run/graph/frontier.ts";
import { patchGraph, type PatchOperation } from "../../../../src/run/graph/patch.ts";
import type { CompiledGraph, CompiledTask } from "../../../../src/run/graph/types.ts";
import { makeHeader } from "../../../support/engine.ts";
import { graphs, type DrawnGraph } from "../../../support/frontier-graphs.ts";
import { taskOf } from "../../../support/graphs.ts";

const rules = { version: 1, schedule: "fifo", onError: "continue", inject: "template" } as const;

/** A group whose slots start and end as a script says, without an engine. */
class Running {
  readonly #drawn: DrawnGraph;
  readonly group: Group;
  readonly graph: GroupGraph;
  readonly ready: number[] = [];
  readonly #unmet = new Set<number>();

  constructor(drawn: DrawnGraph) {
    this.#drawn = drawn;
    const compiled: CompiledGraph = { ...rules, tasks: drawn.tasks, slots: drawn.slots };
    this.graph = new GroupGraph(compiled, 1, this);
    const header = makeHeader({ seq: 1, count: drawn.slots, graph: { tasks: drawn.tasks.length } });
    this.group = new Group(header, this.graph);
    this.take(this.graph.frontier.start());
  }

  /** By the position of the task that has the array: its slot is its first. */
  readonly countElements = ({ slotId }: ElementSource): ElementCount => {
    const position = this.graph.frontier.taskOf(indexOf(slotId));
    const count = this.#drawn.elements[position] ?? null;
    return count === null
      ? { ok: false, reason: { reason: "dependency_failed", dependency: "x" } }
      : { ok: true, count };
  };

  /** What a slot answers, if it completes. */
  readonly outputOf = (slotId: number): string | null =>
    this.group.stateOf(indexOf(slotId)) === "completed" ? String((3 * indexOf(slotId)) % 10) : null;

  take({ ready, skipped, unfed }: Advance): void {
    this.ready.push(...ready);
    for (const { index, isUnmet } of skipped) {
      if (this.group.stateOf(index) !== "queued") continue;
      this.group.step(index, "skipped", 0);
      if (isUnmet !== true) continue;
      this.#unmet.add(index);
      this.graph.noteUnmet(index);
    }
    for (const index of unfed) if (this.group.stateOf(index) === "queued") this.group.step(index, "failed", 0);
  }

  /** Starts one of the ready slots, or ends one that runs. */
  step(pick: number): void {
    const startable = this.ready.filter((index) => this.group.stateOf(index) === "queued");
    const running = this.#indexes().filter((index) => this.group.stateOf(index) === "running");
    const index = [...startable, ...running][pick % Math.max(1, startable.length + running.length)];
    if (index === undefined) return;
    if (this.group.stateOf(index) === "queued") return this.group.step(index, "running", 0);
    const ending = this.#drawn.endings[index % this.#drawn.endings.length] === "completed" ? "completed" : "failed";
    this.group.step(index, ending, 0);
    this.take(this.graph.frontier.ended(index, ending));
  }

  /** Changes the graph, if the change is one. */
  change(operations: readonly PatchOperation[]): boolean {
    const { compiled } = this.graph;
    const hasStarted = (position: number): boolean => hasTaskStarted(this.group, compiled, position);
    const patched = patchGraph(compiled, { version: compiled.version, key: "k", operations, hasStarted });
    if (!patched.ok) return false;
    this.group.grow({ ...this.group.header, count: patched.graph.slots });
    this.ready.splice(0);
    this.take(this.graph.change(patched.graph, (index) => this.group.stateOf(index)));
    return true;
  }

  /** Slots that contradict the graph: they run or have run, and it says that they may not. */
  wrong(): number[] {
    const { frontier } = this.graph;
    return this.#indexes().filter((index) => {
      if (this.group.stateOf(index) === "queued") return false;
      return frontier.isBlocked(index) || frontier.isAbsent(index);
    });
  }

  /** Each slot as a restart finds it: from the graph and the states that are stored. */
  restored(): string[] {
    const graph = new GroupGraph(this.graph.compiled, 1, this);
    for (const index of this.#unmet) graph.noteUnmet(index);
    graph.frontier.start();
    graph.frontier.restored(graph.endings(this.group.header.count, (index) => this.group.stateOf(index)));
    return this.shown(graph);
  }

  shown({ frontier }: GroupGraph = this.graph): string[] {
    return this.#indexes().map((index) => {
      const place = frontier.isAbsent(index) ? "absent" : frontier.isBlocked(index) ? "blocked" : "may run";
      return `${index} ${this.group.stateOf(index)} ${place}`;
    });
  }

  #indexes(): number[] {
    return Array.from({ length: this.group.header.count }, (_, index) => index);
  }
}

const name = fc.nat({ max: 7 }).map((at) => `t${at}`);
const operation: fc.Arbitrary<PatchOperation> = fc.oneof(
  fc.record({ op: fc.constant("remove_task" as const), id: name }),
  fc.record({
    op: fc.constantFrom("add_dependency" as const, "remove_dependency" as const),
    id: name,
    dependency: name,
  }),
  fc
    .tuple(name, fc.array(name, { maxLength: 3 }))
    .map(([id, dependencies]) => ({ op: "update_task" as const, id, task: taskOf(id, { dependencies }) })),
  fc
    .tuple(fc.nat({ max: 30 }), fc.array(name, { maxLength: 3 }))
    .map(([at, dependencies]) => ({ op: "add_task" as const, task: taskOf(`new${at}`, { dependencies }) })),
);
const action = fc.oneof(
  { weight: 3, arbitrary: fc.nat({ max: 1_000 }) },
  fc.array(operation, { minLength: 1, maxLength: 2 }),
);

describe("a graph that is changed while it runs", () => {
  it("never contradicts what has started, and is what a restart computes", { tags: ["slow"] }, () => {
    let changes = 0;
    fc.assert(
      fc.property(graphs, fc.array(action, { minLength: 5, maxLength: 40 }), (drawn, actions) => {
        const running = new Running(drawn);
        for (const each of actions) {
          if (typeof each === "number") running.step(each);
          else if (running.change(each)) changes += 1;
          expect(running.wrong()).toEqual([]);
          expect(running.restored()).toEqual(running.shown());
        }
      }),
      { numRuns: 1_000 },
    );
    expect(changes).toBeGreaterThan(100);
  });

  it("does not take back the end of a foreach without elements, of which others have begun to work", () => {
    const at = (id: string, first: number, more: Partial<CompiledTask> = {}): CompiledTask => ({
      id,
      first,
      slots: 1,
      dependencies: [],
      rank: 0,
      ...more,
    });
    const tasks = [
      at("find", 0),
      at("each", 1, { foreach: { source: 0, path: [] }, dependencies: [0] }),
      at("after", 2, { dependencies: [1] }),
      at("other", 3),
    ];
    const running = new Running({ tasks, slots: 4, elements: [0, null, null, null], endings: ["completed"], seed: 0 });
    running.group.step(0, "running", 0);
    running.group.step(0, "completed", 0);
    running.take(running.graph.frontier.ended(0, "completed"));
    running.group.step(2, "running", 0);
    const waits = { op: "add_dependency", id: "each", dependency: "other" } as const;
    expect(running.change([waits])).toBe(false);
    expect(running.change([{ ...waits, id: "other", dependency: "each" }])).toBe(true);
    expect(running.wrong()).toEqual([]);
  });
});
