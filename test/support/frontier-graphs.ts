/**
 * Random graphs, and a reference for their frontier: it looks at all slots again and again until nothing changes, and knows
 * nothing of counters.
 */
import * as fc from "fast-check";
import type { Tier } from "../../src/run/answers/tiers.ts";
import { Frontier, type SlotEnding } from "../../src/run/graph/frontier.ts";
import { holds, namedTasks, type Condition } from "../../src/run/answers/condition.ts";
import { conditionOf, type CompiledTask, type RunIf } from "../../src/run/graph/types.ts";
import { DRAWN_PATTERN, rulingOf, type Seen } from "./run-if-reference.ts";

export type DrawnGraph = {
  tasks: CompiledTask[];
  slots: number;
  /** Elements of each `foreach` task by position; null = its source has none to give. */
  elements: (number | null)[];
  /** How each slot ends, if it starts. */
  endings: SlotEnding[];
  seed: number;
};

type DrawnTask = {
  edges: number[];
  kind: "plain" | "foreach" | "pipeline" | "alternative";
  slots: number;
  elements: number | null;
  runIf: RunIf;
  /** A condition over its first edges, in place of its rule. */
  condition: "none" | "one" | "all" | "any" | "else";
};

const runIf: fc.Arbitrary<RunIf> = fc.oneof(
  { weight: 4, arbitrary: fc.constant("all_success" as const) },
  fc.constantFrom("any" as const, "always" as const),
  fc.double({ min: 0, max: 1, noNaN: true }).map((atLeast) => ({ atLeast })),
);

const drawnTask: fc.Arbitrary<DrawnTask> = fc.record({
  edges: fc.array(fc.nat(), { maxLength: 3 }),
  kind: fc.constantFrom("plain", "plain", "foreach", "pipeline", "alternative"),
  slots: fc.integer({ min: 1, max: 4 }),
  elements: fc.oneof({ weight: 5, arbitrary: fc.nat({ max: 6 }) }, fc.constant(null)),
  runIf,
  condition: fc.constantFrom("none", "none", "none", "one", "all", "any", "else", "else"),
});

/** Graphs of up to 14 tasks. Tasks come after what they depend on; alternatives after the task that they replace. */
export const graphs: fc.Arbitrary<DrawnGraph> = fc
  .record({
    drawn: fc.array(drawnTask, { minLength: 1, maxLength: 14 }),
    endings: fc.array(fc.constantFrom<SlotEnding>("completed", "completed", "completed", "failed", "other"), {
      minLength: 60,
      maxLength: 60,
    }),
    seed: fc.nat({ max: 1_000 }),
  })
  .map(({ drawn, endings, seed }) => ({ ...built(drawn), endings, seed }));

/** Tasks with tiers that do not fall along edges. */
export function tiered(drawn: readonly CompiledTask[], draws: readonly Tier[]): CompiledTask[] {
  const tasks: CompiledTask[] = [];
  for (const [position, task] of drawn.entries()) {
    const primary = tasks[task.alternativeOf ?? -1];
    const before = task.dependencies.map((at) => tasks[at]?.tier ?? 0);
    const tier = [...before, draws[position] ?? 0].reduce<Tier>((most, each) => (each > most ? each : most), 0);
    tasks.push({ ...task, tier: primary?.tier ?? tier });
  }
  return tasks;
}

/** `endings`: how the slots end, as far as they have when a condition is asked for. */
export function frontierOf(drawn: DrawnGraph, endings: ReadonlyMap<number, SlotEnding>): Frontier {
  const { tasks, slots, elements } = drawn;
  const outputOf = (index: number): string | null => (endings.get(index) === "completed" ? textOf(drawn, index) : null);
  const frontier = new Frontier(
    { tasks, slots },
    (task) => elements[task] ?? null,
    (position, index) => {
      const { runIf, foreach: each, first = 0 } = tasks[position] ?? {};
      const condition = conditionOf(runIf);
      if (condition === null) throw new Error(`task ${position} has no condition`);
      return holds(condition, {
        outputOf: (named) => {
          const offset = each?.elementwise === true && each.source === named ? index - first : 0;
          return outputOf((tasks[frontier.answering(named)]?.first ?? 0) + offset);
        },
        isDeclined: (named) => frontier.isDeclined(named),
        slots,
      });
    },
  );
  return frontier;
}

/** The output of a slot that completes. */
function textOf({ seed }: Pick<DrawnGraph, "seed">, index: number): string {
  return String((seed + 3 * index) % 10);
}

/** A condition over earlier tasks of one output, which become dependencies; null if there are none. */
function drawnCondition(
  { condition, edges }: DrawnTask,
  tasks: readonly CompiledTask[],
  source: number | null,
): Condition | null {
  if (condition === "none" || tasks.length === 0) return null;
  const named = edges.map((edge) => edge % tasks.length);
  const single = named.filter((at) => tasks[at]?.foreach === undefined || at === source);
  const [only] = named.filter((at) => conditionOf(tasks[at]?.runIf) !== null && tasks[at]?.foreach === undefined);
  if (condition === "else") return only === undefined ? null : { otherwise: only };
  const test = { kind: "matches", source: DRAWN_PATTERN, flags: "" } as const;
  const terms = single.map((task) => ({ task, test }));
  const [first] = terms;
  if (first === undefined) return null;
  if (condition === "one") return first;
  return condition === "all" ? { all: terms } : { any: terms };
}

