/** What the slots of a group would cost. */
import type { TokenBounds } from "../../../src/budget/estimate.ts";
import { quoteOf, type Quote } from "../../../src/budget/quote.ts";
import { withLook } from "../../../src/budget/text-scale.ts";
import type { CallFacts } from "../../../src/call.ts";
import { readFacts, type CallPage } from "../../../src/engine/call-page.ts";
import type { Target } from "../../../src/engine/shard.ts";
import type { EngineState } from "../../../src/engine/state.ts";
import type { Refused } from "../../../src/run-api/types.ts";
import type { RunState } from "../state.ts";

/** Quotes every slot of a group that is not opened: nothing is stored or reserved. */
export function quoteGroup(
  run: Pick<RunState, "engine" | "resolve">,
  models: readonly (string | null)[],
  pages: readonly CallPage[],
  nowMs: number,
): Quote[] | Refused {
  const quotes: Quote[] = [];
  for (const page of pages) {
    for (const facts of readFacts(page.facts, models)) {
      const target = run.resolve(facts.model);
      if ("reason" in target) return { ok: false, reason: target };
      quotes.push(dearestOf(targetsOf(target).map((each) => quoteAt(run.engine, each, facts, nowMs))));
    }
  }
  return quotes;
}

/** The targets that may answer, the preferred one first: keys of one upstream cost the same. */
function targetsOf(target: Target): Target[] {
  return target.choices?.flatMap(({ targets: [first] }) => first ?? []) ?? [target];
}

function quoteAt(engine: EngineState, target: Target, facts: CallFacts, nowMs: number): Quote {
  return quoteOf(facts, target.price, boundsNow(engine, target, facts, nowMs));
}

/** What a call costs at most wherever it goes, and likely costs at the target that is preferred. */
function dearestOf(quotes: readonly Quote[]): Quote {
  const most = (of: (quote: Quote) => number): number => Math.max(...quotes.map(of));
  return {
    worstNanoUsd: most((quote) => quote.worstNanoUsd),
    likelyNanoUsd: quotes[0]?.likelyNanoUsd ?? 0,
    promptTokensMax: most((quote) => quote.promptTokensMax),
    completionTokensMax: most((quote) => quote.completionTokensMax),
  };
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
  return { ...bounds, fixedTokens: overhead.settledTokens, toolsTokens: overhead.settledTokens };
}
