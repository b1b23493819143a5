/**
 * The early call of a task whose condition is likely to hold (`likely`): it is made while its condition is open, if its prompt is whole and
 * the bound of the graph (`speculate`) pays for it even if the condition fails. It never fails the graph: without its answer the task
 * starts like any other.
 */
import { EARLY_CALLS_OPEN_MAX, EARLY_CALLS_PRICED_MAX } from "../../limits.ts";
import { hasCourse } from "../continuations/table.ts";
import type { Group } from "../group/group.ts";
import type { GroupGraph } from "../group/group-graph.ts";
import { isFinalState, slotIdOf, type SlotFacts } from "../queue/slot.ts";
import { quoteCall } from "../quotes.ts";
import type { EngineState } from "../state.ts";
import type { DueCall, Service } from "./service.ts";

export const early: Service<"early"> = {
  mayServe: (group) => group.early !== null,

  due(served, state, nowMs) {
    if (!mayBegin(served)) return [];
    let priced = 0;
    for (const [position, { likely, first }] of served.graph.compiled.tasks.entries()) {
      if (likely !== true || served.early.has(first) || !hasWholePrompt(served.graph, position)) continue;
      priced += 1;
      if (priced > EARLY_CALLS_PRICED_MAX) return [];
      const call = callOf(state, served, first, nowMs);
      // One at a time: each counts in the bound before the next does.
      if (call !== null) return [call];
    }
    return [];
  },

  opened({ early: calls }, { serves: { index, worstNanoUsd }, seq }) {
    calls?.opened(index, { seq, worstNanoUsd });
  },

  ended({ early: calls }, { serves: { index } }, end) {
    calls?.ended(index, end);
    return { kind: "released", index };
  },

  // Its slot has ended: the condition does not hold, or the graph was stopped.
  needless(served) {
    const isOver = served.done || served.drained !== null;
    const open = served.early?.open ?? [];
    return open.flatMap(({ index, seq }) => (isOver || isFinalState(served.stateOf(index)) ? [seq] : []));
  },

  needlessMessage: "the task whose call was made early does not start",
  isGivenUp: true,
  isTriedOnce: true,
};

type Speculating = Group & { early: NonNullable<Group["early"]>; graph: GroupGraph };

/** Whether a graph makes early calls now. One that records has answers of its own for each slot. */
function mayBegin(served: Group): served is Speculating {
  if (served.early === null || served.graph === null || served.header.replay !== undefined) return false;
  const isOver = served.done || served.drained !== null || !served.mayStart;
  return !isOver && served.early.open.length < EARLY_CALLS_OPEN_MAX;
}

/** Whether only its condition keeps a task from starting, and all that its prompt inserts is there. */
function hasWholePrompt({ frontier, compiled: { tasks } }: GroupGraph, position: number): boolean {
  const { inserted = [] } = tasks[position] ?? {};
  return frontier.waitsForCondition(position) && inserted.every(([task]) => frontier.hasAnswer(task));
}

/** The call of a slot, if one attempt makes it and the bound pays for it; else null. */
function callOf(state: EngineState, served: Speculating, index: number, nowMs: number): DueCall<"early"> | null {
  const { header, graph } = served;
  const slotId = slotIdOf(header.seq, index);
  const made = state.deps.substitutedFactsOf?.(slotId);
  if (made?.ok !== true || hasCourse(made.facts)) return null;
  const target = state.targetOf(header, made.facts);
  if (target === null || target.tool !== undefined) return null;
  // A learned cap may make a second attempt necessary.
  const facts: SlotFacts = { ...made.facts, reserve: "worst" };
  const { worstNanoUsd } = quoteCall(state, target, facts, nowMs);
  if (!served.early.hasRoomFor(worstNanoUsd, (at) => served.stateOf(at))) return null;
  const { id } = graph.taskOf(index);
  return {
    serves: { seq: header.seq, as: "early", index, worstNanoUsd },
    name: `early ${header.id} ${index}`,
    call: { kind: "slot", slotId, facts, id },
  };
}
