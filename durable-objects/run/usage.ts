/** What a run has used, in all and by model, since its usage was last shown as zero. */
import { usdOf } from "../../src/budget/money.ts";
import type { UsageDocument } from "../../src/contract/runs.ts";
import type { ModelTotals } from "../../src/engine/totals.ts";
import { totalsOf } from "./base.ts";
import type { RunCore } from "./core.ts";

/** The usage document: its own calls only; what child runs used is in theirs. */
export function usageOf(core: RunCore): UsageDocument {
  const { totals } = core.base.of("usage");
  const byModel: UsageDocument["calls_by_model"] = {};
  const sum: ModelTotals = { calls: 0, promptTokens: 0, completionTokens: 0, costNanoUsd: 0 };
  for (const [model, now] of Object.entries(totalsOf(core).models)) {
    const used = less(now, totals.models[model]);
    if (used.calls === 0) continue;
    byModel[model] = shown(used);
    sum.calls += used.calls;
    sum.promptTokens += used.promptTokens;
    sum.completionTokens += used.completionTokens;
    sum.costNanoUsd += used.costNanoUsd;
  }
  const { calls: llm_calls, ...rest } = shown(sum);
  return { object: "usage", llm_calls, ...rest, calls_by_model: byModel };
}

function less(now: ModelTotals, before: ModelTotals | undefined): ModelTotals {
  if (before === undefined) return now;
  return {
    calls: now.calls - before.calls,
    promptTokens: now.promptTokens - before.promptTokens,
    completionTokens: now.completionTokens - before.completionTokens,
    costNanoUsd: now.costNanoUsd - before.costNanoUsd,
  };
}

function shown({ calls, promptTokens, completionTokens, costNanoUsd }: ModelTotals) {
  return { input_tokens: promptTokens, output_tokens: completionTokens, calls, cost: usdOf(costNanoUsd) };
}
