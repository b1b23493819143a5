/**
 * The calls of graphs as they are sent: with the outputs in them that their tasks refer to. A call is made when dispatch comes
 * to its slot, so that its reservation is that of the very text that is sent, and kept until its executor gets it. What is
 * kept is bounded; a call that was dropped is made once more, from the same outputs.
 */
import type { CallBody } from "../../../src/call.ts";
import type { ElementCount, ElementSource, GraphReads, GroupGraph } from "../../../src/run/group/group-graph.ts";
import type { Group } from "../../../src/run/group/group.ts";
import type { SlotRecord } from "../../../src/run/group/record.ts";
import { groupSeqOf, indexOf, isFinalState, slotIdOf, type SlotFacts } from "../../../src/run/queue/slot.ts";
import type { EngineState, SubstitutedFacts } from "../../../src/run/state.ts";
import type { Reason } from "../../../src/errors.ts";
import {
  elementsOf,
  substituteBody,
  type Outputs,
  type Sources,
  type Substituted,
} from "../../../src/run/graph/substitute.ts";
import { namedTasks } from "../../../src/run/answers/condition.ts";
import { conditionOf, positionsOf, type CompiledGraph, type CompiledTask } from "../../../src/run/graph/types.ts";
import { GRAPH_CALLS_CHARS_MAX, GRAPH_SOURCES_KEPT, PROMPT_BYTES_MAX } from "../../../src/limits.ts";
import type { SlotRows } from "./slots.ts";
import { KeptOutputs } from "./kept-outputs.ts";
import { outputOf, outputsFrom } from "./outputs.ts";
import { contentSize, substitutedFacts, type ContentSize } from "./substituted-facts.ts";
import { RenewedMap } from "../../../src/renewed/map.ts";

export type GraphCallsDeps = {
  groupOf: (seq: number) => Group | undefined;
  /** The facts and the body of a stored call, by the id of its place in the group's pages. */
  factsOf: (callId: number) => SlotFacts;
  callOf: (callId: number) => string;
  /** The rows of slots, and those that the present turn will write; null while the run is rebuilt. */
  rows: Pick<SlotRows, "from" | "one">;
  engine: () => Pick<EngineState, "unwrittenSlot"> | null;
};

/** A stored call with references in it. */
type Template = { callId: number; body: CallBody; size: ContentSize };

/** `isSubstituted`: outputs were inserted into the stored call. */
type Made = { ok: true; facts: SlotFacts; callJson: string; isSubstituted?: true } | { ok: false; reason: Reason };

export class GraphCalls implements GraphReads {
  readonly #deps: GraphCallsDeps;
  /** By slot, oldest first. */
  readonly #made = new RenewedMap<number, Made>();
  #chars = 0;
  /** The arrays that `foreach` tasks were fed with lately: each is parsed once for all of its elements. */
  readonly #elements = new Map<string, Substituted<readonly unknown[]>>();
  readonly #positions = new WeakMap<CompiledGraph, ReadonlyMap<string, number>>();
  readonly #readTasks = new WeakMap<CompiledGraph, ReadonlySet<number>>();
  readonly #outputs = new KeptOutputs();
  /** The stored call that was read last: the slots of a `foreach` share one. */
  #template: Template | null = null;

  constructor(deps: GraphCallsDeps) {
    this.#deps = deps;
  }

  /** The facts of a slot's call as it will be sent, or why it cannot be. */
  factsOf(slotId: number): SubstitutedFacts {
    const made = this.#madeOf(slotId);
    return made.ok ? { ok: true, facts: made.facts } : made;
  }

  /** A slot's call as it is sent, as JSON text. Throws unless `factsOf` was ok. */
  callOf(slotId: number): string {
    const made = this.#madeOf(slotId);
    if (!made.ok) throw new Error(`the call of slot ${slotId} cannot be sent`);
    this.#forget(slotId);
    return made.callJson;
  }

