/** Which upstream serves a model name, at what price, and whether a run may use it. */
import { catalogPrice, providerAt } from "../../run/money/prices.ts";
import { PRICES_KEPT_MAX } from "../../limits.ts";
import type { Price, Upstream } from "./types.ts";
import { matchesPattern } from "./pattern.ts";

/** A model name resolved: the upstream that serves it and the id that this upstream knows it by. */
export type ResolvedModel = { upstream: Upstream; model: string };

/**
 * The upstream and model that a name means: `upstream/model` when the part before the first slash names an upstream,
 * else the whole name against each upstream's `models`, first match in the order listed. null when nothing serves it.
 * @param fits Whether an upstream has what the request needs: of those that serve a plain name, the first that fits is meant.
 */
export function resolveModel(
  upstreams: readonly Upstream[],
  requested: string,
  fits: (upstream: Upstream) => boolean = () => true,
): ResolvedModel | null {
  const slash = requested.indexOf("/");
  if (slash !== -1) {
    const name = requested.slice(0, slash);
    const upstream = upstreams.find((candidate) => candidate.name === name);
    if (upstream !== undefined) {
      const model = requested.slice(slash + 1);
      return model === "" ? null : { upstream, model };
    }
  }
  if (requested === "") return null;
  const serving = upstreams.filter(({ models }) => models.some((pattern) => matchesPattern(pattern, requested)));
  const upstream = serving.find(fits) ?? serving[0];
  return upstream === undefined ? null : { upstream, model: requested };
}

/**
 * The price of a model: the first configured pattern that matches, else the catalogue's if the upstream is a provider's
 * own host. null when neither knows one.
 */
export function priceOf(upstream: Upstream, model: string): Price | null {
  const prices = known.get(upstream) ?? new Map<string, Price | null>();
  known.set(upstream, prices);
  const before = prices.get(model);
  if (before !== undefined) return before;
  const price = lookUp(upstream, model);
  if (prices.size < PRICES_KEPT_MAX) prices.set(model, price);
  return price;
}

/** The prices that were looked up: the catalogue has hundreds of patterns, and each call needs its price several times. */
const known = new WeakMap<Upstream, Map<string, Price | null>>();

function lookUp(upstream: Upstream, model: string): Price | null {
  const configured = upstream.prices.find(({ pattern }) => matchesPattern(pattern, model));
  return configured?.price ?? catalogPrice(providerAt(upstream.baseUrl), model);
}

/**
 * Whether a run's `models` patterns admit a resolved model; null admits every one, an empty list none. A pattern matches
 * `upstream/model` or the plain model name. A pattern with a slash may name an upstream, so it counts against a plain
 * name only if the client used that plain name: else `openai/*` would admit `router/openai/gpt-x`, which another
 * upstream serves.
 */
export function modelAllowed(
  patterns: readonly string[] | null,
  upstreamName: string,
  model: string,
  requested: string,
): boolean {
  if (patterns === null) return true;
  const full = `${upstreamName}/${model}`;
  return patterns.some(
    (pattern) =>
      matchesPattern(pattern, full) ||
      ((requested === model || !pattern.includes("/")) && matchesPattern(pattern, model)),
  );
}
