/** Resolves the model that a request names: its upstream, price and limits, or why it is refused. */
import { imageFamilyOf } from "../run/money/image-tokens.ts";
import { hasTierPrice } from "../run/money/service-tiers.ts";
import { BATCH_TIER, type Endpoint } from "../call.ts";
import type { Choice, Target } from "../run/leases/shard.ts";
import { quoted, type Reason } from "../errors.ts";
import { USABLE_MODEL_CHARS_MAX, USABLE_MODELS_MAX } from "../limits.ts";
import { routedModel } from "./formats/request/routed-model.ts";
import { targetCache } from "./cache-rules.ts";
import { hasEndpoint, missingEndpoint } from "./endpoints.ts";
import { isFetched, isPulled, kindOf } from "./kinds/table.ts";
import { gateNameOf } from "./config/keys.ts";
import type { Route } from "./config/routes.ts";
import type { Upstream } from "./config/types.ts";
import { matchesPattern } from "./config/pattern.ts";
import { modelAllowed, priceOf, resolveModel, type ResolvedModel } from "./config/registry.ts";

/** The settings of a run that decide on models. */
export type ModelRules = {
  defaultModel: string | null;
  /** Lists of patterns of allowed models, the narrowest last: a model must match one of every list. */
  models: readonly (readonly string[])[];
  /** Whether a model without a price is refused or costs nothing. */
  unpriced: "refuse" | "free";
};

/** The operator's fault, not that of a client that named no model. */
const UNSERVED_DEFAULT: Reason = {
  reason: "misconfigured",
  variable: "DEFAULT_MODEL",
  message: "no upstream in UPSTREAMS serves this model; name a model in the request, or correct the variable",
};

/** What of the gateway's configuration decides on models. */
export type ModelConfig = {
  upstreams: readonly Upstream[];
  /** Absent = none. */
  routes?: readonly Route[];
  defaultModel: string | null;
};

type Found = { ok: true; target: Target } | { ok: false; reason: Reason };

/**
 * Resolves the requested model or route, or the run's or the gateway's default if it is null.
 * @param endpoint What the upstream must have, since the body is sent as its client wrote it: a plain name that several upstreams
 *   serve means the first that has it. null = any will do.
 */
export function targetOf(
  requested: string | null,
  rules: ModelRules,
  config: ModelConfig,
  endpoint: Endpoint | null = null,
): Found {
  const name = requested ?? rules.defaultModel ?? config.defaultModel;
  if (name === null) {
    const message = "no model: name one in the request, or set the run's default_model or the gateway's DEFAULT_MODEL";
    return { ok: false, reason: { reason: "invalid_request", message, param: "model" } };
  }
  const route = config.routes?.find((candidate) => candidate.name === name);
  if (route !== undefined) return routeTarget(route, rules, config);
  const fits = (upstream: Upstream): boolean => endpoint === null || hasEndpoint(upstream, endpoint);
  const resolved = resolveModel(config.upstreams, name, fits);
  if (resolved === null) {
    if (requested === null && rules.defaultModel === null) return { ok: false, reason: UNSERVED_DEFAULT };
    return refused("model_not_found", name, rules, config);
  }
  const { upstream, model } = resolved;
  if (!rules.models.every((patterns) => modelAllowed(patterns, upstream.name, model, name))) {
    return refused("model_not_allowed", name, rules, config);
  }
  if (endpoint !== null && !fits(upstream))
    return { ok: false, reason: missingEndpoint({ upstream, endpoint, model: name }, config.upstreams) };
  return targetAt(resolved, rules, name);
}

/**
 * The name under which a call is to go where its endpoint leads it, for a place that resolves names without the endpoint: the model
 * itself, with its upstream's name before it if the name alone means another upstream.
 */
export function nameAtEndpoint(model: string, endpoint: Endpoint, { upstreams, routes = [] }: ModelConfig): string {
  if (routes.some(({ name }) => name === model)) return model;
  const meant = resolveModel(upstreams, model, (upstream) => hasEndpoint(upstream, endpoint));
  return meant === null || meant.upstream === resolveModel(upstreams, model)?.upstream
    ? model
    : `${meant.upstream.name}/${meant.model}`;
}

/**
 * Whether an upstream that may get the call is configured with hedges. Without a model in the request, any may: its run may have a
 * default of its own.
 */
export function mayBeHedged(
  requested: string | null,
  { upstreams, routes = [] }: Pick<ModelConfig, "upstreams" | "routes">,
): boolean {
  const isHedged = ({ hedge }: Upstream): boolean => hedge !== undefined;
  if (requested === null) return upstreams.some(isHedged);
  const route = routes.find(({ name }) => name === requested);
  if (route !== undefined) return route.entries.some(({ upstream }) => isHedged(upstream));
  const resolved = resolveModel(upstreams, requested);
  return resolved !== null && isHedged(resolved.upstream);
}

/**
 * The targets of a route. A run that lists the route's name itself may use all of them, by its operator's decision. One
 * whose patterns only happen to match the name may use those that they match as well: a route widens no list of models.
 */
