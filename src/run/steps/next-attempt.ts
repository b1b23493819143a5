/** What follows a failed attempt: another one, when and where, or the end of its call. */
import type { Outcome } from "../../call.ts";
import { isRetryable } from "../../errors.ts";
import { BATCH_ATTEMPTS_MAX, BATCH_FAILED_ATTEMPTS_MAX, STOPPED_ATTEMPTS_MAX } from "../../limits.ts";
import { patienceOf, type SingleCall } from "../leases/single-call.ts";
import { gatesOf, timeoutOf } from "./dispatch.ts";
import { factsOf } from "./enqueue.ts";
import { attemptsBefore } from "../continuations/table.ts";
import type { Group } from "../group/group.ts";
import { isViolation } from "../group/schema-check.ts";
import { hasShortAnswer } from "../group/record.ts";
import { LOST, retryDelayMs } from "../gates/retry.ts";
import { causeOf } from "../gates/cause.ts";
import { nextAttempt } from "../gates/next-route.ts";
import type { ChosenFrom, Position, Target } from "../leases/shard.ts";
import { indexOf } from "../queue/slot.ts";
import { isTriedOnce } from "../services/table.ts";
import type { EngineState, InFlight } from "../state.ts";
import { leaveTier } from "./sent-tier.ts";
import { waitingAttemptsMax } from "../gates/outcome.ts";

/** `isUncounted`: the attempt before does not count towards the most attempts of a call. */
export type NextAttempt = { delayMs: number; isUncounted: boolean; position?: Position };

type Failure = Extract<Outcome, { kind: "failure" }>;

type Ended = { inFlight: InFlight; group: Group | undefined };

/** When and how an attempt's call is tried again; null = the outcome is final. */
export function nextOf(state: EngineState, outcome: Outcome, ended: Ended, nowMs: number): NextAttempt | null {
  const { inFlight, group } = ended;
  const { lease } = inFlight;
  if (outcome.kind === "success" || (group !== undefined && mayNotGoOn(group))) return null;
  // The answer of a cancelled call has no reader.
  if (outcome.reason.reason === "cancelled") return null;
  if (outcome.refusesTier === true && lease.tier !== undefined) return withoutTier(state, ended);
  if (outcome.class === "unknown" && (lease.onLost === "fail" || !isRetryable(outcome.reason))) return null;
  if (outcome.stop !== undefined && (lease.attempt >= STOPPED_ATTEMPTS_MAX || isOwnFault(state, ended))) return null;
  if (lease.chosenFrom !== undefined) return atChoice(state, outcome, { ...ended, from: lease.chosenFrom }, nowMs);
  const next = sameAgain(state, outcome, ended, nowMs);
  if (next?.isUncounted === true && group !== undefined && lease.slotId !== null) addUncounted(group, lease.slotId);
  return next;
}

/** Whether no further attempt of a group may start: it was stopped, or its call is tried once. */
function mayNotGoOn({ drained, header }: Group): boolean {
  return drained !== null || isTriedOnce(header);
}

/** The same attempt at the standard tier, at once. It uses none of the call's attempts. */
function withoutTier(state: EngineState, { inFlight, group }: Ended): NextAttempt {
  const { slotId, chosenFrom } = inFlight.lease;
  leaveTier(state, inFlight);
  if (group !== undefined && slotId !== null) addUncounted(group, slotId);
  const position = chosenFrom === undefined ? {} : { position: chosenFrom.position };
  return { delayMs: 0, isUncounted: true, ...position };
}

/** The next attempt of a call that has choices. One that waits for its gates keeps the attempts that it has left. */
function atChoice(
  state: EngineState,
  outcome: Failure,
  { inFlight: { lease, call }, group, from }: Ended & { from: ChosenFrom },
  nowMs: number,
): NextAttempt | null {
  const { class: failureClass, retryAfterMs, reason } = outcome;
  const random = state.deps.random();
  const isUnsendable = failureClass === "rejected" && reason.reason === "invalid_request";
  const cause = causeOf(outcome);
  const before = lease.slotId === null ? 0 : attemptsBefore(state.tried.get(lease.slotId));
  const attempts = lease.attempt - before;
  const failed = { from, class: failureClass, cause, isUnsendable, retryAfterMs, attempts };
  const attemptsMaxAt = (each: Target): number => attemptsMaxOf(outcome, each, { group, slotId: lease.slotId });
  const next = nextAttempt({ ...failed, attemptsMaxAt }, gatesOf(state, nowMs), random);
  const waitingMax = waitsForGate(group, call) ? waitingAttemptsMax(outcome) : null;
  if (waitingMax === null || lease.attempt >= waitingMax) return next === null ? null : { ...next, isUncounted: false };
  const { tried, spent } = from.position;
  if (next !== null) return { ...next, isUncounted: true, position: { ...next.position, tried, spent } };
  const rest = { class: failureClass, attempt: 1, attemptsMax: waitingMax, retryAfterMs };
  const delayMs = outcome.stop !== undefined ? 0 : retryDelayMs(rest, random);
  // It waits for the first of its gates that works again.
  const position = { ...from.position, from: 0, cause: null };
  return delayMs === null ? null : { delayMs, isUncounted: true, position };
}

/**
 * Whether a key has worked for others since it was refused for this slot: then the fault is the call's own, and another probe
 * of it would only stop the others.
 */
function isOwnFault({ upstreams }: EngineState, { inFlight: { lease }, group }: Ended): boolean {
  if (group === undefined || lease.slotId === null || lease.chosenFrom !== undefined) return false;
  const recoveries = upstreams.get(lease.target.gate)?.recoveries ?? 0;
  const index = indexOf(lease.slotId);
  const before = group.stops.get(index);
  group.stops.set(index, recoveries);
  return before !== undefined && recoveries > before;
}

