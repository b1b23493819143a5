/** The worst that one attempt can cost, and what it did cost. */
import type { CallFacts, Usage } from "../call.ts";
import { PROMPT_TOKENS_PER_BYTE, PROMPT_TOKENS_PER_MESSAGE } from "../limits.ts";
import type { Amounts } from "./ledger.ts";
import { costNanoUsd, dearestPrice, type TokenPrice } from "./money.ts";

/** Upper bound of a call's prompt tokens, from its bytes: no text can fool it. */
export function promptTokensMax(facts: Pick<CallFacts, "promptBytes" | "messageCount">): number {
  return Math.ceil(facts.promptBytes * PROMPT_TOKENS_PER_BYTE) + facts.messageCount * PROMPT_TOKENS_PER_MESSAGE;
}

/**
 * What to reserve for an attempt with at most `promptTokens` whose completion is capped at `completionTokens`: the
 * dearest that any tier and any use of the provider's cache can make it. No price = free of charge.
 */
export function worstCase(promptTokens: number, completionTokens: number, price: TokenPrice | null): Amounts {
  return {
    usd:
      price === null
        ? 0
        : costNanoUsd({ promptTokens, cachedTokens: 0, completionTokens }, dearestPrice(price, promptTokens)),
    calls: 1,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
  };
}

/** What a reported usage costs: the upstream's own figure if it names one, else tokens × price. */
export function chargeOf(usage: Usage, price: TokenPrice | null): Amounts {
  return {
    usd: usage.costNanoUsd ?? (price === null ? 0 : costNanoUsd(usage, price)),
    calls: 1,
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
  };
}
