/**
 * Which slot starts next: while permits are free, the first queued slot whose executor is available gets a reservation
 * and becomes an attempt. Runs after every change, so nothing polls and nothing waits for a chunk to end.
 */
import { admit, type Admission, type AdmissionRules } from "../money/admit.ts";
import { byteTokensMax, lookTokensMax } from "../money/estimate.ts";
import { admitWithTemplate } from "../money/template-admit.ts";
import { leaseShapeOf, shapeOf, shapeOfLease } from "../money/template.ts";
import { zeroAmounts, type Limits } from "../money/ledger.ts";
import { textSampleOf, withLook } from "../money/text-scale.ts";
import type { CallFacts, Lease, PriceFacts } from "../../call.ts";
import type { Dimension, Reason } from "../../errors.ts";
import { labelsOf } from "../../labels.ts";
import { CLAIM_BYTES_MAX, LEASE_TTL_MS } from "../../limits.ts";
import { refuseCall } from "./end-call.ts";
import type { SingleCall } from "../leases/single-call.ts";
import { answerLeft, hasCourse, nextFacts } from "../continuations/table.ts";
import { factsOf } from "./enqueue.ts";
import { endWithAnswer, refuseSlot } from "./end-slot.ts";
import type { Group } from "../group/group.ts";
import { headOf, type Bucket } from "../queue/queue.ts";
import { hasInvalidAnswer, hasShortAnswer, type SlotRecord } from "../group/record.ts";
import { hasEarlyInFlight } from "./early-answers.ts";
import { answeredElsewhere } from "./recall.ts";
import { markedFacts, noteSent, prefixAt, prefixOfCall, startWithPrefix } from "./shared-prefixes.ts";
import { waitsForStop } from "./stop-width.ts";
import { choose, FRESH, type Chosen, type Gates } from "../gates/choose.ts";
import { sendable } from "../gates/sendable.ts";
import {
  isWorker,
  workerOf,
  type AttemptInFlight,
  type ChosenFrom,
  type Position,
  type PrefixAt,
  type Target,
} from "../leases/shard.ts";
import { attemptIdOf, groupSeqOf, indexOf, type SlotFacts } from "../queue/slot.ts";
import type { BodyState, EngineState } from "../state.ts";
import type { TraceContext } from "../../trace-context.ts";
import { isAtStandardTier, sentTierOf, tieredFacts } from "./sent-tier.ts";
import { gateTokensOf } from "../leases/tokens.ts";
import { stoppedAt } from "./blocked.ts";
import { callBefore } from "../services/table.ts";
import { mayPause, pauseGroup, resumeGroups, shortOf } from "./paused.ts";
import { waitAt, type LineWait } from "./waiting.ts";

/** An attempt to make, and its executor: a lane or the Worker of the slot's group by its number, or that of a single call. */
export type Assignment = { lease: AttemptInFlight; timeoutMs: number } & (
  | { executor: number; slotId: number }
  | { executor: null; call: SingleCall }
);

/** The decisions of one turn of dispatch. */
export type Dispatched = {
  assignments: Assignment[];
  /** Single calls that are refused, with their reasons. */
  refused: { call: SingleCall; reason: Reason }[];
  /** Why the first queued slot waits: the refusal it would get if it did not; null if none waits for the budget. */
  waitingFor: Reason | null;
  /** Whether a group that had paused goes on: its lanes have ended meanwhile. */
  hasResumed: boolean;
};

/** Why a queued slot or call does not start. */
export type Hold =
  /** Its group awaits its confirmation. */
  | { kind: "confirmation" }
  /** Its group waits for a higher limit, in this dimension. */
  | { kind: "exhausted"; dimension: Dimension }
  /** No gate lets it start; the wait of the one that does first. */
  | { kind: "gate"; wait: LineWait }
  | { kind: "retry"; readyAtMs: number }
  /** Another call writes the beginning of its prompt, of this name, to the provider's cache. */
  | { kind: "prefix"; name: string }
  /** The call that was made early for it is in flight. */
  | { kind: "equal_call" }
  /** The next attempt waits for the budget: the refusal that it would get if it did not. */
  | { kind: "budget"; reason: Reason }
  /** A permit of its run, group or target, or an executor that takes it. */
  | { kind: "permit" };

/** The slots of a group that wait in one line: the first of them, and until when for a retry; null = they could start. */
export type Queued = { groupSeq: number; line: string; first: number; notBeforeMs: number | null };

