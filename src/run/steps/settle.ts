/**
 * What happens when an attempt ends: its reservation settles, its slot or call ends or is queued for a retry, and its
 * followers share a final outcome.
 */
import { cappedOf, markCapped } from "../money/capped.ts";
import { chargeFor, type Charge, type Reserved } from "../money/charge.ts";
import { addAmounts, zeroAmounts, type Limits } from "../money/ledger.ts";
import { costNanoUsd as costNanoUsdOf } from "../money/money.ts";
import { isLookBelieved, textRatioOf } from "../money/text-scale.ts";
import { BATCH_TIER, type Outcome } from "../../call.ts";
import type { Dimension, Reason } from "../../errors.ts";
import { FOUND_LEASE_TTL_MS, LEASE_TTL_MS } from "../../limits.ts";
import { endCallAfterAttempt, shareWithCall } from "./end-call.ts";
import { wasStopped, type Settled } from "../leases/settled.ts";
import type { Onward } from "../continuations/continuation.ts";
import { follow, ofCall, onwardOf } from "../continuations/table.ts";
import { endSlot, shareWithSlot } from "./end-slot.ts";
import { bucketOf, factsOf, requeueFollowers } from "./enqueue.ts";
import type { Group } from "../group/group.ts";
import { isTooShort } from "../learned/caps.ts";
import type { Templates } from "../learned/templates.ts";
import { attemptEnd, attemptName, callIdOf, callName, type RunEvent } from "../log.ts";
import { isViolation, judged, noteCheck } from "../group/schema-check.ts";
import {
  addAttempt,
  addBeside,
  answerIn,
  freshRecord,
  hasInvalidAnswer,
  hasShortAnswer,
  setAnswer,
  type SlotRecord,
} from "../group/record.ts";
import { LOST } from "../gates/retry.ts";
import type { AttemptInFlight, Position } from "../leases/shard.ts";
import { indexOf } from "../queue/slot.ts";
import type { EngineState, InFlight } from "../state.ts";
import { addExtra, addFailures, addModel, addTimes, type TimesOfCall } from "../measures/totals.ts";
import { isRepaired, nextOf } from "./next-attempt.ts";
import { meter } from "./metered.ts";
import { learnFromEnd } from "../gates/outcome.ts";

type Charged = Charge & { outcome: Outcome };

type Ended = Charged & {
  /** The outcome as its executor reported it: it may be an answer that does not fit its schema. */
  reported: Outcome;
  retryInMs: number | null;
  /** What follows the answer of a call that may be more than one; null = nothing. */
  onward: Onward | null;
  position?: Position;
  lease: AttemptInFlight;
};

/**
 * Records an attempt's outcome. Null, with nothing changed, for an attempt that is not in flight: it settled or
 * expired.
 */
