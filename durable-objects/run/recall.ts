/**
 * What the run's alarm asks lanes. After a restart: which attempts they still make. Leases alone could tell only when
 * their time is over; a lane knows at once, and one that was restarted as well knows of none.
 */
import type { AttemptInFlight } from "../../src/engine/shard.ts";
import { DIRECT_SHARD_FIRST } from "../../src/engine/shard.ts";
import type { EngineState } from "../../src/engine/state.ts";
import { laneOf, type Objects } from "../address.ts";
import type { RunCore } from "./core.ts";

/** Attempts of lanes whose leases were found by this instance and not confirmed since, by lane. */
export function foundAttempts(state: EngineState, foundUntilMs: number): Map<number, string[]> {
  const byLane = new Map<number, string[]>();
  const isFound = ({ expiresAtMs }: AttemptInFlight): boolean => expiresAtMs <= foundUntilMs;
  for (const { lease, shard } of state.attempts.values()) {
    if (shard.id >= DIRECT_SHARD_FIRST || !isFound(lease)) continue;
    const known = byLane.get(shard.id);
    if (known === undefined) byLane.set(shard.id, [lease.attemptId]);
    else known.push(lease.attemptId);
  }
  return byLane;
}

/** Asks lanes for their attempts; returns those that none of them makes. A lane that does not answer keeps its leases. */
export async function lostAttempts(
  objects: Objects,
  { epoch, settings: { id: runId } }: RunCore,
  found: ReadonlyMap<number, readonly string[]>,
): Promise<string[]> {
  const asked = [...found].map(async ([lane, attemptIds]) => {
    const held = new Set<string>(await laneOf(objects, runId, lane).recall(runId, lane, epoch));
    return attemptIds.filter((attemptId) => !held.has(attemptId));
  });
  const answers = await Promise.allSettled(asked);
  return answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
}

/** Has lanes close the connections of attempts that were given up. One that cannot be reached learns it by its beat. */
export async function stopAborted(objects: Objects, { state, settings: { id } }: RunCore): Promise<void> {
  const aborted = [...state.aborted];
  state.aborted.clear();
  await Promise.allSettled(aborted.map(([lane, attemptIds]) => laneOf(objects, id, lane).abort(attemptIds)));
}
