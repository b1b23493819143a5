/**
 * Admission: whether an attempt may start. Its worst case is reserved; or it waits for reservations in flight; or its
 * completion is capped at what the rest of the budget pays for; or it is refused. The order is the contract's ("The
 * budget is hard", 1 to 4).
 */
import type { Dimension, Reason } from "../../errors.ts";
import type { CallFacts, CapKind, UnreservableField } from "../../call.ts";
import { COMPLETION_TOKENS_DEFAULT, COMPLETION_TOKENS_MIN, LEARNED_ROOM_SHARE } from "../../limits.ts";
import { ANY_TOKENS, mediaTokensMax, promptTokensMax, worstCase, type TokenBounds } from "./estimate.ts";
import { capForPrompt } from "./learned-cap.ts";
import { DIMENSIONS, NO_LIMITS, type Amounts, type Ledger, type Limits } from "./ledger.ts";
import { completionTokensFor, highestPrice, usdOf } from "./money.ts";
import { FAST_TIER, hasTierPrice } from "./service-tiers.ts";
import type { TokenPrice } from "./token-price.ts";

export type Admission =
  | { kind: "reserve"; amounts: Amounts; capTokens: number | null; capKind: CapKind }
  /** The cap that it waits for, of its kind. */
  | { kind: "wait"; reason: Reason; capKind: CapKind; capTokens: number }
  /** `need`: the reservation that the budget does not cover; absent = it is refused for another reason. */
  | { kind: "refuse"; reason: Reason; need?: Amounts };

/** The rules of one admission, beside the call, its price and the ledger. */
export type AdmissionRules = {
  bounds?: TokenBounds;
  /** The most that this attempt may reserve, if the budget is split; null = all that is left. */
  share?: Limits | null;
  /** Cap to reserve for a single completion if the client names none and a limit needs one; null = the default. */
  learnedCapTokens?: number | null;
  /** Attempts that would be in flight without a budget: those in flight and those queued, up to the run's width. */
  attemptsWanted?: number;
  /** Whether a completion that the budget would cap is refused; absent = it is capped. */
  isWhole?: boolean;
  /** Fields that are allowed although no reservation covers them. */
  allowParams?: readonly string[];
};

/**
 * Decides on one attempt. Changes nothing: the caller reserves `amounts` in the same turn.
 *
 * The cap is what the whole rest of the budget pays for, reservations of attempts in flight included, because they may
 * be freed in full. So an answer is cut only at the end of the budget, and a call waits for settlements rather than
 * start with a lower cap than it could have.
 */
export function admit(
  facts: CallFacts,
  price: TokenPrice | null,
  ledger: Ledger,
  rules: AdmissionRules = {},
): Admission {
  const { bounds = ANY_TOKENS, share = null, learnedCapTokens = null, isWhole = false, allowParams = [] } = rules;
  const usdBinds = ledger.limits.usd !== null && price !== null;
  const binds = (dimension: Dimension): boolean => (dimension === "usd" ? usdBinds : ledger.limits[dimension] !== null);
  const unreservable = unreservableReason(facts, { bounds, allowParams, price }, binds);
  if (unreservable !== null) return { kind: "refuse", reason: unreservable };
  const completions = facts.completions ?? 1;
  const tokensBind = ledger.limits.completion_tokens !== null || ledger.limits.new_tokens !== null;
  const capNeeded = (usdBinds || tokensBind) && completions > 0;
  const promptTokens = promptTokensMax(facts, bounds);
  const mayLearn = facts.maxTokens === null && capNeeded && completions === 1 && learnedCapTokens !== null;
  const atDefault = (): Amounts => worstCase(promptTokens, COMPLETION_TOKENS_DEFAULT, price, facts);
  const learned = mayLearn && isTight(atDefault(), ledger, rules) ? capForPrompt(learnedCapTokens, promptTokens) : null;
  const requested = completions === 0 ? 0 : (facts.maxTokens ?? learned ?? COMPLETION_TOKENS_DEFAULT);
  const highest = price === null ? null : highestPrice(price, promptTokens, facts);
  /** What would be left without attempts in flight. */
  const rest = (dimension: Dimension): number | null => smaller(ledger.idle(dimension), share?.[dimension] ?? null);
  const affordable = affordableCompletion(promptTokens, highest, rest);
  // Each of several completions may reach the cap.
  const cap = Math.min(requested, completions > 1 ? Math.floor(affordable / completions) : affordable);
  const floor = isWhole ? requested : Math.min(requested, COMPLETION_TOKENS_MIN);
  const need = worstCase(promptTokens, Math.max(cap, floor) * completions, price, facts);

  const exceeded = DIMENSIONS.find((dimension) => need[dimension] > (rest(dimension) ?? Infinity));
  if (exceeded !== undefined) {
    return { kind: "refuse", reason: budgetReason("budget_exhausted", exceeded, need, ledger), need };
  }
  const capKind =
    cap < requested ? "budget" : learned !== null ? "learned" : facts.maxTokens === null ? "default" : "client";
  const short = ledger.shortfall(need);
  if (short !== null) {
    return {
      kind: "wait",
      capKind,
      capTokens: cap,
      reason: budgetReason("in_flight_budget_exhausted", short, need, ledger),
    };
  }
  return { kind: "reserve", amounts: need, capTokens: capNeeded || facts.maxTokens !== null ? cap : null, capKind };
}