/** What keeps the first of a bucket from beginning, whoever had room for it. */
type Bar = "confirmation" | "paused" | "gate" | "permit";

/** The first queued slot or call with what its attempt needs, whoever will execute it. */
type Candidate = {
  attemptId: string;
  attempt: number;
  facts: CallFacts;
  /** Why it cannot be sent: what it refers to is not there, or is too long. Absent = it can. */
  fault?: Reason;
  queuedAtMs: number;
  share: Limits | null;
  learnedCapTokens: number | null;
  /** Whether it waits for a higher limit rather than be refused, or capped by the budget; absent = it does not. */
  mayPause?: boolean;
  onLost: "retry" | "fail";
  chosenFrom?: ChosenFrom;
  /** The service tier that its executor asks for; absent = none. */
  tier?: string | undefined;
  /** The beginning of its prompt that it shares with others, if its target caches it. */
  prefix?: PrefixAt;
  /** The line in which it waits, because its model is overloaded by itself; absent = it may start. */
  busyLine?: BusyLine;
} & ({ slotId: number; call: null; target: Target | null } | { slotId: null; call: SingleCall; target: Target });

type BusyLine = { target: Target; position: Position };

/** Hands out permits. `offers`: how many attempts each waiting executor can take; it is counted down. */
export function dispatch(state: EngineState, offers: Map<number, number>, nowMs: number): Dispatched {
  const hasResumed = resumeGroups(state, nowMs);
  const result: Dispatched = { assignments: [], refused: [], waitingFor: null, hasResumed };
  const givenBytes = new Map<number, number>();
  state.queue.wake(nowMs);
  // Buckets whose first slot waits for its body, or for the call that writes its prefix: others may overtake it meanwhile.
  const awaiting = new Set<Bucket>();
  let waiting: Waiting | null = null;
  const gates = gatesOf(state, nowMs);
  const view = { keys: keysOf(state, nowMs), gates };
  const eligible = (each: Bucket): boolean => !awaiting.has(each) && mayStart(state, each, offers, { view, nowMs });
  while (!state.turnShare.isSpent && !isFull(state)) {
    const bucket = state.queue.best(nowMs, eligible);
    const id = bucket === null ? undefined : headOf(bucket);
    if (bucket === null || id === undefined) break;
    if (isAway(state, bucket, id)) {
      // A permit that nobody takes would keep others waiting.
      state.queue.putAside(bucket);
      continue;
    }
    const elsewhere = bucket.groupSeq === 0 ? null : answeredElsewhere(state, bucket, id, nowMs);
    if (elsewhere === "awaited") awaiting.add(bucket);
    if (elsewhere !== null) continue;
    const candidate = candidateOf(state, bucket.groupSeq, id, gates);
    if (leavesLine(state, bucket, candidate, awaiting)) continue;
    if (follows(state, bucket, id, candidate)) {
      state.queue.take(bucket);
      continue;
    }
    const body = bodyOf(state, candidate);
    if (body === "awaited" || waitsForPrefix(state, candidate, nowMs)) {
      awaiting.add(bucket);
      continue;
    }
    const decided = body === "lost" ? LOST_BODY : decide(state, candidate, nowMs);
    if (pauses(state, candidate, decided, nowMs)) continue;
    if (endsWithAnswer(state, bucket, { candidate, decided }, nowMs)) continue;
    if (decided.kind === "wait") {
      // A slot that waits for money is not overtaken: an expensive call must not starve behind cheap ones.
      result.waitingFor = decided.reason;
      waiting = { slotId: candidate.slotId, decided };
      break;
    }
    state.queue.take(bucket);
    if (candidate.call !== null) state.removeCall(id);
    if (decided.kind === "refuse") refuse(state, candidate, decided.reason, result, nowMs);
    else start(state, candidate, decided, { offers, result, givenBytes }, nowMs);
  }
  noteNarrowing(state, waiting, result.assignments.length > 0, nowMs);
  return result;
}

/** The slot or call that waits for the budget. */
type Waiting = { slotId: number | null; decided: Extract<Admission, { kind: "wait" }> };

