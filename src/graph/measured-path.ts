/** The critical path of a graph that has run: the shortest time in which these calls, as long as they took, could have ended. */
import { linksOf, neighboursOf, orderOf } from "./order.ts";
import type { CompiledGraph, CompiledTask } from "./types.ts";

/** `latencyMs`: how long the calls of each slot took, by index; 0 for a slot that did not run. */
export function criticalPathMs(
  { tasks, slots }: Pick<CompiledGraph, "tasks" | "slots">,
  latencyMs: Readonly<Float64Array>,
): number {
  const links = linksOf(tasks);
  const ordered = orderOf(links);
  if (!ordered.ok) throw new Error("a compiled graph has no cycle");
  /** When each slot could have ended, and each task as a whole. */
  const endOf = new Float64Array(slots);
  const endOfTask = new Float64Array(tasks.length);
  let longest = 0;
  for (const position of ordered.order) {
    const task = tasks[position];
    if (task === undefined) continue;
    const { pipeline, offset } = pipelineOf(task, tasks);
    let readyMs = 0;
    for (const before of neighboursOf(links.predecessors, position)) {
      if (before !== pipeline) readyMs = Math.max(readyMs, endOfTask[before] ?? 0);
    }
    let endMs = readyMs;
    for (let at = 0; at < task.slots; at++) {
      const elementMs = pipeline === null ? 0 : (endOf[offset + at] ?? 0);
      const end = Math.max(readyMs, elementMs) + (latencyMs[task.first + at] ?? 0);
      endOf[task.first + at] = end;
      endMs = Math.max(endMs, end);
    }
    endOfTask[position] = endMs;
    longest = Math.max(longest, endMs);
  }
  return longest;
}

/** The task that a pipeline follows element by element, and its first slot; null = it is no pipeline. */
function pipelineOf(
  { foreach: each }: CompiledTask,
  tasks: readonly CompiledTask[],
): { pipeline: number | null; offset: number } {
  if (each?.elementwise !== true) return { pipeline: null, offset: 0 };
  return { pipeline: each.source, offset: tasks[each.source]?.first ?? 0 };
}

/** The tasks that nothing depends on and that replace no other: their outputs are those of the graph. */
export function sinksOf(tasks: readonly CompiledTask[]): number[] {
  const needed = new Uint8Array(tasks.length);
  for (const { dependencies } of tasks) for (const dependency of dependencies) needed[dependency] = 1;
  return tasks.flatMap(({ alternativeOf, removed }, position) =>
    needed[position] === 1 || alternativeOf !== undefined || removed === true ? [] : [position],
  );
}
