/** The credits of this isolate, and the run object as they need it. */
import type { SingleSettlement } from "../../methods/calls.ts";
import type { CreditReportReply, OpenCreditReply } from "../../methods/credit.ts";
import type { RunCaller } from "../caller.ts";
import { settlementsWait, withSettlements } from "../outbox.ts";
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
    reportCredit: async (report) => {
      let settlements: readonly SingleSettlement[] = [];
      const reply = await withSettlements<CreditReportReply>(run, (stub, taken) => {
        settlements = taken;
        return stub.reportCredit(report, taken);
      });
      // Without `settles`, the object has read none of them.
      if (reply.settles !== true) for (const settlement of settlements) settle(settlement);
      return reply;
    },
    settlementsWait: () => settlementsWait(run.runId),
    settle,
  };
}
