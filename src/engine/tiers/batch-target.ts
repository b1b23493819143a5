/** Which calls go through batches of their provider: whose upstream sells them, and that are one request each. */
import { BATCH_TIER } from "../../call.ts";
import { hasCourse } from "../course/course.ts";
import type { Group } from "../group.ts";
import type { Target } from "../shard.ts";
import type { SlotFacts } from "../slot.ts";
import type { EngineState } from "../state.ts";

/**
 * Where the batch of a call is made; null = the call is sent live. Of several keys or upstreams it is the first. Not in a batch:
 * a call that may become several, one that shares an answer or a stored text, and one whose body names a tier itself.
 */
export function batchTargetOf(state: EngineState, { header }: Group, facts: SlotFacts): Target | null {
  const { wantedTier, isRaw, serviceTier, dedupeKey, contextBytes } = facts;
  if (wantedTier !== BATCH_TIER || isRaw === true || serviceTier !== undefined) return null;
  if (dedupeKey !== undefined || contextBytes !== undefined || hasCourse(facts)) return null;
  const asked = state.deps.targetOf(header, facts.modelIndex);
  const target = asked?.choices?.[0]?.targets[0] ?? asked;
  return target?.batch === undefined ? null : target;
}
