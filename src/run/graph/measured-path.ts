/** The critical path of a graph that has run: the shortest time in which these calls, as long as they took, could have ended. */
import { linksOf, neighboursOf, orderOf } from "./order.ts";
import type { CompiledTask } from "./types.ts";

/** What of a task decides when its calls could have ended. */
export type MeasuredTask = Pick<
  CompiledTask,
  "first" | "slots" | "dependencies" | "alternatives" | "alternativeOf" | "foreach"
>;
type MeasuredGraph = { tasks: readonly MeasuredTask[]; slots: number };

/** `latencyMs`: how long the calls of each slot took, by index; 0 for a slot that did not run. */
export function criticalPathMs(graph: MeasuredGraph, latencyMs: Readonly<Float64Array>): number {
  return longestChain(graph, latencyMs).endMs;
}

/** The chain of calls that decides how long a graph takes at least: the positions of its tasks, in order, and its duration. */
export function longestChain(
  { tasks, slots }: MeasuredGraph,
  latencyMs: Readonly<Float64Array>,
): { endMs: number; tasks: number[] } {
  const links = linksOf(tasks);
  const ordered = orderOf(links);
  if (!ordered.ok) throw new Error("a compiled graph has no cycle");
  const chains = new Chains(slots, tasks.length);
  for (const position of ordered.order) {
    const task = tasks[position];
    if (task === undefined) continue;
    const { pipeline, offset } = pipelineOf(task, tasks);
    let last: number | null = null;
    for (const before of neighboursOf(links.predecessors, position)) {
      if (before !== pipeline) last = chains.later(last, chains.lastOf(before));
    }
    // A task without slots ends when it could begin.
    chains.taskEnds(position, last);
    for (let at = 0; at < task.slots; at++) {
      const slot = task.first + at;
      chains.slotEnds(slot, {
        position,
        before: pipeline === null ? last : chains.later(last, offset + at),
        latencyMs: latencyMs[slot] ?? 0,
      });
    }
  }
  return chains.longest();
}

/** When each slot could have ended, and after which other one: the last slot of each task ends it. */
class Chains {
  readonly #endOf: Float64Array;
  readonly #beforeOf: Int32Array;
  readonly #taskOf: Uint16Array;
  readonly #lastOf: Int32Array;
  #last: number | null = null;

  constructor(slots: number, tasks: number) {
    this.#endOf = new Float64Array(slots);
    this.#beforeOf = new Int32Array(slots).fill(NO_SLOT);
    this.#taskOf = new Uint16Array(slots);
    this.#lastOf = new Int32Array(tasks).fill(NO_SLOT);
  }

  /** The slot that ends a task; null = it has none, nor what it waits for. */
  lastOf(position: number): number | null {
    const last = this.#lastOf[position] ?? NO_SLOT;
    return last === NO_SLOT ? null : last;
  }

  taskEnds(position: number, last: number | null): void {
    this.#lastOf[position] = last ?? NO_SLOT;
  }

  slotEnds(
    slot: number,
    { position, before, latencyMs }: { position: number; before: number | null; latencyMs: number },
  ): void {
    this.#endOf[slot] = this.#endMs(before) + latencyMs;
    this.#beforeOf[slot] = before ?? NO_SLOT;
    this.#taskOf[slot] = position;
    this.taskEnds(position, this.later(this.lastOf(position), slot));
    this.#last = this.later(this.#last, slot);
  }

  /** That of two slots which ends later; the first one if they end together. */
  later(one: number | null, other: number | null): number | null {
    if (one === null || other === null) return one ?? other;
    return this.#endMs(other) > this.#endMs(one) ? other : one;
  }

  longest(): { endMs: number; tasks: number[] } {
    const tasks: number[] = [];
    for (let slot = this.#last ?? NO_SLOT; slot !== NO_SLOT; slot = this.#beforeOf[slot] ?? NO_SLOT) {
      tasks.push(this.#taskOf[slot] ?? 0);
    }
    return { endMs: this.#endMs(this.#last), tasks: tasks.toReversed() };
  }

  #endMs(slot: number | null): number {
    return slot === null ? 0 : (this.#endOf[slot] ?? 0);
  }
}

const NO_SLOT = -1;

/** The task that a pipeline follows element by element, and its first slot; null = it is no pipeline. */
function pipelineOf(
  { foreach: each }: MeasuredTask,
  tasks: readonly MeasuredTask[],
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
