/** What answers say of their tokens beside their number. */

/** Prompt tokens that caches had, and completion tokens that were reasoning; absent = none, or providers do not say. */
export type ToldTokens = { cacheHitTokens: number; reasoningTokens: number };

/** Adds them to a sum in place. */
export function addTold(sum: Partial<ToldTokens>, { cacheHitTokens, reasoningTokens }: ToldTokens): void {
  if (cacheHitTokens > 0) sum.cacheHitTokens = (sum.cacheHitTokens ?? 0) + cacheHitTokens;
  if (reasoningTokens > 0) sum.reasoningTokens = (sum.reasoningTokens ?? 0) + reasoningTokens;
}
