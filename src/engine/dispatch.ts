/**
 * Which slot starts next: while permits are free, the best queued slot whose executor is at hand gets a reservation and
 * becomes an attempt. Runs after every change, so nothing polls and nothing waits for a chunk to end.
 */
import { admit } from "../budget/admit.ts";
import type { Limits } from "../budget/ledger.ts";
import type { CallFacts } from "../call.ts";
import type { Reason } from "../errors.ts";
import { LEASE_TTL_MS } from "../limits.ts";
import { isBudgetReason, refuseSlot, tellCallEnd } from "./open.ts";
import type { Line } from "./queue.ts";
import type { AttemptInFlight, Target } from "./shard.ts";
import { groupSeqOf, indexOf } from "./slot.ts";
import type { EngineState, SingleCall } from "./state.ts";

/** An attempt to make, and who makes it. */
export type Assignment = { lease: AttemptInFlight; timeoutMs: number } & (
  | { lane: number; slotId: number }
  | { lane: null; call: SingleCall }
);

/** What one turn of dispatch decided. */
export type Dispatched = {
  assignments: Assignment[];
  /** Single calls that the budget refuses. */
  refused: { call: SingleCall; reason: Reason }[];
  /** What the best slot in line waits for: the refusal it would get if it did not wait; null when nothing does. */
  waitingFor: Reason | null;
};

/** The best slot in line with what its attempt needs, whoever will execute it. */
type Candidate = {
  attemptId: string;
  attempt: number;
  facts: CallFacts;
  queuedAtMs: number;
  share: Limits | null;
  onLost: "retry" | "fail";
} & ({ slotId: number; call: null; target: Target | null } | { slotId: null; call: SingleCall; target: Target });

/** Hands out permits. `offers` holds how many attempts each waiting lane can take; it is counted down. */
export function dispatch(state: EngineState, offers: Map<number, number>, nowMs: number): Dispatched {
  const result: Dispatched = { assignments: [], refused: [], waitingFor: null };
  state.queue.wake(nowMs);
  const eligible = (line: Line): boolean => mayStart(state, line, offers, nowMs);
  while (!state.paused && state.attempts.size < state.width) {
    const line = state.queue.best(nowMs, eligible);
    const place = line?.slots[line.head];
    if (line === null || place === undefined) break;
    const candidate = line.groupSeq === 0 ? singleCandidate(state, place) : slotCandidate(state, place);
    if (follows(state, line, place, candidate)) {
      state.queue.take(line);
      continue;
    }
    const decided = decide(state, candidate);
    if (decided.kind === "wait") {
      // What waits for money keeps its place, and nothing overtakes it: a dear call must not starve behind cheap ones.
      result.waitingFor = decided.reason;
      break;
    }
    state.queue.take(line);
    if (candidate.call !== null) state.calls.delete(place);
    if (decided.kind === "refuse") refuse(state, candidate, decided.reason, result, nowMs);
    else start(state, candidate, decided, { offers, result }, nowMs);
  }
  return result;
}

/** Has a call wait for an equal one that is in flight, if there is one. */
function follows(state: EngineState, line: Line, place: number, candidate: Candidate): boolean {
  const { facts, call } = candidate;
  if (facts.dedupeKey === undefined) return false;
  const { groupSeq, upstream, priority, queuedAtMs } = line;
  const follower = { line: { groupSeq, upstream, priority, queuedAtMs }, place, call };
  return state.flights.follow(facts.dedupeKey, leaderName(candidate), follower);
}

/** What a call is called as the leader of its equals. */
function leaderName({ slotId, call }: Candidate): string {
  return slotId === null ? call.callId : String(slotId);
}

function mayStart(state: EngineState, line: Line, offers: Map<number, number>, nowMs: number): boolean {
  const upstream = state.upstreamNamed(line.upstream);
  if (upstream !== undefined && (upstream.coolUntilMs > nowMs || upstream.inFlight >= upstream.maxInFlight))
    return false;
  if (line.groupSeq === 0) return true;
  const group = state.groups.get(line.groupSeq);
  return group !== undefined && offers.size > 0 && group.inFlight < group.header.concurrency;
}