export function settle(state: EngineState, attemptId: string, told: Outcome, nowMs: number): Settled | null {
  const inFlight = state.attempts.get(attemptId);
  if (inFlight === undefined) return null;
  const { lease, shard, call } = inFlight;
  const group = state.groupOf(lease);
  const other = state.otherOf(lease);
  const reported = asStopped(state, lease, told, other !== undefined);
  const isRequestedAgain = isTooShort(reported, lease) && group !== undefined && group.drained === null;
  const marked = isRequestedAgain ? reported : markCapped(reported, lease);
  learnFrom(state, marked, lease);
  const { target, amounts } = lease;
  // An answer that does not fit its schema is charged like any other.
  const { charge, estimated } = chargeFor(marked, reservedFor(lease, state.ledger.limits));
  const outcome = isRequestedAgain ? marked : (ofCourse(state, marked, lease) ?? judged(marked, lease));
  const isAnswer = outcome.kind === "success" || isViolation(outcome);
  // The first answer is the call's.
  if (other !== undefined && isAnswer) giveUpAttempt(state, other, ANSWERED, nowMs);
  learnPace(state, lease, outcome, isAnswer, nowMs);
  // Before the attempt is gone: a leader that has failed hands on.
  if (reported.kind === "success") notePrefix(state, lease, nowMs);
  const overrun = endAttempt(state, inFlight, { charge, estimated, outcome }, nowMs);
  if (!isUnsent(outcome)) meter(state, shard, lease, { outcome, charge });
  lease.window?.attemptEnded(outcome.latencyMs, charge.usd);
  const parallelGroupId = lease.window?.id ?? group?.parallelGroupId ?? null;
  const emit = (event: RunEvent): number => state.log.add(event, parallelGroupId, nowMs);
  const name = attemptName(lease, group);
  emit(attemptEnd(name, { outcome, charged: charge, estimated, trace: lease.trace, content: reported.content }));
  if (overrun.length > 0) emit({ event: "overrun", ...name, dimensions: overrun, reserved: amounts, charged: charge });
  // A batch shows nothing about how its key serves calls.
  const throttle = lease.tier === BATCH_TIER ? null : learnFromEnd(state.upstreams.add(target), lease, outcome, nowMs);
  if (throttle !== null) emit({ event: "throttled", upstream: target.upstream, gate: target.gate, ...throttle });
  const settled = { charge, estimated, ...cappedOf(outcome), queuedMs: lease.queuedMs, parallelGroupId };
  if (other !== undefined && !isAnswer) {
    endBeside(state, inFlight, other, { outcome, charge, estimated });
    return { ...settled, retryInMs: null, uncounted: call?.uncounted ?? 0 };
  }
  const isAskedAgain = isRequestedAgain || isRepaired(state, outcome, reported, { inFlight, group });
  const next = isAskedAgain
    ? { delayMs: 0, isUncounted: false, ...positionIn(lease) }
    : nextOf(state, outcome, { inFlight: asLast(inFlight, group), group }, nowMs);
  const onward = next === null ? onwardFrom(state, outcome, inFlight) : null;
  const retryInMs = next?.delayMs ?? (onward?.continues === true ? 0 : null);
  const isAnswered = outcome.kind === "success" || onward?.course.kept !== undefined;
  if (retryInMs === null) {
    shard.totals[isAnswered ? "completed" : "failed"] += 1;
    if (!isAnswered && outcome.kind === "failure") addFailures(shard.totals, outcome.reason.reason);
    addTimes(shard.totals, timesWith(state, inFlight, outcome));
  } else {
    const retry = { ...callName(lease, group), attempt: attemptsOf(lease, group) + 1, delayMs: retryInMs };
    emit({ event: "retry_scheduled", ...retry, reason: outcome.kind === "failure" ? outcome.reason : null });
  }
  const tried = next?.position === undefined ? {} : { position: next.position };
  const ended = { outcome, reported, charge, estimated, retryInMs, onward, lease, ...tried };
  if (group !== undefined && lease.slotId !== null) advanceSlot(state, group, lease.slotId, ended, nowMs);
  else advanceCall(state, ended, nowMs);
  settleFollowers(state, ended, nowMs);
  const uncounted = (call?.uncounted ?? 0) + (next?.isUncounted === true ? 1 : 0);
  return { ...settled, retryInMs, ...tried, uncounted };
}

/** The beginning that an answered attempt shares with others is in its provider's cache. */
function notePrefix({ prefixes }: EngineState, { prefix }: AttemptInFlight, nowMs: number): void {
  if (prefix !== undefined) prefixes.used(prefix.name, prefix.keptMs, nowMs);
}

/**
 * What an executor reports of an attempt. One that it has stopped because the run said so ended for the run's reason; one that it has
 * stopped by itself beside another attempt of the call had that one's answer.
 */
function asStopped({ givenUp }: EngineState, { attemptId }: AttemptInFlight, told: Outcome, isPair: boolean): Outcome {
  const reason = givenUp.reasonOf(attemptId) ?? (isPair ? ANSWERED : null);
  return reason !== null && wasStopped(told) ? { ...told, reason } : told;
}

