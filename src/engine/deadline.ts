/** Deadlines of queued slots and calls. Attempts in flight are not touched: each has a time limit of its own. */
import type { Reason } from "../errors.ts";
import { endCall } from "./calls/end-call.ts";
import type { SingleCall } from "./calls/single-call.ts";
import { drainGroup } from "./end-slot.ts";
import type { EngineState } from "./state.ts";

/**
 * Ends slots and calls that are queued past their deadline; returns the single calls among them with their reasons.
 * `waitingFor`: the budget refusal of the slot that is first in the queue, if it waits for reservations in flight. Then
 * calls end with that reason instead of `deadline_exceeded`: they waited for money, and a retry can succeed.
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
