/**
 * A plan that runs while it is written: its tasks are added line by line, each by itself. A task can only refer to those of
 * earlier lines, which may have started, so no line can make a cycle. Positions and slots of tasks never change.
 */
import {
  CONDITIONS_CHARS_MAX,
  FALLBACK_CHARS_MAX,
  FOREACH_ITEMS_DEFAULT,
  GRAPH_EDGES_MAX,
  GRAPH_FAULTS_MAX,
} from "../../../limits.ts";
import { GRAPH_SLOTS_MAX, GRAPH_TASKS_MAX } from "../../../limits.ts";
import { conditionCharsOf, linkAlternatives, placeTasks } from "../compile.ts";
import { Faults } from "../faults.ts";
import { unplaced } from "../patch.ts";
import { readTask, type ReadTask, type TaskSource } from "../read-task.ts";
import { conditionOf, positionsOf, type CompiledGraph, type PlanFault, type PlanState } from "../types.ts";

/** The task of a line, which counts from 1. */
export type PlanTask = { line: number; task: TaskSource };

/** What has come of a plan since the last part: up to which line, and whether that ends it. `faults`: lines that are no tasks. */
export type PlanPart<T extends PlanTask = PlanTask> = {
  tasks: readonly T[];
  faults: readonly PlanFault[];
  line: number;
  state: PlanState["state"];
};

/** `added`: which of the tasks of the part are in the graph now, by their index in it. */
export type AppendedPlan = { graph: CompiledGraph; added: readonly number[]; faults: readonly PlanFault[] };

/** A graph without tasks, to which the first part of a plan is added: that makes it version 1. */
export const EMPTY_PLAN: CompiledGraph = {
  version: 0,
  tasks: [],
  slots: 0,
  schedule: "critical_path",
  onError: "continue",
  inject: "template",
  plan: { state: "open", line: 0, faults: [] },
};

/** The graph with a part of its plan, which is open. After too many faults the rest is no plan, and it counts as cut. */
export function appendPlan(graph: CompiledGraph, part: PlanPart): AppendedPlan {
  const appender = new PlanAppender(graph);
  const added: number[] = [];
  const faults = [...part.faults];
  part.tasks.forEach((each, index) => {
    const fault = appender.add(each.task);
    if (fault === null) added.push(index);
    else faults.push({ line: each.line, message: fault });
  });
  faults.sort((a, b) => a.line - b.line);
  const all = [...(graph.plan?.faults ?? []), ...faults];
  const state = all.length >= GRAPH_FAULTS_MAX ? "cut" : part.state;
  const plan: PlanState = { state, line: part.line, faults: all.slice(0, GRAPH_FAULTS_MAX) };
  return { graph: { ...appender.graph(), plan }, added, faults };
}

class PlanAppender {
  readonly #graph: CompiledGraph;
  readonly #tasks: ReadTask[];
  readonly #positions: Map<string, number>;
  #slots: number;
  #edges: number;
  #fallbackChars: number;
  #conditionChars: number;
  /** The slots of each task by its position. */
  readonly #widths: number[];

  constructor(graph: CompiledGraph) {
    this.#graph = graph;
    this.#tasks = graph.tasks.map((task) => unplaced(task, task.removed === true));
    this.#positions = new Map(positionsOf(graph.tasks));
    this.#slots = graph.slots;
    this.#edges = graph.tasks.reduce((sum, { dependencies }) => sum + dependencies.length, 0);
    this.#fallbackChars = graph.tasks.reduce((sum, { fallback }) => sum + (fallback?.length ?? 0), 0);
    this.#conditionChars = graph.tasks.reduce((sum, task) => sum + conditionCharsOf(task), 0);
    this.#widths = graph.tasks.map(({ slots }) => slots);
  }

  /** Adds a task; or why it cannot be added. */
  add(source: TaskSource): string | null {
    if (this.#positions.has(source.id)) return `"${source.id}" is the id of an earlier task; expected another`;
    if (source.alternatives.length > 0) return "alternatives: a plan that runs while it is written can have none";
    const faults = new Faults();
    const find = (id: string) => {
      const position = this.#positions.get(id);
      if (position === undefined) return null;
      const { foreach, runIf } = this.#tasks[position] ?? {};
      return { position, isForeach: foreach !== undefined, hasCondition: conditionOf(runIf) !== null };
    };
    const task = readTask(source, { find, inject: this.#graph.inject, faults, path: (field) => field });
    const messages = faults.list.map(({ path, message }) => `${path}: ${message}`);
    const problem = messages.length > 0 ? messages.join("; ") : this.#excess(task);
    if (problem !== null) return problem;
    this.#positions.set(source.id, this.#tasks.length);
    this.#tasks.push(task);
    const width = this.#widthOf(task);
    this.#widths.push(width);
    this.#slots += width;
    this.#edges += task.dependencies.length;
    this.#fallbackChars += task.fallback?.length ?? 0;
    this.#conditionChars += conditionCharsOf(task);
    return null;
  }

  /** The graph with all that was added. */
  graph(): CompiledGraph {
    const faults = new Faults();
    const linked = linkAlternatives(this.#tasks, faults, this.#graph.inject);
    const placed = placeTasks(linked, this.#graph.schedule, this.#graph.tasks);
    if (!placed.ok || !faults.isEmpty) throw new Error("a line of a plan has made its graph invalid");
    return { ...this.#graph, version: this.#graph.version + 1, tasks: placed.tasks, slots: placed.slots };
  }

  #excess(task: ReadTask): string | null {
    const only = task.dependencies.find((dependency) => this.#graph.tasks[dependency]?.alternativeOf !== undefined);
    if (only !== undefined) return `"${this.#tasks[only]?.id}" only replaces another task; expected that one instead`;
    const tooMany = (what: string, max: number): string => `the graph would have more than ${max} ${what}`;
    if (this.#tasks.length >= GRAPH_TASKS_MAX) return tooMany("tasks", GRAPH_TASKS_MAX);
    if (this.#edges + task.dependencies.length > GRAPH_EDGES_MAX) return tooMany("edges", GRAPH_EDGES_MAX);
    if (this.#slots + this.#widthOf(task) > GRAPH_SLOTS_MAX) return tooMany("calls", GRAPH_SLOTS_MAX);
    if (this.#conditionChars + conditionCharsOf(task) > CONDITIONS_CHARS_MAX)
      return tooMany("characters of conditions", CONDITIONS_CHARS_MAX);
    const chars = this.#fallbackChars + (task.fallback?.length ?? 0);
    return chars > FALLBACK_CHARS_MAX ? tooMany("characters of fallback texts", FALLBACK_CHARS_MAX) : null;
  }

  #widthOf({ foreach: each, maxItems }: ReadTask): number {
    if (each === undefined) return 1;
    return each.elementwise === true ? (this.#widths[each.source] ?? 1) : (maxItems ?? FOREACH_ITEMS_DEFAULT);
  }
}
