/** The shape of a graph as `GET /dag/:id/outline` shows it. Its names are hostile: they are shown as text. */
import type { MeasuredTask } from "../../../src/run/graph/measured-path.ts";
import type { RunIf } from "../../../src/run/graph/types.ts";
import { isRecord, numberOf, textOf } from "../line.ts";

/** A task; others are named by their position in the list. */
export type Task = MeasuredTask & {
  id: string;
  /** Which of its dependencies let it start. `condition`: what their outputs say, which the log does not have. */
  runIf: Exclude<RunIf, { condition: unknown }> | "condition";
  tier: string | null;
  phase: string | null;
  estimatedMs: number | null;
};

export type Outline = { slots: number; tasks: readonly Task[] };

/** More than a gateway allows: what is larger is no outline. */
const SLOTS_MAX = 1_000_000;

/** Reads an outline; null if it is none. Positions that name no earlier part of the list are left out. */
export function readOutline(value: unknown): Outline | null {
  if (!isRecord(value) || !Array.isArray(value["tasks"])) return null;
  const slots = numberOf(value, "slots");
  const listed: unknown[] = value["tasks"];
  if (!isCount(slots, SLOTS_MAX)) return null;
  const tasks = listed.flatMap((task) => (isRecord(task) ? [taskOf(task, listed.length)] : []));
  const fits = tasks.every(({ first, slots: own }) => isCount(first, slots) && isCount(own, slots - first));
  return tasks.length === listed.length && fits ? { slots, tasks } : null;
}

function taskOf(task: Readonly<Record<string, unknown>>, count: number): Task {
  const positions = (name: string): number[] => {
    const value = task[name];
    return Array.isArray(value) ? value.filter((each: unknown): each is number => isPosition(each, count)) : [];
  };
  const position = (name: string): number | null => (isPosition(task[name], count) ? task[name] : null);
  const [alternatives, alternativeOf, follows] = [
    positions("alternatives"),
    position("alternative_of"),
    position("follows"),
  ];
  const estimatedMs = numberOf(task, "estimated_duration_ms");
  return {
    id: textOf(task, "id") ?? "",
    first: numberOf(task, "first"),
    slots: numberOf(task, "slots"),
    dependencies: positions("dependencies"),
    runIf: runIfOf(task["run_if"]),
    ...(alternatives.length === 0 ? {} : { alternatives }),
    ...(alternativeOf === null ? {} : { alternativeOf }),
    ...(follows === null ? {} : { foreach: { source: follows, path: [], elementwise: true } }),
    tier: textOf(task, "tier"),
    phase: textOf(task, "phase"),
    estimatedMs: estimatedMs > 0 ? estimatedMs : null,
  };
}

function runIfOf(value: unknown): Task["runIf"] {
  if (isRecord(value)) return "at_least" in value ? { atLeast: numberOf(value, "at_least") } : "condition";
  return value === "any" || value === "always" ? value : "all_success";
}

function isCount(value: number, max: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= max;
}

function isPosition(value: unknown, count: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < count;
}

/** What the call of each slot is called: the id of its task, of a `foreach` with the number of the element. */
export function slotNamesOf({ tasks, slots }: Outline): (index: number) => string | null {
  const places = positionsBySlot(tasks, slots);
  return (index) => {
    const task = tasks[places[index] ?? tasks.length];
    if (task === undefined || index < task.first || index >= task.first + task.slots) return null;
    return task.slots === 1 ? task.id : `${task.id} ${index - task.first}`;
  };
}

/** The position of the task of each slot. */
export function positionsBySlot(tasks: readonly Task[], slots: number): Uint16Array {
  const places = new Uint16Array(slots);
  tasks.forEach(({ first, slots: own }, position) => places.fill(position, first, first + own));
  return places;
}