/** Notes the group whose next slot waits for the budget, and for how long: its metrics say so. */
function noteNarrowing(state: EngineState, waiting: Waiting | null, hasStarted: boolean, nowMs: number): void {
  const before = state.narrowedGroup;
  const group = waiting === null || waiting.slotId === null ? undefined : state.groups.get(groupSeqOf(waiting.slotId));
  const { reason, capKind } = waiting?.decided ?? {};
  if (group === undefined || reason?.reason !== "in_flight_budget_exhausted" || capKind === undefined) {
    if (before === null) return;
    // Where no executor has offered anything, nothing was decided.
    const isOver = waiting !== null || hasStarted || before.counts.queued === 0;
    before.narrowing.note(isOver ? null : undefined, before.inFlight, nowMs);
    if (isOver) state.narrowedGroup = null;
    return;
  }
  if (before !== group) before?.narrowing.note(null, before.inFlight, nowMs);
  state.narrowedGroup = group;
  const of = Math.min(state.width, group.header.concurrency, group.header.count);
  const wait = { dimension: reason.dimension, perCall: reason.needed, capKind, of };
  group.narrowing.note(wait, group.inFlight, nowMs);
}

/** The group of the slot that could start next if an executor had room for it; null = none could, whoever had room. Changes nothing. */
export function startableGroup(state: EngineState, nowMs: number): number | null {
  const next = nextOf(state, ({ groupSeq }) => groupSeq !== 0, viewOf(state, nowMs), nowMs);
  return next === null || next.waitsFor !== null ? null : next.groupSeq;
}

/**
 * How many slots of some groups could start now if executors had room for them: never too few, for budgets and the tokens of a rate
 * may let fewer start. Changes nothing. Costs a pass over the buckets.
 */
export function startableSlots(state: EngineState, isOf: (groupSeq: number) => boolean, nowMs: number): number {
  const { attempts, credits, width, queue, groups, lines, upstreams } = state;
  if (isFull(state)) return 0;
  const room = width - attempts.size - credits.permits;
  const view = viewOf(state, nowMs);
  let slots = 0;
  for (const { bucket, count } of queue.ready()) {
    if (slots >= room) break;
    const { groupSeq, upstream } = bucket;
    const group = groups.get(groupSeq);
    if (group === undefined || !isOf(groupSeq) || barOf(state, bucket, view, nowMs) !== null) continue;
    const isSeveral = lines.get(upstream) !== undefined;
    const atGate = isSeveral ? Infinity : upstreams.roomAt(upstream, nowMs, credits.permitsAt(upstream));
    slots += Math.min(count, group.header.concurrency - group.inFlight, atGate);
  }
  return Math.min(slots, room);
}

/**
 * Why queued slots do not start, as dispatch decides it, line by line. It is found out when someone looks: turns pay nothing for
 * it. Changes nothing.
 */
export function holdsOf(state: EngineState, nowMs: number): (queued: Queued) => Hold {
  const view = viewOf(state, nowMs);
  let next: ReturnType<typeof nextOf> | undefined;
  return ({ groupSeq, line, first, notBeforeMs }) => {
    const bar = barOf(state, { groupSeq, upstream: line }, view, nowMs);
    if (bar === "confirmation") return { kind: "confirmation" };
    const paused = state.groups.get(groupSeq)?.paused ?? null;
    const dimension = paused === null ? null : shortOf(state, paused);
    if (dimension !== null) return { kind: "exhausted", dimension };
    // A key that is stopped is what all wait for, also while one finds out whether it works again.
    const wait = (bar === "gate" ? waitAt(state, line, nowMs) : null) ?? stoppedAt(state, line);
    if (wait !== null) return { kind: "gate", wait };
    if (hasEarlyInFlight(state, first)) return { kind: "equal_call" };
    if (notBeforeMs !== null && notBeforeMs > nowMs) return { kind: "retry", readyAtMs: notBeforeMs };
    if (bar !== null || isFull(state)) return { kind: "permit" };
    const candidate = candidateOf(state, groupSeq, first, view.gates);
    if (waitsForPrefix(state, candidate, nowMs)) return { kind: "prefix", name: candidate.prefix.name };
    // What waits for money is not overtaken.
    next = next === undefined ? nextOf(state, () => true, view, nowMs) : next;
    const reason = next?.waitsFor ?? null;
    return reason === null ? { kind: "permit" } : { kind: "budget", reason };
  };
}

/**
 * The group of what dispatch starts next among the buckets that are meant, if an executor had room for it, and the refusal that it
 * waits to avoid; null = nothing. Changes nothing.
 */
