/**
 * Whether an attempt may start: reserve its worst case, clamp its completion to what the rest pays for, wait for
 * reservations in flight, or refuse. The order is the contract's ("The budget is hard", 1 to 4).
 */
import type { Dimension, Reason } from "../errors.ts";
import type { CallFacts } from "../call.ts";
import { COMPLETION_TOKENS_DEFAULT, COMPLETION_TOKENS_MIN } from "../limits.ts";
import { promptTokensMax, worstCase } from "./estimate.ts";
import type { Amounts, Ledger } from "./ledger.ts";
import { completionTokensFor, dearestPrice, usdOf, type TokenPrice } from "./money.ts";

export type Admission =
  | { kind: "reserve"; amounts: Amounts; capTokens: number | null }
  | { kind: "wait"; reason: Reason }
  | { kind: "refuse"; reason: Reason };

/** Decides on one attempt. Changes nothing: the caller reserves `amounts` in the same turn. */
export function admit(facts: CallFacts, price: TokenPrice | null, ledger: Ledger): Admission {
  const capNeeded = (ledger.limits.usd !== null && price !== null) || ledger.limits.completion_tokens !== null;
  const asked = facts.maxTokens ?? COMPLETION_TOKENS_DEFAULT;
  const promptTokens = promptTokensMax(facts);
  const cap = Math.min(asked, affordableCompletion(promptTokens, price, ledger));
  const floor = Math.min(asked, COMPLETION_TOKENS_MIN);

  if (cap >= floor) {
    const amounts = worstCase(promptTokens, cap, price);
    if (ledger.shortfall(amounts) === null) {
      return { kind: "reserve", amounts, capTokens: capNeeded || facts.maxTokens !== null ? cap : null };
    }
  }
  const least = worstCase(promptTokens, floor, price);
  const dimension = ledger.shortfall(least) ?? "usd";
  // Only open attempts give anything back soon; without one, waiting would never end.
  if (ledger.openCount > 0 && ledger.couldFit(least)) {
    return { kind: "wait", reason: budgetReason("in_flight_budget_exhausted", dimension, least, ledger) };
  }
  return { kind: "refuse", reason: budgetReason("budget_exhausted", dimension, least, ledger) };
}

/** Completion tokens that the rest of the budget pays for after the prompt; Infinity without a limit that binds. */
function affordableCompletion(promptTokens: number, price: TokenPrice | null, ledger: Ledger): number {
  const tokensLeft = ledger.remaining("completion_tokens") ?? Number.POSITIVE_INFINITY;
  const usdLeft = ledger.remaining("usd");
  if (usdLeft === null || price === null) return tokensLeft;
  const dearest = dearestPrice(price, promptTokens);
  return Math.min(tokensLeft, completionTokensFor(usdLeft, promptTokens, dearest));
}

/** A budget refusal with its figures as the wire shows them: USD as decimals, counts as they are. */
export function budgetReason(
  reason: "budget_exhausted" | "in_flight_budget_exhausted",
  dimension: Dimension,
  need: Amounts,
  ledger: Ledger,
): Extract<Reason, { reason: typeof reason }> {
  const shown = (amount: number): number => (dimension === "usd" ? usdOf(amount) : amount);
  return {
    reason,
    dimension,
    limit: shown(ledger.limits[dimension] ?? 0),
    spent: shown(ledger.spent[dimension]),
    reserved: shown(ledger.reserved[dimension]),
    remaining: shown(Math.max(0, ledger.remaining(dimension) ?? 0)),
    needed: shown(need[dimension]),
  };
}
