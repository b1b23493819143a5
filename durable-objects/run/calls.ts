/** Single calls in the run object: requesting a permit, withdrawing the request, settling the attempt. */
import { partsOf } from "../../src/answer.ts";
import { stopAttempts } from "../../src/run/steps/cancel.ts";
import { openCredit, termsOf } from "../../src/run/steps/lend-credit.ts";
import { applyReport } from "../../src/run/steps/report-credit.ts";
import type { CreditReport, CreditRequest } from "../../src/run/credit.ts";
import { endCall, endReplayedCall } from "../../src/run/steps/end-call.ts";
import { timeoutOf } from "../../src/run/steps/dispatch.ts";
import { enqueueCall, resumeCall } from "../../src/run/steps/enqueue.ts";
import { heartbeat, settle, takeBack } from "../../src/run/steps/settle.ts";
import { ageOf } from "../../src/run/leases/age.ts";
import { wasStopped } from "../../src/run/leases/settled.ts";
import { attemptNumberOf, callIdOf } from "../../src/run/log.ts";
import type { Target } from "../../src/run/leases/shard.ts";
import type { EngineState } from "../../src/run/state.ts";
import { sampled } from "../../src/run/steps/exchange.ts";
import { neededEndpoint, type CallFacts, type Outcome } from "../../src/call.ts";
import type { Reason } from "../../src/errors.ts";
import { ABANDONED_MS, DIRECT_CALLS_MAX, RUN_FULL_RETRY_AFTER_MS } from "../../src/limits.ts";
import type { AcquireReply, AcquireRequest, SettleReply, SingleSettlement } from "../../src/objects/methods/calls.ts";
import type { RecordedCall } from "../../src/objects/methods/replay.ts";
import type { CreditReportReply, OpenCreditReply } from "../../src/objects/methods/credit.ts";
import { permitOf } from "./executors/replies.ts";
import type { RunState } from "./state.ts";
import { endReason, hasEnded } from "./status.ts";
import { UNCONFIGURED_TARGET, type ModelTargets } from "./targets.ts";

/** What credit needs of the run. */
type Lender = Pick<RunState, "engine" | "remainingNanoUsd" | "settings" | "status"> & ModelTargets;

/** Lends a part of the budget and the width to an instance of the gateway, if nothing waits for them. */
export function lendCredit(run: Lender, request: CreditRequest, nowMs: number): OpenCreditReply {
  const { models, defaultModel, unpriced, windowMs, replay, serviceTier } = run.settings;
  // The run object must see every call of a run that records, and it decides on tiers.
  const credit = replay === undefined && serviceTier === undefined ? openCredit(run.engine, request, nowMs) : null;
  const { remainingNanoUsd } = run;
  const terms = credit === null ? null : { ...termsOf(run.engine, credit), remainingNanoUsd };
  return { terms, rules: { models, defaultModel, unpriced }, windowMs };
}

/** Takes in what an instance has started inside its credit. */
export function takeCreditReport(run: Lender, report: CreditReport, nowMs: number): CreditReportReply {
  const { engine, status } = run;
  // The run must know of what was started, even if it has ended meanwhile.
  if (hasEnded(status)) engine.credits.recall();
  const kind = applyReport(engine, report, (facts) => targetOrNone(run, facts), nowMs);
  if (status === "cancelled") stopAttempts(engine, () => true, endReason(status), nowMs);
  const credit = engine.credits.get(report.creditId);
  if (kind !== "continue" || credit === undefined) return { kind: kind === "recalled" ? "recalled" : "ended" };
  return { kind, terms: termsOf(engine, credit), remainingNanoUsd: run.remainingNanoUsd };
}

/** The target of a call that was started already: the configuration may have lost it since. */
function targetOrNone(run: ModelTargets, facts: CallFacts): Target {
  const target = run.targets.resolve(facts.model, neededEndpoint(facts));
  return "reason" in target ? { ...UNCONFIGURED_TARGET, upstream: "", gate: "", model: facts.model ?? "" } : target;
}

/** What single calls need of the run. */
type SingleCalls = Pick<RunState, "engine" | "waitingCalls" | "remainingNanoUsd" | "replay"> & ModelTargets;

/** The run has as many single calls as it may have at once. */
export const CALLS_FULL: Reason = {
  reason: "overloaded",
  message: `${DIRECT_CALLS_MAX} single calls of this run wait or are in flight, the most that one run may have; send this one again once some have ended`,
  retryAfterMs: RUN_FULL_RETRY_AFTER_MS,
};

/**
 * Requests the permits of several calls: the decisions of this turn, in the order of the requests. A call that gets none
 * in this turn stays queued; its reply is `wait`, and its Worker waits for it by a request of its own.
 */