function nextOf(
  state: EngineState,
  isMeant: (bucket: Bucket) => boolean,
  view: GateView,
  nowMs: number,
): { groupSeq: number; waitsFor: Reason | null } | null {
  if (isFull(state)) return null;
  const awaiting = new Set<Bucket>();
  const eligible = (bucket: Bucket): boolean =>
    isMeant(bucket) && !awaiting.has(bucket) && barOf(state, bucket, view, nowMs) === null;
  for (;;) {
    const bucket = state.queue.best(nowMs, eligible);
    const id = bucket === null ? undefined : headOf(bucket);
    if (bucket === null || id === undefined) return null;
    const candidate = candidateOf(state, bucket.groupSeq, id, view.gates);
    const isHeld = candidate.busyLine !== undefined || isAway(state, bucket, id);
    if (!isHeld && !waitsForPrefix(state, candidate, nowMs)) {
      const decided = decide(state, candidate, nowMs);
      return { groupSeq: bucket.groupSeq, waitsFor: decided.kind === "wait" ? decided.reason : null };
    }
    awaiting.add(bucket);
  }
}

/** Whether the run lets no more attempts start. */
function isFull({ isPaused, attempts, credits, width }: EngineState): boolean {
  return isPaused || attempts.size + credits.permits >= width;
}

/** Whether the Worker of a single call is not there to take its permit. */
function isAway({ calls, deps }: EngineState, { groupSeq }: Bucket, id: number): boolean {
  const call = groupSeq === 0 ? calls.get(id) : undefined;
  return call !== undefined && deps.isAway?.(call.callId) === true;
}

/** Whether a call waits for another one to write the beginning of its prompt to the provider's cache. */
function waitsForPrefix(
  { prefixes }: EngineState,
  candidate: Candidate,
  nowMs: number,
): candidate is Candidate & { prefix: PrefixAt } {
  const { prefix } = candidate;
  return prefix !== undefined && !prefixes.mayStart(prefix.name, nowMs);
}

const LOST_BODY: Admission = {
  kind: "refuse",
  reason: { reason: "internal", message: "the request of this call is gone from R2" },
};

/** Whether the body of a candidate is at hand: a single call's Worker has it. */
function bodyOf({ deps }: EngineState, { slotId }: Candidate): BodyState {
  return slotId === null ? "here" : (deps.bodyOf?.(slotId) ?? "here");
}

/** Pauses the group of a slot that the budget does not cover, if it waits then: its slots stay queued. */
function pauses(state: EngineState, { slotId, mayPause: may }: Candidate, decided: Admission, nowMs: number): boolean {
  const group = slotId === null || may !== true ? undefined : state.groups.get(groupSeqOf(slotId));
  if (group === undefined || decided.kind !== "refuse" || decided.need === undefined) return false;
  pauseGroup(state, group, { reason: decided.reason, need: decided.need }, nowMs);
  return true;
}

/** Takes a slot from the queue that ends with the answer that it has. False: its next attempt is decided on. */
function endsWithAnswer(
  state: EngineState,
  bucket: Bucket,
  { candidate, decided }: { candidate: Candidate; decided: Admission },
  nowMs: number,
): boolean {
  const left = leftWith(state, candidate, decided);
  if (left === null) return false;
  state.queue.take(bucket);
  endWithAnswer(state, left, nowMs);
  return true;
}

/** The final record of a slot that ends with the answer that it has, because the budget pays for no better one; else null. */
function leftWith({ tried }: EngineState, { slotId, facts }: Candidate, decided: Admission): SlotRecord | null {
  const record = slotId === null ? undefined : tried.get(slotId);
  if (decided.kind === "refuse") return answerLeft(record, { kind: "refused", reason: decided.reason }, facts);
  if (decided.capKind !== "budget") return null;
  return answerLeft(record, { kind: "capped", capTokens: decided.capTokens ?? Infinity }, facts);
}

/** True if an equal call is in flight: then the candidate follows it and waits for its outcome. */
function follows(state: EngineState, bucket: Bucket, id: number, candidate: Candidate): boolean {
  const { facts, call } = candidate;
  if (facts.dedupeKey === undefined) return false;
  const { groupSeq, upstream, priority, queuedAtMs } = bucket;
  const follower = { bucket: { groupSeq, upstream, priority, queuedAtMs }, id, call };
  return state.singleFlight.follow(facts.dedupeKey, leaderName(candidate), follower);
}

/** The name of a call as a leader in single flight. */
function leaderName({ slotId, call }: Candidate): string {
  return slotId === null ? call.callId : String(slotId);
}

function mayStart(
  state: EngineState,
  bucket: Bucket,
  offers: Map<number, number>,
  { view, nowMs }: { view: GateView; nowMs: number },
): boolean {
  if (barOf(state, bucket, view, nowMs) !== null) return false;
  return bucket.groupSeq === 0 || offerFor(offers, bucket.groupSeq) !== null;
}

