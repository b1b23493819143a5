/**
 * The JSON answer of a graph, as pieces of text: its tasks by id, and the outputs of those that nothing depends on. A large
 * one is never assembled; its slots are read in pages, and those of the last tasks once more.
 */
import type { MakeCalls } from "../../../run/answers/calls.ts";
import type { GroupView, SlotView } from "../../../objects/methods/groups.ts";
import { criticalPathMs, sinksOf } from "../../../run/graph/measured-path.ts";
import type { CompiledGraph, CompiledTask, PlanFault, PlanState } from "../../../run/graph/types.ts";
import type { AnswerParts } from "../../../call.ts";
import { runningJson, shownStatus } from "../batch-json.ts";
import { graphAggregation, replacementOf, withTaskIds } from "./graph-results.ts";
import { usedTools } from "../course.ts";
import { partsOfSlot, withParts } from "../parts.ts";
import { slotJson } from "../slot.ts";
import { outputOf, taskError, TaskSummary, type TaskStatus } from "./task-summary.ts";

export type GraphAnswer = {
  group: GroupView;
  graph: CompiledGraph;
  /** A page of slots in the order of their indexes, from an index on; empty after the last. */
  slotsFrom: (index: number) => Promise<SlotView[]>;
  /** Makes the calls of an `aggregate` that has some. */
  makeCalls: MakeCalls;
  /** The tasks of its plan as a planner has written them, for the client that has not; absent = its client sent them. */
  written?: WrittenTasks | undefined;
};

type WrittenTasks = readonly Record<string, unknown>[];

/** Yields the answer's text in pieces of some size: a graph may have thousands of small tasks. */
export async function* graphJson(answer: GraphAnswer): AsyncGenerator<string> {
  let parts: string[] = [];
  let chars = 0;
  for await (const part of partsOf(answer)) {
    parts.push(part);
    chars += part.length;
    if (chars < PIECE_CHARS) continue;
    yield parts.join("");
    parts = [];
    chars = 0;
  }
  yield parts.join("");
}

/** Characters from which on a piece is sent. */
const PIECE_CHARS = 32_768;

async function* partsOf({ group, graph, slotsFrom, makeCalls, written }: GraphAnswer): AsyncGenerator<string> {
  const statuses: TaskStatus[] = [];
  const latencyMs = new Float64Array(graph.slots);
  const { id } = group;
  const head = { id, object: "graph", version: graph.version, status: shownStatus(group), ...planJson(graph, written) };
  yield `${JSON.stringify(head).slice(0, -1)},"tasks":{`;
  const slots = new SlotCursor(slotsFrom);
  let separator = "";
  for (const position of inSlotOrder(graph.tasks)) {
    const task = graph.tasks[position];
    if (task === undefined || task.removed === true) continue;
    yield `${separator}${JSON.stringify(task.id)}:{`;
    separator = ",";
    const summary = new TaskSummary(task);
    const ended = (slot: SlotView): void => {
      summary.add(slot);
      latencyMs[slot.index] = slot.latencyMs;
    };
    yield* task.foreach === undefined ? oneOutput(task, slots, ended) : manyOutputs(task, slots, ended);
    const replacedBy = summary.status === "failed" ? await replacementOf(task, graph, slotsFrom) : null;
    yield `,${JSON.stringify(summary.fields(replacedBy?.id ?? null)).slice(1)}`;
    statuses[position] = summary.status;
  }
  yield `},"outputs":{`;
  yield* sinkOutputs(graph, slotsFrom);
  const combined = await graphAggregation(group, graph, { slotsFrom, makeCalls });
  const rest = { ...listsOf(graph, statuses), ...combined, ...measuresOf(group, graph, latencyMs) };
  yield `},${JSON.stringify(rest).slice(1)}`;
}

/** How much of a plan has come whose tasks start before it is complete; nothing of any other graph. */
export function planJson(
  { plan }: CompiledGraph,
  tasks: WrittenTasks | undefined,
): { plan?: { state: PlanState["state"]; errors: readonly PlanFault[]; tasks: WrittenTasks | undefined } } {
  return plan === undefined ? {} : { plan: { state: plan.state, errors: plan.faults, tasks } };
}

async function* oneOutput(
  task: CompiledTask,
  slots: SlotCursor,
  ended: (slot: SlotView) => void,
): AsyncGenerator<string> {
  let output: string | null = null;
  let json: unknown;
  let parts: AnswerParts | undefined;
  let used = {};
  for await (const slot of slots.of(task)) {
    output = outputOf(slot);
    json = slotJson(slot);
    parts = partsOfSlot(slot);
    used = usedTools(slot);
    ended(slot);
  }
  yield withParts({ output, json, ...used }, parts).slice(1, -1);
}