export function acquireMany(
  run: SingleCalls,
  requests: readonly AcquireRequest[],
  reply: (acquired: AcquireReply[]) => void,
  nowMs: number,
): void {
  const acquired: AcquireReply[] = [];
  let undecided = requests.length;
  if (undecided === 0) reply(acquired);
  requests.forEach((request, position) => {
    const decided = (decision: AcquireReply): void => {
      acquired[position] = decision;
      undecided -= 1;
      if (undecided === 0) reply(acquired);
    };
    acquire(run, request, decided, nowMs, false);
  });
}

/**
 * Queues a call for its permit; a call that is queued already keeps its position. `reply` is called with the decision.
 * @param waits False: `reply` is called at the end of the turn at the latest.
 */
export function acquire(
  run: SingleCalls,
  request: AcquireRequest,
  reply: (acquired: AcquireReply) => void,
  nowMs: number,
  waits = true,
): void {
  const { callId, attempt, facts, delayMs, deadlineMs, onLost, parallelGroupId, label, position } = request;
  const ageMs = ageOf(request, nowMs);
  const { remainingNanoUsd } = run;
  // Another connection has brought the withdrawal first, or a request that repeated this one.
  if (run.waitingCalls.isStale(callId, attempt)) return reply({ ok: "wait" });
  const end = run.waitingCalls.endOf(callId);
  if (end !== null) return reply({ ...end, remainingNanoUsd });
  if (!waits) run.waitingCalls.addBrief(callId);
  if (run.waitingCalls.wait(callId, reply, nowMs)) return resumeCall(run.engine, callId, nowMs);
  const target = run.targets.resolve(facts.model, neededEndpoint(facts));
  if ("reason" in target) return reply({ ok: false, reason: target, remainingNanoUsd });
  const recordKey = recordKeyOf(run, request);
  const given = unreadPermit(run, request, nowMs);
  if (given !== null) return reply({ ok: true, ...given, ...recordKey, remainingNanoUsd });
  if (replays(run, request, reply, nowMs, waits)) return;
  if (run.waitingCalls.size >= DIRECT_CALLS_MAX) return reply({ ok: false, reason: CALLS_FULL, remainingNanoUsd });
  run.waitingCalls.add(callId, reply, nowMs);
  const rules = { deadlineMs, onLost, parallelGroupId, ageMs, ...(label === undefined ? {} : { label }) };
  const { uncounted = 0, waitsForGate = false, earlier } = request;
  const before = { ...(position === undefined ? {} : { position }), ...(earlier === undefined ? {} : { earlier }) };
  const tried = { uncounted, waitsForGate, ...before };
  const untilMs = nowMs - ageMs + (facts.timeoutMs ?? target.timeoutMs);
  const patience = request.waitsForWidth === true ? { waitsForWidthUntilMs: untilMs } : {};
  const call = { callId, attempt, ...tried, ...patience, facts, target, ...rules, ...recordKey };
  enqueueCall(run.engine, call, delayMs, nowMs);
}

/** The key under which a call's answer is to be recorded, if it is. */
function recordKeyOf({ replay }: SingleCalls, { epoch, facts }: AcquireRequest): { recordKey?: string } {
  if (replay === null || epoch === undefined || facts.content === undefined) return {};
  const key = replay.keyOfCall({ content: facts.content, model: facts.model });
  return key === null ? {} : { recordKey: key };
}

/** True if a call has a recorded answer, or may have one that another run is asked for: then it is not queued now. */
function replays(
  run: SingleCalls,
  request: AcquireRequest,
  reply: (acquired: AcquireReply) => void,
  nowMs: number,
  waits: boolean,
): boolean {
  const { replay, remainingNanoUsd } = run;
  const { callId, epoch, facts, deadlineMs } = request;
  if (replay === null || epoch === undefined || facts.content === undefined) return false;
  const call = { callId, epoch, content: facts.content, model: facts.model, mayShare: facts.dedupeKey !== undefined };
  const again = (laterMs: number): void => {
    const leftMs = deadlineMs === null ? null : Math.max(1, deadlineMs - (laterMs - nowMs));
    acquire(run, { ...request, deadlineMs: leftMs }, reply, laterMs);
  };
  const recalled = replay.recallCall(call, waits ? again : null);
  if (recalled === null) return false;
  if (recalled !== "awaited") {
    endReplayedCall(run.engine, request, recalled, nowMs);
    const end = { ok: "replayed", answer: recalled, remainingNanoUsd } as const;
    run.waitingCalls.end(callId, end);
    reply(end);
  } else if (!waits) reply({ ok: "wait" });
  return true;
}

/** The error of a call whose client left while it was queued. */
const CLIENT_GONE: Reason = { reason: "cancelled", message: "the client left before its call started" };

/**
 * A call's Worker says that it sends nothing more: removes the call from the queue, or takes its permit back, which was
 * granted in a reply that the Worker does not read or has not got yet. Replies to the request that waits for it, if one does.
 */