/** Notes in its group what an attempt is charged that ends because the group has stopped early. */
function noteStopped(
  state: EngineState,
  { attemptId, slotId, hedgeOf }: AttemptInFlight,
  { charge, outcome }: Charged,
): void {
  if (state.givenUp.reasonOf(attemptId) === null || outcome.kind === "success" || isViolation(outcome)) return;
  const group = state.groupOf({ slotId });
  if (group?.drained?.cause === "stop") group.noteAborted(hedgeOf === undefined ? 1 : 0, charge.usd);
}

/** Why an attempt is given up whose call has an answer. */
const ANSWERED: Reason = { reason: "cancelled", message: "another attempt of this call was answered first" };

/** Gives an attempt up: its cost is unknown, and its executor must be notified. */
export function giveUpAttempt(state: EngineState, inFlight: InFlight, reason: Reason, nowMs: number): void {
  endUnreported(state, inFlight, reason, nowMs);
  state.givenUp.add(inFlight);
}

/** Ends an attempt whose executor has reported nothing: its outcome is unknown. One that was to stop ends for that reason. */
function endUnreported(state: EngineState, { lease }: InFlight, cause: Reason, nowMs: number): void {
  const { attemptId, slotId, startedAtMs } = lease;
  const reason = state.givenUp.reasonOf(attemptId) ?? cause;
  const latencyMs = Math.max(0, nowMs - startedAtMs);
  const failed = { kind: "failure", class: "unknown", reason, answered: false, retryAfterMs: null, latencyMs } as const;
  const settled = settle(state, attemptId, failed, nowMs);
  if (slotId === null && settled !== null) state.unreportedEnds.add(attemptId, { settled, reason });
}

/** Ends an attempt whose call goes on with the other one that is in flight: what it cost is the call's. */
function endBeside(
  state: EngineState,
  { lease, shard }: InFlight,
  { lease: other }: InFlight,
  { outcome, charge, estimated }: Charged,
): void {
  addExtra(shard.totals, { calls: 1, costNanoUsd: charge.usd });
  const { slotId, attempt, queuedMs, startedAtMs } = lease;
  const group = state.groupOf(lease);
  if (slotId === null || group === undefined) return;
  const record = state.tried.get(slotId) ?? freshRecord(slotId);
  // While both are in flight, the time is that of the other.
  const latencyMs = Math.min(outcome.latencyMs, Math.max(0, other.startedAtMs - startedAtMs));
  addBeside(record, { charge, estimated, attempt, queuedMs, latencyMs });
  const { prompt_tokens: promptTokens, completion_tokens: completionTokens, usd: costNanoUsd } = charge;
  group.addAttempt(latencyMs, { promptTokens, completionTokens, costNanoUsd });
  group.hedgeEnded(costNanoUsd);
  state.writeSlot(record);
}

/** Whether an attempt ended without a request. */
function isUnsent(outcome: Outcome): boolean {
  return outcome.kind === "failure" && outcome.unsent === true;
}

/** How long a call that ends with this attempt has taken. A restart forgets the earlier attempts of a single call. */
function timesWith(state: EngineState, { lease, call }: InFlight, { latencyMs }: Outcome): TimesOfCall {
  const { slotId, attempt, queuedMs } = lease;
  const earlier = slotId === null ? call?.earlier : state.tried.get(slotId);
  const isFirst = attempt === 1 || earlier === undefined;
  return { latencyMs: (earlier?.latencyMs ?? 0) + latencyMs, queuedMs: isFirst ? queuedMs : earlier.queuedMs };
}

/** The attempts of a call so far. That of a slot which was hedged need not be the last to end. */
function attemptsOf({ attempt, slotId }: AttemptInFlight, group: Group | undefined): number {
  return slotId === null ? attempt : Math.max(attempt, group?.attempts[indexOf(slotId)] ?? 0);
}

function asLast(inFlight: InFlight, group: Group | undefined): InFlight {
  const { lease } = inFlight;
  const attempt = attemptsOf(lease, group);
  return attempt === lease.attempt ? inFlight : { ...inFlight, lease: { ...lease, attempt } };
}

