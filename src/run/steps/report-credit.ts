/**
 * What an instance reports of its credit: calls that it has started, and how they ended. Each becomes an attempt of the
 * run, with the log, totals and coalescing windows of any other. One that is still in flight leaves the credit with its
 * reservation; one that has ended uses of the credit only what it cost.
 */
import { DIMENSIONS, type Amounts } from "../money/ledger.ts";
import { CREDIT_TTL_MS } from "../../limits.ts";
import type { CallFacts } from "../../call.ts";
import type { SingleCall } from "../leases/single-call.ts";
import { leaseFor, type Start } from "./dispatch.ts";
import { settle } from "./settle.ts";
import type { Target } from "../leases/shard.ts";
import type { EngineState } from "../state.ts";
import { sampled } from "./exchange.ts";
import { meterLost } from "./metered.ts";
import { mustReturn, refill, setLeft } from "./lend-credit.ts";
import { reservationId, type Credit, type CreditedCall, type CreditReport } from "../credit.ts";

export type ReportEnd = "continue" | "recalled" | "ended";

/** Applies a report, once. `targetOf` resolves a call's model as the run's rules did when the credit was opened. */
export function applyReport(
  state: EngineState,
  report: CreditReport,
  targetOf: (facts: CallFacts) => Target,
  nowMs: number,
): ReportEnd {
  const credit = state.credits.get(report.creditId);
  if (credit === undefined) return "ended";
  credit.expiresAtMs = nowMs + CREDIT_TTL_MS;
  if (report.number > credit.reports) {
    // The ledger learns at the end what is left: for each change it would end the credit's reservation and make it anew.
    const left = { ...credit.left };
    for (const change of changesOf(report.calls)) applyChange(state, { id: credit.id, left }, change, targetOf, nowMs);
    setLeft(state, credit, left);
    // What is in flight is an attempt from now on, and has a permit as such.
    const inFlight = report.calls.filter(({ ended }) => ended === null).length;
    const permits = Math.max(0, credit.permits - inFlight);
    state.window.reportedUntil(credit.id, nowMs);
    state.credits.put({ ...credit, permits, reports: report.number });
  }
  if (report.returns) {
    endCredit(state, credit.id);
    return "ended";
  }
  const current = state.credits.get(credit.id) ?? credit;
  if (mustReturn(state, current, nowMs)) return "recalled";
  refill(state, current);
  return "continue";
}

/** Releases what is left of a credit. */
function endCredit(state: EngineState, creditId: string): void {
  state.ledger.release(reservationId(creditId));
  state.credits.remove(creditId);
  state.window.reportedUntil(creditId, Infinity);
}

/** Ends credits whose instances have not reported in time: what they hold stays charged. Returns how many. */
export function expireCredits(state: EngineState, nowMs: number): number {
  const expired = [...state.credits.all()].filter(({ expiresAtMs }) => expiresAtMs <= nowMs);
  for (const credit of expired) {
    const charged = credit.left;
    endCredit(state, credit.id);
    const shard = state.chargeLost(charged);
    const [gate] = credit.upstreams;
    if (gate !== undefined) meterLost(state, shard, gate, charged);
    state.log.add({ event: "credit_lost", charged }, null, nowMs);
  }
  return expired.length;
}

/** The start or the end of a call. `rank` orders those of the same time. */
type Change = { agoMs: number; rank: number; isStart: boolean; call: CreditedCall };

/** The changes in the order in which they happened. An end frees its permit for a start at the same time. */
function changesOf(calls: readonly CreditedCall[]): Change[] {
  const changes: Change[] = [];
  for (const call of calls) {
    const { startedAgoMs, ended } = call;
    changes.push({ agoMs: startedAgoMs, rank: 1, isStart: true, call });
    if (ended === null) continue;
    // A call ends after its start, whatever the clock of its instance says.
    const agoMs = Math.min(ended.agoMs, startedAgoMs);
    changes.push({ agoMs, rank: agoMs === startedAgoMs ? 2 : 0, isStart: false, call });
  }
  return changes.sort((a, b) => b.agoMs - a.agoMs || a.rank - b.rank);
}

/** A credit whose report is applied: its id, and what each change leaves of it. */
type Reported = Pick<Credit, "id" | "left">;

function applyChange(
  state: EngineState,
  credit: Reported,
  { agoMs, isStart, call }: Change,
  targetOf: (facts: CallFacts) => Target,
  nowMs: number,
): void {
  const atMs = nowMs - Math.max(0, agoMs);
  if (isStart) return start(state, credit, { call, target: targetOf(call.facts), reportedAtMs: nowMs }, atMs);
  if (call.ended === null) return;
  if (call.ended.samples !== undefined) sampled(state, call.ended.samples, atMs);
  const settled = settle(state, attemptIdOf(call), call.ended.outcome, atMs);
  // What it did not cost goes back to the credit. An upstream that billed more than was reserved takes it from there.
  change(state, credit, (dimension) => call.amounts[dimension] - (settled?.charge[dimension] ?? 0));
}

function start(
  state: EngineState,
  credit: Reported,
  { call, target, reportedAtMs }: { call: CreditedCall; target: Target; reportedAtMs: number },
  atMs: number,
): void {
  const { callId, facts, onLost, capTokens, capKind, label, amounts } = call;
  // The times of its window count from the report, however long ago it started.
  const { group: window, position: windowPosition } = state.window.joinReported(credit.id, label, reportedAtMs);
  const single: SingleCall = {
    ...{ callId, attempt: 1, facts, target, deadlineMs: null, onLost },
    ...{ queuedAtMs: atMs, window, windowPosition },
  };
  const attempt: Start = {
    attemptId: attemptIdOf(call),
    attempt: 1,
    slotId: null,
    facts,
    target,
    queuedAtMs: atMs,
    onLost,
  };
  const lease = leaseFor(attempt, { amounts, capTokens, capKind }, atMs);
  change(state, credit, (dimension) => -amounts[dimension]);
  state.ledger.restore(lease.attemptId, amounts);
  state.begin(lease, null, single, atMs);
}

function attemptIdOf({ callId }: CreditedCall): string {
  return `${callId}.1`;
}

/** Changes what is left in the dimensions that the run limits: in the others credit is not counted. */
function change({ ledger }: EngineState, { left }: Reported, by: (dimension: keyof Amounts) => number): void {
  for (const dimension of DIMENSIONS)
    if (ledger.limits[dimension] !== null) left[dimension] = Math.max(0, left[dimension] + by(dimension));
}
