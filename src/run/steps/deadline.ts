/** Deadlines of queued slots and calls, and the ends of waits at gates. Attempts in flight are not touched: each has a time limit of its own. */
import type { Reason } from "../../errors.ts";
import { endCall } from "./end-call.ts";
import type { SingleCall } from "../leases/single-call.ts";
import { drainGroup } from "./end-slot.ts";
import type { Group } from "../group/group.ts";
import type { EngineState } from "../state.ts";
import { endAtGate, queuedCall, queuedSingle, stoppedEndMs, tooLateReason } from "./waiting.ts";
import { shortageOf } from "./paused.ts";

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
  const { upstreams, credits } = state;
  // A turn of thousands of calls that no gate makes wait looks for none.
  const mayWait = upstreams.mayMakeWait(nowMs, (gate) => credits.permitsAt(gate));
  for (const group of state.groups.values()) expireGroup(state, group, { waitingFor, mayWait }, nowMs);
  const late: { call: SingleCall; reason: Reason }[] = [];
  for (const call of [...state.calls.values()]) {
    const { deadlineMs, queuedAtMs } = call;
    const isLate = deadlineMs !== null && nowMs >= queuedAtMs + deadlineMs;
    const atGate = mayWait ? endAtGate(state, queuedCall(call), nowMs) : null;
    if (!isLate && atGate === null) continue;
    const reason = atGate ?? waitingFor ?? ({ reason: "deadline_exceeded", deadlineMs: deadlineMs ?? 0 } as const);
    endCall(state, call.callId, reason, nowMs);
    late.push({ call, reason });
  }
  return late;
}

function expireGroup(
  state: EngineState,
  group: Group,
  { waitingFor, mayWait }: { waitingFor: Reason | null; mayWait: boolean },
  nowMs: number,
): void {
  const { deadlineMs, openedAtMs, single } = group.header;
  if (group.counts.queued === 0) return;
  const queued = single === null || !mayWait ? null : queuedSingle(state, group);
  const atGate = queued === null ? null : endAtGate(state, queued, nowMs);
  const stopped = stoppedEndMs(state, group, nowMs);
  const isLate = deadlineMs !== null && nowMs >= openedAtMs + deadlineMs;
  const tooLate = atGate ?? (isLate ? null : tooLateReason(state, group, nowMs));
  if (tooLate !== null) return drainGroup(state, group, { state: "failed", reason: tooLate, cause: "deadline" }, nowMs);
  if (!isLate && (stopped === null || nowMs < stopped.atMs)) return;
  const shortage = group.paused === null ? null : shortageOf(state, group.paused);
  const overdue = shortage ?? waitingFor ?? ({ reason: "deadline_exceeded", deadlineMs: deadlineMs ?? 0 } as const);
  const reason = isLate ? overdue : (stopped?.reason ?? overdue);
  drainGroup(state, group, { state: "failed", reason, cause: "deadline" }, nowMs);
}