/** Which limit, of its group or of its targets, leaves no room for the first of a bucket; null = none. */
function barOf(
  state: EngineState,
  { groupSeq, upstream }: Pick<Bucket, "groupSeq" | "upstream">,
  { keys, gates }: GateView,
  nowMs: number,
): Bar | null {
  const group = groupSeq === 0 ? null : state.groups.get(groupSeq);
  if (group?.mayStart === false) return group.header.held === undefined ? "paused" : "confirmation";
  const line = state.lines.get(upstream);
  const isOpen =
    line === undefined
      ? keys.mayStart(upstream, "")
      : choose(line.target, line.position, line.isOfModel ? gates : keys) !== null;
  if (!isOpen) return "gate";
  if (group === null) return null;
  if (group === undefined || group.inFlight >= group.header.concurrency) return "permit";
  return yieldsToService(state, group) || waitsForStop(state, group, nowMs) ? "permit" : null;
}

/**
 * Whether the last permit is for a call that serves the group: the slots that its answer may cancel must not keep it waiting. Whoever
 * executes the group has room before a lane comes for that call.
 */
function yieldsToService({ groups, attempts, credits, width }: EngineState, group: Group): boolean {
  const seq = callBefore(group);
  if (seq === null) return false;
  const isQueued = groups.get(seq)?.counts.queued === 1;
  return isQueued && attempts.size + credits.permits >= width - 1;
}

/** The gates with what is known of each model there, and the same for lines whose calls are for several models. */
type GateView = { gates: Gates; keys: Gates };

function viewOf(state: EngineState, nowMs: number): GateView {
  return { gates: gatesOf(state, nowMs), keys: keysOf(state, nowMs) };
}

/** What the choice of a target is made by. */
export function gatesOf({ upstreams, credits }: EngineState, nowMs: number): Gates {
  return {
    mayStart: (gate, model) => upstreams.mayStart(gate, nowMs, credits.permitsAt(gate), model),
    isStopped: (gate) => upstreams.isStopped(gate, nowMs),
    isLimited: (gate, model) => upstreams.isLimited(gate, nowMs, credits.permitsAt(gate), model),
    inFlight: (gate) => upstreams.get(gate)?.inFlight ?? 0,
  };
}

/** The gates as they are for a model that is not overloaded by itself. */
function keysOf(state: EngineState, nowMs: number): Gates {
  const { upstreams, credits } = state;
  return {
    ...gatesOf(state, nowMs),
    mayStart: (gate) => upstreams.mayStart(gate, nowMs, credits.permitsAt(gate)),
    isLimited: (gate) => upstreams.isLimited(gate, nowMs, credits.permitsAt(gate)),
  };
}

/** Moves the head of a bucket to the line of its model, if that is overloaded by itself: others need not wait behind it. */
function leavesLine(
  { lines, queue, turnShare }: EngineState,
  bucket: Bucket,
  { busyLine }: Candidate,
  awaiting: Set<Bucket>,
): boolean {
  if (busyLine === undefined) return false;
  const name = lines.addBusy(busyLine.target, busyLine.position);
  if (name === null) awaiting.add(bucket);
  else {
    turnShare.spend(0);
    queue.moveHead(bucket, name);
  }
  return true;
}

/** The call or slot at the head of a bucket. */
function candidateOf(state: EngineState, groupSeq: number, id: number, gates: Gates): Candidate {
  return groupSeq === 0 ? callCandidate(state, id, gates) : slotCandidate(state, id, gates);
}

function callCandidate(state: EngineState, place: number, gates: Gates): Candidate {
  const call = state.calls.get(place);
  if (call === undefined) throw new Error(`the single call at position ${place} is queued but not known`);
  const { attempt, queuedAtMs, onLost } = call;
  const { target, ...from } = chosen(call.target, call.position, gates);
  const tier = sentTierOf(call.facts, state.serviceTier, target);
  const facts = tieredFacts(call.facts, tier);
  const prefix = prefixOfCall(state, facts, target);
  return {
    attemptId: `${call.callId}.${attempt}`,
    attempt,
    facts: markedFacts(facts, prefix),
    tier,
    ...(prefix === null ? {} : { prefix }),
    target,
    ...from,
    queuedAtMs,
    share: null,
    learnedCapTokens: null,
    onLost,
    slotId: null,
    call,
  };
}

