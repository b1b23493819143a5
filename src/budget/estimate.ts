/** The worst that one attempt can cost, and what it did cost. */
import type { CallFacts, Usage } from "../call.ts";
import { PROMPT_TOKENS_PER_BYTE, PROMPT_TOKENS_PER_MESSAGE } from "../limits.ts";
import type { Amounts } from "./ledger.ts";
import { costNanoUsd, dearestPrice, type TokenPrice } from "./money.ts";

/** How an upstream's tokens are bounded. */
export type TokenBounds = {
  /** Tokens per UTF-8 byte of text, at most. */
  tokensPerByte: number;
  /** Tokens that one image, sound or file counts as, at most; null = nobody knows. */
  mediaTokensMax: number | null;
  /** Tokens that the upstream adds to a prompt of its own accord, at most; absent = none. */
  fixedTokens?: number;
};

/** The bounds that hold for any upstream. */
export const ANY_TOKENS: TokenBounds = { tokensPerByte: PROMPT_TOKENS_PER_BYTE, mediaTokensMax: null };

type Sized = Pick<CallFacts, "promptBytes" | "messageCount" | "promptTokenIds"> & { mediaParts?: number };

/** Upper bound of a call's prompt tokens, from its bytes: no text can fool it. Media without a bound count nothing here. */
export function promptTokensMax(facts: Sized, bounds: TokenBounds = ANY_TOKENS): number {
  const media = (facts.mediaParts ?? 0) * (bounds.mediaTokensMax ?? 0);
  const text = Math.ceil(facts.promptBytes * bounds.tokensPerByte) + facts.messageCount * PROMPT_TOKENS_PER_MESSAGE;
  return text + media + (facts.promptTokenIds ?? 0) + (bounds.fixedTokens ?? 0);
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
