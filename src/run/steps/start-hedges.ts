/**
 * Which slots get a second attempt now: those whose first is much slower than the others. A hedge never waits, neither for the
 * budget nor at a gate, and starts before fresh slots, like a retry that is due.
 */
import type { HedgeRule } from "../../call.ts";
import {
  admissionOf,
  attemptsWanted,
  gatesOf,
  leaseFor,
  offerFor,
  sentFactsOf,
  takeOffer,
  takeOfferOf,
  timeoutOf,
  type Assignment,
} from "./dispatch.ts";
import { factsOf } from "./enqueue.ts";
import type { Group } from "../group/group.ts";
import { executorOf, type AttemptInFlight, type Target } from "../leases/shard.ts";
import { groupSeqOf, indexOf } from "../queue/slot.ts";
import type { EngineState } from "../state.ts";
import { extraOf, mayCost } from "./hedge-spend.ts";
import { HEDGE_MEDIANS_MIN } from "../../limits.ts";
import { isStraggler, type Siblings } from "../learned/straggler.ts";

/** Starts the hedges that are due. `offers`: how many attempts each waiting executor can take; it is counted down. */
export function startHedges(state: EngineState, offers: Map<number, number>, nowMs: number): Assignment[] {
  const started: Assignment[] = [];
  if (!state.hedges.hasOpen || offers.size === 0) return started;
  for (const late of [...lateSlots(state, nowMs)]) {
    if (offerFor(offers, groupSeqOf(late.slotId)) === null) continue;
    const lease = hedgeOf(state, late, nowMs);
    if (lease !== null) started.push(start(state, lease, late, offers, nowMs));
  }
  return started;
}

/** The group of a slot that would be hedged now if an executor had room for it; null = there is none. Changes nothing. */
export function hedgeableGroup(state: EngineState, nowMs: number): number | null {
  if (!state.hedges.hasOpen) return null;
  for (const late of lateSlots(state, nowMs)) if (hedgeOf(state, late, nowMs) !== null) return groupSeqOf(late.slotId);
  return null;
}

type Late = { first: AttemptInFlight; slotId: number; group: Group; hedge: HedgeRule };

/**
 * The slots whose attempts are much slower than the others, while the run, their group and a gate have room. Every turn looks, so
 * what is cheap to know comes first: a run at its width has no room for any.
 */
function* lateSlots(state: EngineState, nowMs: number): Generator<Late> {
  if (!hasRoom(state)) return;
  const starts = new Starts(state);
  for (const { lease: first, hedge } of state.hedges.open) {
    const { slotId, startedAtMs } = first;
    const times = state.hedges.timesAt(hedge, first.target);
    if (times === null || nowMs < startedAtMs + times.hedgeMs) continue;
    const group = state.groupOf(first);
    if (slotId === null || group === undefined || !mayHedge(group, first, indexOf(slotId))) continue;
    // While a gate makes calls wait, nothing is compared.
    if (targetOf(state, first, nowMs) === null) continue;
    const siblings = siblingsOf(state, starts, first, times.slowMs, nowMs);
    if (siblings !== null && isStraggler(siblings)) yield { first, slotId, group, hedge };
  }
}

function hasRoom({ isPaused, attempts, credits, width }: EngineState): boolean {
  return !isPaused && attempts.size + credits.permits < width;
}

/** A call that nobody waits for, or that has only one attempt left, gets no hedge. */
function mayHedge(group: Group, { target }: AttemptInFlight, index: number): boolean {
  const { drained, paused, header } = group;
  if (drained !== null || paused !== null || group.isCancelled(index) || header.background === true) return false;
  return (group.attempts[index] ?? 0) < target.attemptsMax;
}

/**
 * Attempts at its model: one is fast that took at most a half of the time that this one has taken so far. Null = whatever those that
 * have ended took, too many are slow: most often that is known without a pass over them.
 */
function siblingsOf(
  { hedges }: EngineState,
  starts: Starts,
  { target, startedAtMs }: AttemptInFlight,
  slowMs: number,
  nowMs: number,
): Siblings | null {
  const fastMs = (nowMs - startedAtMs) / HEDGE_MEDIANS_MIN;
  const inFlight = starts.until(target, nowMs - Math.min(slowMs, fastMs));
  const pace = hedges.paceOf(target);
  if (!isStraggler({ slow: inFlight, fast: pace?.endsKept ?? 0 })) return null;
  const { fast, slow } = pace?.endedSince(startedAtMs, fastMs) ?? { fast: 0, slow: 0 };
  return { slow: inFlight + slow, fast };
}

/** When the attempts in flight have started, by model. A turn may look for each of hundreds that are late, so it sorts them once. */
class Starts {
  readonly #state: Pick<EngineState, "attempts">;
  readonly #known: { target: Target; atMs: number[] }[] = [];

