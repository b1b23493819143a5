/** Resolves the model that a request names: its upstream, price and limits, or why it is refused. */
import type { Target } from "../engine/shard.ts";
import { quoted, type Reason } from "../errors.ts";
import { USABLE_MODEL_CHARS_MAX, USABLE_MODELS_MAX } from "../limits.ts";
import { routedModel } from "../protocol/request/routed-model.ts";
import { gateOf } from "./config/keys.ts";
import type { Upstream } from "./config/types.ts";
import { modelAllowed, priceOf, resolveModel } from "./registry.ts";

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

/** Resolves the requested model, or the run's or the gateway's default if it is null. */
export function targetOf(
  requested: string | null,
  rules: ModelRules,
  config: { upstreams: readonly Upstream[]; defaultModel: string | null },
): { ok: true; target: Target } | { ok: false; reason: Reason } {
  const name = requested ?? rules.defaultModel ?? config.defaultModel;
  if (name === null) {
    const message = "no model: name one in the request, or set the run's default_model or the gateway's DEFAULT_MODEL";
    return { ok: false, reason: { reason: "invalid_request", message, param: "model" } };
  }
  const resolved = resolveModel(config.upstreams, name);
  if (resolved === null) {
    if (requested === null && rules.defaultModel === null) return { ok: false, reason: UNSERVED_DEFAULT };
    const usableModels = usableModelsOf(rules, config.upstreams);
    return { ok: false, reason: { reason: "model_not_found", model: name, usableModels } };
  }
  const { upstream, model } = resolved;
  if (!rules.models.every((patterns) => modelAllowed(patterns, upstream.name, model, name))) {
    const usableModels = usableModelsOf(rules, config.upstreams);
    return { ok: false, reason: { reason: "model_not_allowed", model: name, usableModels } };
  }
  const price = priceOf(upstream, model);
  if (price === null && rules.unpriced === "refuse")
    return { ok: false, reason: { reason: "unpriced_model", model: name } };
  const { bounds, allowParams, maxInFlight, timeoutMs, maxAttempts: attemptsMax } = upstream;
  const limits = { bounds, allowParams, maxInFlight, timeoutMs, attemptsMax };
  const routed = routedModel(model);
  const plain = {
    upstream: upstream.name,
    model,
    price,
    ...limits,
    ...(routed === null ? {} : { unbounded: [routed] }),
  };
  return { ok: true, target: withKeys(plain, upstream.keys) };
}

/** The target, with a choice of keys if its upstream has several. */
function withKeys(plain: Omit<Target, "gate">, keys: Upstream["keys"]): Target {
  const under = (key: string): Target => ({ ...plain, gate: gateOf(plain.upstream, key), key });
  const [first, ...others] = (keys ?? []).map(({ name }) => under(name));
  if (first === undefined) return { ...plain, gate: gateOf(plain.upstream, undefined) };
  return { ...first, choices: [{ targets: [first, ...others] }] };
}

/**
 * What a run may use, for the refusal of another model: the patterns of its own list, which is the narrowest, or those of
 * the configured upstreams.
 */
function usableModelsOf({ models }: ModelRules, upstreams: readonly Upstream[]): string {
  const patterns = models.at(-1) ?? upstreams.flatMap(patternsOf);
  const shown = patterns.slice(0, USABLE_MODELS_MAX).map((pattern) => quoted(pattern, USABLE_MODEL_CHARS_MAX));
  const more = patterns.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more (GET /v1/models lists all)` : shown.join(", ");
}

/** An upstream's models as a request names them. Those of the simulated upstream without their parameters. */
function patternsOf({ name, kind, models }: Upstream): string[] {
  const listed = kind === "simulated" ? models.filter((pattern) => !pattern.endsWith("?*")) : models;
  return listed.map((pattern) => `${name}/${pattern}`);
}
