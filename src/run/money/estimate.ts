/** The most that one attempt can cost, and the cost of a reported usage. */
import type { CallFacts, PriceFacts, Usage } from "../../call.ts";
import { PROMPT_TOKENS_PER_BYTE, PROMPT_TOKENS_PER_MESSAGE } from "../../limits.ts";
import type { Amounts } from "./ledger.ts";
import { costNanoUsd, highestPrice } from "./money.ts";
import type { TokenPrice } from "./token-price.ts";

/** How an upstream's tokens are bounded. */
export type TokenBounds = {
  /** Tokens per UTF-8 byte of text, at most. */
  tokensPerByte: number;
  /** Tokens that one image counts as, at most; null = not known. */
  mediaTokensMax: number | null;
  /** Tokens that one file counts as, at most, whatever file the client chooses; null, or absent = not known. */
  fileTokensMax?: number | null;
  /** Most tokens that the upstream adds to a prompt by itself; absent = none. */
  fixedTokens?: number;
  /** True if `CallFacts.textTokensMax` bounds the tokens of a text here: see src/run/money/text-scale.ts. Absent = no. */
  believesLook?: boolean;
  /** `fixedTokens` of a request with tools; absent = the same. */
  toolsTokens?: number;
  /** True if `fixedTokens` are only the first assumption, and the true number is learned from bills. Absent = no. */
  learnsTemplate?: boolean;
  /** True if the operator configured `fixedTokens`: no more is reserved until more was billed. Absent = no. */
  vouched?: boolean;
};

/** The bounds that hold for any upstream. */
export const ANY_TOKENS: TokenBounds = { tokensPerByte: PROMPT_TOKENS_PER_BYTE, mediaTokensMax: null };

type Sized = Pick<
  CallFacts,
  "promptBytes" | "textTokensMax" | "messageCount" | "promptTokenIds" | "fileParts" | "tools"
> & {
  mediaParts?: number;
};

/** Tokens reserved for the upstream's own addition to a prompt, as long as nothing has been learned of it. */
export function fixedTokensOf({ tools }: Pick<CallFacts, "tools">, bounds: TokenBounds): number {
  const { fixedTokens = 0, toolsTokens = fixedTokens } = bounds;
  return tools === true ? toolsTokens : fixedTokens;
}

/** Upper bound of a call's prompt tokens, whatever its text is. Media and files without a bound do not count here. */
export function promptTokensMax(facts: Sized, bounds: TokenBounds = ANY_TOKENS): number {
  const images = (facts.mediaParts ?? 0) * (bounds.mediaTokensMax ?? 0);
  const files = (facts.fileParts ?? 0) * (bounds.fileTokensMax ?? 0);
  const messages = facts.messageCount * PROMPT_TOKENS_PER_MESSAGE;
  return (
    textTokens(facts, bounds) + messages + images + files + (facts.promptTokenIds ?? 0) + fixedTokensOf(facts, bounds)
  );
}

function textTokens({ promptBytes, textTokensMax }: Sized, { tokensPerByte, believesLook }: TokenBounds): number {
  const byBytes = promptBytes * tokensPerByte;
  const byLook = believesLook === true ? (textTokensMax ?? Infinity) : Infinity;
  return Math.ceil(Math.min(byBytes, byLook));
}

/**
 * Most prompt tokens of a call without the upstream's own addition, counted by bytes; null if that is not bounded, or
 * the upstream's addition is not learned.
 */
export function byteTokensMax(facts: CallFacts, bounds: TokenBounds): number | null {
  const { mediaParts, fileParts = 0, unbounded = [] } = facts;
  if (bounds.learnsTemplate !== true || mediaParts + fileParts + unbounded.length > 0) return null;
  return promptTokensMax(facts, ANY_TOKENS);
}

/**
 * The reservation of an attempt with at most `promptTokens` whose completion is capped at `completionTokens`: the
 * largest cost in any service tier that it can get, and with any use of the provider's cache. No price = free of
 * charge.
 */
export function worstCase(
  promptTokens: number,
  completionTokens: number,
  price: TokenPrice | null,
  facts: PriceFacts = {},
): Amounts {
  const tokens = { promptTokens, cachedTokens: 0, completionTokens };
  return {
    usd: price === null ? 0 : costNanoUsd(tokens, highestPrice(price, promptTokens, facts)),
    calls: 1,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
  };
}

/** The cost of a reported usage: the upstream's own figure if it names one, else tokens × price. */
export function chargeOf(usage: Usage, price: TokenPrice | null, facts: PriceFacts = {}): Amounts {
  return {
    usd: usage.costNanoUsd ?? (price === null ? 0 : costNanoUsd(usage, price, facts)),
    calls: 1,
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
  };
}
