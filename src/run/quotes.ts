/** What a call would cost a run, by what the run knows of the upstreams that may answer it; and one that may be more than one answer. */
import { withImageExcess, type TokenBounds } from "./money/estimate.ts";
import { quoteOf, type Quote } from "./money/quote.ts";
import { withLook } from "./money/text-scale.ts";
import type { CallFacts } from "../call.ts";
import type { Target } from "./leases/shard.ts";
import type { EngineState } from "./state.ts";

/** What a call costs at most wherever it goes, and likely costs at the target that is preferred. */
export function quoteCall(
  state: Pick<EngineState, "templates">,
  target: Target,
  facts: CallFacts,
  nowMs: number,
): Quote {
  const quotes = targetsOf(target).map((each) => quoteOf(facts, each.price, boundsNow(state, each, facts, nowMs)));
  const most = (of: (quote: Quote) => number): number => Math.max(...quotes.map(of));
  return {
    worstNanoUsd: most((quote) => quote.worstNanoUsd),
    likelyNanoUsd: quotes[0]?.likelyNanoUsd ?? 0,
    promptTokensMax: most((quote) => quote.promptTokensMax),
    completionTokensMax: most((quote) => quote.completionTokensMax),
  };
}

/** The targets that may answer, the preferred one first: keys of one upstream cost the same. */
function targetsOf(target: Target): Target[] {
  return target.choices?.flatMap(({ targets: [first] }) => first ?? []) ?? [target];
}

/** The bounds of a call's tokens, by what is known of its upstream's template and tokenizer. */
function boundsNow(
  { templates }: Pick<EngineState, "templates">,
  target: Target,
  facts: CallFacts,
  nowMs: number,
): TokenBounds {
  const overhead = templates.overheadOf(target, facts, nowMs);
  const bounds = withLook(target.bounds, templates.textRatioOf(target));
  if (overhead === null) return bounds;
  const { settledTokens } = overhead;
  return withImageExcess({ ...bounds, fixedTokens: settledTokens, toolsTokens: settledTokens }, overhead);
}

/**
 * What a call costs that may be more than one answer. The worst is that every model, every sample and every turn is paid for; what is likely is that the first model, the fewest samples and
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