/** Learns how long calls take that may be hedged. One that was given up would have taken longer still. */
function learnPace(
  { hedges }: EngineState,
  lease: AttemptInFlight,
  outcome: Outcome,
  isAnswer: boolean,
  nowMs: number,
): void {
  if (lease.hedge === undefined && lease.hedgeOf === undefined) return;
  const isGivenUp = outcome.kind === "failure" && outcome.reason === ANSWERED;
  if (isAnswer || isGivenUp) hedges.learn(lease, { isAnswer, latencyMs: outcome.latencyMs }, nowMs);
}

/** What the outcome of an attempt is for a call that may go on after it, if not what it seems; else null. */
function ofCourse(state: EngineState, outcome: Outcome, lease: AttemptInFlight): Outcome | null {
  const group = state.groupOf(lease);
  const { slotId } = lease;
  if (lease.hasCourse === undefined || group === undefined || slotId === null) return null;
  return ofCall(outcome, { facts: factsOf(state, group, indexOf(slotId)), drained: group.drained });
}

/** What follows an outcome that is final for its model or sample; a call that was cancelled or stopped does not go on. */
function onwardFrom(state: EngineState, outcome: Outcome, { lease }: InFlight): Onward | null {
  const { slotId } = lease;
  const group = state.groupOf(lease);
  if (lease.hasCourse === undefined || group === undefined || slotId === null) return null;
  if (outcome.kind === "failure" && outcome.reason.reason === "cancelled") return null;
  const onward = onwardOf(outcome, factsOf(state, group, indexOf(slotId)), state.tried.get(slotId)?.course);
  return onward === null || group.drained === null ? onward : { ...onward, continues: false };
}

/** The position of an attempt's call, which an answer that is requested again does not change. */
function positionIn({ chosenFrom }: AttemptInFlight): { position?: Position } {
  return chosenFrom === undefined ? {} : { position: chosenFrom.position };
}

/** What an attempt read and wrote of its provider's cache, and what that saved; absent = the call shares no prefix. */
function cacheUseOf(outcome: Outcome, { prefix, target, priced }: AttemptInFlight, chargedNanoUsd: number) {
  if (prefix === undefined || outcome.kind !== "success" || outcome.usage === null) return {};
  const { cachedTokens, cacheWriteTokens = 0, promptTokens, completionTokens, serviceTier } = outcome.usage;
  const tier = serviceTier === undefined ? {} : { serviceTier };
  const uncached = { promptTokens, completionTokens, cachedTokens: 0, ...tier };
  const plainNanoUsd = target.price === null ? chargedNanoUsd : costNanoUsdOf(uncached, target.price, priced);
  return { cachedTokens, cacheWriteTokens, savedNanoUsd: plainNanoUsd - chargedNanoUsd };
}

/** What an answer from its provider's batch saved, against the same one at the standard tier; absent = it is not from one. */
function savedInBatch(outcome: Outcome, { tier, target: { price }, priced }: AttemptInFlight, chargedNanoUsd: number) {
  if (tier !== BATCH_TIER || outcome.kind !== "success" || outcome.usage === null || price === null) return {};
  const standard = { ...outcome.usage, serviceTier: "default" };
  return { savedNanoUsd: costNanoUsdOf(standard, price, priced) - chargedNanoUsd };
}

function reasoningOf(outcome: Outcome): { reasoningTokens?: number } {
  return outcome.kind === "success" && outcome.usage !== null ? { reasoningTokens: outcome.usage.reasoningTokens } : {};
}

