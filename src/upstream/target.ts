/** From the model a client asks for to where its call goes: upstream, price and limits, or why not. */
import type { Target } from "../engine/shard.ts";
import type { Reason } from "../errors.ts";
import type { Upstream } from "./config.ts";
import { modelAllowed, priceOf, resolveModel } from "./registry.ts";

/** What of a run's settings decides on models. */
export type ModelRules = {
  defaultModel: string | null;
  /** Lists of patterns of allowed models: a model must match one of every list. */
  models: readonly (readonly string[])[];
  /** Whether a model without a price is refused or costs nothing. */
  unpriced: "refuse" | "free";
};

/** Resolves `asked`, or the run's or the gateway's default when it is null. */
export function targetOf(
  asked: string | null,
  rules: ModelRules,
  config: { upstreams: readonly Upstream[]; defaultModel: string | null },
): { ok: true; target: Target } | { ok: false; reason: Reason } {
  const name = asked ?? rules.defaultModel ?? config.defaultModel;
  if (name === null) {
    const message = "no model: name one in the request, or set the run's default_model or the gateway's DEFAULT_MODEL";
    return { ok: false, reason: { reason: "invalid_request", message, param: "model" } };
  }
  const resolved = resolveModel(config.upstreams, name);
  if (resolved === null) return { ok: false, reason: { reason: "model_not_found", model: name } };
  const { upstream, model } = resolved;
  if (!rules.models.every((patterns) => modelAllowed(patterns, upstream.name, model, name))) {
    return { ok: false, reason: { reason: "model_not_allowed", model: name } };
  }
  const price = priceOf(upstream, model);
  if (price === null && rules.unpriced === "refuse")
    return { ok: false, reason: { reason: "unpriced_model", model: name } };
  const { bounds, maxInFlight, timeoutMs, maxAttempts: attemptsMax } = upstream;
  return { ok: true, target: { upstream: upstream.name, model, price, bounds, maxInFlight, timeoutMs, attemptsMax } };
}
