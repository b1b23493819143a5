/**
 * Compiles the tasks of a request to a graph, or finds what is wrong with them. Time and memory are linear in tasks, edges and
 * the length of the prompts.
 */
import {
  CONDITIONS_CHARS_MAX,
  FALLBACK_CHARS_MAX,
  FOREACH_ITEMS_DEFAULT,
  GRAPH_EDGES_MAX,
  GRAPH_SLOTS_MAX,
  GRAPH_TASKS_MAX,
} from "../../limits.ts";
import { areSame, namedTasks } from "../answers/condition.ts";
import { ranksOf, remainingMsOf } from "./critical-path.ts";
import { cycleFault, Faults, type GraphFault, type GraphWarning } from "./faults.ts";
import { limitNanoUsd } from "../money/money.ts";
import { linksOf, orderOf, type Links } from "./order.ts";
import { readTask, type ReadTask, type TaskSource } from "./read-task.ts";
import { statsOf, warningsOf, type GraphStats } from "./inspect.ts";
import { checkTiers } from "./tiers.ts";
import { conditionOf, type CompiledGraph, type CompiledTask, type Injection, type Schedule } from "./types.ts";

export type GraphRequest = {
  tasks: readonly TaskSource[];
  schedule: Schedule;
  onError: "continue" | "abort";
  inject: Injection;
  /** Whether tiers are barriers; absent = they are not. */
  tiers?: "strict";
  /** What early calls may cost for nothing; absent or null = none is made. */
  speculate?: { maxUsd: number } | null;
};

export type Compilation =
  | { ok: true; graph: CompiledGraph; stats: GraphStats; warnings: GraphWarning[] }
  | { ok: false; faults: readonly GraphFault[] };

/** A graph of version 1. */
export function compileGraph(request: GraphRequest): Compilation {
  const { tasks: sources, schedule, onError, inject, tiers, speculate = null } = request;
  const faults = new Faults();
  const positions = positionsIn(sources, faults);
  if (!faults.isEmpty) return { ok: false, faults: faults.list };
  const find = (id: string) => {
    const position = positions.get(id);
    if (position === undefined) return null;
    const { foreach, runIf } = sources[position] ?? {};
    return { position, isForeach: foreach != null, hasCondition: conditionOf(runIf) !== null };
  };
  const read = sources.map((source, position) =>
    readTask(source, { find, inject, faults, path: (field) => `tasks[${position}].${field}` }),
  );
  const linked = linkAlternatives(read, faults, inject);
  checkSizes(linked, faults);
  if (tiers === "strict") checkTiers(linked, faults);
  if (!faults.isEmpty) return { ok: false, faults: faults.list };
  const placed = placeTasks(linked, schedule);
  if (!placed.ok) return placed;
  const early = speculate === null ? {} : { speculate: { nanoUsd: limitNanoUsd(speculate.maxUsd) } };
  const rules = { schedule, onError, inject, ...(tiers !== undefined && { tiers }), ...early };
  const graph: CompiledGraph = { version: 1, tasks: placed.tasks, slots: placed.slots, ...rules };
  const stats = statsOf(graph.tasks, placed);
  return { ok: true, graph, stats, warnings: warningsOf(sources, read) };
}

/** The positions of the tasks by id, which must be distinct. */
function positionsIn(sources: readonly TaskSource[], faults: Faults): Map<string, number> {
  if (sources.length > GRAPH_TASKS_MAX) {
    const message = `has ${sources.length} tasks; expected at most ${GRAPH_TASKS_MAX}`;
    faults.add({ code: "too_large", path: "tasks", message });
  }
  const positions = new Map<string, number>();
  sources.forEach(({ id }, position) => {
    const first = positions.get(id);
    if (first === undefined) positions.set(id, position);
    else {
      const message = `"${id}" is the id of tasks[${first}], too; expected distinct ids`;
      faults.add({ code: "duplicate_id", path: `tasks[${position}].id`, message });
    }
  });
  return positions;
}

