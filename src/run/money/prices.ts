/**
 * The price catalogue: what known providers charge for text, from the reviewed snapshot beside this file. It applies to
 * the providers' own hosts only: the price of a model of the same name at another host is unknown.
 */
import { fitsPattern } from "./name-pattern.ts";
import { NEURON_PRICES } from "./neuron-prices.ts";
import type { PriceTier, TokenPrice, TokenRates } from "./token-price.ts";
import { sharedTierPrices } from "./service-tiers.ts";
import data from "./price-snapshot.json" with { type: "json" };

/**
 * Rates in the snapshot, pico-USD per token. Absent `cached` and `write` equal `input`, absent `write1h` equals
 * `write`.
 */
export type SnapshotRates = {
  input: number;
  cached?: number | undefined;
  write?: number | undefined;
  write1h?: number | undefined;
  output: number;
};

/** A price, and the patterns of the models that have it. */
export type SnapshotModel = SnapshotRates & {
  match: readonly string[];
  /** nano-USD of each call beside its tokens. */
  call?: number | undefined;
  /** Present where the provider writes to its cache, and bills it, without a mark in the request. */
  unasked?: boolean | undefined;
  /** By rising `from`, in prompt tokens. */
  tiers?: readonly (SnapshotRates & { from: number })[] | undefined;
};

/**
 * The snapshot. Patterns are lower case; `*` at either end matches anything and `#` one digit. It has no regular
 * expressions, so no model name can make a lookup slow.
 */
export type Snapshot = {
  /** Package, version and licence that the prices come from. */
  source: string;
  /** Day on which that version was published. */
  date: string;
  /** By provider: its hosts, models whose cost tokens do not bound, and prices, of which the first match counts. */
  providers: Readonly<
    Record<string, { hosts: readonly string[]; unpriced: readonly string[]; models: readonly SnapshotModel[] }>
  >;
};

const snapshot: Snapshot = data;

/** Neurons first: the snapshot has the rounded prices of the same models, and those of models that have no neurons per token. */
const CLOUDFLARE: readonly SnapshotModel[] = [...NEURON_PRICES, ...(snapshot.providers["cloudflare"]?.models ?? [])];

/** Day of the catalogue's prices, as `YYYY-MM-DD`. */
export const CATALOG_DATE = snapshot.date;

const PROVIDER_BY_HOST: ReadonlyMap<string, string> = new Map(
  Object.entries(snapshot.providers).flatMap(([provider, { hosts }]) => hosts.map((host) => [host, provider] as const)),
);

/** The provider whose prices apply at a base URL; null for a host or port that is not a provider's own. */
export function providerAt(baseUrl: string): string | null {
  return URL.canParse(baseUrl) ? (PROVIDER_BY_HOST.get(new URL(baseUrl).host) ?? null) : null;
}

/**
 * What a provider charges for a model, by the model's whole id as that provider knows it: a router's `vendor/model` is
 * looked up among the router's prices, never among the vendor's. null if the snapshot has no price that bounds a call.
 */
export function catalogPrice(provider: string | null, model: string): TokenPrice | null {
  if (provider === null || !Object.hasOwn(snapshot.providers, provider)) return null;
  const listed = snapshot.providers[provider];
  const name = model.toLowerCase();
  if (listed === undefined || listed.unpriced.some((pattern) => fitsPattern(pattern, name))) return null;
  const models: readonly SnapshotModel[] = provider === "cloudflare" ? CLOUDFLARE : listed.models;
  const found = models.find(({ match }) => match.some((pattern) => fitsPattern(pattern, name)));
  return found === undefined ? null : priceFrom(provider, found);
}

function priceFrom(provider: string, model: SnapshotModel): TokenPrice {
  const price: TokenPrice = ratesFrom(model);
  if (model.tiers !== undefined) {
    price.tiers = model.tiers.map((tier): PriceTier => ({ ...ratesFrom(tier), fromPromptTokens: tier.from }));
  }
  const serviceTiers = sharedTierPrices(provider, price);
  if (serviceTiers !== undefined) price.serviceTiers = serviceTiers;
  if (model.call !== undefined) price.perCallNanoUsd = model.call;
  if (model.unasked === true) price.writesWithoutMark = true;
  return price;
}

function ratesFrom({ input, cached = input, write, write1h, output }: SnapshotRates): TokenRates {
  const rates: TokenRates = { inputPicoUsd: input, cachedInputPicoUsd: cached, outputPicoUsd: output };
  if (write !== undefined) rates.cacheWritePicoUsd = write;
  if (write1h !== undefined) rates.cacheWrite1hPicoUsd = write1h;
  return rates;
}
