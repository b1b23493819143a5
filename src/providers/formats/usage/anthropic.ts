/** Reads the usage of an Anthropic message. The figures are charged, so they are accepted only if they add up. */
import { FAST_TIER } from "../../../run/money/service-tiers.ts";
import type { Usage } from "../../../call.ts";
import { BUDGET_COUNT_MAX } from "../../../limits.ts";
import { isRecord } from "../../../text/json/record.ts";
import { detail, optionalCount, readCost, tokenCount, withServiceTier } from "./usage.ts";

/**
 * The `usage` object of a message; null if it is missing or any figure in it is impossible. Unlike a chat completion's,
 * `input_tokens` excludes tokens of the cache: the prompt is all three counts. `output_tokens` includes thinking. Routers that speak this protocol may add a `cost` in USD.
 */
export function readAnthropicUsage(usage: unknown): Usage | null {
  if (!isRecord(usage)) return null;
  const inputTokens = tokenCount(usage["input_tokens"]);
  const completionTokens = tokenCount(usage["output_tokens"]);
  const cacheWriteTokens = optionalCount(usage["cache_creation_input_tokens"]);
  const cachedTokens = optionalCount(usage["cache_read_input_tokens"]);
  const reasoningTokens = detail(usage["output_tokens_details"], "thinking_tokens");
  const cost = readCost(usage);
  if (inputTokens === null || completionTokens === null || cacheWriteTokens === null || cachedTokens === null)
    return null;
  if (reasoningTokens === null || reasoningTokens > completionTokens || cost === "impossible") return null;
  const promptTokens = inputTokens + cacheWriteTokens + cachedTokens;
  if (promptTokens > BUDGET_COUNT_MAX) return null;
  const read: Usage = { promptTokens, completionTokens, cachedTokens, reasoningTokens, costNanoUsd: cost };
  const tier = usage["speed"] === FAST_TIER ? FAST_TIER : usage["service_tier"];
  return withServiceTier(cacheWriteTokens === 0 ? read : { ...read, ...writesOf(usage, cacheWriteTokens) }, tier);
}

function writesOf({ cache_creation: split }: Record<string, unknown>, cacheWriteTokens: number) {
  const shortTokens = isRecord(split) ? optionalCount(split["ephemeral_5m_input_tokens"]) : null;
  const hourTokens = isRecord(split) ? optionalCount(split["ephemeral_1h_input_tokens"]) : null;
  const isSplit = shortTokens !== null && hourTokens !== null && shortTokens + hourTokens === cacheWriteTokens;
  return isSplit ? { cacheWriteTokens, cacheWrite1hTokens: hourTokens } : { cacheWriteTokens };
}
