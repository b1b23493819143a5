/** How many lanes a run needs, and whether those that have room should wait. */
import { DIRECT_SHARD_FIRST } from "../../src/engine/shard.ts";
import type { EngineState } from "../../src/engine/state.ts";
import { ATTEMPTS_PER_LINGER_MS, LANE_SLOTS, LINGER_MS_MAX } from "../../src/limits.ts";
import type { WaitingLanes } from "./waiting.ts";

type Run = { state: EngineState; open: ReadonlyMap<number, unknown>; lanes: WaitingLanes };

/**
 * Whether a lane with room should wait here. If lanes hold every permit, or every group with queued slots is at its
 * own limit, the next slot can only start when a lane settles, and that lane has room by then.
 */
export function lanesMayStartMore({ state, open }: Run): boolean {
  if (laneAttempts(state) >= state.width) return false;
  for (const seq of open.keys()) {
    const group = state.groups.get(seq);
    if (group !== undefined && group.counts.queued > 0 && group.inFlight < group.header.concurrency) return true;
  }
  return false;
}

/** Lanes that should ask for work and do not wait here: to be started, or told to look again. By number. */
export function missingLanes({ state, open, lanes }: Run): number[] {
  let slots = 0;
  for (const seq of open.keys()) {
    const group = state.groups.get(seq);
    if (group !== undefined) slots += Math.min(group.header.concurrency, group.counts.queued + group.counts.running);
  }
  const needed = Math.ceil(Math.min(slots, state.width) / LANE_SLOTS);
  const missing: number[] = [];
  for (let lane = 0; lane < needed; lane++) {
    const leases = state.shards.get(lane)?.leases.size ?? 0;
    if (!lanes.has(lane) && leases < LANE_SLOTS) missing.push(lane);
  }
  return missing;
}

/**
 * How long a lane should gather answers before it settles. A settle costs the run object as much as several slots in it,
 * and a wide run has many lanes settling: a few milliseconds of patience are nothing to an LLM call and halve that cost.
 */
export function lingerMs(state: EngineState): number {
  return Math.min(LINGER_MS_MAX, Math.floor(state.attempts.size / ATTEMPTS_PER_LINGER_MS));
}

function laneAttempts(state: EngineState): number {
  let attempts = state.attempts.size;
  for (const shard of state.shards.values()) if (shard.id >= DIRECT_SHARD_FIRST) attempts -= shard.leases.size;
  return attempts;
}
