/** What happens when an attempt ends: its reservation settles, then its slot ends or is queued again. */
import { chargeOf } from "../budget/estimate.ts";
import { addAmounts, zeroAmounts, type Amounts } from "../budget/ledger.ts";
import type { Outcome } from "../call.ts";
import type { Dimension, Reason } from "../errors.ts";
import { BATCH_ATTEMPTS_MAX, BATCH_FAILED_ATTEMPTS_MAX, LEASE_TTL_MS, RETRY_AFTER_MAX_MS } from "../limits.ts";
import type { Group } from "./group.ts";
import { land } from "./land.ts";
import { attemptEnd, attemptName, callName, resultOf, type RunEvent } from "./log.ts";
import { afterFailure, lineOf, tellSlotEnd } from "./open.ts";
import { addAttempt, freshRecord } from "./record.ts";
import { retryDelayMs } from "./retry.ts";
import type { AttemptInFlight } from "./shard.ts";
import { indexOf } from "./slot.ts";
import type { EngineState, InFlight, SingleCall } from "./state.ts";
import { addModel } from "./totals.ts";

type Ended = {
  outcome: Outcome;
  charge: Amounts;
  estimated: boolean;
  retryInMs: number | null;
  lease: AttemptInFlight;
};

/** What settling told. */
export type Settled = {
  /** Delay until the call may be tried again, or null when it has ended. */
  retryInMs: number | null;
  charge: Amounts;
  /** True when the charge is the reservation because nobody knows what the attempt cost. */
  estimated: boolean;
  queuedMs: number;
  /** For single calls: the parallel group that the call turned out to belong to. */
  parallelGroupId: string | null;
};

/** How an attempt ended whose executor stopped sending heartbeats. */
export const LOST: Reason = {
  reason: "upstream_error",
  upstream: "",
  status: null,
  message: "the executor of this call was lost before it reported an answer",
  retryable: true,
};

/** Records an attempt's outcome. Null, with nothing changed, for an attempt that is not in flight: it settled or expired. */
export function settle(state: EngineState, attemptId: string, outcome: Outcome, nowMs: number): Settled | null {
  const inFlight = state.attempts.get(attemptId);
  if (inFlight === undefined) return null;
  const { lease, shard, call } = inFlight;
  const { charge, estimated } = chargeFor(outcome, lease);
  const over = endAttempt(state, inFlight, { charge, estimated, latencyMs: outcome.latencyMs }, nowMs);
  const group = state.groupOf(lease);
  const home = call ?? group;
  home?.window?.attemptEnded(outcome.latencyMs, charge.usd);
  const parallelGroupId = call?.window?.id ?? group?.parallelGroupId ?? null;
  const tell = (event: RunEvent): number => state.log.add(event, parallelGroupId, nowMs);
  const name = attemptName(lease, group);
  tell(attemptEnd(name, { outcome, charged: charge, estimated }));
  if (over.length > 0) {
    tell({ event: "overrun", ...name, dimensions: over, reserved: lease.amounts, charged: charge });
  }

  if (outcome.kind === "failure" && outcome.class === "rate_limited") {
    const hintMs = outcome.retryAfterMs ?? 0;
    // One Retry-After holds for every call of the run to that upstream: the others would be turned away as well. One too
    // long to be obeyed holds for none: it ends each call that meets it, instead of parking the run for hours.
    const upstream = state.upstream(lease.target);
    if (hintMs <= RETRY_AFTER_MAX_MS) upstream.coolUntilMs = Math.max(upstream.coolUntilMs, nowMs + hintMs);
    tell({ event: "throttled", upstream: lease.target.upstream, retryAfterMs: hintMs });
  }
  const retryInMs = retryIn(state, outcome, lease, group);
  if (retryInMs === null) shard.totals[outcome.kind === "success" ? "completed" : "failed"] += 1;
  else if (outcome.kind === "failure") {
    const next = { ...callName(lease, group), attempt: lease.attempt + 1, delayMs: retryInMs };
    tell({ event: "retry_scheduled", ...next, reason: outcome.reason });
  }
  const ended = { outcome, charge, estimated, retryInMs, lease };
  if (group !== undefined && lease.slotId !== null) advanceSlot(state, group, lease.slotId, ended, nowMs);
  else if (retryInMs === null) endSingle(call, tell, ended, nowMs);
  else if (call?.window != null) state.window.keepPlace(call.callId, call.window);
  // A single call's retry is its Worker's to make: those who wait for its answer do not wait for that.
  if (lease.dedupeKey !== null && (retryInMs === null || lease.slotId === null)) {
    land(state, { key: lease.dedupeKey, lease, outcome, final: retryInMs === null }, nowMs);
  }
  return { retryInMs, charge, estimated, queuedMs: lease.queuedMs, parallelGroupId };
}