/** Why no reservation covers a call under the limits that bind: a part or a field has no bound. Null = one does. */
function unreservableReason(
  facts: CallFacts,
  { bounds, allowParams, price }: { bounds: TokenBounds; allowParams: readonly string[]; price: TokenPrice | null },
  binds: (dimension: Dimension) => boolean,
): Reason | null {
  const { fileParts = 0, unbounded = [] } = facts;
  if (binds("usd") || binds("prompt_tokens") || binds("new_tokens")) {
    if (mediaTokensMax(facts, bounds) === null) return unboundedPart("an image", "media_tokens_max");
    if (fileParts > 0 && (bounds.fileTokensMax ?? null) === null)
      return unboundedPart("a file, sound or film", "file_tokens_max");
  }
  for (const entry of unbounded) {
    if (entry.allowedBy !== undefined && allowParams.includes(entry.allowedBy)) continue;
    const dimension = dimensionsOf(entry).find(binds);
    if (dimension !== undefined && !isPricedTier(entry, facts, price)) return unboundedField(entry, dimension);
  }
  return null;
}

/** The limits that a field could break: tokens of either kind may be new. */
function dimensionsOf({ spends }: UnreservableField): readonly Dimension[] {
  return spends.some((each) => each.endsWith("_tokens")) ? [...spends, "new_tokens"] : spends;
}

/** True if a field spends more only through the service tier that it names, whose price is known and reserved. */
function isPricedTier({ allowedBy }: UnreservableField, { serviceTier }: CallFacts, price: TokenPrice | null): boolean {
  const names = serviceTier === FAST_TIER ? "speed" : "service_tier";
  return allowedBy === names && hasTierPrice(price, serviceTier);
}

function unboundedPart(what: string, setting: string): Reason {
  const message =
    `messages contain ${what}, whose tokens cannot be bounded: the upstream needs ${setting} in its configuration, or the ` +
    "run no limit in USD, prompt tokens and new tokens";
  return { reason: "infeasible", message };
}

function unboundedField({ field, why, allowedBy }: UnreservableField, dimension: Dimension): Reason {
  const limit = dimension === "usd" ? "USD" : dimension.replace("_", " ");
  const wayOut =
    allowedBy === undefined ? "remove it" : `remove it, or ask the operator to add "${allowedBy}" to allow_params`;
  const message = `${field}: ${why} It is refused under a limit in ${limit}; ${wayOut}`;
  return { reason: "invalid_request", message, param: field };
}

/**
 * True if a lower cap is worth the answers that it may cut: at the default cap, the attempts that want to run would not
 * all fit the rest of the budget, and reservations would take more than LEARNED_ROOM_SHARE of it.
 */
function isTight(need: Amounts, ledger: Ledger, { share = null, attemptsWanted = 1 }: AdmissionRules): boolean {
  return DIMENSIONS.some((dimension) => {
    const idle = ledger.idle(dimension);
    if (idle === null || dimension === "calls") return false;
    if (need[dimension] > (share?.[dimension] ?? Infinity)) return true;
    const reserved = ledger.reserved[dimension] - ledger.reservedByChildren[dimension] + need[dimension];
    return reserved > idle * LEARNED_ROOM_SHARE && need[dimension] * attemptsWanted > idle;
  });
}

/** An equal share of what is left, for each of `count` slots. */
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

/** Completion tokens that the rest of the budget pays for beside the prompt; Infinity without a limit that binds. */
function affordableCompletion(
  promptTokens: number,
  highest: TokenPrice | null,
  left: (dimension: Dimension) => number | null,
): number {
  const newLeft = left("new_tokens");
  const tokensLeft = Math.min(
    left("completion_tokens") ?? Number.POSITIVE_INFINITY,
    newLeft === null ? Number.POSITIVE_INFINITY : Math.max(0, newLeft - promptTokens),
  );
  const usdLeft = left("usd");
  if (usdLeft === null || highest === null) return tokensLeft;
  return Math.min(tokensLeft, completionTokensFor(usdLeft, promptTokens, highest));
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

/** True if a call was refused because of its budget. */
export function isBudgetReason({ reason }: Reason): boolean {
  return reason === "budget_exhausted" || reason === "in_flight_budget_exhausted";
}

/** The refusal of a run that the root budget of a day does not cover. The figures are those of all runs of that day. */
export function dayReason(neededNanoUsd: number, limitNanoUsd: number, committedNanoUsd: number): Reason {
  return {
    reason: "budget_exhausted",
    dimension: "usd",
    limit: usdOf(limitNanoUsd),
    spent: 0,
    reserved: usdOf(committedNanoUsd),
    remaining: usdOf(Math.max(0, limitNanoUsd - committedNanoUsd)),
    needed: usdOf(neededNanoUsd),
    param: "budget.usd",
    variable: "ROOT_BUDGET_USD_PER_DAY",
  };
}
