/** Whether a run's budget has room for a child, now or ever, and what is short if it has not. */
import type { CapacityShortage, Dimension } from "../../errors.ts";
import { DIMENSIONS, type Amounts, type Ledger } from "./ledger.ts";
import { usdOf } from "./money.ts";

/** What is short now if `ahead` is for requests that wait longer. Empty = there is room. */
export function shortNow(need: Amounts, ahead: Amounts, parent: Ledger): CapacityShortage[] {
  return shortages(need, parent, (dimension) => (parent.remaining(dimension) ?? Infinity) - ahead[dimension]);
}

/** What would be short if everything that is reserved ended unspent. Empty = there may be room one day. */
export function shortForever(need: Amounts, parent: Ledger): CapacityShortage[] {
  return shortages(need, parent, (dimension) => (parent.limits[dimension] ?? Infinity) - parent.spent[dimension]);
}

function shortages(need: Amounts, { limits }: Ledger, free: (dimension: Dimension) => number): CapacityShortage[] {
  return DIMENSIONS.flatMap((what) => {
    const { [what]: limit } = limits;
    if (limit === null || need[what] <= free(what)) return [];
    const shown = (amount: number): number => (what === "usd" ? usdOf(amount) : amount);
    const available = Math.max(0, free(what));
    return [{ what, requested: shown(need[what]), available: shown(available), limit: shown(limit) }];
  });
}
