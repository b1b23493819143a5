/**
 * Money is integer nano-USD; prices are integer pico-USD per token, so that fractions of a nano-USD per token stay exact.
 * Costs round up and limits round down: every rounding favours the limit.
 */

const NANO_PER_USD = 1_000_000_000;
const PICO_PER_NANO = 1_000n;

/** What each kind of token costs, in pico-USD. */
export type TokenRates = {
  inputPicoUsd: number;
  /** Prompt tokens read from the provider's cache. */
  cachedInputPicoUsd: number;
  /** Prompt tokens written to the provider's cache; absent = as input. */
  cacheWritePicoUsd?: number;
  outputPicoUsd: number;
};

/** Rates of a whole call, completion included, whose prompt has at least `fromPromptTokens` tokens. */
export type PriceTier = TokenRates & { fromPromptTokens: number };

/** Price of a model: its rates, what each call costs beside its tokens, and other rates for larger prompts. */
export type TokenPrice = TokenRates & {
  perCallNanoUsd?: number;
  /** By rising `fromPromptTokens`; the last one that a prompt reaches takes the place of the rates above. */
  tiers?: readonly PriceTier[];
};

/** A limit in USD as nano-USD, rounded down. */
export function limitNanoUsd(usd: number): number {
  // Decimal USD such as 0.07 lie a hair below their nano-USD in binary; half a pico-USD of slack restores them.
  return Math.floor(usd * NANO_PER_USD + 0.0005);
}

/** nano-USD as the decimal USD that the wire carries. */
export function usdOf(nanoUsd: number): number {
  return nanoUsd / NANO_PER_USD;
}

/** Tokens of one call. `cachedTokens` and `cacheWriteTokens` are parts of `promptTokens`. */
export type CallTokens = {
  promptTokens: number;
  cachedTokens: number;
  cacheWriteTokens?: number;
  completionTokens: number;
};

/** Cost of one call in nano-USD, rounded up, in the tier that its prompt reaches. */
export function costNanoUsd(tokens: CallTokens, price: TokenPrice): number {
  const rates = ratesAt(price, tokens.promptTokens);
  // Where the parts exceed the whole, the dearer part counts.
  const written = Math.min(tokens.cacheWriteTokens ?? 0, tokens.promptTokens);
  const cached = Math.min(tokens.cachedTokens, tokens.promptTokens - written);
  // BigInt: a million-token prompt at a high price passes 2^53 pico-USD.
  const pico =
    BigInt(tokens.promptTokens - written - cached) * BigInt(rates.inputPicoUsd) +
    BigInt(written) * BigInt(rates.cacheWritePicoUsd ?? rates.inputPicoUsd) +
    BigInt(cached) * BigInt(rates.cachedInputPicoUsd) +
    BigInt(tokens.completionTokens) * BigInt(rates.outputPicoUsd);
  return Number((pico + PICO_PER_NANO - 1n) / PICO_PER_NANO) + (price.perCallNanoUsd ?? 0);
}

/**
 * A price without tiers or cache that costs at least as much as `price` for every call whose prompt has at most
 * `promptTokensMax` tokens: each kind of token at its dearest in any tier within reach.
 */
export function dearestPrice(price: TokenPrice, promptTokensMax: number): TokenPrice {
  let inputPicoUsd = dearestInput(price);
  let { outputPicoUsd } = price;
  for (const tier of price.tiers ?? []) {
    if (tier.fromPromptTokens > promptTokensMax) break;
    inputPicoUsd = Math.max(inputPicoUsd, dearestInput(tier));
    outputPicoUsd = Math.max(outputPicoUsd, tier.outputPicoUsd);
  }
  const perCallNanoUsd = price.perCallNanoUsd ?? 0;
  return { inputPicoUsd, cachedInputPicoUsd: inputPicoUsd, outputPicoUsd, perCallNanoUsd };
}

function dearestInput({ inputPicoUsd, cachedInputPicoUsd, cacheWritePicoUsd = 0 }: TokenRates): number {
  return Math.max(inputPicoUsd, cachedInputPicoUsd, cacheWritePicoUsd);
}

function ratesAt(price: TokenPrice, promptTokens: number): TokenRates {
  let rates: TokenRates = price;
  for (const tier of price.tiers ?? []) {
    if (tier.fromPromptTokens > promptTokens) break;
    rates = tier;
  }
  return rates;
}

/**
 * How many completion tokens a sum of nano-USD pays for beside a prompt: the most for which `costNanoUsd` of both together
 * stays within the sum. Infinity when they are free.
 */
export function completionTokensFor(nanoUsd: number, promptTokens: number, price: TokenPrice): number {
  if (price.outputPicoUsd === 0) return Number.POSITIVE_INFINITY;
  const forTokens = BigInt(nanoUsd - (price.perCallNanoUsd ?? 0)) * PICO_PER_NANO;
  const picoLeft = forTokens - BigInt(promptTokens) * BigInt(price.inputPicoUsd);
  return picoLeft <= 0n ? 0 : Number(picoLeft / BigInt(price.outputPicoUsd));
}
