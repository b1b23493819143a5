/**
 * Groups that wait for a higher limit: with `onExhausted: "pause"`, a group waits instead of failing its slots if the rest of the
 * budget does not cover its next attempt. Nothing polls: only a change of the limits, or the end of a child run, raises what is
 * left of the budget.
 */
import { budgetReason } from "../money/admit.ts";
import { DIMENSIONS, zeroAmounts, type Amounts, type Ledger } from "../money/ledger.ts";
import type { Dimension, Reason } from "../../errors.ts";
import type { Group, Paused } from "../group/group.ts";
import type { EngineState } from "../state.ts";

/**
 * Whether slots of a group wait when the budget is used up. Those with an equal share of the budget do not: no higher limit
 * raises their share.
 */
export function mayPause({ header }: Pick<Group, "header">): boolean {
  return header.onExhausted === "pause" && header.share === null;
}

/** Pauses a group whose next attempt needs `need`; `reason` is the refusal that its slots would get. */
export function pauseGroup(
  state: EngineState,
  group: Group,
  { reason, need }: { reason: Reason; need: Amounts },
  nowMs: number,
): void {
  group.paused = { need, sinceMs: nowMs };
  state.log.add({ event: "group_paused", reason }, group.parallelGroupId, nowMs);
  state.writeGroup(group);
}

/** The slots of a group have changed: the next turn finds out which one starts next and what it needs. */
export function reconsider(group: Group): void {
  if (group.paused !== null) group.paused = { ...group.paused, need: zeroAmounts() };
}

/** Lets the groups go on whose next attempt the budget covers by now. False if there are none. */
export function resumeGroups(state: EngineState, nowMs: number): boolean {
  let hasResumed = false;
  for (const group of state.groups.values()) {
    const { paused } = group;
    if (paused === null || shortOf(state, paused) !== null) continue;
    group.paused = null;
    hasResumed = true;
    const pausedMs = Math.max(0, nowMs - paused.sinceMs);
    state.log.add({ event: "group_resumed", pausedMs }, group.parallelGroupId, nowMs);
    state.writeGroup(group);
  }
  return hasResumed;
}

/** The first dimension that a paused group waits for, whatever attempts in flight free; null = it goes on with the next turn. */
export function shortOf({ ledger }: { ledger: Ledger }, { need }: Pick<Paused, "need">): Dimension | null {
  return DIMENSIONS.find((dimension) => need[dimension] > (ledger.idle(dimension) ?? Infinity)) ?? null;
}

/** The refusal that the slots of a paused group get at their deadline; null if it goes on with the next turn. */
export function shortageOf({ ledger }: { ledger: Ledger }, { need }: Pick<Paused, "need">): Reason | null {
  const dimension = shortOf({ ledger }, { need });
  return dimension === null ? null : budgetReason("budget_exhausted", dimension, need, ledger);
}
