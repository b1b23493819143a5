/**
 * Changes to a graph that runs: all of a request or nothing. Positions and slots of tasks never change, because rows are stored
 * by them: what is new is appended, a removed task keeps its place, and an updated one is replaced by a new one with its id.
 */
import { TIER_NAMES } from "../answers/tiers.ts";
import type { Reason } from "../../errors.ts";
import { GRAPH_TASKS_MAX } from "../../limits.ts";
import { ascending, checkSizes, linkAlternatives, placeTasks, withDependency } from "./compile.ts";
import { Faults, graphReason } from "./faults.ts";
import { readTask, type ReadTask, type TaskSource } from "./read-task.ts";
import { checkTiers, tierOf } from "./tiers.ts";
import { namedTasks, renamed } from "../answers/condition.ts";
import { conditionOf, type CompiledGraph, type CompiledTask } from "./types.ts";

export type PatchOperation =
  | { op: "add_task"; task: TaskSource }
  /** No other task may depend on it any more. */
  | { op: "remove_task"; id: string }
  /** `task` is the whole task as it is to be, with the same id. */
  | { op: "update_task"; id: string; task: TaskSource }
  | { op: "add_dependency" | "remove_dependency"; id: string; dependency: string };

/**
 * `version`: of the graph that the client has seen. `key`: identifies the request. `hasStarted`: whether a slot of the task
 * runs, or the task has ended in whatever way.
 */
export type Patch = {
  version: number;
  key: string;
  operations: readonly PatchOperation[];
  hasStarted: (position: number) => boolean;
};

/** `appended`: for each task behind the old ones, in order, the operation that it comes from. */
export type Patched = { ok: true; graph: CompiledGraph; appended: readonly number[] } | { ok: false; reason: Reason };

/** The graph after all operations, or why none of them applies. */
export function patchGraph(graph: CompiledGraph, patch: Patch): Patched {
  if (patch.version !== graph.version)
    return { ok: false, reason: { reason: "stale_version", version: graph.version } };
  return new GraphEditor(graph, patch).apply();
}

class GraphEditor {
  readonly #graph: CompiledGraph;
  readonly #patch: Patch;
  readonly #faults = new Faults();
  /** Of the tasks that are there, by id. */
  readonly #positions = new Map<string, number>();
  /** Old positions of updated tasks, and their new ones. */
  readonly #moved = new Map<number, number>();
  readonly #removed = new Set<number>();
  readonly #appended: { source: TaskSource; operation: number }[] = [];

  constructor(graph: CompiledGraph, patch: Patch) {
    this.#graph = graph;
    this.#patch = patch;
    graph.tasks.forEach(({ id, removed }, position) => {
      if (removed === undefined) this.#positions.set(id, position);
    });
  }

