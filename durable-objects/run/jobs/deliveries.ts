/** Jobs that tell the operator's services, the gates and the list of runs what happens in the run. */
import { owedGates } from "../../../src/run/steps/metered.ts";
import { LOST_CALL_MS } from "../../../src/limits.ts";
import { hasEnded } from "../status.ts";
import type { MakeJob } from "./job.ts";

export const exportLog: MakeJob = ({ host }) => ({
  name: "export the log",
  patience: "late",
  dueAtMs: (_, nowMs) => after(host.logExport?.delayMs(nowMs) ?? null, nowMs),
  start: () => host.logExport?.start(),
});

export const notifyWebhook: MakeJob = ({ host }) => ({
  name: "notify the webhook",
  patience: "pressing",
  dueAtMs: (_, nowMs) => after(host.webhooks.delayMs(nowMs), nowMs),
  start: () => host.webhooks.start(),
});

export const reportMeters: MakeJob = ({ host }) => ({
  name: "report to gates",
  patience: "late",
  // By then an exchange for the calls that come next has told the gate, or there are none.
  dueAtMs: ({ status, engine }, nowMs) =>
    !hasEnded(status) && owedGates(engine).length > 0 ? nowMs + LOST_CALL_MS : null,
  act: (run) => host.meters.report(run),
});

export const reportSummary: MakeJob = ({ host }) => ({
  name: "report to the list of runs",
  patience: "late",
  dueAtMs: () => null,
  act: () => host.reportSummary(),
});

function after(delayMs: number | null, nowMs: number): number | null {
  return delayMs === null ? null : nowMs + delayMs;
}
