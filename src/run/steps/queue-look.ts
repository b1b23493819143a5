/** How many calls of a run are in flight and queued, and what the queued ones wait for: of one moment, so that they add up. */
import type { NarrowedBy } from "../group/narrowing.ts";
import type { EngineState } from "../state.ts";
import { waitsAt, waitsOf, type Waiting, type WaitingFor } from "./waiting-for.ts";

/**
 * `waits`: most calls first; their `slots` add up to `queued`. `narrowedBy`: what has kept the group narrow that has waited for its budget
 * for the largest share of its time; absent = none was kept narrow.
 */
export type QueueLook = { inFlight: number; queued: number; waits: Waiting[]; narrowedBy?: NarrowedBy };

export function queueLook(state: EngineState, nowMs: number): QueueLook {
  const sums = new Map<string, Waiting>();
  const add = (waitingFor: WaitingFor, slots: number): void => {
    const name = nameOf(waitingFor);
    const known = sums.get(name);
    if (known === undefined) sums.set(name, { waitingFor, slots });
    else known.slots += slots;
  };
  /** What is queued and in no list of causes follows an equal call that is in flight. */
  const addAll = (waits: readonly Waiting[], queued: number, held: number): void => {
    for (const { waitingFor, slots } of waits) add(waitingFor, slots);
    const left = Math.max(0, queued - waits.reduce((sum, { slots }) => sum + slots, 0));
    const behindTier = Math.min(left, held);
    if (behindTier > 0) add({ kind: "tier" }, behindTier);
    if (left > behindTier) add({ kind: "equal_call" }, left - behindTier);
  };
  let narrowedBy: NarrowedBy | undefined;
  for (const group of state.groups.values()) {
    if (group.done) continue;
    addAll(waitsOf(state, group, nowMs), group.counts.queued, group.tiers?.heldSlots ?? 0);
    const narrowed = group.narrowedBy(nowMs);
    if (narrowed !== null && narrowed.share > (narrowedBy?.share ?? 0)) narrowedBy = narrowed;
  }
  addAll(waitsAt(state, SINGLE_CALLS, nowMs), state.calls.size, 0);
  const waits = [...sums.values()].sort((a, b) => b.slots - a.slots);
  const queued = waits.reduce((sum, { slots }) => sum + slots, 0);
  return { inFlight: state.attempts.size, queued, waits, ...(narrowedBy === undefined ? {} : { narrowedBy }) };
}

/** The number of the group of calls that are in none. */
const SINGLE_CALLS = 0;

/** Waits of the same name are one entry. */
function nameOf(waitingFor: WaitingFor): string {
  switch (waitingFor.kind) {
    case "gate":
      return `gate ${waitingFor.gate} ${waitingFor.reason}`;
    case "budget":
      return `budget ${waitingFor.dimension} ${waitingFor.isExhausted === true}`;
    case "provider_batch":
      return `provider_batch ${waitingFor.upstream ?? ""}`;
    default:
      return waitingFor.kind;
  }
}
