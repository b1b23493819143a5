/** A graph as a stream: one event per task as it ends, or per element of a `foreach`, in NDJSON or as server-sent events. */
import type { GroupView, SlotView } from "../run-api/groups.ts";
import type { CompiledGraph } from "../graph/types.ts";
import { measuresOf } from "./graph-json.ts";
import { slotItem } from "./slot.ts";
import { outputOf, taskError } from "./task-summary.ts";

/** The event that opens the stream. */
export function graphStarted(id: string, graph: CompiledGraph, effectiveParallel: number) {
  const { version, tasks } = graph;
  return { type: "graph_started", id, version, tasks: tasks.length, effective_parallel: effectiveParallel };
}

/** The task of each slot, and its element if it has several. */
export class SlotNames {
  readonly #tasks: CompiledGraph["tasks"];
  /** Position of the task of each slot. */
  readonly #taskOf: Uint16Array;

  constructor({ tasks, slots }: CompiledGraph) {
    this.#tasks = tasks;
    this.#taskOf = new Uint16Array(slots);
    tasks.forEach((task, position) => this.#taskOf.fill(position, task.first, task.first + task.slots));
  }

  of(index: number): { task: string; element: number | undefined } {
    const task = this.#tasks[this.#taskOf[index] ?? 0];
    if (task === undefined) throw new Error(`slot ${index} belongs to no task of its graph`);
    return { task: task.id, element: task.foreach === undefined ? undefined : index - task.first };
  }
}

/** The event of a slot that has ended. */
export function taskEvent(slot: SlotView, names: SlotNames) {
  const { index, id, latency_ms, ...item } = slotItem(slot);
  void [index, id];
  const { task, element } = names.of(slot.index);
  const fallback = slot.state === "completed" && slot.reason !== null ? true : undefined;
  const output = outputOf(slot);
  return { type: "task", task, element, output, error: taskError(slot), ...item, duration_ms: latency_ms, fallback };
}

/** The event that ends the stream. */
export function graphCompleted(group: GroupView, graph: CompiledGraph, latencyMs: Float64Array) {
  const { id, status } = group;
  return { type: "graph_completed", id, version: graph.version, status, ...measuresOf(group, graph, latencyMs) };
}
