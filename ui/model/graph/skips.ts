/**
 * Which tasks of a graph that runs will not start. The log has a line for each call that is skipped, but none for alternatives that
 * are not needed: they follow from how the tasks before them ended, by the rules of `src/run/graph/frontier.ts`.
 */
import type { Task } from "./outline.ts";

/** How many calls of a task have begun, have ended, completed, and were skipped. */
export type Counts = { begun: number; ended: number; completed: number; skipped: number };

/** The positions of tasks that will not start. `order`: all positions, each after its predecessors. */
export function skippedTasks(
  tasks: readonly Task[],
  counts: readonly Counts[],
  order: Iterable<number>,
): ReadonlySet<number> {
  const positions = new Set<number>();
  const hasCompleted = (position: number): boolean => {
    const { begun = 0, completed = 0 } = counts[position] ?? {};
    return begun > 0 && completed === begun;
  };
  /** An alternative is only tried if its task failed and no alternative before it completed. */
  const isUnneeded = ({ alternativeOf }: Task, position: number): boolean => {
    if (alternativeOf === undefined) return false;
    if (positions.has(alternativeOf) || hasCompleted(alternativeOf)) return true;
    const siblings = tasks[alternativeOf]?.alternatives ?? [];
    return siblings.slice(0, siblings.indexOf(position)).some(hasCompleted);
  };
  for (const position of order) {
    const task = tasks[position];
    const { begun = 0, skipped = 0 } = counts[position] ?? {};
    if (task === undefined || begun > 0) continue;
    if (isUnneeded(task, position) || isSkipped(task, skipped, positions)) positions.add(position);
  }
  return positions;
}

/** A task that is no pipeline is skipped as one call; the calls of a pipeline one by one, or with all of its source. */
function isSkipped({ slots, foreach: each }: Task, skipped: number, others: ReadonlySet<number>): boolean {
  if (skipped === 0) return false;
  return each === undefined || skipped === slots || others.has(each.source);
}
