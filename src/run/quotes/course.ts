/** What a call costs that may be more than one answer. */
import type { Quote } from "../money/quote.ts";
import type { CallFacts } from "../../call.ts";

/**
 * The worst is that every model, every sample and every turn is paid for; what is likely is that the first model, the fewest samples and
 * one turn are. What results of tools add to prompts is not known.
 */
export function quoteOfCourse(
  ofModels: readonly Quote[],
  { sampling, toolUse }: Pick<CallFacts, "sampling" | "toolUse">,
): Quote {
  const times = (sampling?.max ?? 1) * (toolUse?.maxTurns ?? 1);
  const sum = (of: (quote: Quote) => number): number => ofModels.reduce((total, quote) => total + of(quote), 0) * times;
  const [first] = ofModels;
  return {
    ...(first?.model === undefined ? {} : { model: first.model }),
    worstNanoUsd: sum((quote) => quote.worstNanoUsd),
    likelyNanoUsd: (first?.likelyNanoUsd ?? 0) * (sampling?.min ?? 1),
    promptTokensMax: sum((quote) => quote.promptTokensMax),
    completionTokensMax: sum((quote) => quote.completionTokensMax),
    callsMax: ofModels.length * times,
  };
}
