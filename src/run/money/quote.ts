/** A quote: the most that a call can cost, and its likely cost. Nothing is reserved. */
import type { CallFacts } from "../../call.ts";
import { COMPLETION_TOKENS_DEFAULT, LIKELY_BYTES_PER_TOKEN, LIKELY_COMPLETION_TOKENS } from "../../limits.ts";
import { promptTokensMax, worstCase, type TokenBounds } from "./estimate.ts";
import { costNanoUsd } from "./money.ts";
import type { TokenPrice } from "./token-price.ts";

export type Quote = {
  worstNanoUsd: number;
  likelyNanoUsd: number;
  promptTokensMax: number;
  completionTokensMax: number;
  /** Most calls that it is made of, without retries; absent = one. */
  callsMax?: number;
  /** The model, by its name in requests; absent = whoever asked for the quote named it. */
  model?: string;
};

/** Quotes one attempt. A model without a known price counts as free, as it does under `unpriced: "free"`. */
export function quoteOf(facts: CallFacts, price: TokenPrice | null, bounds: TokenBounds): Quote {
  const promptTokens = promptTokensMax(facts, bounds);
  const completionTokensMax = facts.maxTokens ?? COMPLETION_TOKENS_DEFAULT;
  const likely = {
    promptTokens: Math.min(promptTokens, Math.ceil(facts.promptBytes / LIKELY_BYTES_PER_TOKEN)),
    cachedTokens: 0,
    completionTokens: Math.min(completionTokensMax, LIKELY_COMPLETION_TOKENS),
  };
  return {
    worstNanoUsd: worstCase(promptTokens, completionTokensMax, price, facts).usd,
    likelyNanoUsd: price === null ? 0 : costNanoUsd(likely, price, facts),
    promptTokensMax: promptTokens,
    completionTokensMax,
  };
}