/** Tells how a single call ended. What its earlier attempts cost is in their own events. */
function endSingle(call: SingleCall | null, tell: (event: RunEvent) => void, ended: Ended, nowMs: number): void {
  const { outcome, charge, lease } = ended;
  call?.window?.callEnded(outcome.kind === "success", nowMs);
  const usage = {
    promptTokens: charge.prompt_tokens,
    completionTokens: charge.completion_tokens,
    costNanoUsd: charge.usd,
  };
  const times = { startedAtMs: lease.startedAtMs, endedAtMs: nowMs };
  tell({
    event: "slot_completed",
    ...callName(lease, undefined),
    ...resultOf(outcome),
    attempts: lease.attempt,
    usage,
    ...times,
  });
}

/** Extends the leases of an executor that is alive. Returns the ids that are not (or no longer) its own to run. */
export function heartbeat(state: EngineState, attemptIds: readonly string[], nowMs: number): string[] {
  const unknown: string[] = [];
  for (const attemptId of attemptIds) {
    const inFlight = state.attempts.get(attemptId);
    if (inFlight === undefined) unknown.push(attemptId);
    else inFlight.lease.expiresAtMs = nowMs + LEASE_TTL_MS;
  }
  return unknown;
}

/** Ends the leases whose time is over: what became of them is unknown. Returns how many. */
export function expireLeases(state: EngineState, nowMs: number): number {
  const over = [...state.attempts.values()].filter(({ lease }) => lease.expiresAtMs <= nowMs);
  for (const inFlight of over) lose(state, inFlight, nowMs);
  return over.length;
}

/** Ends attempts that nobody makes any more. Those that are not in flight are left as they are. */
export function loseAttempts(state: EngineState, attemptIds: readonly string[], nowMs: number): void {
  for (const attemptId of attemptIds) {
    const inFlight = state.attempts.get(attemptId);
    if (inFlight !== undefined) lose(state, inFlight, nowMs);
  }
}

function lose(state: EngineState, { lease }: InFlight, nowMs: number): void {
  const latencyMs = Math.max(0, nowMs - lease.startedAtMs);
  const lost: Outcome = { kind: "failure", class: "unknown", reason: LOST, retryAfterMs: null, latencyMs };
  settle(state, lease.attemptId, lost, nowMs);
}

/** What an attempt is charged, by the contract's rule 5 of a hard budget. */
function chargeFor(outcome: Outcome, lease: AttemptInFlight): { charge: Amounts; estimated: boolean } {
  if (outcome.kind === "success" && outcome.usage !== null) {
    const charge = chargeOf(outcome.usage, lease.target.price);
    // The configuration may have lost the price since the reservation was made: then nobody knows what the tokens cost.
    const unpriced = lease.target.price === null && lease.amounts.usd > 0 && outcome.usage.costNanoUsd === null;
    return unpriced ? { charge: { ...charge, usd: lease.amounts.usd }, estimated: true } : { charge, estimated: false };
  }
  const unknown = outcome.kind === "success" || outcome.class === "unknown";
  return unknown ? { charge: { ...lease.amounts }, estimated: true } : { charge: zeroAmounts(), estimated: false };
}