  /** A slot's call with the outputs in it, as JSON text; null if it is sent as it is stored, or cannot be. */
  substitutedCallOf(slotId: number): string | null {
    const made = this.#madeOf(slotId);
    return made.ok && made.isSubstituted === true ? made.callJson : null;
  }

  /** A slot was stored: its output is kept if other tasks read it. */
  stored(record: Pick<SlotRecord, "id" | "state" | "text">): void {
    const graph = this.#deps.groupOf(groupSeqOf(record.id))?.graph;
    if (graph == null || !isFinalState(record.state)) return;
    const position = graph.frontier.taskOf(indexOf(record.id));
    if (this.#readTasksOf(graph.compiled).has(position)) this.#outputs.keep(record.id, outputOf(record));
  }

  /** How many elements a `foreach` has. */
  countElements(source: ElementSource): ElementCount {
    const elements = this.#elementsOf(source);
    return elements.ok ? { ok: true, count: elements.value.length } : elements;
  }

  /** The output of a slot that has ended; null = it has none. */
  outputOf(slotId: number): string | null {
    return this.#outputsOf(slotId, 1)[0] ?? null;
  }

  /** No graph runs any more, or one has changed. */
  clear(): void {
    this.#made.clear();
    this.#elements.clear();
    this.#outputs.clear();
    this.#template = null;
    this.#chars = 0;
  }

  #madeOf(slotId: number): Made {
    const known = this.#made.get(slotId);
    if (known !== undefined) return known;
    const made = this.#make(slotId);
    this.#made.set(slotId, made);
    this.#chars += sizeOf(made);
    for (const oldest of this.#made.keys()) {
      if (this.#chars <= GRAPH_CALLS_CHARS_MAX || oldest === slotId) break;
      this.#forget(oldest);
    }
    return made;
  }

  #forget(slotId: number): void {
    const made = this.#made.get(slotId);
    if (made === undefined) return;
    this.#chars -= sizeOf(made);
    this.#made.delete(slotId);
  }

  #make(slotId: number): Made {
    const seq = groupSeqOf(slotId);
    const group = this.#deps.groupOf(seq);
    if (group?.graph == null) throw new Error(`group ${seq} of slot ${slotId} has no graph`);
    const { graph } = group;
    const index = indexOf(slotId);
    const callId = slotIdOf(seq, group.callIndexOf(index));
    const [facts, stored] = [this.#deps.factsOf(callId), this.#deps.callOf(callId)];
    const task = graph.taskOf(index);
    if (!hasReferences(task, graph)) return { ok: true, facts, callJson: stored };
    const template = this.#templateOf(callId, stored);
    if (!template.ok) return template;
    const { body, size } = template.value;
    const sources = this.#sourcesOf(graph, task, { seq, index });
    if (!sources.ok) return sources;
    const substituted = substituteBody(body, sources.value);
    if (!substituted.ok) return substituted;
    const measured = substitutedFacts(facts, size, substituted.value);
    return measured.ok ? { ...measured, callJson: JSON.stringify(substituted.value), isSubstituted: true } : measured;
  }

  #outputsOf(firstId: number, count: number): (string | null)[] {
    const { rows, engine } = this.#deps;
    return outputsFrom({ rows, engine: engine(), kept: this.#outputs }, { firstId, count });
  }

  #templateOf(callId: number, stored: string): Substituted<Template> {
    if (this.#template?.callId === callId) return { ok: true, value: this.#template };
    const body: CallBody = JSON.parse(stored);
    const size = contentSize(body);
    if (!size.ok) return size;
    this.#template = { callId, body, size: size.facts };
    return { ok: true, value: this.#template };
  }

  #sourcesOf(
    graph: GroupGraph,
    task: CompiledTask,
    { seq, index }: { seq: number; index: number },
  ): Substituted<Sources> {
    const positions = this.#positionsOf(graph);
    const item = this.#itemOf(graph, task, { seq, index });
    if (!item.ok) return item;
    const outputsOf = (id: string): Outputs | null => {
      const position = positions.get(id);
      if (position === undefined || !task.dependencies.includes(position)) return null;
      if (task.foreach?.elementwise === true && task.foreach.source === position) {
        // The other elements of a pipeline's source may not have ended.
        const { first } = graph.task(position);
        return this.#outputsOf(slotIdOf(seq, first + index - task.first), 1);
      }
      return this.#taskOutputs(graph, seq, graph.frontier.answering(position));
    };
    return {
      ok: true,
      value: {
        outputsOf,
        item: item.value,
        charsMax: task.contextLimitChars ?? null,
        inject: graph.compiled.inject,
        dependencies: task.dependencies.map((position) => graph.task(position).id),
        totalCharsMax: PROMPT_BYTES_MAX,
      },
    };
  }

  /** The outputs of the slots of a task that exist. */
  #taskOutputs(graph: GroupGraph, seq: number, position: number): Outputs {
    const { first, slots } = graph.task(position);
    const outputs = this.#outputsOf(slotIdOf(seq, first), slots);
    return slots === 1 ? outputs : outputs.filter((_, offset) => !graph.frontier.isAbsent(first + offset));
  }

