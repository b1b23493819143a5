/** The price of a model, in integer pico-USD per token, so that fractions of a nano-USD per token stay exact. */

/** The rate of each kind of token, in pico-USD. */
export type TokenRates = {
  inputPicoUsd: number;
  /** Prompt tokens read from the provider's cache. */
  cachedInputPicoUsd: number;
  /** Prompt tokens written to the provider's cache, for its shortest lifetime; absent = as input. */
  cacheWritePicoUsd?: number;
  /** Prompt tokens written for an hour; absent = the price of any other write. */
  cacheWrite1hPicoUsd?: number;
  outputPicoUsd: number;
};

/** Rates of a whole call, completion included, whose prompt has at least `fromPromptTokens` tokens. */
export type PriceTier = TokenRates & { fromPromptTokens: number };

/** Price of a model in one service tier: its rates, and other rates for larger prompts. */
export type TierPrice = TokenRates & {
  /** By rising `fromPromptTokens`; the last tier that a prompt reaches replaces the rates above. */
  tiers?: readonly PriceTier[];
};

/** Price of a model: the rates of its standard tier, and all other prices that are known. */
export type TokenPrice = TierPrice & {
  /** Cost of each call beside its tokens. */
  perCallNanoUsd?: number;
  /** Set if the provider writes prompts to its cache, and bills that, without a mark in the request. */
  writesWithoutMark?: true;
  /** Prices of other service tiers, by the name that answers give them. */
  serviceTiers?: Readonly<Record<string, TierPrice>>;
};