  apply(): Patched {
    this.#changeTasks();
    const tasks = this.#readTasks();
    this.#changeDependencies(tasks);
    const rewired = tasks.map((task, position) => this.#rewired(task, position));
    this.#checkRemoved(rewired);
    const linked = linkAlternatives(rewired, this.#faults, this.#graph.inject);
    checkSizes(linked, this.#faults);
    if (this.#graph.tiers === "strict") {
      checkTiers(linked, this.#faults);
      this.#checkPassedTiers(linked);
    }
    if (!this.#faults.isEmpty) return this.#refused();
    const placed = placeTasks(linked, this.#graph.schedule, this.#graph.tasks);
    if (!placed.ok) return { ok: false, reason: graphReason(placed.faults) };
    this.#checkWidths(placed.tasks);
    if (!this.#faults.isEmpty) return this.#refused();
    const { version } = this.#graph;
    const { key: changedBy } = this.#patch;
    const changed = { ...this.#graph, version: version + 1, changedBy, tasks: placed.tasks, slots: placed.slots };
    return { ok: true, graph: changed, appended: this.#appended.map(({ operation }) => operation) };
  }

  #refused(): Patched {
    return { ok: false, reason: graphReason(this.#faults.list) };
  }

  #refuse(
    operation: number,
    code: "unknown_dependency" | "started" | "duplicate_id" | "too_large",
    message: string,
  ): void {
    this.#faults.add({ code, path: `operations[${operation}]`, message });
  }

  /** Which tasks there are afterwards: adds, removes and replaces them, in the order of the operations. */
  #changeTasks(): void {
    for (const [at, operation] of this.#patch.operations.entries()) {
      if (operation.op === "add_task") {
        const { id } = operation.task;
        if (this.#positions.has(id)) this.#refuse(at, "duplicate_id", `a task has the id "${id}" already`);
        else this.#append(operation.task, at);
      } else if (operation.op === "remove_task" || operation.op === "update_task") {
        const position = this.#changeable(operation.id, at);
        if (position === null) continue;
        this.#removed.add(position);
        this.#positions.delete(operation.id);
        if (operation.op === "update_task") this.#moved.set(position, this.#append(operation.task, at));
      }
    }
    const count = this.#graph.tasks.length + this.#appended.length;
    if (count > GRAPH_TASKS_MAX) {
      const message = `the graph would have ${count} tasks, with those that were replaced; expected at most ${GRAPH_TASKS_MAX}`;
      this.#refuse(this.#patch.operations.length - 1, "too_large", message);
    }
  }

  #append(source: TaskSource, operation: number): number {
    const position = this.#graph.tasks.length + this.#appended.length;
    this.#appended.push({ source, operation });
    this.#positions.set(source.id, position);
    return position;
  }

  /** The position of a task that may change: it is there, and has not started. */
  #changeable(id: string, operation: number): number | null {
    const position = this.#positions.get(id);
    if (position === undefined) {
      this.#refuse(operation, "unknown_dependency", `no task has the id "${id}"`);
      return null;
    }
    if (position < this.#graph.tasks.length && this.#patch.hasStarted(position)) {
      this.#refuse(operation, "started", `task "${id}" has started or has ended`);
      return null;
    }
    return position;
  }

  /** The old tasks, without what was removed, and the new ones. */
  #readTasks(): ReadTask[] {
    const old = this.#graph.tasks.map((task, position) => unplaced(task, this.#removed.has(position)));
    const find = (id: string) => {
      const position = this.#positions.get(id);
      if (position === undefined) return null;
      const appended = this.#appended[position - this.#graph.tasks.length];
      const isForeach =
        appended === undefined ? old[position]?.foreach !== undefined : appended.source.foreach !== null;
      const runIf = appended === undefined ? old[position]?.runIf : appended.source.runIf;
      return { position, isForeach, hasCondition: conditionOf<unknown>(runIf) !== null };
    };
    const added = this.#appended.map(({ source, operation }, at) => {
      // A task that the same request removes again is not read.
      if (this.#removed.has(this.#graph.tasks.length + at)) return tombstone(source.id);
      const path = (field: string): string => `operations[${operation}].task.${field}`;
      return readTask(source, { find, inject: this.#graph.inject, faults: this.#faults, path });
    });
    return [...old, ...added];
  }

  #changeDependencies(tasks: ReadTask[]): void {
    for (const [at, operation] of this.#patch.operations.entries()) {
      if (operation.op !== "add_dependency" && operation.op !== "remove_dependency") continue;
      const position = this.#changeable(operation.id, at);
      const dependency = this.#positions.get(operation.dependency);
      const task = tasks[position ?? -1];
      if (position === null || task === undefined) continue;
      if (dependency === undefined) {
        this.#refuse(at, "unknown_dependency", `no task has the id "${operation.dependency}"`);
      } else if (operation.op === "add_dependency") {
        tasks[position] = withDependency(task, dependency, this.#graph.inject);
      } else if (this.#refersTo(task, dependency)) {
        const message = `"${operation.id}" refers to "${operation.dependency}"; update the task instead`;
        this.#refuse(at, "unknown_dependency", message);
      } else if (task.dependencies.includes(dependency)) {
        const dependencies = task.dependencies.filter((other) => other !== dependency);
        const inserted = task.inserted?.filter(([other]) => other !== dependency) ?? [];
        tasks[position] = { ...task, dependencies, ...(task.inserted !== undefined && { inserted }) };
      } else {
        this.#refuse(at, "unknown_dependency", `"${operation.id}" does not depend on "${operation.dependency}"`);
      }
    }
  }

  /** Whether the task has the output of another in its prompt or its condition, or works on its elements. */
  #refersTo({ inserted = [], foreach, runIf }: ReadTask, other: number): boolean {
    const condition = conditionOf(runIf);
    if (condition !== null && namedTasks(condition).includes(other)) return true;
    // With markdown, each dependency is inserted once as a section.
    const sections = this.#graph.inject === "markdown" ? 1 : 0;
    return foreach?.source === other || inserted.some(([task, factor]) => task === other && factor > sections);
  }

  /** The task with the new positions of tasks that were replaced. */
  #rewired(task: ReadTask, position: number): ReadTask {
    if (this.#moved.size === 0 || this.#removed.has(position)) return task;
    const now = (other: number): number => {
      let place = other;
      // A task may be updated twice in one request.
      for (let next = this.#moved.get(place); next !== undefined; next = this.#moved.get(place)) place = next;
      return place;
    };
    const rewired: ReadTask = { ...task, dependencies: ascending(task.dependencies.map(now)) };
    if (task.foreach !== undefined) rewired.foreach = { ...task.foreach, source: now(task.foreach.source) };
    const condition = conditionOf(task.runIf);
    if (condition !== null) rewired.runIf = { condition: renamed(condition, now) };
    if (task.inserted !== undefined) rewired.inserted = task.inserted.map(([other, factor]) => [now(other), factor]);
    if (task.alternatives !== undefined) rewired.alternatives = task.alternatives.map(now);
    if (task.whens !== undefined) {
      rewired.whens = new Map([...task.whens].map(([other, when]) => [now(other), renamed(when, now)]));
    }
    return rewired;
  }

  /** Nothing may depend on what is not there any more. */
  #checkRemoved(tasks: readonly ReadTask[]): void {
    tasks.forEach((task, position) => {
      if (this.#removed.has(position)) return;
      const lost = [...task.dependencies, ...(task.alternatives ?? [])].find((other) => this.#removed.has(other));
      if (lost === undefined) return;
      const message = `"${task.id}" needs the removed task "${tasks[lost]?.id}"`;
      this.#faults.add({ code: "unknown_dependency", path: "operations", message });
    });
    for (const [old, replacement] of this.#moved) {
      const isNowForeach = tasks[replacement]?.foreach !== undefined;
      if (this.#removed.has(replacement) || (this.#graph.tasks[old]?.foreach !== undefined) === isNowForeach) continue;
      const message = `"${tasks[replacement]?.id}" cannot become a foreach task, or stop being one; add another task`;
      this.#faults.add({ code: "invalid_foreach", path: "operations", message });
    }
  }

  /** A task of a strict tier starts after all tasks of earlier tiers have ended: so none may be added to those then. */
  #checkPassedTiers(tasks: readonly ReadTask[]): void {
    const count = this.#graph.tasks.length;
    const started = this.#graph.tasks.map((task, position) =>
      task.removed !== true && this.#patch.hasStarted(position) ? tierOf(task) : 0,
    );
    const reached = started.reduce<number>((last, tier) => Math.max(last, tier), 0);
    for (const [at, { source, operation }] of this.#appended.entries()) {
      const task = tasks[count + at];
      if (task === undefined || task.removed === true || tierOf(task) >= reached) continue;
      const [own, later] = [TIER_NAMES[tierOf(task)], TIER_NAMES[reached]];
      this.#refuse(operation, "started", `"${source.id}" is of ${own}, but tasks of ${later} have started or ended`);
    }
  }

  /** A task that works on each output of another keeps its slots, so the other must keep its number of them. */
  #checkWidths(tasks: readonly CompiledTask[]): void {
    for (const { id, foreach, slots } of tasks) {
      if (foreach?.elementwise === undefined) continue;
      const source = tasks[foreach.source];
      if (source === undefined || source.slots === slots) continue;
      const message = `"${id}" has ${slots} slots, one for each of "${source.id}", which would have ${source.slots}`;
      this.#faults.add({ code: "invalid_foreach", path: "operations", message });
    }
  }
}

/** A compiled task as it was read; a removed one waits for nothing. */
export function unplaced(task: CompiledTask, isRemoved: boolean): ReadTask {
  if (isRemoved) return tombstone(task.id);
  const { first, slots, rank, alternativeOf, ...read } = task;
  void [first, rank, alternativeOf];
  return { ...read, maxItems: slots, unusedReferences: [] };
}

function tombstone(id: string): ReadTask {
  return { id, dependencies: [], maxItems: null, unusedReferences: [], removed: true };
}