/** Ends a slot, or queues it for its retry. */
function advanceSlot(state: EngineState, group: Group, slotId: number, ended: Ended, nowMs: number): void {
  const { outcome, charge, retryInMs, lease } = ended;
  const record = state.tried.get(slotId) ?? freshRecord(slotId);
  const earlierAttempts = record.attempts;
  const earlierAnswer = hasShortAnswer(record) || hasInvalidAnswer(record) ? answerIn(record) : null;
  addAttempt(record, { ...ended, attempt: lease.attempt, queuedMs: lease.queuedMs });
  // It had a permit and was not sent: while its slot goes on, it keeps its number.
  if (retryInMs === null && isUnsent(outcome)) record.attempts = Math.max(earlierAttempts, lease.attempt - 1);
  noteCheck(record, ended.reported, retryInMs !== null && isViolation(outcome));
  if (isViolation(outcome)) Object.assign(record, { model: null, finishReason: null });
  const { prompt_tokens: promptTokens, completion_tokens: completionTokens, usd: costNanoUsd } = charge;
  const saved = retryInMs === null ? savedInBatch(outcome, lease, costNanoUsd) : {};
  const cached = cacheUseOf(ended.reported, lease, costNanoUsd);
  const told = { cacheHitTokens: promptTokens + completionTokens - charge.new_tokens, ...reasoningOf(outcome) };
  group.addAttempt(outcome.latencyMs, { promptTokens, completionTokens, costNanoUsd, ...told, ...cached, ...saved });
  Object.assign(record, saved);
  if (ended.position === undefined || retryInMs === null) delete record.position;
  else record.position = ended.position;
  const route = lease.chosenFrom?.route;
  if (route !== undefined && outcome.kind === "success") record.upstream = lease.target.upstream;
  if (ended.onward !== null) goOn(state, group, record, ended.onward);
  if (retryInMs === null) {
    if (outcome.kind === "failure") Object.assign(record, { model: null, finishReason: null });
    record.state = outcome.kind === "success" ? "completed" : failureState(outcome.reason, group, indexOf(slotId));
    endSlot(state, group, record, { startedAtMs: lease.startedAtMs }, nowMs);
    return;
  }
  if (earlierAnswer !== null && ended.onward === null && outcome.kind === "failure" && !isViolation(outcome)) {
    setAnswer(record, earlierAnswer);
  }
  record.notBeforeMs = nowMs + retryInMs;
  group.step(indexOf(slotId), "queued", nowMs);
  state.writeSlot(record);
  const bucket = bucketOf(state, group, factsOf(state, group, indexOf(slotId)), record.position);
  // Another slot is the next probe of a key that does not work: it may have refused this call only.
  if (outcome.kind === "failure" && outcome.stop !== undefined) state.queue.push(bucket, slotId);
  else state.queue.delay(bucket, slotId, record.notBeforeMs);
}

/** Notes what follows the answer of a call that may be more than one. */
function goOn(state: EngineState, group: Group, record: SlotRecord, onward: Onward): void {
  follow(record, onward, factsOf(state, group, indexOf(record.id)));
  // They were attempts at the model before.
  if (onward.continues) group.uncounted.delete(indexOf(record.id));
}

/** A slot that was cancelled, by itself or with its group, ends as cancelled; any other final failure as failed. */
function failureState({ reason }: Reason, group: Group, index: number): "cancelled" | "failed" {
  return reason === "cancelled" && group.isCancelled(index) ? "cancelled" : "failed";
}

/** Ends a single call, or keeps its position in its coalescing window for the retry that its Worker requests. */
function advanceCall(state: EngineState, ended: Ended, nowMs: number): void {
  const { attemptId, window = null } = ended.lease;
  if (ended.retryInMs === null) endCallAfterAttempt(state, window, ended, nowMs);
  else if (window !== null) state.window.keepPosition(callIdOf(attemptId), window);
}

/**
 * Lets the followers of an attempt's call share its final outcome, at no cost. They return to the queue if the call was
 * cancelled, or if its retry is not certain: only its Worker can request the retry of a single call. While a slot waits
 * for its retry, it keeps its followers.
 */
