/**
 * Which slots of a graph may start. A slot is blocked until the last dependency of its task has ended; then it is ready, or
 * skipped, or absent: a `foreach` has a slot for each element that it may have, and those beyond its last element never exist.
 *
 * Nothing of this is stored. It follows from the graph and the states of slots, in whatever order they are given, so a
 * restart computes it again. Everything here is bounded by the graph: each edge and each slot is visited once.
 */
import { TierBarrier, tierOf } from "./tiers.ts";
import { namedTasks } from "../answers/condition.ts";
import { conditionOf, type CompiledGraph, type CompiledTask } from "./types.ts";

/** How a slot ended, as far as its dependents care. `unmet`: a condition has skipped it. `other`: skipped otherwise, or cancelled. */
export type SlotEnding = "completed" | "failed" | "unmet" | "other";

/**
 * Why a slot does not start: because of a dependency, by the position of that task. `isUnmet`: not because that one did not
 * complete, but because a condition on its output does not hold, or has skipped it.
 */
type Obstacle = { because: number; isUnmet?: true };

/** A slot that does not start. */
export type SkippedSlot = { index: number } & Obstacle;

/** What the end of a slot changes. */
export type Advance = {
  /** Slots that may start now. */
  ready: number[];
  skipped: SkippedSlot[];
  /** First slots of `foreach` tasks that failed, because the output of their source has no elements. */
  unfed: number[];
  /** Ranges of slots that do not exist: from the first to before the second. */
  absent: [number, number][];
};

/** How many elements the source of a `foreach` task has; null = its output has none. Asked once per task, when it is ready. */
export type CountElements = (task: number) => number | null;

/** Whether the condition of a task holds for one of its slots. Asked once for each that is not an element of an array, when it is ready. */
export type ConditionHolds = (task: number, index: number) => boolean;

const BLOCKED = 0;
const READY = 1;
const COMPLETED = 2;
const FAILED = 3;
const OTHER = 4;
const ABSENT = 5;
const UNMET = 6;

const CODE_OF: Record<SlotEnding, number> = { completed: COMPLETED, failed: FAILED, unmet: UNMET, other: OTHER };

export class Frontier {
  readonly #tasks: readonly CompiledTask[];
  readonly #countElements: CountElements;
  readonly #conditionHolds: ConditionHolds;
  /** State per slot. */
  readonly #slots: Uint8Array;
  /** The task of each slot, by position. */
  readonly #taskOf: Uint16Array;
  /** Per task: dependencies that have not ended, one more for an alternative that is not needed so far, and one for a tier. */
  readonly #pending: Int32Array;
  /** Per task: slots that have neither ended nor turned out to be absent; that completed; that are absent; that conditions skipped. */
  readonly #left: Int32Array;
  readonly #completed: Int32Array;
  readonly #absent: Int32Array;
  readonly #unmet: Int32Array;
  /** Per task: alternatives that were started. */
  readonly #tried: Uint16Array;
  /** Per task that an alternative completed for: that alternative; else -1. */
  readonly #replacedBy: Int32Array;
  /** Per task: 1 if a pipeline follows its slots one by one. */
  readonly #isFollowed: Uint8Array;
  /** Per task: 1 once it has ended, and no alternative of it may start any more. */
  readonly #isResolved: Uint8Array;
  /** Dependents of each task as one list: those of task t are `#dependents[#firstDependent[t] ... #firstDependent[t + 1])`. */
  readonly #firstDependent: Int32Array;
  readonly #dependents: Int32Array;
  readonly #barrier: TierBarrier;
  /** What must still be looked at: a slot that ended, or a task all of whose slots did, as -1 minus its position. */
  #work: number[] = [];
  #advance: Advance = nothing();
  #blocked: number;
  #absentSlots = 0;
  #unmetSlots = 0;
  #isStopped = false;

