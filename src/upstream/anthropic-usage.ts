/** Reads what a message of Anthropic's says it used. The figures are charged, so they are believed only if they add up. */
import type { Usage } from "../call.ts";
import { BUDGET_COUNT_MAX } from "../limits.ts";
import { isRecord } from "./record.ts";
import { detail, optionalCount, readCost, tokenCount } from "./usage.ts";

/**
 * The `usage` object of a message; null when it is absent or any figure in it is impossible. Unlike a chat completion's,
 * `input_tokens` leaves out what went through the cache: the prompt is all three counts. `output_tokens` includes what
 * was thought. Routers that speak this protocol may add a `cost` in USD.
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
  const read = { promptTokens, completionTokens, cachedTokens, reasoningTokens, costNanoUsd: cost };
  return cacheWriteTokens === 0 ? read : { ...read, cacheWriteTokens };
}