/** The retry with the same key; null = that would have none. */
function sameAgain(
  state: EngineState,
  outcome: Failure,
  { inFlight: { lease, call }, group }: Ended,
  nowMs: number,
): NextAttempt | null {
  const { target, slotId } = lease;
  const isWaiting =
    waitsForGate(group, call) || waitsForWidth(state, outcome, { inFlight: { lease, call }, group }, nowMs);
  const waitingMax = isWaiting ? waitingAttemptsMax(outcome) : null;
  if (waitingMax !== null && lease.attempt >= waitingMax) return null;
  // The gate decides when the key is tried again.
  if (outcome.stop !== undefined) return waitingMax === null ? null : { delayMs: 0, isUncounted: true };
  // The attempt whose answer ended at a learned cap did not fail.
  const ofShortAnswer = slotId !== null && hasShortAnswer(state.tried.get(slotId)) ? 1 : 0;
  const attempt = Math.max(1, countedAttempts(state, { lease, call }, group) - ofShortAnswer);
  const attemptsMax = waitingMax ?? attemptsMaxOf(outcome, target, { group, slotId });
  const { class: failureClass, retryAfterMs } = outcome;
  const delayMs = retryDelayMs({ class: failureClass, attempt, attemptsMax, retryAfterMs }, state.deps.random());
  return delayMs === null ? null : { delayMs, isUncounted: waitingMax !== null };
}

/** Whether a call is asked again because its answer does not fit its schema. A single call's Worker counts its repairs. */
export function isRepaired(state: EngineState, outcome: Outcome, reported: Outcome, ended: Ended): boolean {
  const { inFlight, group } = ended;
  const { slotId, target, schemaRetries = 0 } = inFlight.lease;
  if (!isViolation(outcome) || (group !== undefined && mayNotGoOn(group))) return false;
  // The retries of a task are those of failures that pass: they are no limit here.
  const attemptsMax = Math.max(target.attemptsMax, attemptsMaxOf(outcome, target, { group, slotId }));
  if (countedAttempts(state, inFlight, group) >= attemptsMax) return false;
  if (slotId === null) return reported.kind === "success" && reported.checked?.again === true;
  return (state.tried.get(slotId)?.checks?.repairs ?? 0) < schemaRetries;
}

/** The attempts of a call that count towards the most attempts of a call. */
function countedAttempts(
  { tried }: EngineState,
  { lease, call }: Pick<InFlight, "lease" | "call">,
  group: Group | undefined,
): number {
  const { attempt, slotId } = lease;
  if (slotId === null) return attempt - (call?.uncounted ?? 0);
  const before = attemptsBefore(tried.get(slotId));
  return attempt - (group?.uncounted.get(indexOf(slotId)) ?? 0) - before;
}

/** Most attempts of a call at a target; the task of a graph may set them. An upstream that cannot be reached gets one. */
function attemptsMaxOf(
  outcome: Failure,
  { attemptsMax }: Pick<Target, "attemptsMax">,
  { group, slotId }: { group: Group | undefined; slotId: number | null },
): number {
  if (outcome.unreachable === true) return 1;
  const ofTask = group?.graph == null || slotId === null ? null : group.graph.attemptsMaxOf(indexOf(slotId));
  if (ofTask !== null) return ofTask;
  return group?.header.background === true ? backgroundAttemptsMax(outcome, attemptsMax) : attemptsMax;
}

/** Whether a call waits for its gate rather than fail. */
function waitsForGate(group: Group | undefined, call: SingleCall | null): boolean {
  if (group === undefined) return call?.waitsForGate === true;
  return group.header.single === null || patienceOf(group.header.deadlineMs).waitsForGate;
}

/**
 * Whether a single call without a deadline, young enough to wait, was one too many at a key whose width is limited: then the
 * key works for others, and the gate sets the pace.
 */
function waitsForWidth(
  state: EngineState,
  { class: failureClass, stop }: Failure,
  { inFlight, group }: { inFlight: Pick<InFlight, "lease" | "call">; group: Group | undefined },
  nowMs: number,
): boolean {
  if (failureClass !== "rate_limited" || stop !== undefined) return false;
  if (state.upstreams.get(inFlight.lease.target.gate)?.isShrunk !== true) return false;
  return nowMs < youngUntilMs(state, inFlight, group);
}

/** Until when a single call waits for a key whose width is limited. */
function youngUntilMs(
  state: EngineState,
  { lease, call }: Pick<InFlight, "lease" | "call">,
  group: Group | undefined,
): number {
  if (group === undefined) return call?.waitsForWidthUntilMs ?? -Infinity;
  const { single, deadlineMs, openedAtMs } = group.header;
  if (single === null || !patienceOf(deadlineMs).waitsForWidth) return -Infinity;
  return openedAtMs + timeoutOf(factsOf(state, group, 0), lease.target);
}

function addUncounted({ uncounted }: Group, slotId: number): void {
  const index = indexOf(slotId);
  uncounted.set(index, (uncounted.get(index) ?? 0) + 1);
}

/**
 * The attempt limit of a background call. It has time: a lost executor is no fault of the call, so such attempts have a limit
 * of their own, and the limit of other failures leaves room for them.
 */
function backgroundAttemptsMax({ reason }: Extract<Outcome, { kind: "failure" }>, attemptsMax: number): number {
  return Math.max(attemptsMax, reason === LOST ? BATCH_ATTEMPTS_MAX : BATCH_FAILED_ATTEMPTS_MAX);
}
