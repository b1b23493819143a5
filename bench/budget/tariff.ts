/**
 * What the upstream of the storm charges, and how much each call makes it do: drawn by a seed, so that a storm can be
 * repeated. Its arithmetic is written apart from the gateway's, for the two are to be compared.
 */

/** USD per million tokens, down to the pico-USD per token, so that rounding shows. */
export const PRICES = { input: 0.150001, cached_input: 0.037503, output: 0.600007 };

/** Tokens of one answer; `costNanoUsd` is set where the upstream names a price of its own, below its list's. */
export type Usage = {
  promptTokens: number;
  cachedTokens: number;
  completionTokens: number;
  costNanoUsd: number | null;
};

/** A number in [0, 1) that depends on nothing but the words. */
export function draw(...words: readonly (string | number)[]): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(words.join("/"))) hash = Math.imul(hash ^ byte, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

/** Tokens that chat formats add to a message, at most. */
const TOKENS_PER_MESSAGE_MAX = 8;

/** What a call makes the upstream do. One prompt in ten has a token for each byte: the worst that text can be. */
export function usageOf(id: string, prompt: { bytes: number; messages: number }, capTokens: number | null): Usage {
  const bytesPerToken = draw(id, "dense") < 0.1 ? 1 : 3 + 2 * draw(id, "bytes per token");
  const overhead = Math.floor(draw(id, "overhead") * (TOKENS_PER_MESSAGE_MAX + 1)) * prompt.messages;
  const promptTokens = Math.max(1, Math.floor(prompt.bytes / bytesPerToken)) + overhead;
  const cachedTokens = draw(id, "cached") < 0.2 ? Math.floor(promptTokens * draw(id, "cached share")) : 0;
  const wantedTokens = 1 + Math.floor(800 * draw(id, "length") ** 2);
  // One answer in ten rambles until it is cut.
  const completionTokens = draw(id, "rambles") < 0.1 && capTokens !== null ? capTokens : wantedTokens;
  const tokens = { promptTokens, cachedTokens, completionTokens: Math.min(completionTokens, capTokens ?? Infinity) };
  const listed = listedNanoUsd(tokens);
  const named = draw(id, "names cost") < 0.2;
  return { ...tokens, costNanoUsd: named ? Math.floor(listed * (0.5 + 0.5 * draw(id, "discount"))) : null };
}

/** What an answer costs its buyer, nano-USD. */
export function billNanoUsd(usage: Usage): number {
  return usage.costNanoUsd ?? listedNanoUsd(usage);
}

const pico = (usdPerMillion: number): bigint => BigInt(Math.round(usdPerMillion * 1e6));

function listedNanoUsd({ promptTokens, cachedTokens, completionTokens }: Omit<Usage, "costNanoUsd">): number {
  const total =
    BigInt(promptTokens - cachedTokens) * pico(PRICES.input) +
    BigInt(cachedTokens) * pico(PRICES.cached_input) +
    BigInt(completionTokens) * pico(PRICES.output);
  return Number(total / 1_000n) + (total % 1_000n === 0n ? 0 : 1);
}
