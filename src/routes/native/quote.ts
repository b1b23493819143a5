/** `POST /batch?quote=1`: what a batch would cost, without opening it. */
import type { Context } from "hono";
import type { Refused } from "../../run-api/types.ts";
import { DIMENSIONS } from "../../budget/ledger.ts";
import { usdOf } from "../../budget/money.ts";
import type { Quote } from "../../budget/quote.ts";
import type { AppEnv } from "../../context.ts";
import type { BatchRequest, QuoteReply } from "../../contract/batch.ts";
import type { BudgetDocument } from "../../contract/runs.ts";
import { CallPageBuilder, type CallPage } from "../../engine/call-page.ts";
import { Refusal } from "../../errors.ts";
import { RunCaller } from "../../run-client/caller.ts";
import { settled } from "../../run-client/settlements.ts";

/** Quotes every slot: its worst case, which is what would be reserved, and what it likely costs. */
export async function quoteBatch(c: Context<AppEnv>, runId: string, request: BatchRequest): Promise<Response> {
  const builder = new CallPageBuilder(request.defaults);
  const pages: CallPage[] = [];
  const keep = (page: CallPage | null): void => {
    // The facts are all that a quote needs.
    if (page !== null) pages.push({ ...page, calls: "" });
  };
  for (const call of request.calls) keep(builder.add(call));
  keep(builder.flush());
  const run = new RunCaller(c.env, runId);
  await settled(c.env, runId);
  const [quotes, budget] = await Promise.all([
    run.callWithRetry<Quote[] | Refused>((stub) => stub.quote(builder.models, pages)),
    run.callWithRetry<BudgetDocument | null>((stub) => stub.budget()),
  ]);
  if (!Array.isArray(quotes)) throw new Refusal(quotes.reason);
  return c.json(replyOf(quotes, budget));
}

function replyOf(quotes: readonly Quote[], budget: BudgetDocument | null): QuoteReply {
  const sum = (of: (quote: Quote) => number): number => quotes.reduce((total, quote) => total + of(quote), 0);
  const worstUsd = usdOf(sum((quote) => quote.worstNanoUsd));
  const worst = {
    usd: worstUsd,
    calls: sum((quote) => quote.callsMax ?? 1),
    prompt_tokens: sum((quote) => quote.promptTokensMax),
    completion_tokens: sum((quote) => quote.completionTokensMax),
  };
  return {
    object: "quote",
    worst_usd: worstUsd,
    likely_usd: usdOf(sum((quote) => quote.likelyNanoUsd)),
    remaining_usd: budget?.usd.remaining ?? null,
    fits: DIMENSIONS.every((dimension) => worst[dimension] <= (budget?.[dimension].remaining ?? Infinity)),
    items: quotes.map((quote, index) => ({
      index,
      worst_usd: usdOf(quote.worstNanoUsd),
      likely_usd: usdOf(quote.likelyNanoUsd),
      prompt_tokens_max: quote.promptTokensMax,
      completion_tokens_max: quote.completionTokensMax,
    })),
  };
}
