/** How many lanes a run needs, whether a lane with room should wait, and how long a lane collects answers. */
import { DIRECT_SHARD_FIRST } from "../../src/engine/shard.ts";
import type { EngineState } from "../../src/engine/state.ts";
import { ATTEMPTS_PER_BATCHING_MS, LANE_SLOTS, BATCHING_DELAY_MS_MAX } from "../../src/limits.ts";
import type { WaitingLanes } from "./waiters.ts";

type Groups = ReadonlyMap<number, unknown>;

/**
 * Whether a lane with room should wait for work. If lanes hold every permit, or every group with queued slots is at its
 * own limit, the next slot can only start when a lane settles, and that lane has room by then.
 */
export function lanesMayStartMore(engine: EngineState, openGroups: Groups): boolean {
  if (laneAttempts(engine) >= engine.width) return false;
  for (const seq of openGroups.keys()) {
    const group = engine.groups.get(seq);
    if (group !== undefined && group.counts.queued > 0 && group.inFlight < group.header.concurrency) return true;
  }
  return false;
}

/** Lanes that should claim work and do not wait here, by number: lanes to start, or to make claim once more. */
export function missingLanes(engine: EngineState, openGroups: Groups, waiting: WaitingLanes): number[] {
  let slots = 0;
  for (const seq of openGroups.keys()) {
    const group = engine.groups.get(seq);
    if (group !== undefined) slots += Math.min(group.header.concurrency, group.counts.queued + group.counts.running);
  }
  const needed = Math.ceil(Math.min(slots, engine.width) / LANE_SLOTS);
  const missing: number[] = [];
  for (let lane = 0; lane < needed; lane++) {
    const leases = engine.shards.get(lane)?.leases.size ?? 0;
    if (!waiting.has(lane) && leases < LANE_SLOTS) missing.push(lane);
  }
  return missing;
}

/**
 * How long a lane should collect answers before it settles, ms. A settlement costs the run object as much as several slots
 * in it, and a wide run has many lanes that settle: a few milliseconds are nothing to an LLM call and halve that cost.
 */
export function batchingDelayMs(attemptsInFlight: number): number {
  return Math.min(BATCHING_DELAY_MS_MAX, Math.floor(attemptsInFlight / ATTEMPTS_PER_BATCHING_MS));
}

function laneAttempts(engine: EngineState): number {
  let attempts = engine.attempts.size;
  for (const shard of engine.shards.values()) if (shard.id >= DIRECT_SHARD_FIRST) attempts -= shard.leases.size;
  return attempts;
}
