/** `POST /batch?quote=1`: what a batch would cost, without opening it. */
import type { Context } from "hono";
import type { Refused } from "../../objects/methods/types.ts";
import type { CallFacts } from "../../call.ts";
import { DIMENSIONS } from "../../run/money/ledger.ts";
import { usdOf } from "../../run/money/money.ts";
import type { Quote } from "../../run/money/quote.ts";
import type { AppEnv } from "../context.ts";
import type { BatchCall, BatchRequest, QuoteReply } from "../../contract/batch.ts";
import type { BudgetDocument } from "../../contract/runs.ts";
import { CallPageBuilder, type CallPage } from "../../run/queue/call-page.ts";
import { Refusal } from "../../errors.ts";
import { PAGES_CALL_CHARS_MAX } from "../../limits.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import { excessOf } from "../../objects/clients/groups/open-group.ts";
import { settled } from "../../objects/clients/settlements.ts";
import { inSlices, pause, SliceCount, type Sliced } from "../../text/bytes/slices.ts";

/** Quotes every slot: its worst case, which is what would be reserved, and what it likely costs. */
export async function quoteBatch(c: Context<AppEnv>, runId: string, request: BatchRequest): Promise<Response> {
  const run = new RunCaller(c.env, runId);
  await settled(c.env, runId);
  const [quotes, budget] = await Promise.all([
    quotesOf(run, request),
    run.callWithRetry<BudgetDocument | null>((stub) => stub.budget()),
  ]);
  const body = (await inSlices(replyText(quotes, budget), pause)).join("");
  return c.body(body, 200, { "content-type": "application/json" });
}

/** The quotes of all slots, which the run object makes in parts: an RPC carries 32 MB. */
async function quotesOf(run: RunCaller, request: BatchRequest): Promise<Quote[]> {
  if (request.isCopied === true) return await quotesOfCopies(run, request);
  return request.contexts.over === null ? await quotesOfEach(run, request) : await quotesOfChunks(run, request);
}

/** The quotes of calls, each of which the run quotes. */
async function quotesOfEach(run: RunCaller, request: BatchRequest): Promise<Quote[]> {
  const { calls, defaults } = request;
  const builder = new CallPageBuilder(defaults);
  const quotes: Quote[] = [];
  let part: CallPage[] = [];
  let partChars = 0;
  const send = async (): Promise<void> => {
    const pages = part;
    part = [];
    partChars = 0;
    const quoted = await run.callWithRetry<Quote[] | Refused>((stub) => stub.quote(builder.models, pages));
    if (!Array.isArray(quoted)) throw new Refusal(quoted.reason);
    for (const quote of quoted) quotes.push(quote);
  };
  const keep = (page: CallPage): void => {
    // The facts are all that a quote needs.
    part.push({ ...page, calls: "" });
    partChars += page.facts.length;
  };
  const slice = new SliceCount();
  for (const call of calls) {
    const page = builder.add(call);
    if (page !== null && slice.add(page.calls.length + page.facts.length)) await pause();
    const tooLarge = excessOf(builder);
    if (tooLarge !== null) throw new Refusal(tooLarge);
    if (page !== null) keep(page);
    if (partChars >= PAGES_CALL_CHARS_MAX) await send();
  }
  const last = builder.flush();
  if (last !== null) keep(last);
  // An empty batch is quoted too: its run may have ended.
  if (part.length > 0 || quotes.length === 0) await send();
  return quotes;
}

/** The quotes of a batch over chunks: of those whose calls have the same facts, the run quotes the first. */
async function quotesOfChunks(run: RunCaller, request: BatchRequest): Promise<Quote[]> {
  const kinds = new Map<CallFacts, number>();
  const firsts: BatchCall[] = [];
  const kindOf: number[] = [];
  const slice = new SliceCount();
  for (const call of request.calls) {
    const kind = kinds.get(call.facts) ?? firsts.push(call) - 1;
    kinds.set(call.facts, kind);
    kindOf.push(kind);
    if (slice.add(0)) await pause();
  }
  const quotes = await quotesOfEach(run, { ...request, calls: firsts });
  return kindOf.flatMap((kind) => quotes[kind] ?? []);
}

/** The quotes of a batch of one call, many times: the run quotes one. */
async function quotesOfCopies(run: RunCaller, { calls, ...request }: BatchRequest): Promise<Quote[]> {
  const { isCopied: _isCopied, ...one } = request;
  const [call] = calls;
  const quotes = await quotesOf(run, { ...one, calls: call === undefined ? [] : [call] });
  const [only] = quotes;
  return only === undefined ? [] : Array<Quote>(calls.length).fill(only);
}

/** The text of the reply in pieces, made in slices: it has a line for each call. */
function* replyText(quotes: readonly Quote[], budget: BudgetDocument | null): Sliced<string[]> {
  const slice = new SliceCount();
  const pieces = [`${JSON.stringify(headOf(quotes, budget)).slice(0, -1)},"items":[`];
  const written = new Map<Quote, string>();
  for (const [index, quote] of quotes.entries()) {
    // Copies of one call, and chunks of equal sizes, have one quote.
    const figures = written.get(quote) ?? JSON.stringify(figuresOf(quote)).slice(1);
    written.set(quote, figures);
    const piece = `${index === 0 ? "" : ","}{"index":${index},${figures}`;
    pieces.push(piece);
    if (slice.add(piece.length)) yield;
  }
  pieces.push("]}");
  return pieces;
}

function figuresOf(quote: Quote): Omit<QuoteReply["items"][number], "index"> {
  return {
    worst_usd: usdOf(quote.worstNanoUsd),
    likely_usd: usdOf(quote.likelyNanoUsd),
    prompt_tokens_max: quote.promptTokensMax,
    completion_tokens_max: quote.completionTokensMax,
  };
}

/** What the reply says of all slots together. */
function headOf(quotes: readonly Quote[], budget: BudgetDocument | null): Omit<QuoteReply, "items"> {
  const sum = { worstNanoUsd: 0, likelyNanoUsd: 0, calls: 0, promptTokens: 0, completionTokens: 0 };
  for (const quote of quotes) {
    sum.worstNanoUsd += quote.worstNanoUsd;
    sum.likelyNanoUsd += quote.likelyNanoUsd;
    sum.calls += quote.callsMax ?? 1;
    sum.promptTokens += quote.promptTokensMax;
    sum.completionTokens += quote.completionTokensMax;
  }
  const worst = {
    usd: usdOf(sum.worstNanoUsd),
    calls: sum.calls,
    prompt_tokens: sum.promptTokens,
    completion_tokens: sum.completionTokens,
    new_tokens: sum.promptTokens + sum.completionTokens,
  };
  return {
    object: "quote",
    worst_usd: worst.usd,
    likely_usd: usdOf(sum.likelyNanoUsd),
    remaining_usd: budget?.usd.remaining ?? null,
    fits: DIMENSIONS.every((dimension) => worst[dimension] <= (budget?.[dimension]?.remaining ?? Infinity)),
  };
}
