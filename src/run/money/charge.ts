/** What an attempt is charged, by the contract's rule 5 of a hard budget. */
import type { Outcome, PriceFacts, Seen } from "../../call.ts";
import type { Dimension } from "../../errors.ts";
import { SEEN_MARGIN_TOKENS } from "../../limits.ts";
import { chargeOf, worstCase } from "./estimate.ts";
import { DIMENSIONS, zeroAmounts, type Amounts, type Limits } from "./ledger.ts";
import type { TokenPrice } from "./token-price.ts";

/**
 * The reservation of an attempt, and the price that it was made at. `pulledUnder`: the run's limits, if a pull worker of the run
 * itself reports what the attempt cost; absent = a provider does. `isFree`: nothing is charged, because it is the call of a tool.
 */
export type Reserved = {
  amounts: Amounts;
  price: TokenPrice | null;
  priced: PriceFacts;
  pulledUnder?: Limits;
  isFree?: true;
};

/** `estimated`: the cost is not known, so the charge is the reservation, or a part of it that bounds the cost. */
export type Charge = { charge: Amounts; estimated: boolean };

/**
 * The charge of an attempt that ended with this outcome. A provider that bills more than was reserved has done so, and its bill
 * counts. What a pull worker reports is a claim of whoever holds the run's token: where the run has a limit, it counts up to the
 * reservation. Without a limit a reservation is a guess that binds nobody.
 */
export function chargeFor(outcome: Outcome, reserved: Reserved): Charge {
  if (reserved.isFree === true) return { charge: zeroAmounts(), estimated: false };
  const billed = billFor(outcome, reserved);
  if (reserved.pulledUnder === undefined) return billed;
  const charge = { ...billed.charge };
  for (const dimension of overDimensions(charge, reserved.amounts, reserved.pulledUnder)) {
    charge[dimension] = reserved.amounts[dimension];
  }
  return { ...billed, charge };
}

/** The dimensions with a limit in which an amount is above its reservation. */
export function overDimensions(amounts: Amounts, reserved: Amounts, limits: Limits): Dimension[] {
  return DIMENSIONS.filter((dimension) => limits[dimension] !== null && amounts[dimension] > reserved[dimension]);
}

function billFor(outcome: Outcome, reserved: Reserved): Charge {
  const { amounts, price, priced } = reserved;
  if (outcome.kind === "success" && outcome.usage !== null) {
    const charge = chargeOf(outcome.usage, price, priced);
    // The configuration may have lost the price since the reservation was made: then the cost of the tokens is unknown.
    const isUnpriced = price === null && amounts.usd > 0 && outcome.usage.costNanoUsd === null;
    return isUnpriced ? { charge: { ...charge, usd: amounts.usd }, estimated: true } : { charge, estimated: false };
  }
  if (outcome.kind === "success") return { charge: { ...amounts }, estimated: true };
  if (outcome.class === "unknown") {
    const charge = outcome.seen === undefined ? { ...amounts } : chargeOfSeen(outcome.seen, reserved);
    return { charge, estimated: true };
  }
  // An answer of any kind was a call: a limit of calls bounds the requests that reach the upstream.
  return { charge: { ...zeroAmounts(), calls: outcome.answered ? 1 : 0 }, estimated: false };
}

/**
 * The charge of a stopped stream: the tokens that were seen of it, and those that may have been under way, at the
 * reserved rates. At most the reservation.
 */
function chargeOfSeen(seen: Seen, { amounts, price, priced }: Reserved): Amounts {
  const promptTokens = Math.min(amounts.prompt_tokens, seen.promptTokens ?? amounts.prompt_tokens);
  const completionTokens = Math.min(amounts.completion_tokens, seen.completionTokens + SEEN_MARGIN_TOKENS);
  const charge = worstCase(promptTokens, completionTokens, price, priced);
  return { ...charge, usd: price === null ? amounts.usd : Math.min(amounts.usd, charge.usd) };
}
