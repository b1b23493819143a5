/**
 * A compiled graph: what the run object needs to execute a `/dag`. Plain data, stored as JSON with its group. Tasks refer to
 * each other by position in `tasks`; the slots of a task are one contiguous range of indexes of the group. Nothing here says
 * what is ready: that follows from the graph and the states of the slots (frontier.ts). The prompts stay in the slots' call
 * pages, with their references.
 */
import type { CallLabels } from "../../labels.ts";
import type { Tier } from "../answers/tiers.ts";
import type { Condition } from "../answers/condition.ts";

/** How ready tasks are ordered. `critical_path`: the longest rest first. `fifo`: as listed. `weight`: by length and dependents. */
const SCHEDULES = ["critical_path", "fifo", "weight"] as const;
export type Schedule = (typeof SCHEDULES)[number];

/** How outputs reach a prompt. `template`: where its references stand. `markdown`: also as sections before the prompt. */
const INJECTIONS = ["template", "markdown"] as const;
export type Injection = (typeof INJECTIONS)[number];

/**
 * Which ended dependencies let a task start. `all_success`: all completed. `any`: at least one completed. `always`: whatever
 * they ended as. `atLeast`: so large a share of their slots completed. `condition`: what it says of outputs holds, and all
 * dependencies that it does not name completed. What conditions have skipped is not missing: the rules count it neither as a
 * success nor as a failure, and a task all of whose dependencies they have skipped is skipped with them.
 */
export type RunIf<Task = number> =
  | "all_success"
  | "any"
  | "always"
  | { atLeast: number }
  | { condition: Condition<Task> };

/** Names and array indexes from a JSON value to one of its parts; empty = the whole value. */
export type JsonPath = readonly (string | number)[];

/**
 * The elements of a `foreach` task. Without `elementwise`, they are those of the array at `path` in the output of `source`,
 * which is one slot. With it, element `i` is the output of slot `i` of `source`, and may start as soon as that one completed.
 */
export type Foreach = { source: number; path: JsonPath; elementwise?: true };

/** Absent fields have the defaults that their comments name; so a graph of thousands of tasks stays small. */
export type CompiledTask = {
  id: string;
  /** Index of its first slot in the group. */
  first: number;
  /** Number of its slots: 1, or the most elements that a `foreach` may have. */
  slots: number;
  /** Absent = one slot. */
  foreach?: Foreach;
  /**
   * Positions of the tasks that must end before it, ascending and distinct: stated ones, those of its references, and the
   * source of its `foreach`.
   */
  dependencies: readonly number[];
  /** Absent = `all_success`. */
  runIf?: RunIf;
  /** Retries after a transient failure; absent = as many as the upstream's `max_attempts` allows. */
  maxRetries?: number;
  /** Text that counts as its output if it fails; absent = none. */
  fallback?: string;
  /** Positions of the tasks that are tried in this order if it fails; absent = none. */
  alternatives?: readonly number[];
  /** Position of the task that it replaces: it starts only if that one failed; absent = it starts by itself. */
  alternativeOf?: number;
  /** Among ready tasks, the larger starts first. A whole number, at least 0. */
  rank: number;
  /** Most characters of each output that is inserted into its prompt; absent = all. */
  contextLimitChars?: number;
  /**
   * What can be inserted into its prompt: pairs of a task's position and a factor. The inserted text has at most the bytes of
   * that task's outputs, times the factor. Admission adds them to the prompt's own bytes. Absent = nothing.
   */
  inserted?: readonly (readonly [task: number, factor: number])[];
  /** The factor of the element of its `foreach`, in the same sense; absent = the prompt does not name it. */
  itemFactor?: number;
  /** Set if its condition is likely to hold: its call may be made before that is known. */
  likely?: true;
  /** How much it matters; absent = the least, `P2`. */
  tier?: Tier;
  /** The client's name for a part of the work; absent = none. */
  phase?: string;
  /** True if a change removed or replaced it before it started: it keeps its place, and its slots never exist. */
  removed?: true;
  /** The client's estimate of the duration of one slot, ms; absent = the default of the limits. */
  estimatedDurationMs?: number;
  /** The labels of its calls; absent = they have none. The name is that of stored rows. */
  step?: CallLabels;
};

/** A line of a plan that cannot be run; lines count from 1. */
export type PlanFault = { line: number; message: string };

/**
 * How much of a plan has come whose tasks start before it is complete. `open`: more may come, so the graph has not ended, even
 * if all of its tasks have. `cut`: it broke off. `line`: the last line that was read.
 */
export type PlanState = { state: "open" | "ended" | "cut"; line: number; faults: readonly PlanFault[] };

export type CompiledGraph = {
  /** 1 for a new graph; each accepted change adds 1. */
  version: number;
  /** Identifies the request that made this version, so that its repetition is recognized; absent = it is the first. */
  changedBy?: string;
  /** Set if it runs while its plan is written. */
  plan?: PlanState;
  /** The client's settings for all calls, as they were sent: the tasks of later changes are read over them. Absent = none. */
  settings?: Readonly<Record<string, unknown>>;
  /** In the order of the client's list. */
  tasks: readonly CompiledTask[];
  /** Sum of the slots of all tasks. */
  slots: number;
  schedule: Schedule;
  /** `abort`: after the first task that failed, no further one starts. */
  onError: "continue" | "abort";
  inject: Injection;
  /** Set if it is the order of a batch's calls only: each task is one call, and clients are shown a batch. */
  ordersOnly?: true;
  /** What early calls may cost in all that no task takes over; absent = none is made. */
  speculate?: { nanoUsd: number };
  /** Set if a tier starts only when all tasks of the tiers before it have ended. */
  tiers?: "strict";
};

/** The tasks that were not removed. */
export function presentTasks(tasks: readonly CompiledTask[]): CompiledTask[] {
  return tasks.filter(({ removed }) => removed === undefined);
}

/** The positions of tasks by their ids, without those that were removed. Built once for many references. */
export function positionsOf(tasks: readonly Pick<CompiledTask, "id" | "removed">[]): ReadonlyMap<string, number> {
  const positions = new Map<string, number>();
  tasks.forEach(({ id, removed }, position) => {
    if (removed === undefined) positions.set(id, position);
  });
  return positions;
}

/** The condition of a task's `run_if` on outputs; null = it has none. */
export function conditionOf<Task>(runIf: RunIf<Task> | null | undefined): Condition<Task> | null {
  return typeof runIf === "object" && runIf !== null && "condition" in runIf ? runIf.condition : null;
}
