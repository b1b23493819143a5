/** Which calls go through batches of their provider: whose upstream sells them, and that are one request each. */
import { BATCH_TIER } from "../../call.ts";
import { hasCourse } from "../continuations/table.ts";
import type { Group } from "../group/group.ts";
import { sendable } from "../gates/sendable.ts";
import type { Target } from "../leases/shard.ts";
import type { SlotFacts } from "../queue/slot.ts";
import type { EngineState } from "../state.ts";

/**
 * Where the batch of a call is made; null = the call is sent live. Of several keys or upstreams it is the first. Sent live are
 * calls that may become several, calls that share an answer or a stored text, and bodies that name a tier themselves; also bodies
 * of clients that mark their prompt for a cache, because the provider's file does not show what a line wrote to it.
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
