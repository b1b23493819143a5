/** Ending a run: nothing of it starts any more, and a cancelled one gives up what is in flight. */
import { giveUp } from "../../src/engine/cancel.ts";
import { drainGroup, endCalls } from "../../src/engine/open.ts";
import type { Reason } from "../../src/errors.ts";
import type { RunCore } from "./core.ts";
import { hasEnded, type EndStatus } from "./settings.ts";
import type { RunStore } from "./store.ts";
import { abortTools } from "./tool-calls.ts";

/** What calls that still wait when their run's time is over get, as those that come later do. */
const EXPIRED: Reason = { reason: "invalid_api_key", message: "the run has expired; open another" };

/**
 * Ends the run. `cancelled` also gives up what is in flight, whose cost is then unknown; it may follow on `closed` and
 * `expired`. Ending it again the same way changes nothing.
 */
export function endRun(core: RunCore, store: RunStore, status: EndStatus, nowMs: number): void {
  if (core.status === "cancelled" || (hasEnded(core.status) && status !== "cancelled")) return;
  const endedAtMs = core.endedAtMs ?? nowMs;
  core.status = status;
  core.endedAtMs = endedAtMs;
  core.state.paused = false;
  core.writes.push(() => {
    store.putStatus(status);
    store.putEnded(endedAtMs);
  });
  core.state.log.add({ event: "run_closed", status }, null, nowMs);
  const reason: Reason = status === "expired" ? EXPIRED : { reason: "cancelled", message: `the run was ${status}` };
  endQueued(core, reason, nowMs);
  if (status !== "cancelled") return;
  giveUp(core.state, () => true, reason, nowMs);
  abortTools(core, reason, nowMs);
}

/** Ends what is queued. What runs ends by itself. */
function endQueued(core: RunCore, reason: Reason, nowMs: number): void {
  const { state, singles, remainingNanoUsd } = core;
  for (const seq of [...core.open.keys()]) {
    const group = state.groups.get(seq);
    if (group !== undefined) drainGroup(state, group, { state: "cancelled", reason, cause: "cancel" }, nowMs);
  }
  for (const { callId } of endCalls(state, reason, nowMs))
    singles.answer(callId, { ok: false, reason, remainingNanoUsd });
  core.tools.refuseWaiting();
}
