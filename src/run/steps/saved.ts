/** What a group saves by stopping now. */
import { factsOf } from "./enqueue.ts";
import type { Group, Saved } from "../group/group.ts";
import { quoteCall } from "../quotes.ts";
import type { EngineState } from "../state.ts";

/**
 * The calls that a group has not begun, and what they would cost, each with one attempt. Attempts in flight save nothing for
 * certain: they end by themselves, or their providers may bill them in full. Calls of a graph count without what is inserted.
 */
export function savedBy(state: EngineState, group: Group, nowMs: number): Saved {
  const { header, counts } = group;
  // Those that are given up are added when they are.
  const aborted = group.isShadow && group.stopping?.inFlight === "abort" ? counts.running : 0;
  const saved = { calls: 0, aborted, worstNanoUsd: 0, likelyNanoUsd: 0, atMs: nowMs };
  for (let index = 0, left = counts.queued; left > 0 && index < header.count; index++) {
    if (group.stateOf(index) !== "queued") continue;
    left -= 1;
    if (group.graph?.isExpected(index) === false) continue;
    saved.calls += 1;
    const facts = factsOf(state, group, index);
    const target = state.targetOf(header, facts);
    if (target === null) continue;
    const quote = quoteCall(state, target, facts, nowMs);
    saved.worstNanoUsd += quote.worstNanoUsd;
    saved.likelyNanoUsd += quote.likelyNanoUsd;
  }
  return saved;
}
