/**
 * How much credit an instance of the gateway gets: nothing while anything waits, and never more than a small share of what
 * is left, so that losing all credits costs at most that share.
 */
import { DIMENSIONS, NO_LIMITS, zeroAmounts, type Amounts, type Limits } from "../money/ledger.ts";
import { CREDIT_CALLS_MIN, CREDIT_PERMITS_MAX, CREDIT_PERMITS_MIN, CREDIT_TTL_MS, CREDITS_MAX } from "../../limits.ts";
import type { EngineState } from "../state.ts";
import { reservationId, type Credit, type StoredCredit, type CreditRequest, type CreditTerms } from "../credit.ts";

/** All credits of a run together reserve at most this part of what is left. */
const CREDIT_SHARE = 1 / 100;

/** Opens a credit; one that is open already is returned as it is. Null = none is given. */
export function openCredit(state: EngineState, request: CreditRequest, nowMs: number): Credit | null {
  const known = state.credits.get(request.creditId);
  if (known !== undefined) return known;
  if (state.credits.size >= CREDITS_MAX) return null;
  const nothing = { granted: zeroAmounts(), left: zeroAmounts(), permits: 0, reports: 0, isRecalled: false };
  const credit: Credit = {
    ...nothing,
    id: request.creditId,
    upstreams: request.upstreams,
    expiresAtMs: nowMs + CREDIT_TTL_MS,
  };
  const permits = permitsFor(state, credit);
  if (mustReturn(state, credit, nowMs) || permits < CREDIT_PERMITS_MIN) return null;
  const wanted = wantedAmounts(state, credit);
  const { need } = request;
  const covers = DIMENSIONS.every(
    (dimension) => state.ledger.limits[dimension] === null || wanted[dimension] >= need[dimension] * CREDIT_CALLS_MIN,
  );
  if (!covers) return null;
  state.ledger.restore(reservationId(credit.id), { ...credit.left });
  setLeft(state, credit, wanted);
  credit.granted = { ...wanted };
  state.credits.put({ ...credit, permits });
  return state.credits.get(credit.id) ?? null;
}

/**
 * Adds to a credit what it has used, and raises its permits where there is room. They are not lowered: calls may be using
 * them which the instance has started since it wrote its report.
 */
export function refill(state: EngineState, credit: Credit): void {
  const wanted = wantedAmounts(state, credit);
  for (const dimension of DIMENSIONS) {
    const added = Math.max(0, wanted[dimension] - credit.left[dimension]);
    credit.granted[dimension] += added;
    wanted[dimension] = credit.left[dimension] + added;
  }
  setLeft(state, credit, wanted);
  state.credits.put({ ...credit, permits: Math.max(credit.permits, permitsFor(state, credit)) });
}

/** True if the run needs the credit back, or must not give one. */
export function mustReturn(state: EngineState, { upstreams, isRecalled }: Credit, nowMs: number): boolean {
  if (isRecalled || state.isPaused || state.queue.readyCount > 0) return true;
  return upstreams.some((upstream) => {
    const gate = state.upstreams.get(upstream);
    // An instance with credit does not know which models are overloaded.
    return gate !== undefined && (!gate.isOpen(nowMs) || gate.models.isAny);
  });
}

/** Takes over the credits of an earlier instance of the object, each with its reservation and a new term. */
export function restoreCredits(state: EngineState, rows: readonly StoredCredit[], nowMs: number): void {
  state.credits.restore(rows, nowMs + CREDIT_TTL_MS);
  for (const { id, left } of rows) state.ledger.restore(reservationId(id), left);
}

/** Changes what a credit reserves. A caller that raises it has checked that there is room. */
export function setLeft(state: EngineState, credit: Credit, left: Amounts): void {
  state.ledger.release(reservationId(credit.id));
  credit.left = { ...left };
  state.ledger.restore(reservationId(credit.id), credit.left);
}

/** What the credit should reserve: half of what credits may still take, so that another instance gets a part. */
function wantedAmounts(state: EngineState, { id }: Credit): Amounts {
  const wanted = zeroAmounts();
  for (const dimension of DIMENSIONS) {
    const remaining = state.ledger.remaining(dimension);
    if (remaining === null) continue;
    let own = 0;
    let others = 0;
    for (const credit of state.credits.all()) {
      if (credit.id === id) own += credit.left[dimension];
      else others += credit.left[dimension];
    }
    const pool = Math.floor(Math.max(0, remaining + own + others) * CREDIT_SHARE);
    wanted[dimension] = Math.floor(Math.max(0, pool - others) / 2);
  }
  return wanted;
}

/** Half of the width, and of each upstream's calls in flight, that nothing uses. */
function permitsFor(state: EngineState, { id, upstreams }: Credit): number {
  const own = state.credits.get(id)?.permits ?? 0;
  let free = state.width - state.attempts.size - (state.credits.permits - own);
  for (const upstream of upstreams) {
    const known = state.upstreams.get(upstream);
    if (known === undefined) return 0;
    free = Math.min(free, known.maxInFlight - known.inFlight - (state.credits.permitsAt(upstream) - own));
  }
  return Math.max(0, Math.min(CREDIT_PERMITS_MAX, Math.floor(free / 2)));
}

/** A credit's terms, as its instance needs them. */
export function termsOf(state: EngineState, credit: Credit): CreditTerms {
  const { granted: all, permits, upstreams } = credit;
  const granted: Limits = { ...NO_LIMITS };
  for (const dimension of DIMENSIONS) if (state.ledger.limits[dimension] !== null) granted[dimension] = all[dimension];
  const learned = Object.fromEntries(upstreams.map((upstream) => [upstream, state.templates.learnedOf(upstream)]));
  return { granted, permits, learned };
}