function built(drawn: readonly DrawnTask[]): Pick<DrawnGraph, "tasks" | "slots" | "elements"> {
  const tasks: (CompiledTask & { alternatives?: number[] })[] = [];
  let first = 0;
  for (const [position, task] of drawn.entries()) {
    const dependencies = new Set(position === 0 ? [] : task.edges.map((edge) => edge % position));
    const compiled: CompiledTask & { alternatives?: number[] } = {
      id: `t${position}`,
      first,
      slots: 1,
      dependencies: [],
      rank: 0,
      runIf: task.runIf,
    };
    const source = (task.edges[0] ?? 0) % Math.max(1, position);
    const before = tasks[source];
    if (task.kind === "alternative" && before !== undefined && before.slots === 1 && before.foreach === undefined) {
      // Nothing that comes between may make the alternative wait for what waits for it.
      if (before.alternativeOf === undefined && !tasks.some(({ dependencies: some }) => some.includes(source))) {
        compiled.alternativeOf = source;
        before.alternatives = [...(before.alternatives ?? []), position];
        dependencies.clear();
      }
    } else if (task.kind === "foreach" && before !== undefined && before.foreach === undefined) {
      Object.assign(compiled, { slots: task.slots, foreach: { source, path: [] } });
      dependencies.add(source);
    } else if (task.kind === "pipeline" && before !== undefined && before.alternatives === undefined) {
      Object.assign(compiled, { slots: before.slots, foreach: { source, path: [], elementwise: true } });
      dependencies.add(source);
    }
    const follows = compiled.foreach?.elementwise === true ? compiled.foreach.source : null;
    const condition = compiled.alternativeOf === undefined ? drawnCondition(task, tasks, follows) : null;
    if (condition !== null) {
      compiled.runIf = { condition };
      for (const named of namedTasks(condition)) dependencies.add(named);
    }
    const ordered = [...dependencies].sort((a, b) => a - b);
    first += compiled.slots;
    tasks.push({ ...compiled, dependencies: ordered });
    // The alternatives of a task are added to it later, so it stays the same object.
  }
  return { tasks, slots: first, elements: drawn.map(({ elements }) => elements) };
}

type State = "blocked" | "begun" | "absent";

/** The state of each slot, given how the slots ended that have. */
export function referenceOf(drawn: DrawnGraph, endings: ReadonlyMap<number, SlotEnding>): State[] {
  const { tasks, slots, elements } = drawn;
  const state: State[] = Array.from({ length: slots }, () => "blocked");
  const rangeOf = ({ first, slots: count }: CompiledTask): number[] =>
    Array.from({ length: count }, (_, at) => first + at);
  const hasEnded = (index: number): boolean => state[index] === "absent" || endings.has(index);
  const allEnded = (task: CompiledTask): boolean => rangeOf(task).every(hasEnded);
  const completed = (index: number): boolean => endings.get(index) === "completed";
  const alternativesOf = ({ alternatives = [] }: CompiledTask): CompiledTask[] =>
    alternatives.flatMap((at) => tasks[at] ?? []);
  const answer = (task: CompiledTask): CompiledTask =>
    alternativesOf(task).find((each) => completed(each.first)) ?? task;
  const isResolved = (task: CompiledTask): boolean => {
    if (!allEnded(task)) return false;
    if (endings.get(task.first) !== "failed") return true;
    return answer(task) !== task || alternativesOf(task).every(allEnded);
  };
  const isUnmet = (index: number): boolean => endings.get(index) === "unmet";
  const seen = (position: number): Seen => {
    const task = tasks[position];
    if (task === undefined) return { slots: 0, completed: 0, isUnmet: false };
    const existing = rangeOf(task).filter((index) => state[index] !== "absent");
    const wanted = existing.filter((index) => !isUnmet(index));
    const counted = task.foreach === undefined ? 1 : wanted.length;
    const done = rangeOf(answer(task)).filter(completed).length;
    return { slots: counted, completed: done, isUnmet: existing.length > 0 && wanted.length === 0 };
  };
  const textAt = (position: number): string | null => {
    const task = tasks[position];
    const first = task === undefined ? -1 : answer(task).first;
    return completed(first) ? textOf(drawn, first) : null;
  };
  const isDeclined = (position: number): boolean => {
    const task = tasks[position];
    const condition = conditionOf(task?.runIf);
    if (task === undefined || condition === null || !isUnmet(task.first)) return false;
    return namedTasks(condition).some((named) => seen(named).completed > 0);
  };
  const set = (index: number, to: State): void => {
    if (state[index] === "blocked") state[index] = to;
  };
  const decide = (task: CompiledTask, position: number): void => {
    const { foreach: each, alternativeOf, dependencies, first } = task;
    const primary = alternativeOf === undefined ? undefined : tasks[alternativeOf];
    if (primary !== undefined) {
      if (!allEnded(primary)) return;
      const earlier = alternativesOf(primary).slice(0, alternativesOf(primary).indexOf(task));
      const isNeeded =
        endings.get(primary.first) === "failed" && earlier.every((other) => allEnded(other) && !completed(other.first));
      if (!isNeeded) {
        if (isResolved(primary) && !endings.has(first)) set(first, "absent");
        return;
      }
    }
    const others = dependencies.flatMap((at) =>
      each?.elementwise === true && at === each.source ? [] : (tasks[at] ?? []),
    );
    if (!others.every(isResolved)) return;
    if (each?.elementwise === true) {
      const source = tasks[each.source];
      for (const [offset, index] of rangeOf(task).entries()) {
        const before = (source?.first ?? 0) + offset;
        if (!hasEnded(before)) continue;
        if (state[before] === "absent") set(index, "absent");
        else set(index, "begun");
      }
      return;
    }
    const runs = rulingOf(task, { seen, textOf: textAt, isDeclined }) === "runs";
    const count = each === undefined || !runs ? 1 : (elements[position] ?? 1);
    for (const [offset, index] of rangeOf(task).entries()) set(index, offset < count ? "begun" : "absent");
  };
  for (let round = 0; round < 2 * slots + 2; round++) tasks.forEach(decide);
  return state;
}
