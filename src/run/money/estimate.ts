/** The most that one attempt can cost, and the cost of a reported usage. */
import type { CallFacts, PriceFacts, Usage } from "../../call.ts";
import { PROMPT_TOKENS_PER_BYTE, PROMPT_TOKENS_PER_MESSAGE } from "../../limits.ts";
import type { ImageFamily } from "./image-families.ts";
import { imageTokensMax } from "./image-tokens.ts";
import type { Amounts } from "./ledger.ts";
import { costNanoUsd, highestPrice } from "./money.ts";
import type { TokenPrice } from "./token-price.ts";

/** How an upstream's tokens are bounded. */
export type TokenBounds = {
  /** Tokens per UTF-8 byte of text, at most. */
  tokensPerByte: number;
  /** Tokens that one image counts as, at most, by the operator's word; null = the operator says nothing. */
  mediaTokensMax: number | null;
  /** How the model's family counts images; absent = not known. */
  images?: ImageFamily;
  /**
   * Set once more was billed than the images' headers, or the operator's word, allow: every image counts as the largest of its
   * family, and at least as so many tokens more than was allowed.
   */
  imageExcessTokens?: number;
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
  "promptBytes" | "textTokensMax" | "messageCount" | "promptTokenIds" | "images" | "fileParts" | "tools"
> & {
  mediaParts?: number;
};

/** Tokens reserved for the upstream's own addition to a prompt, as long as nothing has been learned of it. */
export function fixedTokensOf({ tools }: Pick<CallFacts, "tools">, bounds: TokenBounds): number {
  const { fixedTokens = 0, toolsTokens = fixedTokens } = bounds;
  return tools === true ? toolsTokens : fixedTokens;
}

/** The bounds by what bills have shown of the images of a model. */
export function withImageExcess(
  bounds: TokenBounds,
  { imageExcessTokens }: { imageExcessTokens?: number },
): TokenBounds {
  return imageExcessTokens === undefined ? bounds : { ...bounds, imageExcessTokens };
}

/**
 * Upper bound of the tokens of a call's images: by the operator's word, or as the model's family counts their sizes. null =
 * nothing bounds them.
 */
export function mediaTokensMax({ mediaParts = 0, images = [] }: Sized, bounds: TokenBounds): number | null {
  if (mediaParts === 0) return 0;
  const { mediaTokensMax: told, images: family, imageExcessTokens: excess = 0 } = bounds;
  if (told !== null && excess === 0) return mediaParts * told;
  const counted = family === undefined ? null : imageTokensMax(mediaParts, images, family, excess);
  if (told === null) return counted;
  return Math.max(mediaParts * (told + excess), counted ?? 0);
}

/** Upper bound of a call's prompt tokens, whatever its text is. Media and files without a bound do not count here. */
export function promptTokensMax(facts: Sized, bounds: TokenBounds = ANY_TOKENS): number {
  const images = mediaTokensMax(facts, bounds) ?? 0;
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
 * Most prompt tokens of a call without the upstream's own addition, counted by bytes and by the headers of its images; null if
 * that is not bounded, or the upstream's addition is not learned. Files without an image count as no bound: what is billed of
 * them is far below it, and shows nothing; beside an image they count as the most, so that a lie beside them shows.
 */
export function byteTokensMax(facts: CallFacts, bounds: TokenBounds): number | null {
  const { mediaParts, fileParts = 0, unbounded = [] } = facts;
  if (bounds.learnsTemplate !== true || unbounded.length > 0) return null;
  if (fileParts > 0 && (mediaParts === 0 || (bounds.fileTokensMax ?? null) === null)) return null;
  const images = mediaTokensMax(facts, bounds);
  const files = fileParts * (bounds.fileTokensMax ?? 0);
  return images === null ? null : images + files + promptTokensMax(facts, ANY_TOKENS);
}

/** The same by the look at the text, of a call with images; null if it is not lower, or the call has no image. */
export function lookTokensMax(facts: CallFacts, bounds: TokenBounds): number | null {
  const byBytes = facts.mediaParts === 0 ? null : byteTokensMax(facts, bounds);
  if (byBytes === null) return null;
  const spared = textTokens(facts, ANY_TOKENS) - textTokens(facts, { ...ANY_TOKENS, believesLook: true });
  return spared > 0 ? byBytes - spared : null;
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
    // No answer has said yet what a cache had.
    new_tokens: promptTokens + completionTokens,
  };
}

/** The cost of a reported usage: the upstream's own figure if it names one, else tokens × price. */
export function chargeOf(usage: Usage, price: TokenPrice | null, facts: PriceFacts = {}): Amounts {
  return {
    usd: usage.costNanoUsd ?? (price === null ? 0 : costNanoUsd(usage, price, facts)),
    calls: 1,
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    new_tokens: Math.max(0, usage.promptTokens - usage.cachedTokens) + usage.completionTokens,
  };
}
