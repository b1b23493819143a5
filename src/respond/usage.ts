/** Tokens and cost as every answer shows them. */
import { usdOf } from "../budget/money.ts";

/** The wire's usage object, of one call or of many. */
export function usageOf(used: { promptTokens: number; completionTokens: number; costNanoUsd: number }) {
  return {
    prompt_tokens: used.promptTokens,
    completion_tokens: used.completionTokens,
    total_tokens: used.promptTokens + used.completionTokens,
    cost: usdOf(used.costNanoUsd),
  };
}
