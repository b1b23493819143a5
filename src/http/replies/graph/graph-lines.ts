/** A graph as a stream: one event per task as it ends, or per element of a `foreach`, in NDJSON or as server-sent events. */
import type { GroupView, SlotView } from "../../../objects/methods/groups.ts";
import { presentTasks, type CompiledGraph, type PlanFault } from "../../../run/graph/types.ts";
import type { Aggregation } from "../aggregation.ts";
import { measuresOf, planJson, type GraphAnswer } from "./graph-json.ts";
import { partsOfSlot, withParts } from "../parts.ts";
import { slotItem } from "../slot.ts";
import type { SlotNames } from "./slot-names.ts";
import { outputOf, taskError } from "./task-summary.ts";

/** The event that opens the stream. */
export function graphStarted(id: string, graph: CompiledGraph, effectiveParallel: number) {
  const { version, tasks } = graph;
  return {
    type: "graph_started",
    id,
    version,
    tasks: presentTasks(tasks).length,
    effective_parallel: effectiveParallel,
  };
}

/** The event of a slot that has ended, as JSON text. */
export function taskEvent(slot: SlotView, names: SlotNames): string {
  const { index, id, latency_ms, ...item } = slotItem(slot);
  void [index, id];
  const { task, element } = names.of(slot.index);
  const fallback = slot.state === "completed" && slot.reason !== null ? true : undefined;
  const output = outputOf(slot);
  const error = taskError(slot);
  const event = { type: "task", task, element, output, error, ...item, duration_ms: latency_ms, fallback };
  return withParts(event, partsOfSlot(slot));
}

/** The event of a line of a plan that is no task. */
export function planErrorEvent({ line, message }: PlanFault) {
  return { type: "plan_error", line, message };
}

/** The event that ends the stream. */
export function graphCompleted(
  group: GroupView,
  graph: CompiledGraph,
  {
    latencyMs,
    written,
    ...combined
  }: { latencyMs: Float64Array; written?: GraphAnswer["written"]; aggregation?: Aggregation },
) {
  const { id, status } = group;
  const measures = measuresOf(group, graph, latencyMs);
  const plan = planJson(graph, written);
  return { type: "graph_completed", id, version: graph.version, status, ...plan, ...combined, ...measures };
}
