/**
 * Which tasks of a graph that runs will not start, because of how the tasks ended that they depend on. The log has a line for each
 * call that begins, but none for these: they follow from the graph, by the rules of `src/run/graph/frontier.ts`.
 */
import { neighboursOf, type Links } from "../../../src/run/graph/order.ts";
import type { Task } from "./outline.ts";

/** How many calls of a task have begun, have ended, and completed. */
export type Counts = { begun: number; ended: number; completed: number };

/** How a task of one call ended: `open` = it has not, or it is not known yet. */
type Ending = "open" | "completed" | "lost";

/** The positions of tasks that will not start. `order`: all positions, each after its predecessors. */
export function skippedTasks(
  tasks: readonly Task[],
  counts: readonly Counts[],
  { links, order }: { links: Links; order: Uint32Array },
): ReadonlySet<number> {
  const skips = new Skips(tasks, counts);
  for (const position of order) {
    // Most tasks depend on nothing that could have ended yet.
    if (neighboursOf(links.predecessors, position).length > 0) skips.decide(position);
  }
  return skips.positions;
}

class Skips {
  readonly positions = new Set<number>();
  readonly #tasks: readonly Task[];
  readonly #counts: readonly Counts[];

  constructor(tasks: readonly Task[], counts: readonly Counts[]) {
    this.#tasks = tasks;
    this.#counts = counts;
  }

  decide(position: number): void {
    const task = this.#tasks[position];
    if (task === undefined || (this.#counts[position]?.begun ?? 0) > 0) return;
    if (this.#isUnneeded(task, position) || this.#lacks(task)) this.positions.add(position);
  }

  /** An alternative is only tried if its task failed and no alternative before it completed. */
  #isUnneeded({ alternativeOf }: Task, position: number): boolean {
    if (alternativeOf === undefined) return false;
    if (this.positions.has(alternativeOf) || this.#endingOf(alternativeOf) === "completed") return true;
    const siblings = this.#tasks[alternativeOf]?.alternatives ?? [];
    return siblings.slice(0, siblings.indexOf(position)).some((sibling) => this.#endingOf(sibling) === "completed");
  }

  /** Whether so many calls of its dependencies are lost that its `run_if` cannot hold any more. */
  #lacks({ dependencies, runIf, foreach: each }: Task): boolean {
    if (runIf === "always") return false;
    let [all, lost] = [0, 0];
    for (const dependency of dependencies) {
      const slots = Math.max(1, this.#tasks[dependency]?.slots ?? 1);
      const lostSlots = this.#lostSlots(dependency, slots);
      all += slots;
      // Each call of a pipeline depends on one call of its source only.
      if (each?.source !== dependency || lostSlots === slots) lost += lostSlots;
    }
    if (runIf === "all_success") return lost > 0;
    // If all that it names is lost, no output lets it start. What an output says is not known here.
    if (runIf === "condition") return lost > 0 && lost === all;
    if (runIf === "any") return lost > 0 && lost === all;
    return all - lost < runIf.atLeast * all;
  }

  #lostSlots(position: number, slots: number): number {
    if (slots === 1) return this.#answerOf(position) === "lost" ? 1 : 0;
    const { ended = 0, completed = 0 } = this.#counts[position] ?? {};
    return this.positions.has(position) ? slots : ended - completed;
  }

  /** How a task ended, or the alternatives that were tried for it. */
  #answerOf(position: number): Ending {
    const ending = this.#endingOf(position);
    if (ending !== "lost" || this.positions.has(position)) return ending;
    for (const alternative of this.#tasks[position]?.alternatives ?? []) {
      const instead = this.#endingOf(alternative);
      if (instead !== "lost") return instead;
    }
    return "lost";
  }

  #endingOf(position: number): Ending {
    if (this.positions.has(position)) return "lost";
    const { begun = 0, ended = 0, completed = 0 } = this.#counts[position] ?? {};
    if (begun === 0 || ended < begun) return "open";
    return completed === begun ? "completed" : "lost";
  }
}
