/** The jobs of the run's alarm, in the order in which they are done. */
import { exportLog, notifyWebhook, reportMeters, reportSummary } from "./deliveries.ts";
import {
  cancelUnfollowed,
  cutPlans,
  deleteRun,
  dropUploads,
  endLeases,
  expireRun,
  freeToolPermits,
} from "./endings.ts";
import { abortAttempts, notifyProviders, startMissingLanes, startWaiting } from "./executors.ts";
import type { MakeJob } from "./job.ts";
import { endAbandonedChildren, notifyChildren, reportSpent, settleReservation } from "./relatives.ts";

/** The order matters: what a job changes or reports, the ones after it find so. */
export const JOBS: readonly MakeJob[] = [
  exportLog,
  notifyWebhook,
  startWaiting,
  abortAttempts,
  endLeases,
  cancelUnfollowed,
  cutPlans,
  dropUploads,
  freeToolPermits,
  expireRun,
  startMissingLanes,
  notifyProviders,
  endAbandonedChildren,
  notifyChildren,
  reportSpent,
  reportMeters,
  settleReservation,
  deleteRun,
  reportSummary,
];
