/**
 * Settlements of calls whose clients already have their answer, in this isolate: they wait for a request to their run that takes them
 * along. Those that are sent count until the run has acknowledged them, so that whoever reads its figures can settle them first.
 */
import type { SingleSettlement } from "../methods/calls.ts";
import type { RunCaller, RunStub } from "./caller.ts";
import { RenewedSet } from "../../renewed/set.ts";

export type Outbox = {
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

/** Adds a settlement. It waits until a request of the run takes it along: see to it that there is one. */
export function addSettlement(runId: string, settlement: SingleSettlement): void {
  const outbox = outboxOf(runId);
  outbox.waiting.push(settlement);
  outbox.addedAtMs = Date.now();
}

/** Whether settlements of the run wait. */
export function settlementsWait(runId: string): boolean {
  return (outboxes.get(runId)?.waiting.length ?? 0) > 0;
}

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
function returnSettlements(runId: string, settlements: readonly SingleSettlement[]): void {
  if (settlements.length === 0) return;
  const outbox = outboxOf(runId);
  for (const settlement of settlements) outbox.sent.delete(settlement);
  outbox.waiting.push(...settlements);
}

/** Settlements that were sent, but are not acknowledged. */
export function unacknowledged(runId: string): SingleSettlement[] {
  return [...(outboxes.get(runId)?.sent ?? [])];
}

/** Makes a call to the run object that takes along the settlements that wait in this isolate. */
export async function withSettlements<T>(
  run: RunCaller,
  call: (stub: RunStub, taken: SingleSettlement[]) => PromiseLike<T>,
): Promise<T> {
  const taken = takeSettlements(run.runId);
  try {
    const reply = await run.callWithRetry<T>((stub) => call(stub, taken));
    settlementsArrived(run.runId, taken);
    return reply;
  } catch (error) {
    returnSettlements(run.runId, taken);
    throw error;
  }
}

/** The outbox of a run, also if it is empty: `settlementsArrived` drops one that is. */
export function outboxOf(runId: string): Outbox {
  const known = outboxes.get(runId);
  if (known !== undefined) return known;
  const outbox = { waiting: [], sent: new RenewedSet<SingleSettlement>(), senderSeenMs: null, addedAtMs: 0 };
  outboxes.set(runId, outbox);
  return outbox;
}
