/** The results of a graph, over which its rules work: the outputs of the tasks that nothing depends on. */
import type { MakeCalls } from "../../../run/answers/calls.ts";
import type { Member } from "../../../run/answers/member.ts";
import { sinksOf } from "../../../run/graph/measured-path.ts";
import type { CompiledGraph, CompiledTask } from "../../../run/graph/types.ts";
import type { GroupView, SlotView } from "../../../objects/methods/groups.ts";
import { aggregationOf, type Aggregation, type MemberOf } from "../aggregation.ts";
import { SlotNames } from "./slot-names.ts";

type SlotsFrom = (index: number) => Promise<SlotView[]>;

/** The alternative that answers for a task that failed; null if none does. */
export async function replacementOf(
  { alternatives = [] }: CompiledTask,
  { tasks }: CompiledGraph,
  slotsFrom: SlotsFrom,
): Promise<{ id: string; output: string } | null> {
  for (const position of alternatives) {
    const task = tasks[position];
    const slot = task === undefined ? undefined : (await slotsFrom(task.first))[0];
    if (task === undefined || slot?.index !== task.first) continue;
    if (slot.state === "completed") return { id: task.id, output: slot.text ?? "" };
  }
  return null;
}

/**
 * What the answer of a group says that `aggregate` combines its results to; undefined without it. A member has the id of its
 * task. A task whose text replaces a failure has no answer; a task that an alternative has replaced has the answer of the alternative.
 */
export function graphMembers(graph: CompiledGraph, slotsFrom: SlotsFrom): MemberOf {
  const names = new SlotNames(graph);
  const sinks = new Map(
    sinksOf(graph.tasks).flatMap((position) => {
      const task = graph.tasks[position];
      return task === undefined ? [] : [[task.id, task] as const];
    }),
  );
  return async ({ index, state, text, reason }): Promise<Member | null> => {
    const { task: id } = names.of(index);
    const task = sinks.get(id);
    if (task === undefined || (state !== "completed" && state !== "failed")) return null;
    if (state === "completed" && reason === null) return { index, id, completed: true, text: text ?? "" };
    const replacement = await replacementOf(task, graph, slotsFrom);
    return { index, id, completed: replacement !== null, text: replacement?.output ?? "" };
  };
}

/** The combined results of a graph that has ended; nothing if it has no `aggregate`. */
export async function graphAggregation(
  group: GroupView,
  graph: CompiledGraph,
  { slotsFrom, makeCalls }: { slotsFrom: SlotsFrom; makeCalls: MakeCalls },
): Promise<{ aggregation?: Aggregation }> {
  const { aggregate, status } = group;
  if (aggregate === undefined || status === "running") return {};
  const source = { group, slotsFrom, memberOf: graphMembers(graph, slotsFrom), makeCalls };
  return { aggregation: await aggregationOf(aggregate, source) };
}

/** A view of a graph whose failures of tiers have the ids of their tasks. */
export function withTaskIds(group: GroupView, graph: CompiledGraph): GroupView {
  const { tierFailures } = group;
  if (tierFailures === undefined || tierFailures.length === 0) return group;
  const names = new SlotNames(graph);
  return { ...group, tierFailures: tierFailures.map((each) => ({ ...each, id: names.of(each.index).task })) };
}