  constructor(
    { tasks, slots, tiers }: Pick<CompiledGraph, "tasks" | "slots" | "tiers">,
    countElements: CountElements,
    conditionHolds: ConditionHolds,
  ) {
    this.#barrier = new TierBarrier(tasks, tiers === "strict");
    this.#tasks = tasks;
    this.#countElements = countElements;
    this.#conditionHolds = conditionHolds;
    this.#slots = new Uint8Array(slots);
    this.#taskOf = new Uint16Array(slots);
    this.#pending = new Int32Array(tasks.length);
    this.#left = new Int32Array(tasks.length);
    this.#completed = new Int32Array(tasks.length);
    this.#absent = new Int32Array(tasks.length);
    this.#unmet = new Int32Array(tasks.length);
    this.#tried = new Uint16Array(tasks.length);
    this.#replacedBy = new Int32Array(tasks.length).fill(-1);
    this.#isResolved = new Uint8Array(tasks.length);
    this.#isFollowed = new Uint8Array(tasks.length);
    this.#firstDependent = new Int32Array(tasks.length + 1);
    this.#blocked = slots;
    let edges = 0;
    tasks.forEach((task, position) => {
      this.#taskOf.fill(position, task.first, task.first + task.slots);
      this.#left[position] = task.slots;
      this.#pending[position] = pendingOf(task) + (this.#barrier.holds(task) ? 1 : 0);
      edges += task.dependencies.length;
      if (task.foreach?.elementwise === true) this.#isFollowed[task.foreach.source] = 1;
      for (const dependency of task.dependencies) add(this.#firstDependent, dependency + 1, 1);
    });
    for (let at = 1; at <= tasks.length; at++) add(this.#firstDependent, at, valueAt(this.#firstDependent, at - 1));
    this.#dependents = new Int32Array(edges);
    const next = this.#firstDependent.slice();
    tasks.forEach(({ dependencies }, position) => {
      for (const dependency of dependencies) {
        this.#dependents[valueAt(next, dependency)] = position;
        add(next, dependency, 1);
      }
    });
  }

  /** Slots that are not ready, and have neither ended nor turned out to be absent. */
  get blocked(): number {
    return this.#blocked;
  }

  get absentSlots(): number {
    return this.#absentSlots;
  }

  /** Slots that conditions have skipped: nothing of them is missing. */
  get unmetSlots(): number {
    return this.#unmetSlots;
  }

  /** Whether a condition has skipped a slot. */
  isUnmet(index: number): boolean {
    return this.#slots[index] === UNMET;
  }

  /**
   * Whether a task was skipped because its own condition does not hold. One whose condition names only tasks that were skipped
   * themselves was never asked.
   */
  isDeclined(position: number): boolean {
    const task = this.#tasks[position];
    const condition = conditionOf(task?.runIf);
    if (task === undefined || condition === null || !this.isUnmet(task.first)) return false;
    return namedTasks(condition).some((named) =>
      [named, ...(this.#tasks[named]?.alternatives ?? [])].some((at) => valueAt(this.#completed, at) > 0),
    );
  }

  /** Position of the task of a slot. */
  taskOf(index: number): number {
    return valueAt(this.#taskOf, index);
  }

  /** Whether a task has ended, and so have its alternatives as far as they are needed. */
  isResolved(position: number): boolean {
    return this.#isResolved[position] === 1;
  }

  /** Whether a task waits for a tier before its own. */
  isHeld(position: number): boolean {
    const task = this.#tasks[position];
    return task !== undefined && this.#barrier.holds(task);
  }

  /** Whether a task has an output: it has completed, or an alternative in its place. */
  hasAnswer(position: number): boolean {
    return this.isResolved(position) && valueAt(this.#completed, this.answering(position)) > 0;
  }

  /** Whether only its condition on outputs keeps a task of one slot from starting: all else that it depends on has completed. */
  waitsForCondition(position: number): boolean {
    const task = this.#tasks[position];
    const condition = conditionOf(task?.runIf);
    if (task === undefined || condition === null || task.removed === true || task.slots > 1) return false;
    if (!this.isBlocked(task.first) || this.isHeld(position) || task.alternativeOf !== undefined) return false;
    const named = namedTasks(condition);
    const others = task.dependencies.filter((dependency) => !named.includes(dependency));
    if (!others.every((dependency) => this.isResolved(dependency))) return false;
    const { lost, unmet } = this.#tally(others, null);
    return lost === null && unmet === null;
  }

  isBlocked(index: number): boolean {
    return this.#slots[index] === BLOCKED;
  }

  isAbsent(index: number): boolean {
    return this.#slots[index] === ABSENT;
  }

  /** The task whose outputs count as those of a task: itself, or the alternative that completed after it failed. */
  answering(position: number): number {
    const alternative = valueAt(this.#replacedBy, position);
    return alternative === -1 ? position : alternative;
  }

  /** True if a slot failed, and neither an alternative of its task completed nor one may yet. */
  isLost(index: number): boolean {
    if (this.#slots[index] !== FAILED) return false;
    const position = this.taskOf(index);
    const { alternativeOf, alternatives } = this.#tasks[position] ?? {};
    if (alternativeOf === undefined && alternatives === undefined) return true;
    const primary = alternativeOf ?? position;
    return this.#isResolved[primary] === 1 && this.#replacedBy[primary] === -1;
  }

  /** Failed slots for whose tasks an alternative completed. */
  get replacedSlots(): number {
    let replaced = 0;
    for (const alternative of this.#replacedBy) if (alternative !== -1) replaced += 1;
    return replaced;
  }

  /** The slots that may start before any has ended. Call it once, first of all. */
  start(): Advance {
    this.#tasks.forEach(({ first, slots, removed }, position) => {
      if (removed === true) this.#dropRange(first, first + slots);
      else if (valueAt(this.#pending, position) === 0) this.#decideTask(position);
    });
    return this.#run();
  }

  /** A slot has ended. Slots that this skips or fails have ended with it: they are not given here again. */
  ended(index: number, ending: SlotEnding): Advance {
    if (this.#isStopped) {
      this.#set(index, CODE_OF[ending]);
      return nothing();
    }
    this.#end(index, CODE_OF[ending]);
    return this.#run();
  }

  /**
   * Slots have ended before a restart, or before the graph was changed, in whatever order. All of them count before anything that
   * depends on them is decided: an `otherwise` looks further back than to what it depends on.
   */
  restored(endings: Iterable<readonly [index: number, ending: SlotEnding]>): Advance {
    for (const [index, ending] of endings) {
      if (this.#isStopped) this.#set(index, CODE_OF[ending]);
      else this.#end(index, CODE_OF[ending]);
    }
    return this.#isStopped ? nothing() : this.#run();
  }

  /**
   * Nothing starts any more. If the number of a task's slots is not known yet, its first slot represents all of them; an alternative that
   * was not started is not needed.
   */
  stop(): Pick<Advance, "absent"> {
    this.#isStopped = true;
    this.#tasks.forEach((task, position) => {
      const { first, slots, foreach: each, alternativeOf } = task;
      if (alternativeOf !== undefined && valueAt(this.#pending, position) > 0) this.#dropRange(first, first + slots);
      else if (each !== undefined && this.#isWhollyBlocked(task)) this.#dropRange(first + 1, first + slots);
    });
    const { absent } = this.#advance;
    this.#advance = nothing();
    this.#work = [];
    return { absent };
  }

  /** Takes over which slots were absent when a graph was stopped. Call it in place of `stop`, after `ended` for the others. */
  restoreStopped(absent: readonly (readonly [number, number])[]): void {
    this.#isStopped = true;
    for (const [first, end] of absent) this.#dropRange(first, end);
    this.#advance = nothing();
    this.#work = [];
  }

  /** Every absent slot, as ranges. */
  absentRanges(): [number, number][] {
    const ranges: [number, number][] = [];
    for (let at = 0; at < this.#slots.length; at++) if (this.isAbsent(at)) addRange(ranges, at, at + 1);
    return ranges;
  }

  #isWhollyBlocked({ first, slots }: CompiledTask): boolean {
    for (let at = first; at < first + slots; at++) if (!this.isBlocked(at)) return false;
    return true;
  }

  #run(): Advance {
    for (let at = 0; at < this.#work.length; at++) {
      const entry = this.#work[at] ?? 0;
      if (entry >= 0) this.#slotEnded(entry);
      else this.#taskEnded(-1 - entry);
    }
    this.#work = [];
    const advance = this.#advance;
    this.#advance = nothing();
    return advance;
  }

  #set(index: number, code: number): boolean {
    const before = valueAt(this.#slots, index);
    if (before >= COMPLETED) return false;
    if (before === BLOCKED) this.#blocked -= 1;
    this.#slots[index] = code;
    if (code === UNMET) {
      this.#unmetSlots += 1;
      add(this.#unmet, this.taskOf(index), 1);
    }
    return true;
  }

  #end(index: number, code: number): void {
    if (!this.#set(index, code)) return;
    const position = this.taskOf(index);
    if (code === COMPLETED) add(this.#completed, position, 1);
    if (code === ABSENT) {
      this.#absentSlots += 1;
      add(this.#absent, position, 1);
      addRange(this.#advance.absent, index, index + 1);
    }
    this.#work.push(index);
    add(this.#left, position, -1);
    if (valueAt(this.#left, position) === 0) this.#work.push(-1 - position);
  }

  /** The slots of a range that are blocked turn out not to exist. */
  #dropRange(first: number, end: number): void {
    for (let index = first; index < end; index++) if (this.isBlocked(index)) this.#end(index, ABSENT);
  }

  #release(index: number): void {
    if (!this.isBlocked(index)) return;
    this.#blocked -= 1;
    this.#slots[index] = READY;
    this.#advance.ready.push(index);
  }

  #skip(index: number, obstacle: Obstacle): void {
    if (!this.isBlocked(index)) return;
    this.#advance.skipped.push({ index, ...obstacle });
    this.#end(index, obstacle.isUnmet === true ? UNMET : OTHER);
  }

  /** The element of each pipeline that follows this slot may be ready. */
  #slotEnded(index: number): void {
    const position = this.taskOf(index);
    const source = this.#tasks[position];
    if (source === undefined || this.#isFollowed[position] === 0) return;
    const offset = index - source.first;
    for (const dependent of this.#dependentsOf(position)) {
      const task = this.#tasks[dependent];
      if (task === undefined || !follows(task, position) || valueAt(this.#pending, dependent) > 0) continue;
      this.#decideElement(task, offset);
    }
  }

  #taskEnded(position: number): void {
    const { alternativeOf } = this.#tasks[position] ?? {};
    this.#resolve(position);
    if (alternativeOf !== undefined) this.#resolve(alternativeOf);
  }

  /** What depends on a task may be ready, unless the task failed and an alternative may still answer for it. */
  #resolve(position: number): void {
    const task = this.#tasks[position];
    if (task === undefined || this.#isResolved[position] === 1 || valueAt(this.#left, position) > 0) return;
    if (this.#slots[task.first] === FAILED && this.#tries(task, position)) return;
    this.#isResolved[position] = 1;
    for (const alternative of task.alternatives?.slice(valueAt(this.#tried, position)) ?? []) {
      const unneeded = this.#tasks[alternative];
      if (unneeded !== undefined) this.#dropRange(unneeded.first, unneeded.first + unneeded.slots);
    }
    for (const dependent of this.#dependentsOf(position)) {
      const waiting = this.#tasks[dependent];
      if (waiting !== undefined && !follows(waiting, position)) this.#dependencyEnded(dependent);
    }
    const opened = this.#barrier.ended(task);
    if (opened.length === 0) return;
    this.#tasks.forEach((held, at) => {
      if (opened.includes(tierOf(held))) this.#dependencyEnded(at);
    });
  }

  /** Tries the alternatives of a task that failed, one after another; false if none is left, or one completed. */
  #tries({ alternatives = [] }: CompiledTask, position: number): boolean {
    for (;;) {
      const tried = valueAt(this.#tried, position);
      const present = tried === 0 ? undefined : alternatives[tried - 1];
      if (present !== undefined && valueAt(this.#left, present) > 0) return true;
      if (present !== undefined && valueAt(this.#completed, present) > 0) {
        this.#replacedBy[position] = present;
        return false;
      }
      const next = alternatives[tried];
      if (next === undefined) return false;
      add(this.#tried, position, 1);
      this.#dependencyEnded(next);
    }
  }

  #dependencyEnded(position: number): void {
    add(this.#pending, position, -1);
    if (valueAt(this.#pending, position) === 0) this.#decideTask(position);
  }

  #decideTask(position: number): void {
    const task = this.#tasks[position];
    if (task === undefined || valueAt(this.#left, position) === 0) return;
    const { first, slots, foreach: each } = task;
    if (each?.elementwise === true) {
      for (let offset = 0; offset < slots; offset++) this.#decideElement(task, offset);
      return;
    }
    const obstacle = this.#obstacle(task, first, null);
    if (obstacle !== null) this.#skip(first, obstacle);
    if (obstacle !== null || each === undefined) {
      this.#dropRange(first + 1, first + slots);
      if (obstacle === null) this.#release(first);
      return;
    }
    const elements = this.#countElements(position);
    if (elements === null) {
      if (this.isBlocked(first)) {
        this.#advance.unfed.push(first);
        this.#end(first, FAILED);
      }
      this.#dropRange(first + 1, first + slots);
      return;
    }
    const end = first + Math.min(elements, slots);
    for (let index = first; index < end; index++) this.#release(index);
    this.#dropRange(end, first + slots);
  }

  /** Decides on one slot of a pipeline: when the slot before it and all other dependencies have ended. */
  #decideElement(task: CompiledTask, offset: number): void {
    const { first, slots, foreach: each } = task;
    const index = first + offset;
    const source = each === undefined ? undefined : this.#tasks[each.source];
    if (each === undefined || source === undefined || offset >= slots) return;
    const before = source.first + offset;
    const state = offset < source.slots ? valueAt(this.#slots, before) : ABSENT;
    if (state < COMPLETED) return;
    if (state === ABSENT) return this.#dropRange(index, index + 1);
    const obstacle = this.#obstacle(task, index, { source: each.source, state });
    if (obstacle === null) this.#release(index);
    else this.#skip(index, obstacle);
  }

  /** Why a slot does not start; null if it starts. `element`: of the source of a pipeline, only the slot of this element counts. */
  #obstacle(task: CompiledTask, index: number, element: { source: number; state: number } | null): Obstacle | null {
    const { runIf = "all_success", dependencies } = task;
    if (runIf === "always") return null;
    const condition = conditionOf(runIf);
    const named = condition === null ? [] : namedTasks(condition);
    const found = this.#tally(
      named.length === 0 ? dependencies : dependencies.filter((dependency) => !named.includes(dependency)),
      element,
    );
    const { all, completed, lost, unmet } = found;
    const isWhole = lost === null && unmet === null;
    if (condition !== null) {
      if (!isWhole) return obstacleOf(found);
      if (this.#conditionHolds(this.taskOf(index), index)) return null;
      return obstacleOf({ lost: this.#tally(named, element).lost, unmet: named[0] ?? null });
    }
    if (isWhole) return null;
    if (runIf === "all_success") return obstacleOf(found);
    if (runIf === "any") return completed > 0 ? null : obstacleOf(found);
    const share = typeof runIf === "object" && "atLeast" in runIf ? runIf.atLeast : 1;
    // If conditions have skipped all of them, there is nothing to go on with.
    return all > 0 && completed >= share * all ? null : obstacleOf(found);
  }

  /** How ended tasks count together: their slots, those that completed, and the first task that is not whole, by why it is not. */
  #tally(dependencies: readonly number[], element: { source: number; state: number } | null): Tally {
    const found: Tally = { all: 0, completed: 0, lost: null, unmet: null };
    for (const dependency of dependencies) {
      const isElement = element?.source === dependency;
      const isUnmet = isElement ? element.state === UNMET : this.#isUnmetTask(dependency);
      if (isUnmet) {
        found.unmet ??= dependency;
        continue;
      }
      const [slots, successes] = isElement
        ? [1, element.state === COMPLETED ? 1 : 0]
        : [this.#countedSlots(dependency), valueAt(this.#completed, this.answering(dependency))];
      found.all += slots;
      found.completed += successes;
      if (successes < slots) found.lost ??= dependency;
    }
    return found;
  }

  /** Whether conditions have skipped all that there was of a task. */
  #isUnmetTask(position: number): boolean {
    const unmet = valueAt(this.#unmet, position);
    return unmet > 0 && unmet + valueAt(this.#absent, position) === (this.#tasks[position]?.slots ?? 1);
  }

  /** The slots of an ended task that count: those that existed. A task that was not needed counts as one without success. */
  #countedSlots(position: number): number {
    const { slots = 1, foreach: each } = this.#tasks[position] ?? {};
    const present = slots - valueAt(this.#absent, position) - valueAt(this.#unmet, position);
    return each === undefined ? Math.max(1, present) : present;
  }

  *#dependentsOf(position: number): Generator<number> {
    const end = valueAt(this.#firstDependent, position + 1);
    for (let at = valueAt(this.#firstDependent, position); at < end; at++) yield valueAt(this.#dependents, at);
  }
}

/** `lost`: the first task that did not complete; `unmet`: the first that conditions have skipped. Null = there is none. */
type Tally = { all: number; completed: number; lost: number | null; unmet: number | null };

/** A task that did not complete weighs more than one that conditions have skipped: it is what is missing. */
function obstacleOf({ lost, unmet }: Pick<Tally, "lost" | "unmet">): Obstacle | null {
  if (lost !== null) return { because: lost };
  return unmet === null ? null : { because: unmet, isUnmet: true };
}

function nothing(): Advance {
  return { ready: [], skipped: [], unfed: [], absent: [] };
}

/** Dependencies that must end as a whole before a task, and its turn if it is an alternative. */
function pendingOf({ dependencies, foreach: each, alternativeOf }: CompiledTask): number {
  const ofPipeline = each?.elementwise === true ? 1 : 0;
  return dependencies.length - ofPipeline + (alternativeOf === undefined ? 0 : 1);
}

/** True if a task follows another element by element. */
function follows({ foreach: each }: CompiledTask, source: number): boolean {
  return each?.elementwise === true && each.source === source;
}

/** Adds to the last range if the new one continues it. */
function addRange(ranges: [number, number][], first: number, end: number): void {
  const last = ranges.at(-1);
  if (last?.[1] === first) last[1] = end;
  else ranges.push([first, end]);
}

type Numbers = Int32Array | Uint16Array | Uint8Array;

function valueAt(numbers: Numbers, index: number): number {
  return numbers[index] ?? 0;
}

function add(numbers: Numbers, index: number, by: number): void {
  numbers[index] = (numbers[index] ?? 0) + by;
}