/**
 * Marks each alternative with the task that it replaces. It replaces one task, has no alternatives itself, and no other task names it.
 * The condition under which it is tried becomes its own.
 */
export function linkAlternatives(read: readonly ReadTask[], faults: Faults, inject: Injection): ReadTask[] {
  const tasks = withWhens(read, faults, inject);
  const primaryOf = new Map<number, number>();
  tasks.forEach((task, position) => {
    task.alternatives?.forEach((alternative, index) => {
      const refuse = (message: string): void =>
        faults.add({ code: "invalid_alternative", path: `tasks[${position}].alternatives[${index}]`, message });
      const id = tasks[alternative]?.id ?? "";
      if (primaryOf.has(alternative)) refuse(`"${id}" is an alternative already; expected one of one task`);
      else if (tasks[alternative]?.alternatives !== undefined) refuse(`"${id}" has alternatives itself`);
      else primaryOf.set(alternative, position);
    });
  });
  if (primaryOf.size === 0) return tasks;
  return tasks.map((task, position) => {
    const wrong = task.dependencies.find((dependency) => primaryOf.has(dependency));
    if (wrong !== undefined) {
      const primary = tasks[primaryOf.get(wrong) ?? 0]?.id ?? "";
      const message = `"${tasks[wrong]?.id}" only replaces "${primary}"; expected "${primary}" instead`;
      faults.add({ code: "invalid_alternative", path: `tasks[${position}].dependencies`, message });
    }
    const alternativeOf = primaryOf.get(position);
    if (alternativeOf === undefined) return task;
    if (task.likely === true) {
      const message = "is for tasks that are no alternative of another one";
      faults.add({ code: "invalid_alternative", path: `tasks[${position}].likely`, message });
    }
    if (task.dependencies.includes(alternativeOf)) {
      const message = `"${tasks[alternativeOf]?.id}" is what it replaces; it cannot depend on it`;
      faults.add({ code: "invalid_alternative", path: `tasks[${position}].dependencies`, message });
    }
    return { ...task, alternativeOf };
  });
}

/** The tasks with the conditions under which they are tried as alternatives, each as the `runIf` of that task. */
function withWhens(read: readonly ReadTask[], faults: Faults, inject: Injection): ReadTask[] {
  if (read.every(({ whens }) => whens === undefined)) return [...read];
  const tasks = read.map(({ whens: _whens, ...task }): ReadTask => task);
  read.forEach(({ alternatives = [], whens }, position) => {
    for (const [alternative, condition] of whens ?? []) {
      const task = tasks[alternative];
      if (task === undefined) continue;
      const refuse = (message: string): void => {
        const path = `tasks[${position}].alternatives[${alternatives.indexOf(alternative)}].when`;
        faults.add({ code: "invalid_alternative", path, message });
      };
      const named = namedTasks(condition);
      // A change of a graph that runs may name once more what the alternative has by then.
      const own = conditionOf(task.runIf);
      if (task.runIf !== undefined && (own === null || !areSame(own, condition))) {
        refuse(`is the run_if of "${task.id}", which has one; expected one of both`);
      } else if (named.includes(alternative)) refuse(`cannot look at "${task.id}" itself`);
      else {
        const waiting = named.reduce((before, each) => withDependency(before, each, inject), task);
        tasks[alternative] = { ...waiting, runIf: { condition } };
      }
    }
  });
  return tasks;
}

