/** Which calls go through batches of their provider: whose upstream sells them, and that are one request each. */
import { BATCH_TIER } from "../../call.ts";
import { hasCourse } from "../course/course.ts";
import type { Group } from "../group.ts";
import { sendable } from "../routes/sendable.ts";
import type { Target } from "../shard.ts";
import type { SlotFacts } from "../slot.ts";
import type { EngineState } from "../state.ts";

/**
 * Where the batch of a call is made; null = the call is sent live. Of several keys or upstreams it is the first. Not in a batch:
 * a call that may become several, one that shares an answer or a stored text, and one whose body names a tier itself. Nor a body
 * of a client's that marks its prompt for a cache: the price of what it writes is not known from its line in the provider's file.
 */
export function batchTargetOf(state: EngineState, { header }: Group, facts: SlotFacts): Target | null {
  const { wantedTier, isRaw, serviceTier, cacheTtl, dedupeKey, contextBytes } = facts;
  if (wantedTier !== BATCH_TIER || serviceTier !== undefined) return null;
  if (isRaw === true && cacheTtl !== undefined) return null;
  if (dedupeKey !== undefined || contextBytes !== undefined || hasCourse(facts)) return null;
  const asked = state.deps.targetOf(header, facts.modelIndex);
  const able = asked === null ? null : sendable(asked, facts);
  const target = able?.choices?.[0]?.targets[0] ?? able;
  return target?.batch === undefined ? null : target;
}
