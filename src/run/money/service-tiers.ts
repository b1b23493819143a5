/**
 * Service tiers: the same tokens of the same model at another price, by the tier that serves the request. A request
 * names a tier or leaves the choice to its upstream, and the answer names the tier that served it.
 */
import type { TierPrice, TokenPrice } from "./token-price.ts";

/**
 * Names of the tier at the model's listed rates: OpenAI `default`, Anthropic `standard` and `standard_only`, Groq
 * `on_demand`. OpenAI's `scale` is capacity that was paid for beforehand.
 */
export const STANDARD_TIERS: ReadonlySet<string> = new Set([
  "default",
  "standard",
  "standard_only",
  "on_demand",
  "scale",
]);

/**
 * The upstream chooses the tier, also for a request that names none. OpenAI then applies the project's setting, which
 * may be `priority`; Anthropic and Groq use purchased capacity while it lasts. Which prices that can mean only the
 * operator knows, so every tier with a configured price counts as one that may be chosen.
 */
const AUTO = "auto";

/** Anthropic's fast mode: a request selects it by a field of its own (`speed`), so no other request is served in it. */
export const FAST_TIER = "fast";

/**
 * Prices of tiers as a share of the standard rates, by provider of the catalogue, which lists standard rates only.
 * OpenAI's flex is billed at the rates of its Batch API, half of the standard ones, cached input included
 * (developers.openai.com/api/docs/guides/flex-processing). Anthropic's Message Batches cost half as well, of every rate
 * (platform.claude.com/docs/en/build-with-claude/batch-processing).
 */
const SHARES: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  openai: { flex: 0.5, batch: 0.5 },
  anthropic: { batch: 0.5 },
};

/** Prices of a provider's tiers that follow from its standard price; undefined if it has none. */
export function sharedTierPrices(provider: string, standard: TierPrice): TokenPrice["serviceTiers"] {
  const shares = Object.hasOwn(SHARES, provider) ? SHARES[provider] : undefined;
  if (shares === undefined) return undefined;
  return Object.fromEntries(Object.entries(shares).map(([name, share]) => [name, shareOf(standard, share)]));
}

function shareOf({ tiers, ...rates }: TierPrice, share: number): TierPrice {
  const part = <Rates extends object>(all: Rates): Rates => {
    const scaled = Object.entries(all).map(([name, value]: [string, unknown]) => {
      const isRate = typeof value === "number" && name.endsWith("PicoUsd");
      return [name, isRate ? Math.ceil(value * share) : value];
    });
    return { ...all, ...Object.fromEntries(scaled) };
  };
  return tiers === undefined ? part(rates) : { ...part(rates), tiers: tiers.map((tier) => part(tier)) };
}

/** Known prices of the tiers that can serve a request. The standard price is always among them. */
export function reachableTiers(price: TokenPrice, requested: string = AUTO): readonly TierPrice[] {
  const { serviceTiers } = price;
  if (serviceTiers === undefined || STANDARD_TIERS.has(requested)) return [price];
  if (requested === AUTO) {
    const chosen = Object.entries(serviceTiers).filter(([name]) => name !== FAST_TIER);
    return [price, ...chosen.map(([, tier]) => tier)];
  }
  const named = tierNamed(price, requested);
  // Flex falls back to the standard tier at some routers.
  return named === null ? [price] : [price, named];
}

/**
 * The prices of which the highest is charged: that of the tier that the answer names. If it names none, or one without
 * a known price, the charge uses the same tiers as the reservation, so it is never below the standard price.
 */
export function chargedTiers(
  price: TokenPrice,
  requested: string | undefined,
  answered: string | undefined,
): readonly TierPrice[] {
  if (answered !== undefined && STANDARD_TIERS.has(answered)) return [price];
  const named = answered === undefined ? null : tierNamed(price, answered);
  return named === null ? reachableTiers(price, requested) : [named];
}

/** True if the tier that a request names has a known price, so that its reservation covers it. */
export function hasTierPrice(price: TokenPrice | null, requested: string | undefined): boolean {
  return price !== null && requested !== undefined && tierNamed(price, requested) !== null;
}

function tierNamed({ serviceTiers = {} }: TokenPrice, name: string): TierPrice | null {
  return Object.hasOwn(serviceTiers, name) ? (serviceTiers[name] ?? null) : null;
}
