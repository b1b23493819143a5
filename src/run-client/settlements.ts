/**
 * Settlements of calls whose clients already have their answer. Each is sent at once, unless another of its run is being
 * sent from this isolate: then it is sent with the next, or with a call that requests a permit. Should the isolate end
 * first, the lease ends as lost and stays charged: too much, never too little.
 *
 * A request that reads the run's figures first settles what is not acknowledged yet: settling twice changes nothing, and so
 * the figures contain every call that this isolate has answered.
 */
import type { Objects } from "../../durable-objects/address.ts";
import type { SingleSettlement } from "../run-api/calls.ts";
import { RELAY_SETTLE_LAG_MS } from "../limits.ts";
import { RunCaller } from "./caller.ts";

/** `waiting` have not been sent; `sent` have, but are not acknowledged. */
type Outbox = { waiting: SingleSettlement[]; sent: Set<SingleSettlement>; isSending: boolean };

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
  if (outbox.sent.size === 0 && outbox.waiting.length === 0 && !outbox.isSending) outboxes.delete(runId);
}

/** Returns settlements that may not have arrived: they are sent with the next. */
export function returnSettlements(runId: string, settlements: readonly SingleSettlement[]): void {
  if (settlements.length === 0) return;
  const outbox = outboxOf(runId);
  for (const settlement of settlements) outbox.sent.delete(settlement);
  outbox.waiting.push(...settlements);
}

/** Sends a settlement; resolves once it has arrived or another call has taken it. */
export async function settleNow(run: RunCaller, settlement: SingleSettlement): Promise<void> {
  const { runId } = run;
  const outbox = outboxOf(runId);
  outbox.waiting.push(settlement);
  if (outbox.isSending) {
    // The request that is sending takes it along. Should that request end first, it is sent from here.
    await scheduler.wait(RELAY_SETTLE_LAG_MS);
    if (!outbox.waiting.includes(settlement)) return;
  }
  outbox.isSending = true;
  try {
    while (outbox.waiting.length > 0) await send(run, takeSettlements(runId));
  } finally {
    outbox.isSending = false;
    settlementsArrived(runId, []);
  }
}

/** Resolves once the run has every settlement that this isolate knows of. Costs nothing if it knows of none. */
export async function settled(objects: Objects, runId: string): Promise<void> {
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
  const outbox = { waiting: [], sent: new Set<SingleSettlement>(), isSending: false };
  outboxes.set(runId, outbox);
  return outbox;
}
