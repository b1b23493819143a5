/**
 * After a restart: which of the attempts in the rows are still being made. Their leases would show it only when they
 * expire; their lanes know it at once, and a lane that was restarted as well knows of no attempt.
 */
import { DIRECT_SHARD_FIRST, type AttemptInFlight } from "../../src/run/leases/shard.ts";
import type { EngineState } from "../../src/run/state.ts";
import { FOUND_LEASE_TTL_MS } from "../../src/limits.ts";
import { laneOf, type Objects } from "../../src/objects/address.ts";
import { callLanes } from "../../src/objects/clients/lanes.ts";
import type { RunState } from "./state.ts";

/**
 * Whether the alarm of an instance that has just started must ring at once: for queued slots, and for lanes, which may have lost
 * their attempts. A single call that its client's Worker makes needs neither: its end has woken the object, most often.
 */
export function mustLookAtOnce({ openGroups, engine }: Pick<RunState, "openGroups" | "engine">): boolean {
  for (const seq of openGroups.keys()) {
    const group = engine.groups.get(seq);
    if (group === undefined || group.header.single === null || group.counts.running !== 1) return true;
  }
  for (const { shard } of engine.attempts.values()) if (shard.id < DIRECT_SHARD_FIRST) return true;
  return false;
}

export class LeaseRecovery {
  /** Leases that end up to here were found in the rows by this instance, not granted or renewed by it. */
  readonly #foundUntilMs: number;
  #isDone = false;

  /** @param startedAtMs When this instance started. */
  constructor(startedAtMs: number) {
    this.#foundUntilMs = startedAtMs + FOUND_LEASE_TTL_MS;
  }

  /** Whether a lease that this instance found is still unconfirmed. */
  hasFound(engine: EngineState): boolean {
    return (engine.nextLeaseEndMs() ?? Infinity) <= this.#foundUntilMs;
  }

  /** Whether found leases may still be renewed by their executors. */
  isPending(nowMs: number): boolean {
    return nowMs <= this.#foundUntilMs;
  }

  /**
   * Requests from lanes, once, which of the found attempts they are making. Returns those that no lane makes; null if
   * there was nothing to request. A lane that cannot be reached keeps its leases: they expire if it is gone.
   */
  async lostAttempts(
    objects: Objects,
    { engine, epoch, settings: { id: runId } }: { engine: EngineState; epoch: number; settings: { id: string } },
  ): Promise<string[] | null> {
    const found = this.#foundAttempts(engine);
    if (this.#isDone || found.size === 0) return null;
    this.#isDone = true;
    const replies = await callLanes([...found.keys()], async (lane) => {
      const present = new Set<string>(await laneOf(objects, runId, lane).reconcileLeases(runId, lane, epoch));
      return (found.get(lane) ?? []).filter((attemptId) => !present.has(attemptId));
    });
    return replies.flatMap((reply) => (reply.status === "fulfilled" ? reply.value : []));
  }

  /** Attempts of lanes whose leases were found and not renewed since, by lane. */
  #foundAttempts(engine: EngineState): Map<number, string[]> {
    const byLane = new Map<number, string[]>();
    const isFound = ({ expiresAtMs }: AttemptInFlight): boolean => expiresAtMs <= this.#foundUntilMs;
    for (const { lease, shard } of engine.attempts.values()) {
      if (shard.id >= DIRECT_SHARD_FIRST || !isFound(lease)) continue;
      const known = byLane.get(shard.id);
      if (known === undefined) byLane.set(shard.id, [lease.attemptId]);
      else known.push(lease.attemptId);
    }
    return byLane;
  }
}
