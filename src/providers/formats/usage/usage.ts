/** Reads the usage that an upstream reports. The figures are charged, so they are accepted only if they add up. */
import type { Usage } from "../../../call.ts";
import { BUDGET_COUNT_MAX, BUDGET_USD_MAX, NAME_CHARS_MAX } from "../../../limits.ts";
import { scaledUp } from "../../../run/money/decimal.ts";
import { isRecord } from "../../../text/json/record.ts";

const NANO_PER_USD = 1e9;

/**
 * The `usage` object of an OpenAI-style answer; null if it is missing or any figure in it is impossible (negative,
 * fractional, not a number, above `BUDGET_COUNT_MAX`, a part above its whole), so that the reservation stays charged.
 *
 * Cached and reasoning tokens are parts of the prompt and completion counts, never added to them. Some providers leave
 * reasoning out of `completion_tokens` but bill it and count it in `total_tokens`: the rest of the total, after prompt and
 * completion, is therefore completion. `cost` is USD; with `is_byok` the provider's own charge is added.
 */
export function readUsage(usage: unknown): Usage | null {
  if (!isRecord(usage)) return null;
  const promptTokens = tokenCount(usage["prompt_tokens"]);
  const namedCompletionTokens = tokenCount(usage["completion_tokens"]);
  const cachedTokens = detail(usage["prompt_tokens_details"], "cached_tokens");
  const cacheWriteTokens = detail(usage["prompt_tokens_details"], "cache_write_tokens");
  const reasoningTokens = detail(usage["completion_tokens_details"], "reasoning_tokens");
  const totalTokens = optionalCount(usage["total_tokens"]);
  const cost = readCost(usage);
  if (promptTokens === null || namedCompletionTokens === null || totalTokens === null) return null;
  if (cachedTokens === null || cacheWriteTokens === null || reasoningTokens === null || cost === "impossible")
    return null;
  const completionTokens = Math.max(namedCompletionTokens, totalTokens - promptTokens);
  if (Math.max(cachedTokens, cacheWriteTokens) > promptTokens || reasoningTokens > completionTokens) return null;
  const read = { promptTokens, completionTokens, cachedTokens, reasoningTokens, costNanoUsd: cost };
  return cacheWriteTokens === 0 ? read : { ...read, cacheWriteTokens };
}

/** The usage with the service tier that its answer names, if any. */
export function withServiceTier(usage: Usage, tier: unknown): Usage {
  if (typeof tier !== "string" || tier === "") return usage;
  return { ...usage, serviceTier: tier.slice(0, NAME_CHARS_MAX).toWellFormed() };
}

/** The cost in a usage, in nano-USD; null if missing. */
export function readCost(usage: Record<string, unknown>): number | null | "impossible" {
  const cost = usage["cost"];
  if (cost == null) return null;
  if (!isUsd(cost)) return "impossible";
  const details = usage["cost_details"];
  const provider = isRecord(details) ? details["upstream_inference_cost"] : null;
  if (usage["is_byok"] !== true || provider == null) return scaledUp(cost, NANO_PER_USD);
  return isUsd(provider) ? scaledUp(cost + provider, NANO_PER_USD) : "impossible";
}

/** A count in an object of details; 0 if either is missing, null if either is impossible. */
export function detail(details: unknown, name: string): number | null {
  if (details == null) return 0;
  return isRecord(details) ? optionalCount(details[name]) : null;
}

/** A count that may be missing, which is 0; null if impossible. */
export function optionalCount(value: unknown): number | null {
  return value == null ? 0 : tokenCount(value);
}

/** A count of tokens; null if impossible. */
export function tokenCount(value: unknown): number | null {
  if (typeof value !== "number" || !Number.isInteger(value)) return null;
  return value >= 0 && value <= BUDGET_COUNT_MAX ? value : null;
}

function isUsd(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= BUDGET_USD_MAX;
}
