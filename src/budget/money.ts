/**
 * Money is integer nano-USD; prices are integer pico-USD per token, so that fractions of a nano-USD per token stay exact.
 * Costs round up and limits round down: every rounding favours the limit.
 */

const NANO_PER_USD = 1_000_000_000;
const PICO_PER_NANO = 1_000n;

/** Price of a model in pico-USD per token. */
export type TokenPrice = { inputPicoUsd: number; cachedInputPicoUsd: number; outputPicoUsd: number };

/** A limit in USD as nano-USD, rounded down. */
export function limitNanoUsd(usd: number): number {
  // Decimal USD such as 0.07 lie a hair below their nano-USD in binary; half a pico-USD of slack restores them.
  return Math.floor(usd * NANO_PER_USD + 0.0005);
}

/** nano-USD as the decimal USD that the wire carries. */
export function usdOf(nanoUsd: number): number {
  return nanoUsd / NANO_PER_USD;
}

/** Cost of a number of tokens in nano-USD, rounded up. `cachedTokens` are part of `promptTokens`. */
export function costNanoUsd(
  tokens: { promptTokens: number; cachedTokens: number; completionTokens: number },
  price: TokenPrice,
): number {
  const cached = Math.min(tokens.cachedTokens, tokens.promptTokens);
  // BigInt: a million-token prompt at a high price passes 2^53 pico-USD.
  const pico =
    BigInt(tokens.promptTokens - cached) * BigInt(price.inputPicoUsd) +
    BigInt(cached) * BigInt(price.cachedInputPicoUsd) +
    BigInt(tokens.completionTokens) * BigInt(price.outputPicoUsd);
  return Number((pico + PICO_PER_NANO - 1n) / PICO_PER_NANO);
}

/** How many tokens at `picoUsd` each a sum of nano-USD pays for, rounded down; Infinity when they are free. */
export function tokensFor(nanoUsd: number, picoUsd: number): number {
  if (picoUsd === 0) return Number.POSITIVE_INFINITY;
  if (nanoUsd <= 0) return 0;
  return Number((BigInt(nanoUsd) * PICO_PER_NANO) / BigInt(picoUsd));
}
