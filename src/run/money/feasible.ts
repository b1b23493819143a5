/**
 * Whether a batch can fit its budget at all, decided before anything of it is stored. Its floor is the sum of its
 * slots' reservations when each starts with the smallest completion cap (`COMPLETION_TOKENS_MIN`, or less if the call
 * requests less). A batch whose floor exceeds all that the run can ever have left is refused. Below that it can still
 * run out of money, because calls may use more than their floor. A batch that may run in part is refused only if nearly all of
 * it never can.
 */
import type { CallFacts } from "../../call.ts";
import type { Dimension, Reason } from "../../errors.ts";
import { COMPLETION_TOKENS_DEFAULT, COMPLETION_TOKENS_MIN, UNPAID_CALLS_MAX } from "../../limits.ts";
import { promptTokensMax, worstCase, type TokenBounds } from "./estimate.ts";
import { DIMENSIONS, zeroAmounts, type Amounts, type Ledger } from "./ledger.ts";
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

/** The floor of each of so many slots. One that gets the answer of an equal slot before it costs nothing, and is not counted. */
export type SlotFloors = { amounts: Amounts; count: number };

/** The floor of so many slots more. */
export function floorWith(before: Readonly<Amounts>, slots: Iterable<SlotFloors>): Amounts {
  const floor = { ...before };
  for (const { amounts, count } of slots) {
    for (const dimension of DIMENSIONS) floor[dimension] += amounts[dimension] * count;
  }
  return floor;
}

/**
 * Why slots with this floor can never all run: the first dimension in which it exceeds the limit less what is
 * spent and reserved by child runs. Attempts in flight do not count: their reservations may be freed in full. Null =
 * the floor fits.
 */
export function infeasibleReason(floor: Readonly<Amounts>, ledger: Ledger): Reason | null {
  const dimension = DIMENSIONS.find((each) => floor[each] > (ledger.idle(each) ?? Infinity));
  if (dimension === undefined) return null;
  const facts = figuresOf(ledger, dimension, floor);
  const message =
    `the batch can never fit budget.${dimension}: its slots need at least ${facts.needed} together, and of the limit of ` +
    `${facts.limit} at most ${leftOf(ledger, dimension)} can still be used (${facts.spent} spent, ${facts.held} reserved by child runs)`;
  return { reason: "infeasible", message, ...facts };
}

/**
 * A batch is worth opening if the budget can pay for one in so many of its calls at their floor. Until its model has answered, a
 * floor counts a prompt as the dearest that its bytes can be: short calls then cost a fifth of it, or less.
 */
const PAID_ONE_IN = 100;

/**
 * Why a batch that may run in part is refused all the same: nearly all of its slots can never run, and they are many. Each of them
 * would be opened, refused, logged and answered one by one. Null = it is worth opening.
 */
export function unpaidReason(slots: readonly SlotFloors[], ledger: Ledger): Reason | null {
  const limited = DIMENSIONS.filter((dimension) => ledger.idle(dimension) !== null);
  if (limited.length === 0) return null;
  const floor = floorWith(zeroAmounts(), slots);
  const calls = slots.reduce((sum, { count }) => sum + count, 0);
  for (const dimension of limited) {
    const left = ledger.idle(dimension) ?? 0;
    if (floor[dimension] <= left) continue;
    const payable = payableOf(slots, dimension, left);
    if (calls - payable <= UNPAID_CALLS_MAX || payable * PAID_ONE_IN >= calls) continue;
    const facts = figuresOf(ledger, dimension, floor);
    const message =
      `what is left of budget.${dimension} (${leftOf(ledger, dimension)}) pays for at most ${payable} of the ${calls} calls, ` +
      `which need at least ${facts.needed} together; send fewer calls, or ask for a higher limit`;
    return { reason: "infeasible", message, ...facts };
  }
  return null;
}

/** The most slots that so much can pay for: the cheapest of them. */
function payableOf(slots: readonly SlotFloors[], dimension: Dimension, left: number): number {
  const counts = new Map<number, number>();
  for (const { amounts, count } of slots) counts.set(amounts[dimension], (counts.get(amounts[dimension]) ?? 0) + count);
  let rest = left;
  let payable = 0;
  for (const amount of Float64Array.from(counts.keys()).sort()) {
    const count = counts.get(amount) ?? 0;
    const paid = amount === 0 ? count : Math.min(count, Math.max(0, Math.floor(rest / amount)));
    payable += paid;
    rest -= paid * amount;
    if (paid < count) break;
  }
  return payable;
}

type Figures = { dimension: Dimension; limit: number; spent: number; held: number; needed: number };

/** The figures of a refusal as the wire shows them: USD as decimals, counts as they are. */
function figuresOf(ledger: Ledger, dimension: Dimension, floor: Amounts): Figures {
  const shown = (amount: number): number => (dimension === "usd" ? usdOf(amount) : amount);
  return {
    dimension,
    limit: shown(ledger.limits[dimension] ?? 0),
    spent: shown(ledger.spent[dimension]),
    held: shown(ledger.reservedByChildren[dimension]),
    needed: shown(floor[dimension]),
  };
}

function leftOf(ledger: Ledger, dimension: Dimension): number {
  const left = Math.max(0, ledger.idle(dimension) ?? 0);
  return dimension === "usd" ? usdOf(left) : left;
}