function routeTarget({ name, entries }: Route, rules: ModelRules, config: ModelConfig): Found {
  const { models } = rules;
  const isNamed = (patterns: readonly string[]): boolean => patterns.some((pattern) => matchesPattern(pattern, name));
  const usable = entries.filter(({ upstream, model }) =>
    models.every(
      (patterns) =>
        patterns.includes(name) || modelAllowed(patterns, upstream.name, model, `${upstream.name}/${model}`),
    ),
  );
  if (!models.every(isNamed) || usable.length === 0) return refused("model_not_allowed", name, rules, config);
  const choices: Choice[] = [];
  for (const entry of usable) {
    const found = targetAt(entry, rules, `${entry.upstream.name}/${entry.model}`);
    if (!found.ok) return found;
    const { choices: keys, ...target } = { ...found.target, ...protocolOf(entry.upstream) };
    const targets = keys?.[0]?.targets.map((each) => ({ ...each, ...protocolOf(entry.upstream) })) ?? [target];
    choices.push({ targets, on: choices.length === 0 ? null : entry.on });
  }
  const first = choices[0]?.targets[0];
  if (first === undefined) return refused("model_not_allowed", name, rules, config);
  const { protocol: _, ...head } = first;
  return { ok: true, target: { ...head, route: name, choices } };
}

function protocolOf(upstream: Upstream): Pick<Target, "protocol"> {
  const { protocol } = kindOf(upstream);
  return protocol === null ? {} : { protocol };
}

/** A model at its upstream, with its price and limits; `name`: as the refusal of an unpriced model shows it. */
function targetAt({ upstream, model }: ResolvedModel, rules: Pick<ModelRules, "unpriced">, name: string): Found {
  const price = priceOf(upstream, model);
  if (price === null && rules.unpriced === "refuse")
    return { ok: false, reason: { reason: "unpriced_model", model: name } };
  const { allowParams, maxInFlight, timeoutMs, maxAttempts: attemptsMax, hedge } = upstream;
  const bounds = boundsOf(upstream, model);
  const { promptCache } = upstream;
  const cache = targetCache(
    promptCache === "auto" ? kindOf(upstream).promptCache(upstream, price) : promptCache,
    model,
  );
  const limits = { bounds, allowParams, maxInFlight, timeoutMs, attemptsMax, ...(cache === null ? {} : { cache }) };
  const routed = routedModel(model);
  const plain = {
    upstream: upstream.name,
    model,
    price,
    ...limits,
    ...(hedge === undefined ? {} : { hedge }),
    ...(isPulled(upstream) ? { isPulled: true as const } : {}),
    ...(upstream.abortCost === "seen" ? { abortCost: "seen" as const } : {}),
    ...(upstream.traces === undefined ? {} : { getsTrace: true as const }),
    ...batchOf(upstream, price),
    ...(routed === null ? {} : { unbounded: [routed] }),
  };
  return { ok: true, target: withKeys(plain, upstream.keys) };
}

/** The bounds with how the model's family counts images; pull workers and the simulated upstream have no family. */
function boundsOf(upstream: Upstream, model: string): Upstream["bounds"] {
  const family = isFetched(upstream) ? imageFamilyOf(model) : null;
  return family === null ? upstream.bounds : { ...upstream.bounds, images: family };
}

/** How calls go through the upstream's batches; nothing where no price of theirs is known. A tape has no batches. */
function batchOf({ batch, cassette }: Upstream, price: Target["price"]): Pick<Target, "batch"> {
  return batch === undefined || cassette !== undefined || !hasTierPrice(price, BATCH_TIER) ? {} : { batch };
}

/** The target, with a choice of keys if its upstream has several. */
function withKeys(plain: Omit<Target, "gate">, keys: Upstream["keys"]): Target {
  const under = (key: string): Target => ({ ...plain, gate: gateNameOf(plain.upstream, key), key });
  const [first, ...others] = (keys ?? []).map(({ name }) => under(name));
  if (first === undefined) return { ...plain, gate: gateNameOf(plain.upstream, undefined) };
  return { ...first, choices: [{ targets: [first, ...others], on: null }] };
}

function refused(
  reason: "model_not_found" | "model_not_allowed",
  model: string,
  rules: ModelRules,
  config: ModelConfig,
): Found {
  return { ok: false, reason: { reason, model, usableModels: usableModelsOf(rules, config) } };
}

/**
 * What a run may use, for the refusal of another model: the patterns of its own list, which is the narrowest, or those of
 * the configured routes and upstreams.
 */
function usableModelsOf({ models }: ModelRules, { upstreams, routes = [] }: ModelConfig): string {
  const patterns = models.at(-1) ?? [...routes.map(({ name }) => name), ...upstreams.flatMap(patternsOf)];
  const shown = patterns.slice(0, USABLE_MODELS_MAX).map((pattern) => quoted(pattern, USABLE_MODEL_CHARS_MAX));
  const more = patterns.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more (GET /v1/models lists all)` : shown.join(", ");
}

/** An upstream's models as a request names them. */
function patternsOf(upstream: Upstream): string[] {
  const { showsPattern = () => true } = kindOf(upstream);
  return upstream.models.filter(showsPattern).map((pattern) => `${upstream.name}/${pattern}`);
}
