/** The credits of this isolate, and the run object as they need it. */
import type { SingleSettlement } from "../../methods/calls.ts";
import type { CreditReportReply, OpenCreditReply } from "../../methods/credit.ts";
import type { RunCaller } from "../caller.ts";
import { InstanceCredits, type CreditRun } from "./credits.ts";

export const credits = new InstanceCredits({
  now: Date.now,
  wait: (ms) => scheduler.wait(ms),
  random: Math.random,
  newId: () => crypto.randomUUID(),
});

/** @param settle Settles an attempt that the run object knows, some time. */
export function creditRun(run: RunCaller, settle: (settlement: SingleSettlement) => unknown): CreditRun {
  return {
    runId: run.runId,
    openCredit: (request) => run.callWithRetry<OpenCreditReply | null>((stub) => stub.openCredit(request)),
    reportCredit: (report) => run.callWithRetry<CreditReportReply>((stub) => stub.reportCredit(report)),
    settle,
  };
}