  #itemOf(
    graph: GroupGraph,
    task: CompiledTask,
    { seq, index }: { seq: number; index: number },
  ): Substituted<Sources["item"]> {
    if (task.foreach === undefined) return { ok: true, value: null };
    const offset = index - task.first;
    const source = graph.sourceOf(graph.frontier.taskOf(index));
    if (source === null) {
      const [output] = this.#outputsOf(slotIdOf(seq, graph.task(task.foreach.source).first + offset), 1);
      return { ok: true, value: { value: output ?? "" } };
    }
    const elements = this.#elementsOf(source);
    return elements.ok ? { ok: true, value: { value: elements.value[offset] ?? null } } : elements;
  }

  #elementsOf({ slotId, task, path }: ElementSource): Substituted<readonly unknown[]> {
    const name = JSON.stringify([slotId, path]);
    const known = this.#elements.get(name);
    if (known !== undefined) return known;
    const [output] = this.#outputsOf(slotId, 1);
    if (output === null || output === undefined)
      return { ok: false, reason: { reason: "dependency_failed", dependency: task } };
    const elements = elementsOf(output, path, task);
    this.#elements.set(name, elements);
    for (const oldest of this.#elements.keys()) {
      if (this.#elements.size <= GRAPH_SOURCES_KEPT) break;
      this.#elements.delete(oldest);
    }
    return elements;
  }

  #readTasksOf(compiled: CompiledGraph): ReadonlySet<number> {
    const known = this.#readTasks.get(compiled);
    if (known !== undefined) return known;
    const read = readTasksOf(compiled);
    this.#readTasks.set(compiled, read);
    return read;
  }

  #positionsOf(graph: GroupGraph): ReadonlyMap<string, number> {
    const { compiled } = graph;
    const known = this.#positions.get(compiled);
    if (known !== undefined) return known;
    const positions = positionsOf(compiled.tasks);
    this.#positions.set(compiled, positions);
    return positions;
  }
}

/** The tasks whose outputs others read, or may read instead of those of the task that they are an alternative of. */
function readTasksOf({ tasks }: CompiledGraph): ReadonlySet<number> {
  const read = new Set<number>();
  for (const { inserted = [], foreach: each, runIf } of tasks) {
    for (const [task] of inserted) read.add(task);
    const condition = conditionOf(runIf);
    if (condition !== null) for (const task of namedTasks(condition)) read.add(task);
    if (each !== undefined) read.add(each.source);
  }
  for (const task of [...read]) for (const alternative of tasks[task]?.alternatives ?? []) read.add(alternative);
  return read;
}

/** Whether anything is inserted into a task's call. */
function hasReferences({ inserted, itemFactor, dependencies }: CompiledTask, { compiled }: GroupGraph): boolean {
  if (compiled.inject === "markdown" && dependencies.length > 0) return true;
  return inserted !== undefined || itemFactor !== undefined;
}

function sizeOf(made: Made): number {
  return made.ok ? made.callJson.length : 0;
}
