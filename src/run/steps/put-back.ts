/** A permit that reaches nobody goes back, and its call is queued as before: its Worker may only be slow. */
import { zeroAmounts } from "../money/ledger.ts";
import type { Outcome } from "../../call.ts";
import { bucketOfCall, requeueFollowers } from "./enqueue.ts";
import { attemptEnd, attemptName } from "../log.ts";
import type { SingleCall } from "../leases/single-call.ts";
import { countCall, type EngineState, type InFlight } from "../state.ts";

/** How an attempt ends whose permit nobody takes. */
const UNTAKEN: Outcome = {
  kind: "failure",
  class: "rejected",
  unsent: true,
  reason: { reason: "cancelled", message: "its permit reached nobody; the call is queued again" },
  answered: false,
  retryAfterMs: null,
  latencyMs: 0,
};

/**
 * Takes back the permit of a single call that was sent to nobody: it costs nothing and uses up no attempt. The call is put aside until
 * its Worker is back. False, with nothing changed, if the call has no permit.
 */
export function putBack(state: EngineState, callId: string, nowMs: number): boolean {
  for (const inFlight of state.attempts.values()) {
    const { call } = inFlight;
    if (call?.callId !== callId) continue;
    undo(state, inFlight, call, nowMs);
    return true;
  }
  return false;
}

function undo(state: EngineState, inFlight: InFlight, call: SingleCall, nowMs: number): void {
  const { lease, shard } = inFlight;
  if (!state.ledger.release(lease.attemptId)) throw new Error(`attempt ${lease.attemptId} has no reservation`);
  shard.totals.busyMs += state.removeInFlight(inFlight, nowMs);
  if (lease.attempt === 1) countCall(shard, call, -1);
  lease.window?.attemptEnded(0, 0);
  const more = { charged: zeroAmounts(), estimated: false, trace: lease.trace, content: undefined };
  state.log.add(
    attemptEnd(attemptName(lease, undefined), { outcome: UNTAKEN, ...more }),
    lease.window?.id ?? null,
    nowMs,
  );
  requeueFollowers(state, state.singleFlight.end(call.callId));
  state.queue.addAside(bucketOfCall(call, call.queuedAtMs), state.addCall(call));
}