  constructor(state: Pick<EngineState, "attempts">) {
    this.#state = state;
  }

  /** How many attempts at the model of a target have started up to a time. */
  until(target: Target, untilMs: number): number {
    const atMs = this.#of(target);
    let [low, high] = [0, atMs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((atMs[middle] ?? Infinity) <= untilMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #of(target: Target): number[] {
    const isModel = (other: Target): boolean => other.upstream === target.upstream && other.model === target.model;
    const known = this.#known.find((each) => isModel(each.target));
    if (known !== undefined) return known.atMs;
    const atMs: number[] = [];
    for (const { lease } of this.#state.attempts.values()) if (isModel(lease.target)) atMs.push(lease.startedAtMs);
    atMs.sort((a, b) => a - b);
    this.#known.push({ target, atMs });
    return atMs;
  }
}

/** The second attempt of a slot; null = it gets none now: it must neither wait nor make others wait, and may not cost more. */
function hedgeOf(state: EngineState, { first, slotId, group, hedge }: Late, nowMs: number): AttemptInFlight | null {
  const { deps } = state;
  const { header } = group;
  if (!hasRoom(state) || !group.hasRoom) return null;
  const target = targetOf(state, first, nowMs);
  if (target === null || (deps.bodyOf?.(slotId) ?? "here") !== "here") return null;
  const { facts, fault } = sentFactsOf(state, group, slotId);
  if (fault !== undefined) return null;
  const learnedCapTokens = first.capKind === "learned" ? first.capTokens : null;
  const rules = { share: header.share, learnedCapTokens, attemptsWanted: attemptsWanted(state) };
  // An attempt with the same template is in flight: the first.
  const reserved = admissionOf({ facts, target, rules, isInFlight: () => true }, state, nowMs);
  if (reserved.kind !== "reserve" || isShorter(reserved.capTokens, first.capTokens)) return null;
  if (!mayCost(state, group, extraOf(first, reserved), hedge.maxExtra)) return null;
  const attempt = (group.attempts[indexOf(slotId)] ?? 0) + 1;
  const call = { attemptId: `${slotId}.${attempt}`, attempt, slotId, facts, queuedAtMs: header.openedAtMs };
  const { chosenFrom, onLost, attemptId } = first;
  const from = chosenFrom === undefined ? {} : { chosenFrom };
  const { hedge: _, ...lease } = leaseFor({ ...call, target, onLost, ...from }, reserved, nowMs);
  return { ...lease, hedgeOf: attemptId };
}

/** The target of a hedge: the same model, under the key with most room. A gate that makes calls wait has no room for a hedge. */
function targetOf(state: EngineState, { target, chosenFrom }: AttemptInFlight, nowMs: number): Target | null {
  const gates = gatesOf(state, nowMs);
  const isOpen = ({ gate, model }: Target): boolean =>
    state.upstreams.get(gate)?.isOpen(nowMs) !== false && gates.mayStart(gate, model);
  const targets = chosenFrom?.choices[chosenFrom.at]?.targets ?? [target];
  const open = targets.filter(isOpen);
  return open.toSorted((a, b) => gates.inFlight(a.gate) - gates.inFlight(b.gate))[0] ?? null;
}

/** Whether the end of the budget would cut the hedge's answer, but not that of the first attempt. */
function isShorter(capTokens: number | null, firstTokens: number | null): boolean {
  return capTokens !== null && capTokens < (firstTokens ?? Infinity);
}

function start(
  state: EngineState,
  lease: AttemptInFlight,
  { slotId, group }: Late,
  offers: Map<number, number>,
  nowMs: number,
): Assignment {
  if (!state.ledger.reserve(lease.attemptId, lease.amounts)) throw new Error(`${lease.attemptId} cannot be reserved`);
  const executor = takeOfferBeside(state, lease, offers, slotId);
  state.begin(lease, executor, null, nowMs);
  const facts = factsOf(state, group, indexOf(slotId));
  return { executor, slotId, lease, timeoutMs: timeoutOf(facts, lease.target) };
}

/** The executor of the first attempt, if it has room: it knows what was seen of the attempt that is overtaken. Else another one. */
function takeOfferBeside(
  { attempts }: EngineState,
  { hedgeOf: firstId = "" }: AttemptInFlight,
  offers: Map<number, number>,
  slotId: number,
): number {
  const first = attempts.get(firstId);
  const own = first === undefined ? null : executorOf(slotId, first.shard);
  if (own === null || !offers.has(own)) return takeOffer(offers, groupSeqOf(slotId));
  takeOfferOf(offers, own);
  return own;
}
