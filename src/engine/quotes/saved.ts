/** What a group saves by stopping now. */
import type { Group, Saved } from "../group.ts";
import { quoteCall } from "./call.ts";
import { slotIdOf } from "../slot.ts";
import type { EngineState } from "../state.ts";

/**
 * The calls that a group has not begun, and what they would cost, each with one attempt. Attempts in flight save nothing for
 * certain: their providers may bill them in full, so they stay charged.
 */
export function savedBy(state: EngineState, group: Group, nowMs: number): Saved {
  const { header, counts } = group;
  const saved = { calls: counts.queued, aborted: counts.running, worstNanoUsd: 0, likelyNanoUsd: 0, atMs: nowMs };
  for (let index = 0, left = counts.queued; left > 0 && index < header.count; index++) {
    if (group.stateOf(index) !== "queued") continue;
    left -= 1;
    const facts = state.deps.factsOf(slotIdOf(header.seq, index));
    const target = state.deps.targetOf(header, facts.modelIndex);
    if (target === null) continue;
    const quote = quoteCall(state, target, facts, nowMs);
    saved.worstNanoUsd += quote.worstNanoUsd;
    saved.likelyNanoUsd += quote.likelyNanoUsd;
  }
  return saved;
}
