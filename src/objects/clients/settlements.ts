/**
 * Settlements of calls whose clients already have their answer. They are sent with the next request for a permit of the
 * run, or by themselves after a moment. Should the isolate end first, the lease ends as lost and stays charged: too much,
 * never too little.
 *
 * A request that reads the run's figures first settles what is not acknowledged yet: settling twice changes nothing, and so
 * the figures contain every call that this isolate has answered.
 */
import type { Objects } from "../address.ts";
import type { SingleSettlement } from "../methods/calls.ts";
import { SETTLE_HANDOVER_MS, SETTLE_SEND_LAG_MS } from "../../limits.ts";
import { RunCaller } from "./caller.ts";
import { creditRun, credits } from "./credit/instance.ts";
import { RenewedSet } from "../../renewed/set.ts";

type Outbox = {
  /** Not sent yet. */
  waiting: SingleSettlement[];
  /** Sent, but not acknowledged. */
  sent: RenewedSet<SingleSettlement>;
  /** When the request that sends what is waiting has last looked, epoch ms; null = no request does. */
  senderSeenMs: number | null;
  /** When a settlement was last added, epoch ms. */
  addedAtMs: number;
};

/** Outboxes that are not empty, by run. */
const outboxes = new Map<string, Outbox>();

/** Takes the waiting settlements, to be sent with another call of the run. Call `settlementsArrived` or `returnSettlements` after it. */
export function takeSettlements(runId: string): SingleSettlement[] {
  const outbox = outboxes.get(runId);
  if (outbox === undefined) return [];
  const taken = outbox.waiting;
  outbox.waiting = [];
  for (const settlement of taken) outbox.sent.add(settlement);
  return taken;
}

/** The run has committed these settlements. */
export function settlementsArrived(runId: string, settlements: readonly SingleSettlement[]): void {
  const outbox = outboxes.get(runId);
  if (outbox === undefined) return;
  for (const settlement of settlements) outbox.sent.delete(settlement);
  if (outbox.sent.size === 0 && outbox.waiting.length === 0 && outbox.senderSeenMs === null) outboxes.delete(runId);
}

/** Returns settlements that may not have arrived: they are sent with the next. */
export function returnSettlements(runId: string, settlements: readonly SingleSettlement[]): void {
  if (settlements.length === 0) return;
  const outbox = outboxOf(runId);
  for (const settlement of settlements) outbox.sent.delete(settlement);
  outbox.waiting.push(...settlements);
}

/**
 * Sends a settlement with the run's next request for a permit, or by itself when none follows soon. Resolves once this
 * request need not live on for it: await it in `waitUntil`.
 */
export async function settleSoon(run: RunCaller, settlement: SingleSettlement): Promise<void> {
  const { runId } = run;
  const outbox = outboxOf(runId);
  const nowMs = Date.now();
  outbox.waiting.push(settlement);
  outbox.addedAtMs = nowMs;
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
    await credits.giveBack(creditRun(run, (settlement) => outboxOf(runId).waiting.push(settlement)));
  }
  const outbox = outboxes.get(runId);
  if (outbox === undefined) return;
  takeSettlements(runId);
  if (outbox.sent.size > 0) await send(new RunCaller(objects, runId), [...outbox.sent]);
}

async function send(run: RunCaller, settlements: SingleSettlement[]): Promise<void> {
  try {
    await run.callWithRetry<void>((stub) => stub.settleMany(settlements));
  } finally {
    // One that could not be delivered after all retries is given up: its lease ends as lost.
    settlementsArrived(run.runId, settlements);
  }
}

function outboxOf(runId: string): Outbox {
  const known = outboxes.get(runId);
  if (known !== undefined) return known;
  const outbox = { waiting: [], sent: new RenewedSet<SingleSettlement>(), senderSeenMs: null, addedAtMs: 0 };
  outboxes.set(runId, outbox);
  return outbox;
}
