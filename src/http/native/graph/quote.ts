/** `POST /dag?quote=1`: what a graph would cost, task by task, without opening it. */
import type { Context } from "hono";
import { DIMENSIONS } from "../../../run/money/ledger.ts";
import { usdOf } from "../../../run/money/money.ts";
import type { Quote } from "../../../run/money/quote.ts";
import type { CallFacts } from "../../../call.ts";
import type { AppEnv } from "../../context.ts";
import type { DagRequest } from "../../../contract/graph/dag.ts";
import type { DagQuoteReply } from "../../../contract/graph/replies.ts";
import type { BudgetDocument } from "../../../contract/runs.ts";
import { CallPageBuilder, type CallPage } from "../../../run/queue/call-page.ts";
import { Refusal } from "../../../errors.ts";
import { quoteFactsOf } from "../../../run/graph/quote-facts.ts";
import type { CompiledGraph } from "../../../run/graph/types.ts";
import type { Refused } from "../../../objects/methods/types.ts";
import { RunCaller } from "../../../objects/clients/caller.ts";
import { settled } from "../../../objects/clients/settlements.ts";

/** The two quotes of a task: one call with the longest outputs in its prompt, and one with likely ones. */
type TaskQuote = { worst: Quote; likely: Quote };

/** Quotes every task through `max_items`, and names its model. */
export async function quoteDag(
  c: Context<AppEnv>,
  runId: string,
  { graph, request }: { graph: CompiledGraph; request: DagRequest },
): Promise<Response> {
  const facts = quoteFactsOf(
    graph,
    request.tasks.map(({ call }) => call.facts),
  );
  const { models, pages } = pagesOf(facts.flatMap(({ worst, likely }) => [worst, likely]));
  const run = new RunCaller(c.env, runId);
  await settled(c.env, runId);
  const [quotes, budget] = await Promise.all([
    run.callWithRetry<Quote[] | Refused>((stub) => stub.quote(models, pages)),
    run.callWithRetry<BudgetDocument | null>((stub) => stub.budget()),
  ]);
  if (!Array.isArray(quotes)) throw new Refusal(quotes.reason);
  const perTask = graph.tasks.map((_, position): TaskQuote => {
    const [worst, likely] = quotes.slice(2 * position);
    if (worst === undefined || likely === undefined) throw new Error(`task ${position} has no quote`);
    return { worst, likely };
  });
  return c.json(replyOf(graph, perTask, budget));
}

/** Pages that have facts only: they are all that a quote needs. */
function pagesOf(facts: readonly CallFacts[]): { models: (string | null)[]; pages: CallPage[] } {
  const builder = new CallPageBuilder({});
  const pages: CallPage[] = [];
  for (const each of facts) {
    const page = builder.add({ body: {}, facts: each });
    if (page !== null) pages.push({ ...page, calls: "" });
  }
  const last = builder.flush();
  if (last !== null) pages.push({ ...last, calls: "" });
  return { models: builder.models, pages };
}

function replyOf(graph: CompiledGraph, quotes: readonly TaskQuote[], budget: BudgetDocument | null): DagQuoteReply {
  const sum = (of: (quote: TaskQuote) => number): number =>
    quotes.reduce((total, quote, position) => total + of(quote) * (graph.tasks[position]?.slots ?? 1), 0);
  const worstUsd = usdOf(sum(({ worst }) => worst.worstNanoUsd));
  const needed = {
    usd: worstUsd,
    calls: graph.slots,
    prompt_tokens: sum(({ worst }) => worst.promptTokensMax),
    completion_tokens: sum(({ worst }) => worst.completionTokensMax),
    new_tokens: sum(({ worst }) => worst.promptTokensMax + worst.completionTokensMax),
  };
  return {
    object: "quote",
    worst_usd: worstUsd,
    likely_usd: usdOf(sum(({ likely }) => likely.likelyNanoUsd)),
    remaining_usd: budget?.usd.remaining ?? null,
    fits: DIMENSIONS.every((dimension) => needed[dimension] <= (budget?.[dimension]?.remaining ?? Infinity)),
    tasks: quotes.map(({ worst, likely }, position) => {
      const { id = "", slots = 1 } = graph.tasks[position] ?? {};
      return {
        id,
        model: worst.model ?? null,
        calls_max: slots,
        worst_usd: usdOf(worst.worstNanoUsd * slots),
        likely_usd: usdOf(likely.likelyNanoUsd * slots),
        prompt_tokens_max: worst.promptTokensMax * slots,
        completion_tokens_max: worst.completionTokensMax * slots,
      };
    }),
  };
}
