/** Which task of a graph each of its slots belongs to. */
import type { CompiledGraph } from "../../../run/graph/types.ts";

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