function settleFollowers(state: EngineState, { outcome, retryInMs, lease }: Ended, nowMs: number): void {
  const { slotId } = lease;
  if (lease.dedupeKey === null || (retryInMs !== null && slotId !== null)) return;
  const leader = slotId === null ? (callName(lease, undefined).callId ?? "") : String(slotId);
  const followers = state.singleFlight.end(leader);
  const isCancelled = outcome.kind === "failure" && outcome.reason.reason === "cancelled";
  if (retryInMs !== null || isCancelled) return requeueFollowers(state, followers);
  const slotIds: number[] = [];
  for (const { id, call } of followers) {
    if (call === null) slotIds.push(id);
    else shareWithCall(state, { id, call }, outcome, nowMs);
  }
  if (slotIds.length === 0) return;
  state.owedEnds.push({ slotIds, outcome });
  endOwed(state, nowMs);
}

/** Ends the slots that share an outcome, as many as the turn may end. A restart forgets the others: they are queued again. */
export function endOwed(state: EngineState, nowMs: number): void {
  const { owedEnds, turnShare } = state;
  for (let owed = owedEnds[0]; owed !== undefined && !turnShare.isSpent; owed = owedEnds[0]) {
    const { outcome } = owed;
    const chars = outcome.kind === "success" ? outcome.text.length : 0;
    let ended = 0;
    for (; ended < owed.slotIds.length && !turnShare.isSpent; ended++) {
      turnShare.spend(chars);
      shareWithSlot(state, owed.slotIds[ended] ?? 0, outcome, nowMs);
    }
    if (ended === owed.slotIds.length) owedEnds.shift();
    else owed.slotIds = owed.slotIds.slice(ended);
  }
}

/**
 * Extends the leases of an executor that is alive by a term. Returns the ids that it must stop: they are not in flight (any
 * more), or the run waits for the report of how they ended.
 */
export function heartbeat(
  state: EngineState,
  attemptIds: readonly string[],
  nowMs: number,
  termMs = LEASE_TTL_MS,
): string[] {
  const stopping: string[] = [];
  for (const attemptId of attemptIds) {
    const inFlight = state.attempts.get(attemptId);
    if (inFlight === undefined || state.givenUp.reasonOf(attemptId) !== null) stopping.push(attemptId);
    if (inFlight !== undefined) state.setLeaseEnd(inFlight.lease, Math.max(inFlight.lease.expiresAtMs, nowMs + termMs));
  }
  return stopping;
}

/**
 * Extends the lease of an executor whose end will be noticed, because it has a socket: to the latest end of its attempt,
 * and the time in which that is reported. False if it must stop the attempt, which is not in flight (any more) or is to be reported.
 */
export function holdLease(state: EngineState, attemptId: string): boolean {
  const lease = state.attempts.get(attemptId)?.lease;
  if (lease === undefined) return false;
  state.setLeaseEnd(lease, Math.max(lease.expiresAtMs, lease.startedAtMs + lease.target.timeoutMs + LEASE_TTL_MS));
  return state.givenUp.reasonOf(attemptId) === null;
}

/** The socket of an executor was lost: it has the time of a reconnect to open another. */
export function doubtLease(state: EngineState, attemptId: string, nowMs: number): void {
  const lease = state.attempts.get(attemptId)?.lease;
  if (lease !== undefined) state.setLeaseEnd(lease, Math.min(lease.expiresAtMs, nowMs + FOUND_LEASE_TTL_MS));
}

/** Ends the attempts whose leases have expired: their outcomes are unknown. Returns how many. */
export function expireLeases(state: EngineState, nowMs: number): number {
  if (!state.hasExpired(nowMs)) return 0;
  const expired = [...state.attempts.values()].filter(({ lease }) => lease.expiresAtMs <= nowMs);
  for (const inFlight of expired) endUnreported(state, inFlight, LOST, nowMs);
  return expired.length;
}

/** Takes back the permit of a single call whose Worker has sent nothing and will not: it costs nothing. */
export function takeBack(state: EngineState, callId: string, reason: Reason, nowMs: number): void {
  for (const { lease } of state.attempts.values()) {
    if (lease.slotId !== null || callIdOf(lease.attemptId) !== callId) continue;
    const unsent = {
      kind: "failure",
      class: "rejected",
      unsent: true,
      reason,
      answered: false,
      retryAfterMs: null,
      latencyMs: 0,
    } as const;
    settle(state, lease.attemptId, unsent, nowMs);
    return;
  }
}

