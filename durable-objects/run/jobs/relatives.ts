/** Jobs between a run, its children and the holder of its budget. */
import { zeroAmounts } from "../../../src/run/money/ledger.ts";
import { NOTIFY_RETRY_MS } from "../../../src/limits.ts";
import { hasEnded } from "../status.ts";
import { endChildren } from "../tree/notify.ts";
import type { Around, MakeJob } from "./job.ts";

export const endAbandonedChildren: MakeJob = (around) => ({
  name: "end children that were never opened",
  patience: "late",
  dueAtMs: ({ children }) => children.nextDueMs(),
  act: ({ children }) => end(around, children.abandoned(Date.now()), "cancelled"),
});

export const notifyChildren: MakeJob = (around) => ({
  name: "end the children of an ended run",
  patience: "pressing",
  dueAtMs: ({ mustNotifyChildren }, nowMs) => (mustNotifyChildren ? nowMs : null),
  act: async (run) => {
    const { status } = run;
    if (!hasEnded(status) || !run.mustNotifyChildren) return;
    await end(around, run.children.open, status);
    run.childrenNotified(status);
  },
});

export const reportSpent: MakeJob = ({ host }) => ({
  name: "report what the run spent",
  patience: "pressing",
  dueAtMs: ({ mustReport }, nowMs) => (mustReport ? nowMs : null),
  act: () => host.report(),
});

export const settleReservation: MakeJob = ({ host }) => ({
  name: "settle a reservation in doubt",
  patience: "late",
  dueAtMs: ({ isReservationInDoubt }, nowMs) => (isReservationInDoubt ? nowMs + NOTIFY_RETRY_MS : null),
  act: async (run) => {
    if (run.isReservationInDoubt) await host.patches.settleReservation(run);
  },
});

function end({ objects, host }: Around, ids: readonly string[], status: Parameters<typeof endChildren>[2]) {
  return endChildren(objects, ids, status, (childId) => host.childEnded(childId, zeroAmounts(), zeroAmounts()));
}
