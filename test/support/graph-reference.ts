/**
 * What a graph comes to, by its definition: one task after another, each with all that it depends on known. It knows no queue,
 * no counters and no restarts.
 */
import { linksOf, orderOf } from "../../src/run/graph/order.ts";
import { namedTasks } from "../../src/run/answers/condition.ts";
import { conditionOf, type CompiledTask } from "../../src/run/graph/types.ts";
import { rulingOf, type Seen, type View } from "./run-if-reference.ts";
import type { DrawnGraph } from "./frontier-graphs.ts";
import type { SlotEnding } from "../../src/run/graph/frontier.ts";

export type ReferenceSlot = {
  /** `unmet`: a condition has skipped it. */
  state: "completed" | "failed" | "skipped" | "unmet" | "absent";
  text: string | null;
  prompt: string | null;
};

/** The text that the model gives for a prompt; null = the call fails for good. `elements`: it answers with such an array. */
export type Model = (prompt: string, index: number, elements: number | null | undefined) => string | null;

/** What a task's prompt inserts: what it depends on, but for what decides whether a likely one runs. */
export function insertedInto({ dependencies, runIf, likely }: CompiledTask): readonly number[] {
  const condition = conditionOf(runIf);
  if (likely === undefined || condition === null) return dependencies;
  return dependencies.filter((position) => !namedTasks(condition).includes(position));
}

/** The prompt of each task: the outputs that it inserts, and its element. */
export function promptOf(task: CompiledTask, tasks: readonly CompiledTask[]): string {
  const { id, foreach: each } = task;
  const outputs = insertedInto(task).map((position) => `{{${tasks[position]?.id}.outputs}}`);
  return [id, ...(each === undefined ? [] : ["{{item}}"]), ...outputs].join(" / ");
}

/** Every slot of the graph as it ends. `elementsOf`: of tasks that feed others, the elements of their answer. */
export function playReference(drawn: DrawnGraph, model: Model): ReferenceSlot[] {
  const { tasks, slots } = drawn;
  const ended = new Map<number, SlotEnding>();
  const result: ReferenceSlot[] = Array.from({ length: slots }, () => ({ state: "absent", text: null, prompt: null }));
  const links = linksOf(tasks);
  const ordered = orderOf(links);
  if (!ordered.ok) throw new Error("a drawn graph has no cycle");
  const answering = (task: CompiledTask): CompiledTask =>
    task.alternatives
      ?.map((at) => tasks[at])
      .find((each) => each !== undefined && ended.get(each.first) === "completed") ?? task;
  const outputsOf = (task: CompiledTask): string[] => {
    const { first, slots: count } = answering(task);
    return result.slice(first, first + count).flatMap(({ state, text }) => (state === "completed" ? [text ?? ""] : []));
  };
  for (const position of ordered.order) {
    const task = tasks[position];
    if (task === undefined) continue;
    playTask(task, position);
  }
  return result;

  function playTask(task: CompiledTask, position: number): void {
    const { first, slots: count, foreach: each, alternativeOf, fallback } = task;
    const primary = alternativeOf === undefined ? undefined : tasks[alternativeOf];
    if (primary !== undefined && (result[primary.first]?.state !== "failed" || answering(primary) !== primary)) return;
    const source = each === undefined ? undefined : tasks[each.source];
    for (let offset = 0; offset < count; offset++) {
      const index = first + offset;
      const before = each?.elementwise === true && source !== undefined ? result[source.first + offset] : undefined;
      if (before?.state === "absent") continue;
      const ruling = rulingOf(task, viewOf(task, before));
      if (ruling !== "runs") {
        if (offset > 0 && before === undefined) continue;
        end(index, ruling === "unmet" ? "unmet" : "skipped", null, null);
        continue;
      }
      const elements =
        each === undefined || before !== undefined || source === undefined ? undefined : elementsAt(source);
      if (elements === null) {
        if (offset === 0) end(index, "failed", null, null);
        continue;
      }
      if (elements !== undefined && offset >= elements.length) continue;
      const item = before === undefined ? elements?.[offset] : (before.text ?? "");
      const prompt = filled(
        promptOf(task, tasks),
        item,
        before === undefined ? null : { id: source?.id ?? "", text: before.text },
      );
      const text = model(prompt, index, feeds(position) ? drawn.elements[position] : undefined);
      if (text === null && fallback !== undefined) end(index, "completed", fallback, prompt);
      else end(index, text === null ? "failed" : "completed", text, prompt);
    }
  }

  function end(index: number, state: ReferenceSlot["state"], text: string | null, prompt: string | null): void {
    result[index] = { state, text, prompt };
    ended.set(index, state === "completed" || state === "failed" ? state : "other");
  }

  function feeds(position: number): boolean {
    return tasks.some(
      ({ foreach: each }) => each !== undefined && each.elementwise !== true && each.source === position,
    );
  }

  function elementsAt(source: CompiledTask): string[] | null {
    const answer = answering(source);
    const [text] = outputsOf(answer);
    try {
      const value: unknown = JSON.parse(text ?? "");
      return Array.isArray(value) ? value.map(String) : null;
    } catch {
      return null;
    }
  }

  /** `before`: of a pipeline, the element of its source that the slot works on. */
  function viewOf({ foreach: each }: CompiledTask, before: ReferenceSlot | undefined): View {
    const isElement = (position: number): boolean => before !== undefined && position === each?.source;
    return {
      seen: (position) => (before !== undefined && isElement(position) ? seenSlot(before) : seenTask(position)),
      textOf: (position) =>
        before !== undefined && isElement(position) ? before.text : (outputsOf(taskAt(position))[0] ?? null),
      isDeclined: (position) => {
        const condition = conditionOf(taskAt(position).runIf);
        if (condition === null || result[taskAt(position).first]?.state !== "unmet") return false;
        return namedTasks(condition).some((named) => outputsOf(taskAt(named)).length > 0);
      },
    };
  }

  function taskAt(position: number): CompiledTask {
    const task = tasks[position];
    if (task === undefined) throw new Error(`a drawn graph has no task ${position}`);
    return task;
  }

  function seenSlot({ state }: ReferenceSlot): Seen {
    return { slots: 1, completed: state === "completed" ? 1 : 0, isUnmet: state === "unmet" };
  }

  function seenTask(position: number): Seen {
    const task = taskAt(position);
    const existing = result.slice(task.first, task.first + task.slots).filter(({ state }) => state !== "absent");
    const wanted = existing.filter(({ state }) => state !== "unmet").length;
    const completed = outputsOf(task).length;
    const isUnmet = existing.length > 0 && wanted === 0;
    return { slots: task.foreach === undefined ? 1 : wanted, completed, isUnmet };
  }

  /** `element`: of a pipeline, the output of its source that it works on. */
  function filled(
    template: string,
    item: string | undefined,
    element: { id: string; text: string | null } | null,
  ): string {
    return template.replaceAll(/\{\{(?:item|([^.{}]+)\.outputs)\}\}/g, (_, id: string | undefined) => {
      if (element !== null && id === element.id) return element.text ?? "";
      const task = tasks.find((each) => each.id === id);
      return task === undefined ? (item ?? "") : outputsOf(task).join("\n\n");
    });
  }
}
