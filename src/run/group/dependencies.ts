/** The slots of a graph that wait for other tasks. */
import { WAITS_NAMED_MAX } from "../../limits.ts";
import { tierOf } from "../graph/tiers.ts";
import type { Group } from "./group.ts";
import type { GroupGraph } from "./group-graph.ts";

/** Slots of one task that may not start yet. `tasks`: what they wait for, by id; the first of them. */
export type BlockedSlots = { indexes: number[]; tasks: string[] };

/** The blocked slots of a group, one entry for each task that has some; empty if it is no graph. */
export function blockedSlots({ graph }: Pick<Group, "graph">): BlockedSlots[] {
  if (graph === null || graph.frontier.blocked === 0) return [];
  const { frontier, compiled } = graph;
  const found: BlockedSlots[] = [];
  for (const [at, { first, slots, dependencies, alternativeOf }] of compiled.tasks.entries()) {
    const indexes: number[] = [];
    for (let index = first; index < first + slots; index++) if (frontier.isBlocked(index)) indexes.push(index);
    if (indexes.length === 0) continue;
    const before = alternativeOf === undefined ? dependencies : [alternativeOf, ...dependencies];
    const open = before.filter((position) => !frontier.isResolved(position)).slice(0, WAITS_NAMED_MAX);
    if (open.length === 0 && frontier.isHeld(at)) open.push(...tierBefore(graph, at));
    found.push({ indexes, tasks: open.map((position) => graph.task(position).id) });
  }
  return found;
}

/** The first tasks of earlier tiers that have not ended. */
function tierBefore(graph: GroupGraph, position: number): number[] {
  const { frontier, compiled } = graph;
  const own = tierOf(graph.task(position));
  const open: number[] = [];
  for (const [at, task] of compiled.tasks.entries()) {
    if (open.length === WAITS_NAMED_MAX) break;
    if (tierOf(task) < own && !frontier.isResolved(at)) open.push(at);
  }
  return open;
}