/** Ends attempts that have lost their executor. Ids that are not in flight change nothing. */
export function loseAttempts(state: EngineState, attemptIds: readonly string[], nowMs: number): void {
  for (const attemptId of attemptIds) {
    const inFlight = state.attempts.get(attemptId);
    if (inFlight !== undefined) endUnreported(state, inFlight, LOST, nowMs);
  }
}

/** Learns from an answer how long completions are, what the upstream adds to prompts, and how its tokenizer counts. */
/** The reservation of an attempt, as its charge is computed. `limits`: of the ledger that has it. */
export function reservedFor(
  { amounts, priced, target }: Pick<AttemptInFlight, "amounts" | "priced" | "target">,
  limits: Limits,
): Reserved {
  const { price, isPulled, tool } = target;
  if (tool !== undefined) return { amounts, price, priced, isFree: true };
  return { amounts, price, priced, ...(isPulled === undefined ? {} : { pulledUnder: limits }) };
}

function learnFrom({ learnedCaps, templates }: EngineState, outcome: Outcome, lease: AttemptInFlight): void {
  learnedCaps.learn(outcome, lease);
  learnTemplate(templates, outcome, lease);
}

/** Learns from an answer what the upstream adds to prompts, and how its tokenizer counts. */
export function learnTemplate(
  templates: Templates,
  outcome: Outcome,
  lease: Pick<AttemptInFlight, "target" | "shape" | "byteTokensMax" | "lookTokensMax" | "textSample" | "amounts">,
): void {
  if (outcome.kind !== "success" || outcome.usage === null) return;
  const { target, shape, lookTokensMax, textSample, amounts } = lease;
  const { promptTokens } = outcome.usage;
  // The bytes of a long text may hide what an image was billed beyond a reservation that believed the look at that text.
  const hides = lookTokensMax !== undefined && promptTokens > amounts.prompt_tokens;
  const isByLook = hides && isLookBelieved(templates.textRatioOf(target));
  const byteTokensMax = isByLook ? lookTokensMax : lease.byteTokensMax;
  const textRatio = textSample === null ? null : textRatioOf(promptTokens, textSample);
  templates.learn(target, shape, { promptTokens, byteTokensMax, textRatio });
}

/** Settles an attempt in the ledger and in its shard. Returns the limited dimensions that it overran. */
function endAttempt(state: EngineState, inFlight: InFlight, ended: Charged, nowMs: number): Dimension[] {
  const { lease, shard } = inFlight;
  noteStopped(state, lease, ended);
  const overrun = state.ledger.settle(lease.attemptId, ended.charge);
  if (overrun === null) throw new Error(`attempt ${lease.attemptId} is in flight without a reservation`);
  const { totals } = shard;
  totals.busyMs += state.removeInFlight(inFlight, nowMs);
  addAmounts(totals.spent, ended.charge);
  totals.lastCallMs = nowMs;
  if (!isUnsent(ended.outcome)) {
    totals.attempts += 1;
    totals.sequentialMs += ended.outcome.latencyMs;
    if (lease.attempt > 1 && lease.hedgeOf === undefined) totals.retries += 1;
  }
  if (ended.estimated) totals.estimated += 1;
  if (overrun.length > 0) {
    totals.overruns += 1;
    totals.overrun ??= zeroAmounts();
    for (const dimension of overrun) {
      totals.overrun[dimension] += ended.charge[dimension] - lease.amounts[dimension];
    }
  }
  if (ended.charge.calls > 0) {
    const { usd: costNanoUsd, calls, prompt_tokens: promptTokens, completion_tokens: completionTokens } = ended.charge;
    const { upstream, model } = lease.target;
    addModel(totals.models, `${upstream}/${model}`, { calls, promptTokens, completionTokens, costNanoUsd });
  }
  return overrun;
}
