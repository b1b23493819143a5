/** How long what follows a task takes, from estimates: the order in which ready tasks start, and the figures of a graph. */
import { TASK_DURATION_MS_DEFAULT } from "../../limits.ts";
import { neighboursOf, type Links } from "./order.ts";
import type { CompiledTask, Schedule } from "./types.ts";

type Timed = Pick<CompiledTask, "estimatedDurationMs">;

/** The estimated duration of one slot of a task, ms. */
function durationMsOf(task: Timed | undefined): number {
  return task?.estimatedDurationMs ?? TASK_DURATION_MS_DEFAULT;
}

/** From the beginning of each task to the end of the longest chain of tasks that begins with it, ms. */
export function remainingMsOf(tasks: readonly Timed[], { successors }: Links, order: Uint32Array): Float64Array {
  const remainingMs = new Float64Array(tasks.length);
  for (let at = order.length - 1; at >= 0; at -= 1) {
    const task = order[at] ?? 0;
    let longestMs = 0;
    for (const successor of neighboursOf(successors, task))
      longestMs = Math.max(longestMs, remainingMs[successor] ?? 0);
    remainingMs[task] = durationMsOf(tasks[task]) + longestMs;
  }
  return remainingMs;
}

/** The levels of a graph: 1 for a task without predecessors, else one more than the highest of its predecessors. */
export function levelsOf({ predecessors }: Links, order: Uint32Array): Uint32Array {
  const levels = new Uint32Array(order.length);
  for (const task of order) {
    let highest = 0;
    for (const predecessor of neighboursOf(predecessors, task)) highest = Math.max(highest, levels[predecessor] ?? 0);
    levels[task] = highest + 1;
  }
  return levels;
}

/** The longest chain of tasks, by estimated duration: positions in order. */
export function criticalPathOf(remainingMs: Float64Array, { successors }: Links): number[] {
  const path: number[] = [];
  let next = longest(remainingMs, remainingMs.keys());
  while (next !== null) {
    path.push(next);
    next = longest(remainingMs, neighboursOf(successors, next));
  }
  return path;
}

function longest(remainingMs: Float64Array, tasks: Iterable<number>): number | null {
  let best: number | null = null;
  for (const task of tasks) {
    if (best === null || (remainingMs[task] ?? 0) > (remainingMs[best] ?? 0)) best = task;
  }
  return best;
}

/** Tenths of a second are all that an estimate can mean, and keep a rank small. */
const MS_PER_RANK = 100;

/**
 * The rank of each task under a schedule. `critical_path`: what remains from its beginning. `weight`: 0.6 × the logarithm of
 * its duration in seconds + 0.4 × the number of tasks that wait for it, in hundredths. `fifo`: 0.
 */
export function ranksOf(
  tasks: readonly Timed[],
  schedule: Schedule,
  { links, remainingMs }: { links: Links; remainingMs: Float64Array },
): readonly number[] {
  if (schedule === "critical_path") return Array.from(remainingMs, (ms) => Math.ceil(ms / MS_PER_RANK));
  if (schedule === "fifo") return tasks.map(() => 0);
  return tasks.map((task, position) => {
    const complexity = Math.log10(Math.max(1, durationMsOf(task) / 1_000));
    return Math.round(100 * (0.6 * complexity + 0.4 * neighboursOf(links.successors, position).length));
  });
}
