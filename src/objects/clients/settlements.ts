/**
 * Settlements are sent with the next request for a permit of the run, with the next report of the credit that this instance holds, or by
 * themselves after a moment. Should the isolate end first, the lease ends as lost and stays charged: too much, never too little.
 *
 * A request that reads the run's figures first settles what is not acknowledged yet: settling twice changes nothing, and so
 * the figures contain every call that this isolate has answered.
 */
import type { Objects } from "../address.ts";
import type { SingleSettlement } from "../methods/calls.ts";
import { SETTLE_HANDOVER_MS, SETTLE_SEND_LAG_MS } from "../../limits.ts";
import { RunCaller } from "./caller.ts";
import { creditRun, credits } from "./credit/instance.ts";
import { addSettlement, outboxOf, settlementsArrived, takeSettlements, unacknowledged } from "./outbox.ts";

/** Settles an attempt that the run knows, some time after its client has its answer. `waitUntil` keeps this request for it. */
export function settleSoon(
  run: RunCaller,
  settlement: SingleSettlement,
  waitUntil: (promise: Promise<unknown>) => void,
): void {
  addSettlement(run.runId, settlement);
  // The request that reports does so soon: another sender would cost the run a request and a commit more.
  if (!credits.takesSettlements(run.runId)) waitUntil(sendSoon(run));
}

/**
 * Sends what waits with the run's next request for a permit, or by itself when none follows soon. Resolves once this
 * request need not live on for it.
 */
async function sendSoon(run: RunCaller): Promise<void> {
  const { runId } = run;
  const outbox = outboxOf(runId);
  const nowMs = Date.now();
  // One request sends for all, because a timer costs as much as a call to the object. Should that request end before it
  // has sent everything, the next one finds that it has not looked for a while.
  if (outbox.senderSeenMs !== null && nowMs - outbox.senderSeenMs < SETTLE_HANDOVER_MS) return;
  outbox.senderSeenMs = nowMs;
  try {
    const untilMs = nowMs + SETTLE_HANDOVER_MS;
    do {
      await scheduler.wait(SETTLE_SEND_LAG_MS);
      outbox.senderSeenMs = Date.now();
      if (outbox.waiting.length === 0) return;
      // While calls keep coming, their requests for permits take the settlements along.
    } while (outbox.senderSeenMs - outbox.addedAtMs < SETTLE_SEND_LAG_MS / 2 && outbox.senderSeenMs < untilMs);
    while (outbox.waiting.length > 0) await send(run, takeSettlements(runId));
  } finally {
    outbox.senderSeenMs = null;
    settlementsArrived(runId, []);
  }
}

/**
 * Resolves once the run has every settlement that this isolate knows of, and the credit that it holds. Costs nothing if it
 * has none.
 */
export async function settled(objects: Objects, runId: string): Promise<void> {
  if (credits.has(runId)) {
    const run = new RunCaller(objects, runId);
    await credits.giveBack(creditRun(run, (settlement) => addSettlement(runId, settlement)));
  }
  takeSettlements(runId);
  const unsettled = unacknowledged(runId);
  if (unsettled.length > 0) await send(new RunCaller(objects, runId), unsettled);
}

async function send(run: RunCaller, settlements: SingleSettlement[]): Promise<void> {
  try {
    await run.callWithRetry<void>((stub) => stub.settleMany(settlements));
  } finally {
    // One that could not be delivered after all retries is given up: its lease ends as lost.
    settlementsArrived(run.runId, settlements);
  }
}