/**
 * Attempts of a call that runs in the background. It has time: being turned away, or lost with its executor, says nothing
 * of the call itself, and what else went wrong is given a few more tries than those had used up.
 */
function patience(outcome: Extract<Outcome, { kind: "failure" }>, attemptsMax: number): number {
  const blameless = outcome.class === "rate_limited" || outcome.reason === LOST;
  return Math.max(attemptsMax, blameless ? BATCH_ATTEMPTS_MAX : BATCH_FAILED_ATTEMPTS_MAX);
}

function endAttempt(
  state: EngineState,
  inFlight: InFlight,
  ended: { charge: Amounts; estimated: boolean; latencyMs: number },
  nowMs: number,
): Dimension[] {
  const { lease, shard } = inFlight;
  const over = state.ledger.settle(lease.attemptId, ended.charge);
  if (over === null) throw new Error(`attempt ${lease.attemptId} is in flight without a reservation`);
  const { totals } = shard;
  totals.busyMs += state.removeInFlight(inFlight, nowMs);
  addAmounts(totals.spent, ended.charge);
  totals.attempts += 1;
  totals.sequentialMs += ended.latencyMs;
  if (lease.attempt > 1) totals.retries += 1;
  if (ended.estimated) totals.estimated += 1;
  if (over.length > 0) totals.overruns += 1;
  if (ended.charge.calls > 0) {
    const { usd: costNanoUsd, calls, prompt_tokens: promptTokens, completion_tokens: completionTokens } = ended.charge;
    const { upstream, model } = lease.target;
    addModel(totals.models, `${upstream}/${model}`, { calls, promptTokens, completionTokens, costNanoUsd });
  }
  return over;
}

function advanceSlot(state: EngineState, group: Group, slotId: number, ended: Ended, nowMs: number): void {
  const { outcome, charge, retryInMs, lease } = ended;
  const record = state.tried.get(slotId) ?? freshRecord(slotId);
  addAttempt(record, { ...ended, attempt: lease.attempt, queuedMs: lease.queuedMs });
  group.sequentialMs += outcome.latencyMs;
  group.costNanoUsd += charge.usd;
  if (retryInMs !== null) {
    record.notBeforeMs = nowMs + retryInMs;
    group.step(indexOf(slotId), "queued", nowMs);
    state.queue.delay(lineOf(state, group, state.deps.factsOf(slotId)), slotId, record.notBeforeMs);
    state.writeSlot(record);
    return;
  }
  record.state = outcome.kind === "success" ? "completed" : failureState(outcome.reason, group, indexOf(slotId));
  group.step(indexOf(slotId), record.state, nowMs);
  state.writeSlot(record);
  tellSlotEnd(state, group, record, { startedAtMs: lease.startedAtMs, endedAtMs: nowMs });
  if (record.state === "failed") afterFailure(state, group, nowMs);
  if (group.done) state.writeGroup(group);
}

/** What was stopped by itself or with its group was cancelled; whatever else went wrong, it failed. */
function failureState({ reason }: Reason, { drained, stopped }: Group, index: number): "cancelled" | "failed" {
  return reason === "cancelled" && (drained?.cause === "cancel" || stopped.has(index)) ? "cancelled" : "failed";
}

function retryIn(
  state: EngineState,
  outcome: Outcome,
  lease: AttemptInFlight,
  group: Group | undefined,
): number | null {
  if (outcome.kind === "success" || (group !== undefined && group.drained !== null)) return null;
  // Nobody waits for what was stopped.
  if (outcome.reason.reason === "cancelled") return null;
  if (outcome.class === "unknown" && lease.onLost === "fail") return null;
  const { attempt, target } = lease;
  const attemptsMax = group?.header.background === true ? patience(outcome, target.attemptsMax) : target.attemptsMax;
  return retryDelayMs(
    { class: outcome.class, attempt, attemptsMax, retryAfterMs: outcome.retryAfterMs },
    state.deps.random(),
  );
}
