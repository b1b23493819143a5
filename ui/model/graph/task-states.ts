/** What the log says of the tasks of a graph, and the chain of calls that decides how long it takes. */
import { longestChain } from "../../../src/run/graph/measured-path.ts";
import { linksOf, orderOf } from "../../../src/run/graph/order.ts";
import type { Call } from "../../../src/log/picture/call.ts";
import { positionsBySlot, type Outline, type Task } from "./outline.ts";
import { skippedTasks } from "./skips.ts";

/** `idle`: no call of it has begun. `skipped`: and none will, because of what it depends on, or because the graph has ended. */
export type TaskState = "idle" | "running" | "completed" | "partial" | "failed" | "cancelled" | "skipped";

/** How the page names the states of tasks. */
export const STATE_TEXT: Readonly<Record<TaskState, string>> = {
  idle: "not begun",
  running: "running",
  completed: "completed",
  partial: "partly failed",
  failed: "failed",
  cancelled: "cancelled",
  skipped: "skipped",
};

export type TaskView = {
  task: Task;
  state: TaskState;
  /** Calls of it that have begun, and that have ended. */
  begun: number;
  ended: number;
  failed: number;
  costUsd: number;
  /** From the first attempt of a call of it to the end of the last, so far; null = none has begun. */
  durationMs: number | null;
};

export type GraphView = {
  tasks: readonly TaskView[];
  /** Positions of the tasks on the critical path, in order, and its duration. */
  critical: readonly number[];
  criticalMs: number;
};

/** `calls`: those of the graph's group, of which each has the index of its slot. `skipped`: the slots that the log says do not start. */
export function viewOf(
  { tasks, slots }: Outline,
  calls: readonly Call[],
  { nowMs, hasEnded, skipped: skippedSlots }: { nowMs: number; hasEnded: boolean; skipped: ReadonlySet<number> },
): GraphView {
  const places = positionsBySlot(tasks, slots);
  const sums = tasks.map(() => new TaskSum());
  const latencyMs = new Float64Array(slots);
  for (const call of calls) {
    const position = call.index === null ? undefined : places[call.index];
    if (call.index === null || position === undefined) continue;
    sums[position]?.add(call, nowMs);
    latencyMs[call.index] = latencyMsOf(call, nowMs);
  }
  for (const index of skippedSlots) {
    const sum = sums[places[index] ?? tasks.length];
    if (sum !== undefined) sum.skipped += 1;
  }
  const skipped = hasEnded ? new Set<number>() : skippedIn(tasks, sums);
  if (!hasEnded) foresee(tasks, { sums, skipped }, latencyMs);
  const { tasks: critical, endMs } = longestChain({ tasks, slots }, latencyMs);
  const views = tasks.map((task, position) => {
    const sum = sums[position] ?? new TaskSum();
    return sum.viewOf(task, { hasEnded, isSkipped: hasEnded || skipped.has(position) });
  });
  // A slot that takes no time is not what a graph waits for.
  return { tasks: views, critical: endMs > 0 ? critical : [], criticalMs: endMs };
}

function skippedIn(tasks: readonly Task[], sums: readonly TaskSum[]): ReadonlySet<number> {
  const mayBe = sums.some(({ skipped }) => skipped > 0) || tasks.some(({ alternatives }) => alternatives);
  const links = linksOf(tasks);
  const ordered = mayBe ? orderOf(links) : null;
  return ordered?.ok === true ? skippedTasks(tasks, sums, ordered.order) : new Set();
}

/** What has not begun takes as long as its estimate says, or as the calls that have ended did on average. */
function foresee(
  tasks: readonly Task[],
  { sums, skipped }: { sums: readonly TaskSum[]; skipped: ReadonlySet<number> },
  latencyMs: Float64Array,
): void {
  const all = new TaskSum();
  for (const sum of sums) all.join(sum);
  const meanMs = all.ended === 0 ? 1 : all.latencyMs / all.ended;
  tasks.forEach(({ first, slots, estimatedMs }, position) => {
    if (slots > 0 && (sums[position]?.begun ?? 0) === 0 && !skipped.has(position))
      latencyMs[first] = estimatedMs ?? meanMs;
  });
}

function latencyMsOf({ attempts, endMs }: Call, nowMs: number): number {
  const startMs = attempts[0]?.startMs;
  return startMs === undefined ? 0 : Math.max(0, (endMs ?? nowMs) - startMs);
}

class TaskSum {
  begun = 0;
  ended = 0;
  latencyMs = 0;
  completed = 0;
  /** Slots of it that do not start. */
  skipped = 0;
  #failed = 0;
  #costUsd = 0;
  #startMs = Infinity;
  #endMs = 0;

  add(call: Call, nowMs: number): void {
    this.begun += 1;
    this.#costUsd += call.costUsd;
    this.#startMs = Math.min(this.#startMs, call.attempts[0]?.startMs ?? call.endMs ?? nowMs);
    this.#endMs = Math.max(this.#endMs, call.endMs ?? nowMs);
    if (call.endMs === null) return;
    this.ended += 1;
    this.latencyMs += latencyMsOf(call, nowMs);
    if (call.state === "completed") this.completed += 1;
    else if (call.state === "failed") this.#failed += 1;
  }

  join({ ended, latencyMs }: TaskSum): void {
    this.ended += ended;
    this.latencyMs += latencyMs;
  }

  viewOf(task: Task, known: { hasEnded: boolean; isSkipped: boolean }): TaskView {
    const { begun, ended } = this;
    const durationMs = begun === 0 ? null : Math.max(0, this.#endMs - this.#startMs);
    const figures = { begun, ended, failed: this.#failed, costUsd: this.#costUsd, durationMs };
    return { task, state: this.#stateOf(task, known), ...figures };
  }

  #stateOf(
    { slots, foreach: each }: Task,
    { hasEnded, isSkipped }: { hasEnded: boolean; isSkipped: boolean },
  ): TaskState {
    if (this.begun === 0) return isSkipped ? "skipped" : "idle";
    // The log does not say how many elements a list has: of several calls the last may be still to come.
    const isOne = slots === 1 && each === undefined;
    if (this.ended < this.begun || (!isOne && !hasEnded && this.ended + this.skipped < slots)) return "running";
    if (this.completed === this.begun) return "completed";
    if (this.completed > 0) return "partial";
    return this.#failed > 0 ? "failed" : "cancelled";
  }
}
