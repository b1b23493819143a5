/** What a call costs that may be more than one answer. */
import type { Quote } from "../money/quote.ts";
import type { CallFacts } from "../../call.ts";

/** The worst is that every model, or every sample, is paid for; what is likely is that the first model, or the fewest samples, do. */
export function quoteOfCourse(ofModels: readonly Quote[], { sampling }: Pick<CallFacts, "sampling">): Quote {
  const sum = (of: (quote: Quote) => number): number =>
    ofModels.reduce((total, quote) => total + of(quote), 0) * (sampling?.max ?? 1);
  const [first] = ofModels;
  return {
    ...(first?.model === undefined ? {} : { model: first.model }),
    worstNanoUsd: sum((quote) => quote.worstNanoUsd),
    likelyNanoUsd: (first?.likelyNanoUsd ?? 0) * (sampling?.min ?? 1),
    promptTokensMax: sum((quote) => quote.promptTokensMax),
    completionTokensMax: sum((quote) => quote.completionTokensMax),
    callsMax: ofModels.length * (sampling?.max ?? 1),
  };
}