export function withdraw(run: SingleCalls, callId: string, nowMs: number): void {
  run.waitingCalls.withdraw(callId);
  run.replay?.forgetCall(callId);
  endUnsent(run.engine, callId, nowMs);
}

/** What the Worker of a call is told that was away for too long: nothing was spent, so its client may send the call again. */
const LEFT_ALONE: Reason = {
  reason: "overloaded",
  message: `the gateway lost sight of this call for ${ABANDONED_MS} ms while it was queued, and has ended it; nothing was sent, send it again`,
  retryAfterMs: RUN_FULL_RETRY_AFTER_MS,
};

/** Ends calls whose Workers did not come back in time. One that comes back all the same is told so. */
export function abandon(run: SingleCalls, callIds: readonly string[], nowMs: number): void {
  for (const callId of callIds) {
    endUnsent(run.engine, callId, nowMs);
    run.waitingCalls.end(callId, { ok: false, reason: LEFT_ALONE, remainingNanoUsd: run.remainingNanoUsd });
  }
}

/** Ends a call that is queued, or has a permit under which nothing was sent and nothing will be. */
function endUnsent(engine: EngineState, callId: string, nowMs: number): void {
  if (!endCall(engine, callId, CLIENT_GONE, nowMs)) takeBack(engine, callId, CLIENT_GONE, nowMs);
}

/**
 * Settles an attempt. Changes nothing if the attempt is not in flight any more: the reply is what it was charged when the run
 * ended it.
 */
export function settleSingle(
  run: SingleCalls,
  { attemptId, outcome, samples, recorded }: SingleSettlement,
  nowMs: number,
): SettleReply {
  if (samples !== undefined) sampled(run.engine, samples, nowMs);
  run.waitingCalls.settled(callIdOf(attemptId), attemptNumberOf(attemptId));
  const stoppedFor = wasStopped(outcome) ? run.engine.givenUp.reasonOf(attemptId) : null;
  const inTime = settle(run.engine, attemptId, outcome, nowMs);
  // An attempt that is not in flight any more was settled before, so its answer may be recorded.
  if (inTime !== null && inTime.cappedBy === undefined && recorded !== undefined) record(run, recorded, outcome);
  const tooLate = inTime === null ? run.engine.unreportedEnds.endOf(attemptId, outcome) : null;
  const settled = inTime ?? tooLate;
  const endedAs = tooLate?.endedAs ?? stoppedFor;
  return {
    known: inTime !== null,
    ...(endedAs === null ? {} : { endedAs }),
    retryInMs: settled?.retryInMs ?? null,
    ...(settled?.position === undefined ? {} : { position: settled.position }),
    uncounted: settled?.uncounted ?? 0,
    costNanoUsd: settled?.charge.usd ?? 0,
    promptTokens: settled?.charge.prompt_tokens ?? 0,
    completionTokens: settled?.charge.completion_tokens ?? 0,
    estimated: settled?.estimated ?? false,
    ...(settled?.cappedBy === undefined ? {} : { cappedBy: settled.cappedBy }),
    parallelGroupId: settled?.parallelGroupId ?? null,
    remainingNanoUsd: run.remainingNanoUsd,
  };
}

/** What a settlement gets whose run is deleted: nothing is left to charge it to. */
export const UNKNOWN_ATTEMPT: SettleReply = {
  known: false,
  retryInMs: null,
  costNanoUsd: 0,
  promptTokens: 0,
  completionTokens: 0,
  estimated: false,
  parallelGroupId: null,
  remainingNanoUsd: null,
};

/** The answer of an attempt has begun: calls that share its beginning may start. */
export function noteBegun({ engine }: Pick<SingleCalls, "engine">, attemptId: string, nowMs: number): void {
  const prefix = engine.attempts.get(attemptId)?.lease.prefix;
  if (prefix !== undefined) engine.prefixes.begun(attemptId, prefix.keptMs, nowMs);
}

/** Records an answer, unless it does not fit its call's schema. */
function record({ replay }: SingleCalls, recorded: RecordedCall, outcome: Outcome): void {
  if (outcome.kind !== "success" || (outcome.checked?.violation ?? null) !== null) return;
  const { text, model, finishReason, checked } = outcome;
  const checkedJson = checked === undefined ? {} : { isJson: true as const };
  replay?.callAnswered(recorded, { text, ...partsOf(outcome), model, finishReason, ...checkedJson });
}

/** The permit that this call was granted before, in a reply that never arrived; null if it has none. */
function unreadPermit(run: SingleCalls, { callId, attempt, facts }: AcquireRequest, nowMs: number) {
  const inFlight = run.engine.attempts.get(`${callId}.${attempt}`);
  if (inFlight === undefined) return null;
  const { lease } = inFlight;
  heartbeat(run.engine, [lease.attemptId], nowMs);
  return permitOf({ lease, timeoutMs: timeoutOf(facts, lease.target) }, lease.window ?? null);
}
