/**
 * Whether an attempt may start: reserve its worst case, clamp its completion to what the rest pays for, wait for
 * reservations in flight, or refuse. The order is the contract's ("The budget is hard", 1 to 4).
 */
import type { Dimension, Reason } from "../errors.ts";
import type { CallFacts, Unbounded } from "../call.ts";
import { COMPLETION_TOKENS_DEFAULT, COMPLETION_TOKENS_MIN } from "../limits.ts";
import { ANY_TOKENS, promptTokensMax, worstCase, type TokenBounds } from "./estimate.ts";
import { DIMENSIONS, NO_LIMITS, type Amounts, type Ledger, type Limits } from "./ledger.ts";
import { completionTokensFor, dearestPrice, usdOf, type TokenPrice } from "./money.ts";

export type Admission =
  | { kind: "reserve"; amounts: Amounts; capTokens: number | null }
  | { kind: "wait"; reason: Reason }
  | { kind: "refuse"; reason: Reason };

/** What bears on one attempt beside its call, its price and the ledger. */
export type AdmissionRules = {
  bounds?: TokenBounds;
  /** The most that this one attempt may reserve, where the budget is split; null = as much as there is. */
  share?: Limits | null;
};

/** Decides on one attempt. Changes nothing: the caller reserves `amounts` in the same turn. */
export function admit(
  facts: CallFacts,
  price: TokenPrice | null,
  ledger: Ledger,
  { bounds = ANY_TOKENS, share = null }: AdmissionRules = {},
): Admission {
  const usdBinds = ledger.limits.usd !== null && price !== null;
  if (facts.mediaParts > 0 && bounds.mediaTokensMax === null && (usdBinds || ledger.limits.prompt_tokens !== null)) {
    return { kind: "refuse", reason: UNBOUNDED_MEDIA };
  }
  const uncovered = facts.unbounded?.find(({ spends }) =>
    spends.some((dimension) => (dimension === "usd" ? usdBinds : ledger.limits[dimension] !== null)),
  );
  if (uncovered !== undefined) return { kind: "refuse", reason: unboundedField(uncovered) };
  const completions = facts.completions ?? 1;
  const capNeeded = (usdBinds || ledger.limits.completion_tokens !== null) && completions > 0;
  const asked = completions === 0 ? 0 : (facts.maxTokens ?? COMPLETION_TOKENS_DEFAULT);
  const promptTokens = promptTokensMax(facts, bounds);
  const left = (dimension: Dimension): number | null =>
    smaller(ledger.remaining(dimension), share?.[dimension] ?? null);
  const affordable = affordableCompletion(promptTokens, price, left);
  // Each of several completions may reach the cap.
  const cap = Math.min(asked, completions > 1 ? Math.floor(affordable / completions) : affordable);
  const floor = Math.min(asked, COMPLETION_TOKENS_MIN);

  if (cap >= floor) {
    const amounts = worstCase(promptTokens, cap * completions, price);
    if (DIMENSIONS.every((dimension) => amounts[dimension] <= (left(dimension) ?? Infinity))) {
      return { kind: "reserve", amounts, capTokens: capNeeded || facts.maxTokens !== null ? cap : null };
    }
  }
  const least = worstCase(promptTokens, floor * completions, price);
  const overShare = DIMENSIONS.find((dimension) => least[dimension] > (share?.[dimension] ?? Infinity));
  const dimension = overShare ?? ledger.shortfall(least) ?? "usd";
  // Only open attempts give anything back soon; without one, waiting would never end.
  if (overShare === undefined && ledger.openCount > 0 && ledger.couldFit(least)) {
    return { kind: "wait", reason: budgetReason("in_flight_budget_exhausted", dimension, least, ledger) };
  }
  return { kind: "refuse", reason: budgetReason("budget_exhausted", dimension, least, ledger) };
}

const UNBOUNDED_MEDIA: Reason = {
  reason: "infeasible",
  message:
    "messages hold an image, sound or file, whose tokens cannot be bounded: the upstream needs media_tokens_max in its " +
    "configuration, or the run no limit in USD and prompt tokens",
};

function unboundedField({ field, why }: Unbounded): Reason {
  const message = `${field}: ${why} The run has a limit that it could break; leave it out, or use a run without that limit`;
  return { reason: "invalid_request", message, param: field };
}

/** An equal share of what is left for each of `count` slots. */
export function shareOf(ledger: Ledger, count: number): Limits {
  const share: Limits = { ...NO_LIMITS };
  for (const dimension of DIMENSIONS) {
    const remaining = ledger.remaining(dimension);
    if (remaining !== null) share[dimension] = Math.floor(Math.max(0, remaining) / count);
  }
  return share;
}

function smaller(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}

/** Completion tokens that the rest of the budget pays for after the prompt; Infinity without a limit that binds. */
function affordableCompletion(
  promptTokens: number,
  price: TokenPrice | null,
  left: (dimension: Dimension) => number | null,
): number {
  const tokensLeft = left("completion_tokens") ?? Number.POSITIVE_INFINITY;
  const usdLeft = left("usd");
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
