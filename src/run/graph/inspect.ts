/** What a client learns of a valid graph before it runs: its figures, and warnings about what is allowed but likely a mistake. */
import { GRAPH_FAULTS_MAX, TASK_DURATION_MS_LONG, TASK_PROMPT_CHARS_SHORT } from "../../limits.ts";
import { criticalPathOf, levelsOf } from "./critical-path.ts";
import type { GraphWarning } from "./faults.ts";
import type { Links } from "./order.ts";
import type { ReadTask, TaskSource } from "./read-task.ts";
import type { CompiledTask } from "./types.ts";

export type GraphStats = {
  total: number;
  edges: number;
  /** Calls at most, with all elements of each `foreach` and without retries. */
  slots: number;
  /** Tasks that wait for nothing. */
  roots: number;
  /** Tasks that share their level with another one. */
  parallelizable: number;
  /** Number of levels. */
  maxDepth: number;
  /** Tasks of the largest level. */
  maxWidth: number;
  /** Ids of the longest chain of tasks by estimated duration. */
  criticalPath: readonly string[];
  /** Its estimated duration, ms. */
  criticalPathMs: number;
};

export function statsOf(
  tasks: readonly CompiledTask[],
  figures: { links: Links; order: Uint32Array; remainingMs: Float64Array; slots: number },
): GraphStats {
  const { links, order, remainingMs, slots } = figures;
  const perLevel: number[] = [];
  for (const level of levelsOf(links, order)) perLevel[level - 1] = (perLevel[level - 1] ?? 0) + 1;
  const path = criticalPathOf(remainingMs, links);
  return {
    total: tasks.length,
    edges: tasks.reduce((total, { dependencies }) => total + dependencies.length, 0),
    slots,
    roots: perLevel[0] ?? 0,
    parallelizable: perLevel.reduce((total, width) => total + (width > 1 ? width : 0), 0),
    maxDepth: perLevel.length,
    maxWidth: perLevel.reduce((widest, width) => Math.max(widest, width), 0),
    criticalPath: path.map((position) => tasks[position]?.id ?? ""),
    criticalPathMs: remainingMs[path[0] ?? 0] ?? 0,
  };
}

/** Each kind of warning at most once, with the first tasks that it is about. */
export function warningsOf(sources: readonly TaskSource[], tasks: readonly ReadTask[]): GraphWarning[] {
  const warnings: GraphWarning[] = [];
  const warn = (code: GraphWarning["code"], message: string, ids: readonly string[]): void => {
    if (ids.length > 0) warnings.push({ code, message, tasks: ids.slice(0, GRAPH_FAULTS_MAX) });
  };
  const orphans = orphansOf(tasks);
  // In a graph without edges all tasks are orphans, and a task without edges can be intended.
  if (orphans.length > 1 && orphans.length < tasks.length) {
    warn("orphans", "these tasks neither wait for another task nor does one wait for them", orphans);
  }
  const idsOf = (picks: (source: TaskSource, position: number) => boolean): string[] =>
    sources.filter(picks).map(({ id }) => id);
  warn(
    "long_task",
    `these tasks are estimated to take more than ${TASK_DURATION_MS_LONG / 60_000} minutes; consider splitting them`,
    idsOf(({ estimatedDurationMs }) => (estimatedDurationMs ?? 0) > TASK_DURATION_MS_LONG),
  );
  warn(
    "short_prompt",
    `the prompts of these tasks have fewer than ${TASK_PROMPT_CHARS_SHORT} characters`,
    idsOf(({ body }) => body.prompt !== undefined && body.prompt.trim().length < TASK_PROMPT_CHARS_SHORT),
  );
  warn(
    "unused_reference",
    "these tasks have $1 or ${1} with a number that is no task's id; it stays text",
    idsOf((_, position) => (tasks[position]?.unusedReferences.length ?? 0) > 0),
  );
  return warnings;
}

/** Tasks without edges. */
function orphansOf(tasks: readonly ReadTask[]): string[] {
  const linked = new Set<number>();
  tasks.forEach(({ dependencies, alternatives = [] }, position) => {
    for (const other of [...dependencies, ...alternatives]) linked.add(other).add(position);
  });
  return tasks.filter((_, position) => !linked.has(position)).map(({ id }) => id);
}
