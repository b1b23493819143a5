/** Parts of a configuration that are valid but have no effect: reported at start and at `GET /health`, because no request fails for them. */
import type { Config } from "./env.ts";
import { priceOf, resolveModel } from "./providers/config/registry.ts";
import { kindOf } from "./providers/kinds/table.ts";
import { AI_BINDING } from "./providers/kinds/workers-ai.ts";

/** One sentence each, which begins with the variable. No value is quoted: it may be a secret. */
export function configWarnings({ defaultModel, upstreams, routes, budgets }: Config): string[] {
  const warnings: string[] = [];
  if (defaultModel !== null) {
    const isRoute = routes.some(({ name }) => name === defaultModel);
    const resolved = isRoute ? null : resolveModel(upstreams, defaultModel);
    if (isRoute) {
      // That its targets are served was checked with ROUTES; those without a price are named below.
    } else if (resolved === null) {
      warnings.push("DEFAULT_MODEL is served by no upstream in UPSTREAMS, so calls that name no model are refused");
    } else if (priceOf(resolved.upstream, resolved.model) === null) {
      warnings.push(
        "DEFAULT_MODEL has no price, so calls that name no model are refused, except in runs with unpriced: free",
      );
    }
  }
  for (const { name, entries } of routes) {
    for (const [index, { upstream, model }] of entries.entries()) {
      if (priceOf(upstream, model) !== null) continue;
      warnings.push(
        `ROUTES.${name}.${index} has no price, so calls to the route are refused, except in runs with unpriced: free`,
      );
    }
  }
  for (const { name, kind, models, bound } of upstreams) {
    if (models.length === 0) {
      warnings.push(`UPSTREAMS.${name}.models is empty, so only calls that name ${name}/MODEL reach it`);
    }
    if (kindOf({ kind }).sends === "binding" && bound?.binding === undefined) {
      warnings.push(`UPSTREAMS.${name} needs the binding ${AI_BINDING}, which this gateway has not, so its calls fail`);
    }
  }
  const { defaultNanoUsd, maxNanoUsd } = budgets;
  if (defaultNanoUsd !== null && maxNanoUsd !== null && defaultNanoUsd > maxNanoUsd) {
    warnings.push("DEFAULT_BUDGET_USD is above MAX_BUDGET_USD, so runs that name no budget are refused");
  }
  return warnings;
}