function slotCandidate(state: EngineState, slotId: number, gates: Gates): Candidate {
  const group = state.groups.get(groupSeqOf(slotId));
  if (group === undefined) throw new Error(`slot ${slotId} is queued but its group is not known`);
  const { facts, ...fault } = sentFactsOf(state, group, slotId);
  const asked = state.targetOf(group.header, facts);
  const { target, ...from } =
    asked === null ? { target: null } : chosen(sendable(asked, facts), state.tried.get(slotId)?.position, gates);
  const attempt = (group.attempts[indexOf(slotId)] ?? 0) + 1;
  const queuedAtMs = group.header.openedAtMs;
  const { share, onLost } = group.header;
  const learnedCapTokens = target === null ? null : learnedCapFor(state, group, facts, { slotId, target });
  const isLone = group.header.single !== null;
  const prefix = isLone ? prefixOfCall(state, facts, target) : target === null ? null : prefixAt(facts, target);
  const hasTier = target !== null && !isAtStandardTier(group, slotId);
  const tier = hasTier ? sentTierOf(facts, state.serviceTier, target) : undefined;
  const rules = {
    share,
    learnedCapTokens,
    mayPause: mayPause(group),
    // What a lost call of a tool has done is not known.
    onLost: target?.tool?.idempotent === false ? ("fail" as const) : onLost,
  };
  return {
    attemptId: attemptIdOf(slotId, attempt),
    attempt,
    facts: tieredFacts(markedFacts(facts, prefix), tier),
    tier,
    ...fault,
    ...(prefix === null ? {} : { prefix }),
    target,
    ...from,
    queuedAtMs,
    ...rules,
    slotId,
    call: null,
  };
}

/** The facts of a slot with the answer that it repeats, if any; of a graph's, with the outputs that its task refers to. */
export function sentFactsOf(state: EngineState, group: Group, slotId: number): { facts: SlotFacts; fault?: Reason } {
  const facts = factsOf(state, group, indexOf(slotId));
  const substituted = group.graph === null ? undefined : state.deps.substitutedFactsOf?.(slotId);
  const tried = state.tried.get(slotId);
  if (substituted === undefined) return { facts };
  if (!substituted.ok) return { facts, fault: substituted.reason };
  return { facts: nextFacts(substituted.facts, tried) };
}

/** Where the attempt of a call goes whose bucket may start. */
function chosen(target: Target, position: Position = FRESH, gates: Gates): Chosen & { busyLine?: BusyLine } {
  const found = choose(target, position, gates);
  if (found !== null) return found;
  // Its line may start, so its model is what waits.
  const [first = target] = target.choices?.[position.from]?.targets ?? [];
  return { target: first, busyLine: { target, position } };
}

/**
 * The learned cap that a slot may reserve; null = it reserves the default, as it does after a learned cap was too low or an
 * answer did not fit its schema.
 */
function learnedCapFor(
  state: EngineState,
  { header }: Group,
  { reserve = header.single === null ? "learned" : "worst" }: CallFacts,
  { slotId, target }: { slotId: number; target: Target },
): number | null {
  const tried = state.tried.get(slotId);
  if (reserve === "worst" || hasShortAnswer(tried) || hasInvalidAnswer(tried)) return null;
  return state.learnedCaps.capOf(target, state.attempts.size);
}

function decide(state: EngineState, candidate: Candidate, nowMs: number): Admission {
  if (candidate.fault !== undefined) return { kind: "refuse", reason: candidate.fault };
  if (candidate.target === null) {
    return { kind: "refuse", reason: { reason: "model_not_found", model: candidate.facts.model ?? "" } };
  }
  const { facts, target, share, learnedCapTokens, mayPause: isWhole = false } = candidate;
  const rules = { share, learnedCapTokens, isWhole, attemptsWanted: attemptsWanted(state) };
  const isInFlight = (shape: string): boolean => hasTemplateInFlight(state, target, shape);
  return admissionOf({ facts, target, rules, isInFlight }, state, nowMs);
}

type Admitted = {
  facts: CallFacts;
  target: Target;
  rules: Pick<AdmissionRules, "share" | "learnedCapTokens" | "isWhole" | "attemptsWanted">;
  /** True if an attempt with a template of this shape is in flight. */
  isInFlight: (shape: string) => boolean;
};

