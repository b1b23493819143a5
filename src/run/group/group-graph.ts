/** The graph of a group in memory: its tasks, which of their slots may start, and the rules for a slot that ends. */
import { holds } from "../answers/condition.ts";
import { Frontier, type Advance, type SlotEnding } from "../graph/frontier.ts";
import { sinksOf } from "../graph/measured-path.ts";
import { tierOf } from "../graph/tiers.ts";
import { conditionOf, type CompiledGraph, type CompiledTask, type JsonPath, type PlanState } from "../graph/types.ts";
import type { Tier } from "../answers/tiers.ts";
import type { Reason } from "../../errors.ts";
import type { SlotRecord } from "./record.ts";
import { indexOf, isFinalState, slotIdOf, type SlotState } from "../queue/slot.ts";

/** The array of which a `foreach` task makes its slots: in the output of a slot, at a path. `task`: the id of that slot's task. */
export type ElementSource = { slotId: number; task: string; path: JsonPath };

/** How many elements it has, or why it is none. */
export type ElementCount = { ok: true; count: number } | { ok: false; reason: Reason };

/** What a graph reads of the answers of its slots. */
export type GraphReads = {
  /** How many elements a `foreach` task has, or why it has none. */
  countElements: (source: ElementSource) => ElementCount;
  /** The output of a slot that has ended; null = it has none. */
  outputOf: (slotId: number) => string | null;
};

export class GroupGraph {
  #compiled: CompiledGraph;
  #frontier: Frontier;
  readonly #groupSeq: number;
  readonly #reads: GraphReads;
  /** Slots that conditions have skipped: their state alone does not say so. */
  readonly #unmet = new Set<number>();
  #sinks: ReadonlySet<number> | null = null;

  constructor(compiled: CompiledGraph, groupSeq: number, reads: GraphReads) {
    this.#compiled = compiled;
    this.#groupSeq = groupSeq;
    this.#reads = reads;
    this.#frontier = this.#newFrontier();
  }

  get compiled(): CompiledGraph {
    return this.#compiled;
  }

  /** Set if it runs while its plan is written. */
  get plan(): PlanState | undefined {
    return this.#compiled.plan;
  }

  /** False if a part of its plan is missing. */
  get isWhole(): boolean {
    const { plan } = this;
    return plan === undefined || (plan.state === "ended" && plan.faults.length === 0);
  }

  get frontier(): Frontier {
    return this.#frontier;
  }

  /**
   * Takes over a changed graph, in which every slot keeps its index. Which of its slots may start is computed anew, from how
   * those that have ended did: as after a restart, for slots that run or have ended may be among the ready ones.
   */
  change(compiled: CompiledGraph, stateOf: (index: number) => SlotState): Advance {
    this.#compiled = compiled;
    this.#sinks = null;
    this.#frontier = this.#newFrontier();
    const first = this.#frontier.start();
    const then = this.#frontier.restored(this.endings(compiled.slots, stateOf));
    return {
      ready: [...first.ready, ...then.ready],
      skipped: [...first.skipped, ...then.skipped],
      unfed: [...first.unfed, ...then.unfed],
      absent: [...first.absent, ...then.absent],
    };
  }

  /** A condition has skipped a slot, now or before a restart. */
  noteUnmet(index: number): void {
    this.#unmet.add(index);
  }

