/** The queued slots and the followers of an engine. Reading them changes nothing: no match is removed. */
import type { Follower } from "../../src/run/leases/single-flight.ts";
import { groupSeqOf } from "../../src/run/queue/slot.ts";
import type { EngineState } from "../../src/run/state.ts";

/** Everything in the queue, ready or delayed, as `[groupSeq, slotId]`. */
export function queuedIn(state: EngineState): [number, number][] {
  const queued: [number, number][] = [];
  state.queue.remove((groupSeq, slotId) => {
    queued.push([groupSeq, slotId]);
    return false;
  });
  return queued;
}

/** The followers of all in-flight keys. */
export function followersIn(state: EngineState): Follower[] {
  const followers: Follower[] = [];
  state.singleFlight.remove((follower) => {
    followers.push(follower);
    return false;
  });
  return followers;
}

/** True if an equal call is in flight, or waits in the queue for its retry; or one of the same group is queued for both. */
export function isLed(state: EngineState, { id, call }: Pick<Follower, "id" | "call">): boolean {
  const key = (call === null ? state.deps.factsOf(id) : call.facts).dedupeKey;
  if ([...state.attempts.values()].some(({ lease }) => lease.dedupeKey === key)) return true;
  return queuedIn(state).some(
    ([groupSeq, slotId]) =>
      groupSeq !== 0 &&
      (state.tried.has(slotId) || (call === null && groupSeq === groupSeqOf(id))) &&
      state.deps.factsOf(slotId).dedupeKey === key,
  );
}
