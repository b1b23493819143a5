/** `POST /batch?quote=1`: what a batch would cost, without opening it. */
import type { Context } from "hono";
import { runOf } from "../../durable-objects/address.ts";
import { usdOf } from "../budget/money.ts";
import type { Quote } from "../budget/quote.ts";
import type { AppEnv } from "../context.ts";
import type { BatchRequest, QuoteReply } from "../contract/batch.ts";
import { PageBuilder, type Page } from "../engine/page.ts";
import { Refusal } from "../errors.ts";

/** Quotes every slot: its worst case, which is what would be reserved, and what it likely costs. */
export async function quoteBatch(c: Context<AppEnv>, runId: string, request: BatchRequest): Promise<Response> {
  const builder = new PageBuilder(request.defaults);
  const pages: Page[] = [];
  const keep = (page: Page | null): void => {
    // The facts are all that a quote needs.
    if (page !== null) pages.push({ ...page, calls: "" });
  };
  for (const call of request.calls) keep(builder.add(call));
  keep(builder.flush());
  const run = runOf(c.env, runId);
  const quotes = await run.quote(builder.models, pages);
  if (!Array.isArray(quotes)) throw new Refusal(quotes.reason);
  const remaining = (await run.budget())?.usd.remaining ?? null;
  return c.json(replyOf(quotes, remaining));
}

function replyOf(quotes: readonly Quote[], remainingUsd: number | null): QuoteReply {
  const worstUsd = usdOf(quotes.reduce((sum, quote) => sum + quote.worstNanoUsd, 0));
  return {
    object: "quote",
    worst_usd: worstUsd,
    likely_usd: usdOf(quotes.reduce((sum, quote) => sum + quote.likelyNanoUsd, 0)),
    remaining_usd: remainingUsd,
    fits: remainingUsd === null || worstUsd <= remainingUsd,
    items: quotes.map((quote, index) => ({
      index,
      worst_usd: usdOf(quote.worstNanoUsd),
      likely_usd: usdOf(quote.likelyNanoUsd),
      prompt_tokens_max: quote.promptTokensMax,
      completion_tokens_max: quote.completionTokensMax,
    })),
  };
}
