/** Who waits in an engine, and for what. Looking changes nothing: what is taken out is everything that matches, which is nothing. */
import type { Follower } from "../../src/engine/flights.ts";
import type { EngineState } from "../../src/engine/state.ts";

/** Everything in the queue, ready or delayed, as `[groupSeq, slotId]`. */
export function queuedIn(state: EngineState): [number, number][] {
  const queued: [number, number][] = [];
  state.queue.remove((groupSeq, slotId) => {
    queued.push([groupSeq, slotId]);
    return false;
  });
  return queued;
}

/** The calls that wait for an equal one's answer. */
export function followersIn(state: EngineState): Follower[] {
  const followers: Follower[] = [];
  state.flights.remove((follower) => {
    followers.push(follower);
    return false;
  });
  return followers;
}

/** Whether an equal of this call runs, or waits in the queue for its retry. */
export function isLed(state: EngineState, { place, call }: Pick<Follower, "place" | "call">): boolean {
  const key = (call === null ? state.deps.factsOf(place) : call.facts).dedupeKey;
  if ([...state.attempts.values()].some(({ lease }) => lease.dedupeKey === key)) return true;
  return queuedIn(state).some(
    ([groupSeq, slotId]) => groupSeq !== 0 && state.tried.has(slotId) && state.deps.factsOf(slotId).dedupeKey === key,
  );
}
