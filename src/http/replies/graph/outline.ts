/** The shape of a graph on the wire: its tasks and what they wait for, without their texts, so that it can be drawn. */
import { TIER_NAMES } from "../../../run/answers/tiers.ts";
import type { CompiledGraph, CompiledTask } from "../../../run/graph/types.ts";
import type { GroupView } from "../../../objects/methods/groups.ts";

/** Tasks refer to each other by their positions in `tasks`; those that a change has removed are left out. */
export function outlineOf({ id, status }: Pick<GroupView, "id" | "status">, graph: CompiledGraph) {
  const places = new Map<number, number>();
  graph.tasks.forEach(({ removed }, position) => {
    if (removed === undefined) places.set(position, places.size);
  });
  const placesOf = (positions: readonly number[]): number[] =>
    positions.flatMap((position) => places.get(position) ?? []);
  const tasks = graph.tasks.filter(({ removed }) => removed === undefined).map((task) => taskOutline(task, placesOf));
  return { id, object: "graph_outline", version: graph.version, status, slots: graph.slots, tasks };
}

function taskOutline(task: CompiledTask, placesOf: (positions: readonly number[]) => number[]) {
  const { id, first, slots, dependencies, runIf, alternatives, alternativeOf, foreach: each, tier, phase } = task;
  return {
    id,
    first,
    slots,
    dependencies: placesOf(dependencies),
    run_if: typeof runIf === "object" ? { at_least: runIf.atLeast } : runIf,
    alternatives: alternatives === undefined ? undefined : placesOf(alternatives),
    alternative_of: alternativeOf === undefined ? undefined : placesOf([alternativeOf])[0],
    follows: each?.elementwise === true ? placesOf([each.source])[0] : undefined,
    tier: tier === undefined ? undefined : TIER_NAMES[tier],
    phase,
    estimated_duration_ms: task.estimatedDurationMs,
  };
}
