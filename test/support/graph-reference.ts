/**
 * What a graph comes to, by its definition: one task after another, each with all that it depends on known. It knows no queue,
 * no counters and no restarts.
 */
import { linksOf, orderOf } from "../../src/run/graph/order.ts";
import type { CompiledTask } from "../../src/run/graph/types.ts";
import type { DrawnGraph } from "./frontier-graphs.ts";
import type { SlotEnding } from "../../src/run/graph/frontier.ts";

export type ReferenceSlot = {
  state: "completed" | "failed" | "skipped" | "absent";
  text: string | null;
  prompt: string | null;
};

/** The text that the model gives for a prompt; null = the call fails for good. `elements`: it answers with such an array. */
export type Model = (prompt: string, index: number, elements: number | null | undefined) => string | null;

/** The prompt of each task: the outputs of what it depends on, and its element. */
export function promptOf({ id, dependencies, foreach: each }: CompiledTask, tasks: readonly CompiledTask[]): string {
  const outputs = dependencies.map((position) => `{{${tasks[position]?.id}.outputs}}`);
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
    const others = task.dependencies.flatMap((at) =>
      each?.elementwise === true && at === each.source ? [] : (tasks[at] ?? []),
    );
    for (let offset = 0; offset < count; offset++) {
      const index = first + offset;
      const before = each?.elementwise === true && source !== undefined ? result[source.first + offset] : undefined;
      if (before?.state === "absent") continue;
      const shares = others.map((other): [number, number] => shareOf(other));
      if (before !== undefined) shares.push([1, before.state === "completed" ? 1 : 0]);
      if (!allowed(task, shares)) {
        if (offset > 0 && before === undefined) continue;
        end(index, "skipped", null, null);
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

  function shareOf(task: CompiledTask): [number, number] {
    const existing = result.slice(task.first, task.first + task.slots).filter(({ state }) => state !== "absent").length;
    const { first, slots: count } = answering(task);
    const completed = result.slice(first, first + count).filter(({ state }) => state === "completed").length;
    return [task.foreach === undefined ? 1 : existing, completed];
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

function allowed({ runIf = "all_success" }: CompiledTask, shares: readonly [number, number][]): boolean {
  const all = shares.reduce((sum, [slots]) => sum + slots, 0);
  const done = shares.reduce((sum, [, completed]) => sum + completed, 0);
  if (runIf === "always" || done === all) return true;
  if (runIf === "all_success") return false;
  return runIf === "any" ? done > 0 : done >= runIf.atLeast * all;
}
