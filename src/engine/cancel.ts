/** Giving up what runs: its cost is unknown, so it stays charged, and its executor must hear of it. */
import type { Reason } from "../errors.ts";
import type { Group } from "./group.ts";
import { drainGroup, withdrawSlot } from "./open.ts";
import { settle } from "./settle.ts";
import { DIRECT_SHARD_FIRST } from "./shard.ts";
import { groupSeqOf, slotIdOf } from "./slot.ts";
import type { EngineState, InFlight } from "./state.ts";

/** Stops a group: nothing more of it starts, and what runs is given up. */
export function cancelGroup(state: EngineState, group: Group, reason: Reason, nowMs: number): void {
  drainGroup(state, group, { state: "cancelled", reason, cause: "cancel" }, nowMs);
  const { seq } = group.header;
  giveUp(state, ({ lease }) => lease.slotId !== null && groupSeqOf(lease.slotId) === seq, reason, nowMs);
}

/** Stops one slot of a group: it never starts, or its attempt is given up. One that has ended stays as it is. */
export function cancelSlot(state: EngineState, group: Group, index: number, reason: Reason, nowMs: number): void {
  const slotId = slotIdOf(group.header.seq, index);
  if (group.stateOf(index) === "queued") withdrawSlot(state, group, slotId, reason, nowMs);
  else if (group.stateOf(index) === "running") {
    group.stopped.add(index);
    giveUp(state, ({ lease }) => lease.slotId === slotId, reason, nowMs);
  }
}

/** Gives up the attempts that `matches`. Lanes are told by who drives the engine; the Worker of a single call asks. */
export function giveUp(
  state: EngineState,
  matches: (inFlight: InFlight) => boolean,
  reason: Reason,
  nowMs: number,
): void {
  for (const inFlight of [...state.attempts.values()]) {
    if (!matches(inFlight)) continue;
    const { lease, shard } = inFlight;
    const latencyMs = Math.max(0, nowMs - lease.startedAtMs);
    settle(state, lease.attemptId, { kind: "failure", class: "unknown", reason, retryAfterMs: null, latencyMs }, nowMs);
    if (shard.id >= DIRECT_SHARD_FIRST) continue;
    const told = state.aborted.get(shard.id);
    if (told === undefined) state.aborted.set(shard.id, [lease.attemptId]);
    else told.push(lease.attemptId);
  }
}
