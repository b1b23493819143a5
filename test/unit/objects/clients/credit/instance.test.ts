/** What leaves with a report of credit: the settlements that wait in this instance, which arrive once or are settled otherwise. */
import { expect, it } from "vitest";
import { RunCaller } from "../../../../../src/objects/clients/caller.ts";
import { creditRun } from "../../../../../src/objects/clients/credit/instance.ts";
import { addSettlement, takeSettlements, unacknowledged } from "../../../../../src/objects/clients/outbox.ts";
import type { SingleSettlement } from "../../../../../src/objects/methods/calls.ts";
import type { CreditReportReply } from "../../../../../src/objects/methods/credit.ts";
import { success } from "../../../../support/engine.ts";

const REPORT = { creditId: "credit", number: 1, calls: [], returns: false };
const SETTLEMENT: SingleSettlement = { attemptId: "call.1", outcome: success(), stored: null };

/** A run whose object replies so to a report, and one settlement that waits for it. */
function reportingTo(runId: string, reply: () => Promise<CreditReportReply>) {
  const received: SingleSettlement[][] = [];
  const object = {
    reportCredit: (_: unknown, settlements: SingleSettlement[]) => {
      received.push(settlements);
      expect(unacknowledged(runId)).toEqual([SETTLEMENT]);
      return reply();
    },
  };
  const names = { idFromString: (name: string) => name, idFromName: (name: string) => name };
  const settled: SingleSettlement[] = [];
  const caller = new RunCaller({ RUN: { ...names, get: () => object } } as never, runId);
  addSettlement(runId, SETTLEMENT);
  return { run: creditRun(caller, (settlement) => settled.push(settlement)), received, settled };
}

it("a report takes along what waits, which is settled once the object has replied", async () => {
  const { run, received, settled } = reportingTo("run_settles", () =>
    Promise.resolve({ kind: "ended", settles: true }),
  );
  expect(run.settlementsWait()).toBe(true);
  await run.reportCredit(REPORT);
  expect([received, settled, run.settlementsWait()]).toEqual([[[SETTLEMENT]], [], false]);
  expect(unacknowledged("run_settles")).toEqual([]);
});

it("what an object of an earlier version has not read is settled by itself", async () => {
  const { run, settled } = reportingTo("run_earlier", () => Promise.resolve({ kind: "ended" }));
  await run.reportCredit(REPORT);
  expect(settled).toEqual([SETTLEMENT]);
});

it("what came with a report that fails waits for the next one", async () => {
  const { run, settled } = reportingTo("run_fails", () => Promise.reject(new TypeError("a bug")));
  await expect(run.reportCredit(REPORT)).rejects.toThrow("a bug");
  expect([settled, takeSettlements("run_fails")]).toEqual([[], [SETTLEMENT]]);
});
