/** Tokens and cost as every answer shows them. */
import { usdOf } from "../../run/money/money.ts";
import type { GroupUsage } from "../../run/group/group.ts";
import type { Reason, Spent } from "../../errors.ts";

/** The wire's usage object, of one call or of many. */
export function usageOf(used: GroupUsage) {
  const { cachedTokens, cacheWriteTokens = 0, savedNanoUsd, cacheHitTokens, reasoningTokens } = used;
  return {
    ...(cacheHitTokens === undefined ? {} : { cached_tokens: cacheHitTokens }),
    ...(cachedTokens === undefined ? {} : { cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens }),
    ...(savedNanoUsd === undefined ? {} : { saved_usd: usdOf(savedNanoUsd) }),
    ...(reasoningTokens === undefined ? {} : { reasoning_tokens: reasoningTokens }),
    prompt_tokens: used.promptTokens,
    completion_tokens: used.completionTokens,
    total_tokens: used.promptTokens + used.completionTokens,
    cost: usdOf(used.costNanoUsd),
  };
}

type Used = { attempts: number; costNanoUsd: number };

/** What a failed call used up, as its error shows it. */
export function spentOf({ attempts, costNanoUsd }: Used): Spent {
  return { attempts, chargedUsd: usdOf(costNanoUsd) };
}

/**
 * The same for the answer to a single call: null if nothing was tried. A failure of the upstream's without an attempt is
 * that of an equal call, which made the attempts.
 */
export function spentBefore(used: Used, { reason }: Reason): Spent | null {
  return used.attempts > 0 || reason.startsWith("upstream_") ? spentOf(used) : null;
}