  /** How those of the first `count` slots ended that have. */
  *endings(count: number, stateOf: (index: number) => SlotState): Generator<readonly [number, SlotEnding]> {
    for (let index = 0; index < count; index++) {
      const state = stateOf(index);
      if (isFinalState(state)) yield [index, this.#unmet.has(index) ? "unmet" : endingOf(state)];
    }
  }

  #newFrontier(): Frontier {
    const countElements = (task: number): number | null => {
      const elements = this.elementsOf(task);
      return elements.ok ? elements.count : null;
    };
    return new Frontier(this.#compiled, countElements, (task, index) => this.#conditionHolds(task, index));
  }

  #conditionHolds(position: number, index: number): boolean {
    const { runIf, foreach: each, first } = this.task(position);
    const condition = conditionOf(runIf);
    if (condition === null) throw new Error(`task ${position} has no condition`);
    const outputOf = (named: number): string | null => {
      // Of the source of a pipeline, the output that the slot works on.
      const offset = each?.elementwise === true && each.source === named ? index - first : 0;
      const { first: place } = this.task(this.#frontier.answering(named));
      return this.#reads.outputOf(slotIdOf(this.#groupSeq, place + offset));
    };
    const isDeclined = (named: number): boolean => this.#frontier.isDeclined(named);
    return holds(condition, { outputOf, isDeclined, slots: this.#compiled.slots });
  }

  /** A task by its position. */
  task(position: number): CompiledTask {
    const task = this.compiled.tasks[position];
    if (task === undefined) throw new Error(`a graph of ${this.compiled.tasks.length} tasks has none at ${position}`);
    return task;
  }

  /** The task of a slot. */
  taskOf(index: number): CompiledTask {
    return this.task(this.frontier.taskOf(index));
  }

  /** How many elements a `foreach` task has that is not a pipeline. */
  elementsOf(position: number): ElementCount {
    const source = this.sourceOf(position);
    if (source === null) throw new Error(`task ${position} has no elements: it is not a foreach`);
    return this.#reads.countElements(source);
  }

  /** The array of which a `foreach` task makes its slots; null if it is no such task, or a pipeline. */
  sourceOf(position: number): ElementSource | null {
    const each = this.task(position).foreach;
    if (each === undefined || each.elementwise === true) return null;
    const { id, first } = this.task(this.frontier.answering(each.source));
    return { slotId: slotIdOf(this.#groupSeq, first), task: id, path: each.path };
  }

  /** Among ready slots the one with the larger rank starts first; undefined = the one that was ready first. */
  get rankOf(): ((slotId: number) => number) | undefined {
    return this.compiled.schedule === "fifo" ? undefined : (slotId) => this.taskOf(indexOf(slotId)).rank;
  }

  /** Most attempts of a slot; null = as many as its target allows. */
  attemptsMaxOf(index: number): number | null {
    const { maxRetries } = this.taskOf(index);
    return maxRetries === undefined ? null : maxRetries + 1;
  }

  /** Whether a slot's output is one of the graph's: of a task that nothing depends on, or of an alternative of such a task. */
  isSink(index: number): boolean {
    if (this.#compiled.ordersOnly === true) return true;
    this.#sinks ??= new Set(sinksOf(this.compiled.tasks));
    const position = this.frontier.taskOf(index);
    return this.#sinks.has(this.task(position).alternativeOf ?? position);
  }

  /** The slot whose failure an alternative's is; any other slot itself. */
  answeredFor(index: number): number {
    const { alternativeOf } = this.taskOf(index);
    return alternativeOf === undefined ? index : this.task(alternativeOf).first;
  }

  /** Why a `foreach` has no elements; null if it has. */
  unfedReason(index: number): Reason | null {
    const elements = this.elementsOf(this.frontier.taskOf(index));
    return elements.ok ? null : elements.reason;
  }

  /** Whether alternatives decide if the failure of a slot counts. */
  isReplaceable(index: number): boolean {
    const { alternatives, alternativeOf } = this.taskOf(index);
    return alternatives !== undefined || alternativeOf !== undefined;
  }

  /** The slots of tasks that failed although they have alternatives, with their tiers. */
  lostTasks(): { index: number; tier: Tier }[] {
    return this.compiled.tasks.flatMap((task) =>
      task.alternatives !== undefined && this.frontier.isLost(task.first)
        ? [{ index: task.first, tier: tierOf(task) }]
        : [],
    );
  }

  /**
   * Whether a queued slot would be a call, as far as it is known: an alternative only once it has begun, and a `foreach` whose
   * elements are not known as one.
   */
  isExpected(index: number): boolean {
    if (this.frontier.isAbsent(index)) return false;
    if (!this.frontier.isBlocked(index)) return true;
    const { alternativeOf, foreach: each, first } = this.taskOf(index);
    if (alternativeOf !== undefined) return false;
    if (each === undefined || index === first) return true;
    return each.elementwise === true && this.isExpected(this.task(each.source).first + index - first);
  }

  /** The end of a slot: one that failed completes with the text that its task has for this case. It keeps its reason. */
  endOf(record: SlotRecord): SlotRecord {
    if (record.state !== "failed") return record;
    const { fallback } = this.taskOf(indexOf(record.id));
    return fallback === undefined ? record : { ...record, state: "completed", text: fallback };
  }
}

/** What the end of a slot means for its dependents. */
export function endingOf(state: SlotState): SlotEnding {
  return state === "completed" || state === "failed" ? state : "other";
}
