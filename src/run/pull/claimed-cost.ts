/** Compares what a pull worker says its item cost with what was reserved for it. */
import { overDimensions, type Reserved } from "../money/charge.ts";
import { scaledUp } from "../money/decimal.ts";
import { chargeOf } from "../money/estimate.ts";
import { NO_LIMITS, type Amounts } from "../money/ledger.ts";
import { usdOf } from "../money/money.ts";
import { usdText, type Dimension, type Reason } from "../../errors.ts";

/** What a worker reports of an item. USD as a decimal number; absent = the tokens at the configured price. */
export type ClaimedUsage = { promptTokens: number; completionTokens: number; costUsd?: number };

const NANO_PER_USD = 1e9;

/**
 * Why a report is refused: it is above the item's reservation in a dimension that the run limits. Null if it is not. Anyone with a
 * token of the run may be a worker, so a report beyond it would spend the budgets of all runs above this one.
 */
export function refusedClaim(claimed: ClaimedUsage, reserved: Reserved): Reason | null {
  const cost = costOf(claimed, reserved);
  const [dimension] = overDimensions(cost, reserved.amounts, reserved.pulledUnder ?? NO_LIMITS);
  if (dimension === undefined) return null;
  const { param, says } = FIELDS[dimension];
  const isPriced = dimension === "usd" && claimed.costUsd === undefined;
  const named = isPriced ? "usage: these tokens cost" : `${param}:`;
  const message =
    `${named} ${shown(dimension, cost)}, more than the ${shown(dimension, reserved.amounts)} ${says} reserved for this item; ` +
    "report no more than that, or leave out usage to be charged what is reserved";
  return { reason: "invalid_request", message, param: isPriced ? "usage" : param };
}

function costOf({ promptTokens, completionTokens, costUsd }: ClaimedUsage, { price, priced }: Reserved): Amounts {
  const costNanoUsd = costUsd === undefined ? null : scaledUp(costUsd, NANO_PER_USD);
  return chargeOf({ promptTokens, completionTokens, cachedTokens: 0, reasoningTokens: 0, costNanoUsd }, price, priced);
}

const FIELDS: Record<Dimension, { param: string; says: string }> = {
  usd: { param: "usage.cost", says: "that are" },
  calls: { param: "usage", says: "calls that are" },
  prompt_tokens: { param: "usage.prompt_tokens", says: "tokens that are" },
  completion_tokens: { param: "usage.completion_tokens", says: "tokens that are" },
  new_tokens: { param: "usage", says: "new tokens that are" },
};

function shown(dimension: Dimension, amounts: Amounts): string {
  const amount = amounts[dimension];
  return dimension === "usd" ? `$${usdText(usdOf(amount))}` : String(amount);
}
