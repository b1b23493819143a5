/** Which service tier the gateway requests from an upstream. A cheaper tier is a preference: no call fails because of it. */
import { hasTierPrice } from "../money/service-tiers.ts";
import { BATCH_TIER, type CallFacts } from "../../call.ts";
import type { Group } from "../group/group.ts";
import type { Target } from "../leases/shard.ts";
import { groupSeqOf, indexOf } from "../queue/slot.ts";
import type { EngineState, InFlight } from "../state.ts";

/**
 * The tier to ask for; undefined = none. `runTier`: that of calls which name none. A tier without a known price at the target is
 * not sold there, and a body that its client wrote says itself what it wants.
 */
export function sentTierOf(
  { wantedTier, serviceTier, isRaw }: CallFacts,
  runTier: string | null,
  { price, protocol }: Pick<Target, "price" | "protocol">,
): string | undefined {
  const wanted = wantedTier ?? runTier ?? undefined;
  // A call that requests a provider's batch but is sent live is sent at the standard tier.
  if (
    wanted === undefined ||
    wanted === BATCH_TIER ||
    isRaw === true ||
    serviceTier !== undefined ||
    protocol === "anthropic"
  )
    return undefined;
  return hasTierPrice(price, wanted) ? wanted : undefined;
}

/** The facts of an attempt that asks for a tier: its reservation covers what the tier and the standard one cost. */
export function tieredFacts<Facts extends CallFacts>(facts: Facts, tier: string | undefined): Facts {
  return tier === undefined ? facts : { ...facts, serviceTier: tier };
}

/** Whether a slot is sent without a tier from now on, because its upstream had no room for it there. */
export function isAtStandardTier(group: Pick<Group, "atStandardTier">, slotId: number): boolean {
  return group.atStandardTier.has(indexOf(slotId));
}

/** Notes that a slot's tier was refused. A single call's Worker notes it in the facts of its next attempt. */
export function leaveTier({ groups }: Pick<EngineState, "groups">, { lease: { slotId } }: InFlight): void {
  if (slotId !== null) groups.get(groupSeqOf(slotId))?.atStandardTier.add(indexOf(slotId));
}
