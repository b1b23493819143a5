/** Ending a run: no call of it starts any more, and a cancelled run aborts the attempts in flight. */
import { endCalls } from "../../src/run/steps/end-call.ts";
import { stopAttempts } from "../../src/run/steps/cancel.ts";
import { drainGroup } from "../../src/run/steps/end-slot.ts";
import type { Reason } from "../../src/errors.ts";
import type { EndStatus } from "../../src/objects/methods/runs.ts";
import type { RunState } from "./state.ts";
import { endReason } from "./status.ts";
import { abortTools, refuseWaitingTools } from "./tool-calls.ts";

/**
 * Ends the run. `cancelled` also aborts what is in flight, whose cost is then unknown; it may follow on `closed` and
 * `expired`. Ending the run once more the same way changes nothing.
 */
export function endRun(run: RunState, status: EndStatus, nowMs: number): void {
  if (!run.end(status, nowMs)) return;
  const reason = endReason(status);
  endQueued(run, reason, nowMs);
  // No call can join its last group of single calls any more.
  run.engine.window.flush();
  run.engine.credits.recall();
  if (status !== "cancelled") return;
  stopAttempts(run.engine, () => true, reason, nowMs);
  abortTools(run, reason, nowMs);
}

/** Ends what is queued. What is in flight ends by itself. */
function endQueued(run: RunState, reason: Reason, nowMs: number): void {
  const { engine, waitingCalls, remainingNanoUsd } = run;
  for (const seq of [...run.openGroups.keys()]) {
    const group = engine.groups.get(seq);
    if (group !== undefined) drainGroup(engine, group, { state: "cancelled", reason, cause: "cancel" }, nowMs);
  }
  for (const { callId } of endCalls(engine, reason, nowMs))
    waitingCalls.end(callId, { ok: false, reason, remainingNanoUsd });
  refuseWaitingTools(run);
}
