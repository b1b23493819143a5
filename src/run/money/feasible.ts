/**
 * Whether a batch can fit its budget at all, decided before anything of it is stored. Its floor is the sum of its
 * slots' reservations when each starts with the smallest completion cap (`COMPLETION_TOKENS_MIN`, or less if the call
 * requests less). A batch whose floor exceeds all that the run can ever have left is refused. Below that it can still
 * run out of money, because calls may use more than their floor.
 */
import type { CallFacts } from "../../call.ts";
import type { Reason } from "../../errors.ts";
import { COMPLETION_TOKENS_DEFAULT, COMPLETION_TOKENS_MIN } from "../../limits.ts";
import { promptTokensMax, worstCase, type TokenBounds } from "./estimate.ts";
import { addAmounts, DIMENSIONS, zeroAmounts, type Amounts, type Ledger } from "./ledger.ts";
import { usdOf } from "./money.ts";
import type { TokenPrice } from "./token-price.ts";

/** One slot of a batch, with the price and the token bounds of its target. */
export type FloorSlot = { facts: CallFacts; price: TokenPrice | null; bounds: TokenBounds };

/** The smallest reservation of an attempt of a call. */
export function floorOf({ facts, price, bounds }: FloorSlot): Amounts {
  const requested = facts.maxTokens ?? COMPLETION_TOKENS_DEFAULT;
  const completionTokens = Math.min(requested, COMPLETION_TOKENS_MIN) * (facts.completions ?? 1);
  return worstCase(promptTokensMax(facts, bounds), completionTokens, price, facts);
}

/**
 * Why the slots can never all run: the first dimension in which the sum of their floors exceeds the limit less what is
 * spent and reserved by child runs. Attempts in flight do not count: their reservations may be freed in full. Null =
 * the floor fits.
 */
export function infeasibleReason(slots: Iterable<FloorSlot>, ledger: Ledger): Reason | null {
  const floor = zeroAmounts();
  for (const slot of slots) addAmounts(floor, floorOf(slot));
  const dimension = DIMENSIONS.find((each) => floor[each] > (ledger.idle(each) ?? Infinity));
  if (dimension === undefined) return null;
  const shown = (amount: number): number => (dimension === "usd" ? usdOf(amount) : amount);
  const facts = {
    dimension,
    limit: shown(ledger.limits[dimension] ?? 0),
    spent: shown(ledger.spent[dimension]),
    held: shown(ledger.reservedByChildren[dimension]),
    needed: shown(floor[dimension]),
  };
  const left = shown(Math.max(0, ledger.idle(dimension) ?? 0));
  const message =
    `the batch can never fit budget.${dimension}: its slots need at least ${facts.needed} together, and of the limit of ` +
    `${facts.limit} at most ${left} can still be used (${facts.spent} spent, ${facts.held} reserved by child runs)`;
  return { reason: "infeasible", message, ...facts };
}