/** Decides on one attempt by a ledger, and by what is known of its upstream. Changes nothing. */
export function admissionOf(
  { facts: asked, target, rules: own, isInFlight }: Admitted,
  { ledger, templates }: Pick<EngineState, "ledger" | "templates">,
  nowMs: number,
): Admission {
  if (target.tool !== undefined)
    return { kind: "reserve", amounts: zeroAmounts(), capTokens: null, capKind: "default" };
  const { unbounded = [] } = asked;
  const facts = target.unbounded === undefined ? asked : { ...asked, unbounded: [...unbounded, ...target.unbounded] };
  const { usd, prompt_tokens: promptTokens, new_tokens: newTokens } = ledger.limits;
  const isLimited = usd !== null || promptTokens !== null || newTokens !== null;
  const overhead = isLimited ? templates.overheadOf(target, facts, nowMs) : null;
  // After the overhead, which reads what other runs have learned.
  const bounds = withLook(target.bounds, templates.textRatioOf(target));
  const rules = { ...own, bounds, allowParams: target.allowParams };
  if (overhead === null) return admit(facts, target.price, ledger, rules);
  const template = { overhead, isInFlight: () => isInFlight(shapeOf(facts)) };
  return admitWithTemplate(facts, target.price, ledger, { ...rules, ...template });
}

/** Attempts that would be in flight without a budget. */
export function attemptsWanted({ width, attempts, queue }: EngineState): number {
  return Math.min(width, attempts.size + queue.readyCount);
}

function hasTemplateInFlight({ attempts }: EngineState, { upstream, model }: Target, shape: string): boolean {
  for (const { lease } of attempts.values()) {
    if (shapeOfLease(lease.shape) === shape && lease.target.model === model && lease.target.upstream === upstream)
      return true;
  }
  return false;
}

function refuse(state: EngineState, candidate: Candidate, reason: Reason, result: Dispatched, nowMs: number): void {
  const { call, slotId } = candidate;
  if (call === null) {
    state.turnShare.spend(0);
    return refuseSlot(state, slotId, reason, nowMs);
  }
  refuseCall(state, call, reason, nowMs);
  result.refused.push({ call, reason });
}

function start(
  state: EngineState,
  candidate: Candidate,
  { amounts, capTokens, capKind }: Pick<AttemptInFlight, "amounts" | "capTokens" | "capKind">,
  { offers, result, givenBytes }: { offers: Map<number, number>; result: Dispatched; givenBytes: Map<number, number> },
  nowMs: number,
): void {
  const { attemptId, facts, target, slotId, call, tier } = candidate;
  if (target === null || !state.ledger.reserve(attemptId, amounts)) throw new Error(`${attemptId} cannot be reserved`);
  if (facts.dedupeKey !== undefined) state.singleFlight.lead(facts.dedupeKey, leaderName(candidate));
  const untiered = leaseFor({ ...candidate, target }, { amounts, capTokens, capKind }, nowMs);
  const plain = tier === undefined ? untiered : { ...untiered, tier };
  const { prefix } = candidate;
  const lease = prefix === undefined ? plain : { ...plain, ...startWithPrefix(state, plain, prefix, nowMs) };
  const timeoutMs = timeoutOf(facts, target);
  noteSent(state, facts, target);
  if (call !== null) {
    state.begin(lease, null, call, nowMs);
    result.assignments.push({ executor: null, call, lease, timeoutMs });
    return;
  }
  const executor = takeOffer(offers, groupSeqOf(slotId));
  const bytes = (givenBytes.get(executor) ?? 0) + facts.promptBytes - (facts.contextBytes ?? 0);
  givenBytes.set(executor, bytes);
  if (bytes >= CLAIM_BYTES_MAX) offers.delete(executor);
  state.begin(lease, executor, null, nowMs);
  result.assignments.push({ executor, slotId, lease, timeoutMs });
}

/** An attempt to start. */
export type Start = Pick<AttemptInFlight, "attemptId" | "attempt" | "slotId" | "target" | "onLost" | "chosenFrom"> & {
  facts: CallFacts;
  queuedAtMs: number;
};

