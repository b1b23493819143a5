/**
 * Allocates a child run's budget from its parent's. The parent reserves all of it at once. A limit that the parent has and the request
 * leaves out becomes an equal share. Shares are computed from what the parent has for all of them, so children that are opened at once
 * have equal ones; a child that names its limit leaves less for later ones.
 */
import type { Dimension, Reason } from "../../errors.ts";
import { CHILD_SHARES_DEFAULT } from "../../limits.ts";
import { budgetReason } from "./admit.ts";
import { DIMENSIONS, NO_LIMITS, zeroAmounts, type Amounts, type Ledger, type Limits } from "./ledger.ts";

/** The child's limits and the reservation that they need in the parent's budget, or why that does not fit it. `equal`: its equal shares. */
export type Allocation =
  | { ok: true; limits: Limits; reservation: Amounts; equal: readonly Dimension[] }
  | { ok: false; reason: Reason; reservation: Amounts };

/**
 * `requested`: the limits that the request names, null = left out. `shares`: into how many parts the budget is split; `siblings`: what
 * of it equal shares of open children have. Changes nothing.
 */
export function allocate(
  requested: Limits,
  parent: Ledger,
  { shares, siblings }: { shares: number; siblings: Amounts },
): Allocation {
  const limits: Limits = { ...NO_LIMITS };
  const equal: Dimension[] = [];
  for (const dimension of DIMENSIONS) {
    const share = equalShare(parent, dimension, { shares, shared: siblings[dimension] });
    limits[dimension] = requested[dimension] ?? share;
    if (requested[dimension] === null && share !== null) equal.push(dimension);
  }
  const reservation = reservationFor(limits);
  const short = parent.shortfall(reservation);
  if (short === null) return { ok: true, limits, reservation, equal };
  const reason = budgetReason("budget_exhausted", short, reservation, parent);
  return { ok: false, reason: { ...reason, param: `budget.${short}` }, reservation };
}

/**
 * What a run with these limits needs reserved in its parent's budget. A dimension without a limit needs nothing: the
 * parent has no limit there either.
 */
export function reservationFor(limits: Limits): Amounts {
  const reservation = zeroAmounts();
  for (const dimension of DIMENSIONS) reservation[dimension] = limits[dimension] ?? 0;
  return reservation;
}

/** A part of the limit without what is spent and what children have named; at most what is left. */
function equalShare(
  parent: Ledger,
  dimension: Dimension,
  { shares, shared }: { shares: number; shared: number },
): number | null {
  const [remaining, idle] = [parent.remaining(dimension), parent.idle(dimension)];
  if (remaining === null || idle === null) return null;
  const total = idle + shared;
  // A limit of few calls has no parts for all children that there may be: then a share is one call.
  const parts = Math.min(shares, Math.max(CHILD_SHARES_DEFAULT, total));
  return Math.max(0, Math.min(Math.floor(total / parts), remaining));
}
