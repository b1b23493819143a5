/** What a report says of a slot, in whatever form the report is. */
import { isFinalState } from "../../run/queue/slot.ts";
import type { WireError } from "../../errors.ts";
import type { GroupView, SlotView } from "../../objects/methods/groups.ts";
import type { Tier } from "../../run/answers/tiers.ts";

/** Characters of an output that a report shows. */
export const FINDING_CHARS = 160;

/** The name of a slot: the client's id of the call, else its index. */
export function agentOf(slot: Pick<SlotView, "id" | "index">): string {
  return slot.id ?? String(slot.index);
}

/** `COMPLETE`, `FAILED`, or the state of a slot that has not ended. */
export function statusOf({ state }: Pick<SlotView, "state">): string {
  if (state === "completed") return "COMPLETE";
  return isFinalState(state) ? "FAILED" : state.toUpperCase();
}

/** Where the output of a completed slot is; null for another. */
export function locationOf(groupId: string, { state, index }: Pick<SlotView, "state" | "index">): string | null {
  return state === "completed" ? `/groups/${groupId}/results?after=${index - 1}&limit=1` : null;
}

/** What a failure has cost. */
export function impactOf({ attempts }: Pick<SlotView, "attempts">): string {
  return attempts === 0 ? "did not run, cost nothing" : `no output after ${attempts} attempt(s)`;
}

/** The tier of each failed slot of a group with tiers, by its index; null = the group has none. */
export function failedTiers({ tierFailures }: Pick<GroupView, "tierFailures">): ReadonlyMap<number, Tier> | null {
  return tierFailures === undefined ? null : new Map(tierFailures.map(({ index, tier }) => [index, tier]));
}

export type ReportAction = "Retry" | "Escalate" | "Skip" | "Warn" | "Note";

/**
 * What is to be done about a failure. With tiers, by protocol: of P0 it escalates, of P1 it warns, or is retried if that may help,
 * of P2 it is noted. Without: retryable errors can be retried; a missing budget, key or permission needs a decision of the operator.
 */
export function actionFor(
  { code, retryable }: WireError,
  { tier, retryRecommended }: { tier: Tier | undefined; retryRecommended: boolean },
): ReportAction {
  if (tier === 0) return "Escalate";
  if (tier === 1) return retryRecommended ? "Retry" : "Warn";
  if (tier === 2) return "Note";
  if (retryable) return "Retry";
  return ["budget_exhausted", "invalid_api_key", "model_not_allowed", "misconfigured"].includes(code)
    ? "Escalate"
    : "Skip";
}

/** The beginning of a text, cut between characters. */
export function cutTo(text: string, chars: number): string {
  const cut = [...text.slice(0, 2 * chars)].slice(0, chars).join("");
  return cut.length < text.length ? `${cut}…` : cut;
}