function singleCandidate(state: EngineState, place: number): Candidate {
  const call = state.calls.get(place);
  if (call === undefined) throw new Error(`single call ${place} is queued but not known`);
  const { attempt, facts, target, queuedAtMs, onLost } = call;
  return {
    attemptId: `${call.callId}.${attempt}`,
    attempt,
    facts,
    target,
    queuedAtMs,
    share: null,
    onLost,
    slotId: null,
    call,
  };
}

function slotCandidate(state: EngineState, slotId: number): Candidate {
  const group = state.groups.get(groupSeqOf(slotId));
  if (group === undefined) throw new Error(`slot ${slotId} is queued but its group is not known`);
  const facts = state.deps.factsOf(slotId);
  const target = state.deps.targetOf(group.header, facts.modelIndex);
  const attempt = (group.attempts[indexOf(slotId)] ?? 0) + 1;
  const queuedAtMs = group.header.openedAtMs;
  const { share, onLost } = group.header;
  return { attemptId: `${slotId}.${attempt}`, attempt, facts, target, queuedAtMs, share, onLost, slotId, call: null };
}

function decide(state: EngineState, candidate: Candidate): ReturnType<typeof admit> {
  if (candidate.target === null) {
    return { kind: "refuse", reason: { reason: "model_not_found", model: candidate.facts.model ?? "" } };
  }
  const { facts, target, share } = candidate;
  return admit(facts, target.price, state.ledger, { bounds: target.bounds, share });
}

function refuse(state: EngineState, candidate: Candidate, reason: Reason, result: Dispatched, nowMs: number): void {
  const { call, slotId } = candidate;
  if (call === null) return refuseSlot(state, slotId, reason, nowMs);
  call.window?.callEnded(false, nowMs);
  const name = { index: null, callId: call.callId };
  if (isBudgetReason(reason))
    state.log.add({ event: "budget_refused", ...name, reason }, call.window?.id ?? null, nowMs);
  tellCallEnd(state, call, reason, nowMs);
  result.refused.push({ call, reason });
}

function start(
  state: EngineState,
  candidate: Candidate,
  admitted: { amounts: AttemptInFlight["amounts"]; capTokens: number | null },
  { offers, result }: { offers: Map<number, number>; result: Dispatched },
  nowMs: number,
): void {
  const { attemptId, attempt, facts, target, slotId, call, onLost } = candidate;
  const { amounts, capTokens } = admitted;
  if (target === null || !state.ledger.reserve(attemptId, amounts)) throw new Error(`${attemptId} cannot be reserved`);
  const queuedMs = Math.max(0, nowMs - candidate.queuedAtMs);
  const expiresAtMs = nowMs + LEASE_TTL_MS;
  const dedupeKey = facts.dedupeKey ?? null;
  if (dedupeKey !== null) state.flights.lead(dedupeKey, leaderName(candidate));
  const known = { startSeq: 0, dedupeKey, capTokens, onLost };
  const lease = { attemptId, slotId, attempt, target, amounts, startedAtMs: nowMs, queuedMs, expiresAtMs, ...known };
  const timeoutMs = timeoutOf(facts, target);
  if (call !== null) {
    state.begin(lease, null, call, nowMs);
    result.assignments.push({ lane: null, call, lease, timeoutMs });
    return;
  }
  const lane = takeOffer(offers);
  state.begin(lease, lane, null, nowMs);
  result.assignments.push({ lane, slotId, lease, timeoutMs });
}

/** How long one attempt of a call may take, ms: what its client allows, and no longer than its upstream does. */
export function timeoutOf(facts: Pick<CallFacts, "timeoutMs">, target: Pick<Target, "timeoutMs">): number {
  return Math.min(facts.timeoutMs ?? target.timeoutMs, target.timeoutMs);
}

/** The first waiting lane's number; a lane is filled before the next, so that few lanes do the work of a narrow group. */
function takeOffer(offers: Map<number, number>): number {
  for (const [lane, left] of offers) {
    if (left > 1) offers.set(lane, left - 1);
    else offers.delete(lane);
    return lane;
  }
  throw new Error("a slot of a group was eligible without a waiting lane");
}
