/**
 * Settlements of calls that were answered already. Nobody waits for them, so each waits a moment for another call of its
 * run that asks for a permit from this isolate, and travels with it: half of the run object's calls are saved. They are
 * data: should the isolate end first, a lease ends as lost and stays charged, which is too much and never too little.
 */
import type { RunCaller } from "../../durable-objects/again.ts";
import type { SingleSettlement } from "../../durable-objects/run/rpc.ts";
import { PASS_SETTLE_LAG_MS } from "../limits.ts";

const waiting = new Map<string, SingleSettlement[]>();

/** Takes what waits for a run's next call. */
export function takeSettlements(runId: string): SingleSettlement[] {
  const taken = waiting.get(runId) ?? [];
  waiting.delete(runId);
  return taken;
}

/** Returns settlements that did not arrive. */
export function returnSettlements(runId: string, settlements: readonly SingleSettlement[]): void {
  if (settlements.length === 0) return;
  const known = waiting.get(runId);
  if (known === undefined) waiting.set(runId, [...settlements]);
  else known.push(...settlements);
}

/** Tells a settlement soon; resolves once it has been taken along or told by itself. */
export async function settleSoon(run: RunCaller, runId: string, settlement: SingleSettlement): Promise<void> {
  returnSettlements(runId, [settlement]);
  await scheduler.wait(PASS_SETTLE_LAG_MS);
  if (waiting.get(runId)?.includes(settlement) !== true) return;
  const settlements = takeSettlements(runId);
  await run.untilAnswered<void>((stub) => stub.settleMany(settlements));
}
