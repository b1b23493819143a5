/** The shape of a graph on the wire: its tasks and what they wait for, without their texts, so that it can be drawn. */
import { TIER_NAMES } from "../../../run/answers/tiers.ts";
import type { Condition, OutputTest } from "../../../run/answers/condition.ts";
import { presentTasks, type CompiledGraph, type CompiledTask, type RunIf } from "../../../run/graph/types.ts";
import type { GroupView } from "../../../objects/methods/groups.ts";

/** Tasks refer to each other by their positions in `tasks`; those that a change has removed are left out. */
export function outlineOf({ id, status }: Pick<GroupView, "id" | "status">, graph: CompiledGraph) {
  const places = new Map<number, number>();
  graph.tasks.forEach(({ removed }, position) => {
    if (removed === undefined) places.set(position, places.size);
  });
  const placesOf = (positions: readonly number[]): number[] =>
    positions.flatMap((position) => places.get(position) ?? []);
  const idOf = (position: number): string => graph.tasks[position]?.id ?? "";
  const names = { placesOf, idOf };
  const tasks = presentTasks(graph.tasks).map((task) => taskOutline(task, names));
  return { id, object: "graph_outline", version: graph.version, status, slots: graph.slots, tasks };
}

type Names = { placesOf: (positions: readonly number[]) => number[]; idOf: (position: number) => string };

function taskOutline(task: CompiledTask, { placesOf, idOf }: Names) {
  const { id, first, slots, dependencies, runIf, alternatives, alternativeOf, foreach: each, tier, phase } = task;
  return {
    id,
    first,
    slots,
    dependencies: placesOf(dependencies),
    run_if: runIf === undefined ? undefined : runIfJson(runIf, idOf),
    alternatives: alternatives === undefined ? undefined : placesOf(alternatives),
    alternative_of: alternativeOf === undefined ? undefined : placesOf([alternativeOf])[0],
    follows: each?.elementwise === true ? placesOf([each.source])[0] : undefined,
    tier: tier === undefined ? undefined : TIER_NAMES[tier],
    phase,
    estimated_duration_ms: task.estimatedDurationMs,
  };
}

/** When a task starts, as a client writes it: a condition names tasks by their ids. */
function runIfJson(rule: RunIf, idOf: Names["idOf"]): unknown {
  if (typeof rule === "string") return rule;
  return "atLeast" in rule ? { at_least: rule.atLeast } : conditionJson(rule.condition, idOf);
}

function conditionJson(condition: Condition, idOf: Names["idOf"]): unknown {
  if ("task" in condition) return { task: idOf(condition.task), ...testJson(condition.test) };
  if ("otherwise" in condition) return { else: idOf(condition.otherwise) };
  return "all" in condition
    ? { all: condition.all.map((part) => conditionJson(part, idOf)) }
    : { any: condition.any.map((part) => conditionJson(part, idOf)) };
}

function testJson(test: OutputTest): object {
  if (test.kind === "json") return { json: `$.${test.key} ${test.operator} ${JSON.stringify(test.value)}` };
  if (test.kind !== "matches") return { [test.kind]: test.text };
  return { matches: test.source, flags: test.flags === "" ? undefined : test.flags };
}
