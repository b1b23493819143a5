/**
 * Allocates a child run's budget from its parent's. The parent reserves all of it at once. A limit that the parent has
 * and the request leaves out becomes an equal split of what the parent has left.
 */
import type { Dimension, Reason } from "../../errors.ts";
import { budgetReason } from "./admit.ts";
import { DIMENSIONS, NO_LIMITS, zeroAmounts, type Amounts, type Ledger, type Limits } from "./ledger.ts";

/** The child's limits and the reservation that they need in the parent's budget, or why that does not fit it. */
export type Allocation =
  | { ok: true; limits: Limits; reservation: Amounts }
  | { ok: false; reason: Reason; reservation: Amounts };

/** `requested`: the limits that the request names, null = left out. `shares`: into how many parts the rest is split. Changes nothing. */
export function allocate(requested: Limits, parent: Ledger, shares: number): Allocation {
  const limits: Limits = { ...NO_LIMITS };
  for (const dimension of DIMENSIONS) limits[dimension] = requested[dimension] ?? equalSplit(parent, dimension, shares);
  const reservation = reservationFor(limits);
  const short = parent.shortfall(reservation);
  if (short === null) return { ok: true, limits, reservation };
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

function equalSplit(parent: Ledger, dimension: Dimension, shares: number): number | null {
  const remaining = parent.remaining(dimension);
  return remaining === null ? null : Math.floor(Math.max(0, remaining) / shares);
}