/** Checks what is stored with a graph against its bounds; slots are counted when the tasks are placed. */
export function checkSizes(tasks: readonly ReadTask[], faults: Faults): void {
  const sum = (of: (task: ReadTask) => number): number => tasks.reduce((total, task) => total + of(task), 0);
  const edges = sum(({ dependencies, alternatives }) => dependencies.length + (alternatives?.length ?? 0));
  if (edges > GRAPH_EDGES_MAX) {
    const message = `the graph has ${edges} edges; expected at most ${GRAPH_EDGES_MAX}`;
    faults.add({ code: "too_large", path: null, message });
  }
  const conditionChars = sum(conditionCharsOf);
  if (conditionChars > CONDITIONS_CHARS_MAX) {
    const message = `all conditions have ${conditionChars} characters; expected at most ${CONDITIONS_CHARS_MAX}`;
    faults.add({ code: "too_large", path: null, message });
  }
  const fallbackChars = sum(({ fallback }) => fallback?.length ?? 0);
  if (fallbackChars > FALLBACK_CHARS_MAX) {
    const message = `all fallback texts have ${fallbackChars} characters; expected at most ${FALLBACK_CHARS_MAX}`;
    faults.add({ code: "too_large", path: null, message });
  }
}

/** Characters of the condition of a task, as it is stored. */
export function conditionCharsOf({ runIf }: Pick<CompiledTask, "runIf">): number {
  const condition = conditionOf(runIf);
  return condition === null ? 0 : JSON.stringify(condition).length;
}

/** Tasks with their slots and ranks, and the edges and figures that they follow from. */
export type Placed = {
  ok: true;
  tasks: CompiledTask[];
  slots: number;
  links: Links;
  order: Uint32Array;
  remainingMs: Float64Array;
};

/** Orders the tasks and gives each its slots: those of `placedBefore` keep theirs, others follow in the order of the list. */
export function placeTasks(
  tasks: readonly ReadTask[],
  schedule: Schedule,
  placedBefore: readonly CompiledTask[] = [],
): Placed | { ok: false; faults: readonly GraphFault[] } {
  const links = linksOf(tasks);
  const ordered = orderOf(links);
  if (!ordered.ok) {
    return { ok: false, faults: [cycleFault(ordered.cycle.map((position) => tasks[position]?.id ?? ""))] };
  }
  const widths = widthsOf(tasks, ordered.order);
  const remainingMs = remainingMsOf(tasks, links, ordered.order);
  const ranks = ranksOf(tasks, schedule, { links, remainingMs });
  let slots = placedBefore.reduce((total, task) => Math.max(total, task.first + task.slots), 0);
  const placed = tasks.map(({ maxItems, unusedReferences, ...task }, position): CompiledTask => {
    void maxItems;
    void unusedReferences;
    const rank = ranks[position] ?? 0;
    const known = placedBefore[position];
    if (known !== undefined) return { ...task, first: known.first, slots: known.slots, rank };
    const first = slots;
    slots += widths[position] ?? 1;
    return { ...task, first, slots: slots - first, rank };
  });
  if (slots > GRAPH_SLOTS_MAX) {
    const message = `the graph has ${slots} slots, with max_items of each foreach; expected at most ${GRAPH_SLOTS_MAX}`;
    return { ok: false, faults: [{ code: "too_large", path: null, message }] };
  }
  return { ok: true, tasks: placed, slots, links, order: ordered.order, remainingMs };
}

/** The slots of each task. A task that works on each output of another has as many as that one. */
function widthsOf(tasks: readonly ReadTask[], order: Uint32Array): Float64Array {
  const widths = new Float64Array(tasks.length);
  for (const position of order) {
    const { foreach, maxItems } = tasks[position] ?? {};
    if (foreach === undefined) widths[position] = 1;
    else if (foreach.elementwise) widths[position] = widths[foreach.source] ?? 1;
    else widths[position] = maxItems ?? FOREACH_ITEMS_DEFAULT;
  }
  return widths;
}

/** The task that also waits for another one. With markdown the output of that one stands before its prompt. */
export function withDependency(task: ReadTask, dependency: number, inject: Injection): ReadTask {
  if (task.dependencies.includes(dependency)) return task;
  const changed = { ...task, dependencies: ascending([...task.dependencies, dependency]) };
  return inject === "template" ? changed : { ...changed, inserted: [...(task.inserted ?? []), [dependency, 1]] };
}

/** Positions as the dependencies of a task have them. */
export function ascending(positions: readonly number[]): number[] {
  return [...new Set(positions)].sort((a, b) => a - b);
}
