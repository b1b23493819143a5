/**
 * Money is integer nano-USD; prices are integer pico-USD per token, so that fractions of a nano-USD per token stay
 * exact. Costs round up and limits round down: every rounding favours the limit.
 */
import { chargedTiers, reachableTiers } from "./service-tiers.ts";
import type { PriceFacts } from "../../call.ts";
import type { TierPrice, TokenPrice, TokenRates } from "./token-price.ts";

const NANO_PER_USD = 1_000_000_000;
const PICO_PER_NANO = 1_000;
const PICO_PER_NANO_EXACT = BigInt(PICO_PER_NANO);

/** A limit in USD as nano-USD, rounded down. */
export function limitNanoUsd(usd: number): number {
  // In binary, decimal USD such as 0.07 are slightly below their nano-USD; half a pico-USD of slack restores them.
  return Math.floor(usd * NANO_PER_USD + 0.0005);
}

/** nano-USD as the decimal USD that the wire carries. */
export function usdOf(nanoUsd: number): number {
  return nanoUsd / NANO_PER_USD;
}

/** The amount that `usdOf` has made this decimal USD of. */
export function nanoUsdOf(usd: number): number {
  return Math.round(usd * NANO_PER_USD);
}

/** Tokens of one call. `cachedTokens` and `cacheWriteTokens` are parts of `promptTokens`. */
export type CallTokens = {
  promptTokens: number;
  cachedTokens: number;
  cacheWriteTokens?: number;
  /** The part of `cacheWriteTokens` that is kept for an hour; absent if the answer does not split them. */
  cacheWrite1hTokens?: number;
  completionTokens: number;
  /** Service tier that the answer names. */
  serviceTier?: string;
};

/** Rates with every kind of token. */
type AllRates = Required<TokenRates>;

/** Cost of one call in nano-USD, rounded up, at the rates of its prompt's size and its service tier. */
export function costNanoUsd(tokens: CallTokens, price: TokenPrice, facts: PriceFacts = {}): number {
  const { promptTokens } = tokens;
  const tiers = chargedTiers(price, facts.serviceTier, tokens.serviceTier);
  const rates = tiers.map((tier) => ratesAt(tier, promptTokens)).reduce(highestRates, NO_RATES);
  // If the parts exceed the whole, cache writes count first: they cost more than reads.
  const written = Math.min(tokens.cacheWriteTokens ?? 0, promptTokens);
  const written1h = Math.min(tokens.cacheWrite1hTokens ?? (facts.cacheTtl === "1h" ? written : 0), written);
  const cached = Math.min(tokens.cachedTokens, promptTokens - written);
  const plain = promptTokens - written - cached;
  const { completionTokens } = tokens;
  const pico =
    plain * rates.inputPicoUsd +
    (written - written1h) * rates.cacheWritePicoUsd +
    written1h * rates.cacheWrite1hPicoUsd +
    cached * rates.cachedInputPicoUsd +
    completionTokens * rates.outputPicoUsd;
  const perCall = price.perCallNanoUsd ?? 0;
  // A sum of whole numbers that is safe was added without rounding. BigInts take ten times as long.
  if (Number.isSafeInteger(pico)) return nanoOf(pico) + perCall;
  // A million-token prompt at a high price passes 2^53 pico-USD.
  const exact =
    BigInt(plain) * BigInt(rates.inputPicoUsd) +
    BigInt(written - written1h) * BigInt(rates.cacheWritePicoUsd) +
    BigInt(written1h) * BigInt(rates.cacheWrite1hPicoUsd) +
    BigInt(cached) * BigInt(rates.cachedInputPicoUsd) +
    BigInt(completionTokens) * BigInt(rates.outputPicoUsd);
  return Number((exact + PICO_PER_NANO_EXACT - 1n) / PICO_PER_NANO_EXACT) + perCall;
}

/** A safe number of pico-USD as nano-USD, rounded up. */
function nanoOf(pico: number): number {
  const rest = pico % PICO_PER_NANO;
  return (pico - rest) / PICO_PER_NANO + (rest > 0 ? 1 : 0);
}

/**
 * A price without tiers or cache that costs at least as much as `price` for every answer to a call whose prompt has at
 * most `promptTokensMax` tokens: each kind of token has its highest rate in any service tier that the call can get and
 * any size of prompt within the bound. Cache writes count if the call marks them, or the provider writes without a
 * mark.
 */
export function highestPrice(price: TokenPrice, promptTokensMax: number, facts: PriceFacts = {}): TokenPrice {
  let rates = NO_RATES;
  for (const tier of reachableTiers(price, facts.serviceTier)) {
    rates = highestRates(rates, tier);
    for (const size of tier.tiers ?? []) {
      if (size.fromPromptTokens <= promptTokensMax) rates = highestRates(rates, size);
    }
  }
  const writes = facts.cacheTtl !== undefined || price.writesWithoutMark === true ? rates.cacheWritePicoUsd : 0;
  const writes1h = facts.cacheTtl === "1h" ? rates.cacheWrite1hPicoUsd : 0;
  const inputPicoUsd = Math.max(rates.inputPicoUsd, rates.cachedInputPicoUsd, writes, writes1h);
  const perCallNanoUsd = price.perCallNanoUsd ?? 0;
  return { inputPicoUsd, cachedInputPicoUsd: inputPicoUsd, outputPicoUsd: rates.outputPicoUsd, perCallNanoUsd };
}

const NO_RATES: AllRates = {
  inputPicoUsd: 0,
  cachedInputPicoUsd: 0,
  cacheWritePicoUsd: 0,
  cacheWrite1hPicoUsd: 0,
  outputPicoUsd: 0,
};

/** The highest rate of each kind of token; rates are never below zero. */
function highestRates(a: AllRates, b: TokenRates): AllRates {
  const cacheWritePicoUsd = b.cacheWritePicoUsd ?? b.inputPicoUsd;
  return {
    inputPicoUsd: Math.max(a.inputPicoUsd, b.inputPicoUsd),
    cachedInputPicoUsd: Math.max(a.cachedInputPicoUsd, b.cachedInputPicoUsd),
    cacheWritePicoUsd: Math.max(a.cacheWritePicoUsd, cacheWritePicoUsd),
    cacheWrite1hPicoUsd: Math.max(a.cacheWrite1hPicoUsd, b.cacheWrite1hPicoUsd ?? cacheWritePicoUsd),
    outputPicoUsd: Math.max(a.outputPicoUsd, b.outputPicoUsd),
  };
}

function ratesAt(price: TierPrice, promptTokens: number): TokenRates {
  let rates: TokenRates = price;
  for (const tier of price.tiers ?? []) {
    if (tier.fromPromptTokens > promptTokens) break;
    rates = tier;
  }
  return rates;
}

/**
 * How many completion tokens a sum of nano-USD pays for beside a prompt: the most for which `costNanoUsd` of both
 * together stays within the sum. Infinity when they are free.
 */
export function completionTokensFor(nanoUsd: number, promptTokens: number, price: TokenPrice): number {
  if (price.outputPicoUsd === 0) return Number.POSITIVE_INFINITY;
  const forTokens = BigInt(nanoUsd - (price.perCallNanoUsd ?? 0)) * PICO_PER_NANO_EXACT;
  const picoLeft = forTokens - BigInt(promptTokens) * BigInt(price.inputPicoUsd);
  return picoLeft <= 0n ? 0 : Number(picoLeft / BigInt(price.outputPicoUsd));
}
