/**
 * A child run's budget, carved from its parent's: in full, at once. What the parent limits and the child leaves out is an
 * equal split of what is left, one share per call that the parent may have in flight.
 */
import type { Dimension, Reason } from "../errors.ts";
import { budgetReason } from "./admit.ts";
import { DIMENSIONS, NO_LIMITS, zeroAmounts, type Amounts, type Ledger, type Limits } from "./ledger.ts";

export type Carved = { ok: true; limits: Limits; hold: Amounts } | { ok: false; reason: Reason };

/** `asked` holds the limits that the request names (null = left out); `width` is the parent's. Changes nothing. */
export function carve(asked: Limits, parent: Ledger, width: number): Carved {
  const limits: Limits = { ...NO_LIMITS };
  const hold = zeroAmounts();
  for (const dimension of DIMENSIONS) {
    const limit = asked[dimension] ?? shareOf(parent, dimension, width);
    limits[dimension] = limit;
    hold[dimension] = limit ?? 0;
  }
  const short = parent.shortfall(hold);
  if (short === null) return { ok: true, limits, hold };
  return { ok: false, reason: { ...budgetReason("budget_exhausted", short, hold, parent), param: `budget.${short}` } };
}

function shareOf(parent: Ledger, dimension: Dimension, width: number): number | null {
  const remaining = parent.remaining(dimension);
  return remaining === null ? null : Math.floor(Math.max(0, remaining) / width);
}
