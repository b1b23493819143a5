/** The order of a graph's tasks: dependencies first. Nothing here recurses, so a chain of 10,000 tasks costs no stack. */
import type { CompiledTask } from "./types.ts";

/** The edges of a task that decide the order; positions. */
export type Edges = Pick<CompiledTask, "dependencies" | "alternatives" | "alternativeOf">;

/** For each task some others: one list of positions, and where those of each task begin in it (CSR). */
export type Neighbours = { starts: Uint32Array; positions: Uint32Array };

/** The edges of a graph in both directions: for each task, those that it waits for, and those that wait for it. */
export type Links = { predecessors: Neighbours; successors: Neighbours };

export function linksOf(tasks: readonly Edges[]): Links {
  const predecessors = predecessorsOf(tasks);
  return { predecessors, successors: successorsOf(predecessors) };
}

/**
 * The tasks that must end before each task. More than its dependencies: an alternative waits for the task that it replaces and
 * for the alternatives before it, and a task that depends on that task waits for its alternatives, too.
 */
function predecessorsOf(tasks: readonly Edges[]): Neighbours {
  const starts = new Uint32Array(tasks.length + 1);
  const positions: number[] = [];
  tasks.forEach((task, position) => {
    for (const dependency of task.dependencies) {
      positions.push(dependency);
      for (const alternative of tasks[dependency]?.alternatives ?? []) positions.push(alternative);
    }
    if (task.alternativeOf !== undefined) {
      positions.push(task.alternativeOf);
      for (const sibling of tasks[task.alternativeOf]?.alternatives ?? []) {
        if (sibling === position) break;
        positions.push(sibling);
      }
    }
    starts[position + 1] = positions.length;
  });
  return { starts, positions: Uint32Array.from(positions) };
}

/** The neighbours of one task. */
export function neighboursOf({ starts, positions }: Neighbours, task: number): Uint32Array {
  return positions.subarray(starts[task], starts[task + 1]);
}

/** The same edges the other way round. */
function successorsOf({ starts, positions }: Neighbours): Neighbours {
  const count = starts.length - 1;
  const ends = new Uint32Array(count + 1);
  for (const position of positions) ends[position + 1] = (ends[position + 1] ?? 0) + 1;
  for (let task = 0; task < count; task += 1) ends[task + 1] = (ends[task + 1] ?? 0) + (ends[task] ?? 0);
  const next = ends.slice();
  const successors = new Uint32Array(positions.length);
  for (let task = 0; task < count; task += 1) {
    for (const predecessor of neighboursOf({ starts, positions }, task)) {
      const at = next[predecessor] ?? 0;
      successors[at] = task;
      next[predecessor] = at + 1;
    }
  }
  return { starts: ends, positions: successors };
}

/** All tasks, each after its predecessors and else in the client's order; or the positions of a cycle. */
export type Order = { ok: true; order: Uint32Array } | { ok: false; cycle: readonly number[] };

export function orderOf({ predecessors, successors }: Links): Order {
  const count = predecessors.starts.length - 1;
  const blocked = new Uint32Array(count);
  const order = new Uint32Array(count);
  let ordered = 0;
  for (let task = 0; task < count; task += 1) {
    blocked[task] = neighboursOf(predecessors, task).length;
    if (blocked[task] === 0) order[ordered++] = task;
  }
  for (let at = 0; at < ordered; at += 1) {
    for (const successor of neighboursOf(successors, order[at] ?? 0)) {
      const left = (blocked[successor] ?? 0) - 1;
      blocked[successor] = left;
      if (left === 0) order[ordered++] = successor;
    }
  }
  return ordered === count ? { ok: true, order } : { ok: false, cycle: cycleIn(predecessors, blocked) };
}

/**
 * A cycle among the tasks that stayed blocked. Each of them has a blocked predecessor, so walking from one to such a
 * predecessor comes back to a task that was visited.
 */
function cycleIn(predecessors: Neighbours, blocked: Uint32Array): number[] {
  const visitedAt = new Map<number, number>();
  const path: number[] = [];
  let task = blocked.findIndex((left) => left > 0);
  while (!visitedAt.has(task)) {
    visitedAt.set(task, path.length);
    path.push(task);
    task = neighboursOf(predecessors, task).find((predecessor) => (blocked[predecessor] ?? 0) > 0) ?? task;
  }
  return [...path.slice(visitedAt.get(task)), task];
}
