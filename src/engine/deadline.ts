/** Deadlines of what is queued. What runs is not touched: an attempt has a time limit of its own. */
import type { Reason } from "../errors.ts";
import { drainGroup, endCall } from "./open.ts";
import type { EngineState, SingleCall } from "./state.ts";

/**
 * Ends what has been queued past its deadline; returns the single calls among it with their refusals. `waitingFor` is the
 * budget refusal that the best slot in line waits not to get: then the wait was for money, and the caller may come again.
 */
export function expireQueued(
  state: EngineState,
  waitingFor: Reason | null,
  nowMs: number,
): { call: SingleCall; reason: Reason }[] {
  for (const group of state.groups.values()) {
    const { deadlineMs, openedAtMs } = group.header;
    if (deadlineMs === null || nowMs < openedAtMs + deadlineMs || group.counts.queued === 0) continue;
    drainGroup(
      state,
      group,
      { state: "failed", reason: waitingFor ?? { reason: "deadline_exceeded", deadlineMs }, cause: "deadline" },
      nowMs,
    );
  }
  const late: { call: SingleCall; reason: Reason }[] = [];
  for (const call of [...state.calls.values()]) {
    const { deadlineMs, queuedAtMs } = call;
    if (deadlineMs === null || nowMs < queuedAtMs + deadlineMs) continue;
    const reason = waitingFor ?? ({ reason: "deadline_exceeded", deadlineMs } as const);
    endCall(state, call.callId, reason, nowMs);
    late.push({ call, reason });
  }
  return late;
}
