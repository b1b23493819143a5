/** What a run of given limits holds of the budget above it. */
import { DIMENSIONS, zeroAmounts, type Amounts, type Limits } from "./ledger.ts";

/** A dimension without a limit holds nothing: there, the run above has no limit either. */
export function holdOf(limits: Limits): Amounts {
  const hold = zeroAmounts();
  for (const dimension of DIMENSIONS) hold[dimension] = limits[dimension] ?? 0;
  return hold;
}
