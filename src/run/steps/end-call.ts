/** Where a single call ends: every end counts in the call's coalescing window and emits one `slot_completed`. */
import { isBudgetReason } from "../money/admit.ts";
import { zeroAmounts, type Amounts } from "../money/ledger.ts";
import type { CallFacts, Outcome } from "../../call.ts";
import type { Reason } from "../../errors.ts";
import { labelsOf } from "../../labels.ts";
import type { TraceContext } from "../../trace-context.ts";
import { callName, callResult, slotEnd, type CallName, type CallResult } from "../log.ts";
import type { AttemptInFlight } from "../leases/shard.ts";
import type { EngineState } from "../state.ts";
import type { WindowGroup } from "../leases/concurrency-window.ts";
import type { SingleCall } from "../leases/single-call.ts";

/** The end of a single call. `startedAtMs`: start of the attempt that ended it; null = it ended without one. */
type CallEnd = {
  name: CallName;
  result: CallResult;
  attempts: number;
  charge: Amounts;
  startedAtMs: number | null;
  trace: TraceContext | undefined;
};

function recordEnd(state: EngineState, window: WindowGroup | null, ended: CallEnd, nowMs: number): void {
  const { name, result, attempts, charge, startedAtMs, trace } = ended;
  if (startedAtMs === null && result.status === "failed" && result.reason !== null)
    state.countRefused(result.reason.reason);
  window?.callEnded(result.status === "completed", nowMs);
  const usage = {
    promptTokens: charge.prompt_tokens,
    completionTokens: charge.completion_tokens,
    costNanoUsd: charge.usd,
  };
  const end = slotEnd(name, { ...result, attempts }, usage, { startedAtMs, endedAtMs: nowMs }, trace);
  state.log.add(end, window?.id ?? null, nowMs);
}

/** Ends a call with its attempt's final outcome. The charges of earlier attempts are in their own events. */
export function endCallAfterAttempt(
  state: EngineState,
  window: WindowGroup | null,
  { outcome, charge, lease }: { outcome: Outcome; charge: Amounts; lease: AttemptInFlight },
  nowMs: number,
): void {
  const { attempt, startedAtMs, trace } = lease;
  const attempts = outcome.kind === "failure" && outcome.unsent === true ? attempt - 1 : attempt;
  const name = callName(lease, undefined);
  recordEnd(state, window, { name, result: callResult(outcome), attempts, charge, startedAtMs, trace }, nowMs);
}

/** Ends a call that never started, or did not start again: it costs nothing more. */
function endWithoutAttempt(state: EngineState, call: SingleCall, result: CallResult, nowMs: number): void {
  const { attempt, window, facts } = call;
  const name = waitingName(call);
  const none = { charge: zeroAmounts(), startedAtMs: null };
  const ended = { name, result, attempts: attempt - 1, ...none, trace: facts.trace };
  recordEnd(state, window, ended, nowMs);
}

/** A call has a recorded answer: it ends before it is queued, in no window. */
export function endReplayedCall(
  state: EngineState,
  { callId, facts }: { callId: string; facts: CallFacts },
  { model, finishReason }: { model: string; finishReason: string | null },
  nowMs: number,
): void {
  const result: CallResult = { status: "completed", reason: null, model, finishReason, replayed: true };
  const none = { attempts: 0, charge: zeroAmounts(), startedAtMs: null };
  recordEnd(state, null, { name: waitingName({ callId, facts }), result, ...none, trace: facts.trace }, nowMs);
}

/** The name of a call that has no attempt in flight. */
function waitingName({ callId, facts }: Pick<SingleCall, "callId" | "facts">): CallName {
  return { index: null, callId, ...labelsOf(facts) };
}

/** Ends a call that dispatch has taken from the queue and refuses. */
export function refuseCall(state: EngineState, call: SingleCall, reason: Reason, nowMs: number): void {
  if (isBudgetReason(reason)) {
    state.log.add({ event: "budget_refused", ...waitingName(call), reason }, call.window?.id ?? null, nowMs);
  }
  endWithoutAttempt(state, call, failed(reason), nowMs);
}

/** Ends a follower with its leader's final outcome. Its Worker gets it from `takeSharedOutcomes`. */
export function shareWithCall(
  state: EngineState,
  { id, call }: { id: number; call: SingleCall },
  outcome: Outcome,
  nowMs: number,
): void {
  state.removeCall(id);
  endWithoutAttempt(state, call, callResult(outcome), nowMs);
  state.addSharedOutcome({ call, outcome });
}

/** Ends a queued call without an attempt. False, with nothing changed, if the call is not queued (any more). */
export function endCall(state: EngineState, callId: string, reason: Reason, nowMs: number): boolean {
  for (const [position, call] of state.calls) {
    if (call.callId !== callId) continue;
    state.removeCall(position);
    state.queue.remove((groupSeq, id) => groupSeq === 0 && id === position);
    state.singleFlight.remove((follower) => follower.call === call);
    endWithoutAttempt(state, call, failed(reason), nowMs);
    return true;
  }
  return false;
}

/** Ends every queued call; returns them. */
export function endCalls(state: EngineState, reason: Reason, nowMs: number): SingleCall[] {
  const queued = [...state.calls];
  for (const [position, call] of queued) {
    endWithoutAttempt(state, call, failed(reason), nowMs);
    state.removeCall(position);
  }
  state.queue.remove((groupSeq) => groupSeq === 0);
  state.singleFlight.remove(({ call }) => call !== null);
  return queued.map(([, call]) => call);
}

function failed(reason: Reason): CallResult {
  return { status: "failed", reason, model: null, finishReason: null };
}
