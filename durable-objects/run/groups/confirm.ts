/** Guards before wide runs: a group whose quote is above `confirm_over` of its run is held until it is confirmed. */
import type { HeldQuote } from "../../../src/run/group/group.ts";
import type { ReadPage } from "../../../src/run/queue/call-page.ts";
import type { SlotFacts } from "../../../src/run/queue/slot.ts";
import { quoteFactsOf } from "../../../src/run/graph/quote-facts.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import type { OpenGroupRequest } from "../../../src/objects/methods/groups.ts";
import type { ConfirmOver, RunSettings } from "../../../src/objects/methods/runs.ts";
import { SliceCount, type Sliced } from "../../../src/text/bytes/slices.ts";
import type { RunState } from "../state.ts";
import type { RunStore } from "../store/store.ts";
import type { Priced } from "./floors.ts";
import { QUOTE_CHARS, quoteFacts, Quotes } from "./quote.ts";

/** `pages`: the facts of its calls, in order. */
type Quoted = { request: OpenGroupRequest; graph: CompiledGraph | null; pages: readonly ReadPage[] };

/** What a run quotes by: its rules, prices, and what it has learned. */
export type QuotingRun = Pick<RunState, "engine"> &
  Priced & { settings: Pick<RunSettings, "confirmOver" | "onExhausted"> };

/** What a group would cost, if that is above `confirmOver` of its run; null = it starts. All its models resolve. */
export function* heldQuoteOf(
  run: QuotingRun,
  { request, graph, pages }: Quoted,
  nowMs: number,
): Sliced<HeldQuote | null> {
  const { confirmOver } = run.settings;
  // The client has just requested a single call itself; a plan that is still being written has no quote.
  const isQuoted = !request.single && request.isConfirmed !== true && graph?.plan === undefined;
  if (confirmOver === undefined || !isQuoted) return null;
  const quote =
    graph === null ? yield* quoteOfCalls(run, pages, nowMs) : quoteOfGraph(run, graph, [...slotsIn(pages)], nowMs);
  return isAbove(quote, confirmOver) ? quote : null;
}

function isAbove({ worstNanoUsd, calls }: HeldQuote, over: ConfirmOver): boolean {
  return worstNanoUsd > (over.nanoUsd ?? Infinity) || calls > (over.calls ?? Infinity);
}

function* slotsIn(pages: readonly ReadPage[]): Generator<SlotFacts> {
  for (const { slots } of pages) yield* slots;
}

/** Calls with recorded answers cost nothing. */
function* quoteOfCalls(run: QuotingRun, pages: readonly ReadPage[], nowMs: number): Sliced<HeldQuote> {
  const sum: HeldQuote = { worstNanoUsd: 0, likelyNanoUsd: 0, calls: 0 };
  const slice = new SliceCount();
  const quotes = new Quotes(run, nowMs);
  for (const facts of slotsIn(pages)) {
    if (run.replay?.hasAnswer(facts) === true) continue;
    const quote = quotes.of(facts);
    if (slice.add(QUOTE_CHARS)) yield;
    if ("reason" in quote) continue;
    sum.worstNanoUsd += quote.worstNanoUsd;
    sum.likelyNanoUsd += quote.likelyNanoUsd;
    sum.calls += quote.callsMax ?? 1;
  }
  return sum;
}

/** Every element that a `foreach` may have counts, and what outputs can add to prompts. */
function quoteOfGraph(run: QuotingRun, graph: CompiledGraph, slots: readonly SlotFacts[], nowMs: number): HeldQuote {
  const sum: HeldQuote = { worstNanoUsd: 0, likelyNanoUsd: 0, calls: 0 };
  for (const [position, { worst, likely }] of quoteFactsOf(graph, slots).entries()) {
    const count = graph.tasks[position]?.slots ?? 1;
    const [most, guess] = [quoteFacts(run, worst, nowMs), quoteFacts(run, likely, nowMs)];
    if ("reason" in most || "reason" in guess) continue;
    sum.worstNanoUsd += most.worstNanoUsd * count;
    sum.likelyNanoUsd += guess.likelyNanoUsd * count;
    sum.calls += (most.callsMax ?? 1) * count;
  }
  return sum;
}

/** Lets a held group start. One that is not held stays as it is. */
export function confirmGroup(run: RunState, store: RunStore, seq: number, nowMs: number): void {
  const group = run.engine.groups.get(seq);
  const stored = run.openGroups.get(seq);
  if (group === undefined || stored === undefined || group.header.held === undefined) return;
  const before = stored.header;
  const confirmed = { ...stored, header: group.confirm() };
  run.groupChanged(confirmed, before);
  run.addWrite(() => store.groups.putHeader(confirmed));
  run.engine.log.add({ event: "group_confirmed" }, group.parallelGroupId, nowMs);
  // No lane was started for it.
  run.laneStarts.mayHaveLeft();
}