/** The outputs of a `foreach` in the order of its elements, null for those that have none, their errors and their JSON. */
async function* manyOutputs(
  task: CompiledTask,
  slots: SlotCursor,
  ended: (slot: SlotView) => void,
): AsyncGenerator<string> {
  const errors: unknown[] = [];
  yield `"outputs":[`;
  let separator = "";
  let hasJson = false;
  const has = { message: false, logprobs: false, transcript: false };
  for await (const slot of slots.of(task)) {
    ended(slot);
    yield `${separator}${JSON.stringify(outputOf(slot))}`;
    separator = ",";
    errors.push(taskError(slot));
    hasJson ||= slotJson(slot) !== undefined;
    has.message ||= partsOfSlot(slot)?.message !== undefined;
    has.logprobs ||= partsOfSlot(slot)?.logprobs !== undefined;
    has.transcript ||= partsOfSlot(slot)?.transcript !== undefined;
  }
  yield `],"errors":${JSON.stringify(errors)}`;
  // The slots are read once more for each list: the values together may be as large as the outputs.
  if (hasJson) yield* listOf("json", (slot) => JSON.stringify(slotJson(slot) ?? null));
  if (has.message) yield* listOf("messages", (slot) => partsOfSlot(slot)?.message ?? "null");
  if (has.logprobs) yield* listOf("logprobs", (slot) => partsOfSlot(slot)?.logprobs ?? "null");
  if (has.transcript) yield* listOf("transcripts", (slot) => partsOfSlot(slot)?.transcript ?? "null");

  async function* listOf(name: string, show: (slot: SlotView) => string): AsyncGenerator<string> {
    let comma = "";
    yield `,"${name}":[`;
    for await (const slot of slots.of(task)) {
      yield `${comma}${show(slot)}`;
      comma = ",";
    }
    yield "]";
  }
}

/** By id: the output of each task that nothing depends on, a list of outputs for a `foreach`. */
async function* sinkOutputs(graph: CompiledGraph, slotsFrom: GraphAnswer["slotsFrom"]): AsyncGenerator<string> {
  const slots = new SlotCursor(slotsFrom);
  const sinks = new Set(sinksOf(graph.tasks));
  let separator = "";
  for (const position of inSlotOrder(graph.tasks)) {
    const task = graph.tasks[position];
    if (task === undefined || !sinks.has(position)) continue;
    const outputs: (string | null)[] = [];
    for await (const slot of slots.of(task)) outputs.push(outputOf(slot));
    yield `${separator}${JSON.stringify(task.id)}:`;
    separator = ",";
    if (task.foreach !== undefined) yield JSON.stringify(outputs);
    else yield JSON.stringify(outputs[0] ?? (await replacementOf(task, graph, slotsFrom))?.output ?? null);
  }
}

/** The ids of the tasks that ended, by how they did. */
function listsOf({ tasks }: CompiledGraph, statuses: readonly TaskStatus[]) {
  const idsOf = (status: TaskStatus): string[] =>
    tasks.flatMap(({ id }, position) => (statuses[position] === status ? [id] : []));
  return {
    completed: idsOf("completed"),
    partial: idsOf("partial"),
    failed: idsOf("failed"),
    skipped: idsOf("skipped"),
    cancelled: idsOf("cancelled"),
  };
}

/** Usage and metrics of a graph, so far or in all. */
export function measuresOf(group: GroupView, graph: CompiledGraph, latencyMs: Float64Array) {
  const { id, object, status, metrics, missing, ...measures } = runningJson(withTaskIds(group, graph));
  void [id, object, status, missing];
  return { metrics: { critical_path_ms: Math.round(criticalPathMs(graph, latencyMs)), ...metrics }, ...measures };
}

/** Positions of the tasks in the order of their slots. */
function inSlotOrder(tasks: readonly CompiledTask[]): number[] {
  const first = (position: number): number => tasks[position]?.first ?? 0;
  return tasks.map((_, position) => position).sort((a, b) => first(a) - first(b));
}

/** Reads slots by index, a page at a time. Some indexes have none: a `foreach` has fewer elements than it may have. */
class SlotCursor {
  readonly #slotsFrom: GraphAnswer["slotsFrom"];
  #page: readonly SlotView[] = [];
  /** The indexes that the page answers for: from the first on, to before the second. */
  #covers: [number, number] = [0, 0];
  #at = 0;

  constructor(slotsFrom: GraphAnswer["slotsFrom"]) {
    this.#slotsFrom = slotsFrom;
  }

  /** The slots of a task that exist. */
  async *of({ first, slots }: CompiledTask): AsyncGenerator<SlotView> {
    for (let index = first; index < first + slots;) {
      const slot = await this.#next(index);
      if (slot === null || slot.index >= first + slots) return;
      yield slot;
      index = slot.index + 1;
    }
  }

  /** The first slot from an index on. */
  async #next(index: number): Promise<SlotView | null> {
    const [from, end] = this.#covers;
    if (index < from || index >= end) {
      this.#page = await this.#slotsFrom(index);
      this.#at = 0;
      this.#covers = [index, (this.#page.at(-1)?.index ?? Infinity) + 1];
    }
    if ((this.#page[this.#at]?.index ?? 0) > index) this.#at = 0;
    while ((this.#page[this.#at]?.index ?? Infinity) < index) this.#at += 1;
    return this.#page[this.#at] ?? null;
  }
}