/** The lease of an attempt that starts now, with this reservation. */
export function leaseFor(
  { attemptId, slotId, attempt, target, facts, queuedAtMs, onLost, chosenFrom }: Start,
  { amounts, capTokens, capKind }: Pick<AttemptInFlight, "amounts" | "capTokens" | "capKind">,
  nowMs: number,
): AttemptInFlight {
  const queuedMs = Math.max(0, nowMs - queuedAtMs);
  const expiresAtMs = nowMs + LEASE_TTL_MS;
  const byLook = lookTokensMax(facts, target.bounds);
  const byBytes = byteTokensMax(facts, target.bounds);
  const lease: AttemptInFlight = {
    attemptId,
    slotId,
    attempt,
    target,
    amounts,
    startedAtMs: nowMs,
    queuedMs,
    expiresAtMs,
    gateTokens: gateTokensOf(facts, capTokens),
    startSeq: 0,
    dedupeKey: facts.dedupeKey ?? null,
    capTokens,
    capKind,
    onLost,
    priced: priceFactsOf(facts),
    textSample: textSampleOf(facts),
    // An answer that shows no template needs no more of the shape than its row has.
    shape: (byBytes === null ? shapeOf : leaseShapeOf)(facts),
    byteTokensMax: byBytes,
  };
  if (byLook !== null) lease.lookTokensMax = byLook;
  const { schemaRetries, maxTokens: requestedCap, trace } = facts;
  if (capKind === "budget") lease.requestedCap = requestedCap;
  const hedge = facts.hedge ?? target.hedge ?? false;
  // Whoever asks that a lost attempt is not made again does not want two.
  if (hedge !== false && onLost === "retry") lease.hedge = hedge;
  if (chosenFrom !== undefined) lease.chosenFrom = chosenFrom;
  if (schemaRetries !== undefined) lease.schemaRetries = schemaRetries;
  if (hasCourse(facts)) lease.hasCourse = true;
  if (trace !== undefined) lease.trace = trace;
  // The log gives events of slots their labels when it is read.
  const labels = slotId === null ? labelsOf(facts) : undefined;
  if (labels !== undefined) lease.labels = labels;
  return lease;
}

/** Without absent fields: few calls have one, and a lease is part of a row that is rewritten often. */
function priceFactsOf({ cacheTtl, serviceTier }: CallFacts): PriceFacts {
  const facts: PriceFacts = {};
  if (cacheTtl !== undefined) facts.cacheTtl = cacheTtl;
  if (serviceTier !== undefined) facts.serviceTier = serviceTier;
  return facts;
}

/** What an executor needs to know of its attempt. `shared`: the trace of its slot's group. */
export function leaseOf({ lease, timeoutMs }: Pick<Assignment, "lease" | "timeoutMs">, shared?: TraceContext): Lease {
  const { attemptId, attempt, capTokens, capKind, requestedCap, target, priced } = lease;
  const { upstream, model, key } = target;
  const sent: Lease = { attemptId, attempt, upstream, model, capTokens, capKind, timeoutMs };
  if (requestedCap !== undefined) sent.requestedCap = requestedCap;
  if (key !== undefined) sent.key = key;
  if (lease.chosenFrom?.route !== undefined) sent.route = lease.chosenFrom.route;
  if (lease.tier !== undefined) sent.tier = lease.tier;
  if (lease.prefix?.mark !== undefined) sent.mark = lease.prefix.mark;
  if (lease.prefix?.leads === true) sent.leads = true;
  if (lease.hedgeOf !== undefined) sent.hedgeOf = lease.hedgeOf;
  const trace = lease.trace ?? shared;
  if (trace !== undefined && target.getsTrace === true) sent.trace = trace;
  return Object.keys(priced).length === 0 ? sent : { ...sent, priced };
}

/** Time limit of one attempt of a call, ms: the client's, if it is below the upstream's. */
export function timeoutOf(facts: Pick<CallFacts, "timeoutMs">, target: Pick<Target, "timeoutMs">): number {
  return Math.min(facts.timeoutMs ?? target.timeoutMs, target.timeoutMs);
}

/** The executor that takes the next slot of a group: the Worker of its client, else the first lane; null = none waits. */
export function offerFor(offers: ReadonlyMap<number, number>, groupSeq: number): number | null {
  const worker = workerOf(groupSeq);
  if (offers.has(worker)) return worker;
  for (const executor of offers.keys()) if (!isWorker(executor)) return executor;
  return null;
}

/** Takes one offer. A lane is filled before the next, so that few lanes serve a narrow group. */
export function takeOffer(offers: Map<number, number>, groupSeq: number): number {
  const executor = offerFor(offers, groupSeq);
  if (executor === null) throw new Error("a slot of a group was eligible without a waiting executor");
  takeOfferOf(offers, executor);
  return executor;
}

/** Takes one offer of an executor. */
export function takeOfferOf(offers: Map<number, number>, executor: number): void {
  const left = offers.get(executor) ?? 0;
  if (left > 1) offers.set(executor, left - 1);
  else offers.delete(executor);
}
