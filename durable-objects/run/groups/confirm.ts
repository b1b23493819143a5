/** Guards before wide runs: a group whose quote is above `confirm_over` of its run is held until it is confirmed. */
import { readFacts } from "../../../src/run/queue/call-page.ts";
import type { HeldQuote } from "../../../src/run/group/group.ts";
import type { CallFacts } from "../../../src/call.ts";
import { quoteFactsOf } from "../../../src/run/graph/quote-facts.ts";
import type { CompiledGraph } from "../../../src/run/graph/types.ts";
import type { OpenGroupRequest } from "../../../src/objects/methods/groups.ts";
import type { ConfirmOver } from "../../../src/objects/methods/runs.ts";
import type { RunState } from "../state.ts";
import type { RunStore } from "../store/store.ts";
import { quoteFacts } from "./quote.ts";

/** `parts`: the facts of its calls, in order. */
type Quoted = {
  request: OpenGroupRequest;
  graph: CompiledGraph | null;
  parts: readonly Iterable<{ facts: string }>[];
};

/** What a group would cost, if that is above `confirmOver` of its run; null = it starts. All its models resolve. */
export function heldQuoteOf(run: RunState, { request, graph, parts }: Quoted, nowMs: number): HeldQuote | null {
  const { confirmOver } = run.settings;
  // The client has just requested a single call itself; a plan that is still being written has no quote.
  const isQuoted = !request.single && request.isConfirmed !== true && graph?.plan === undefined;
  if (confirmOver === undefined || !isQuoted) return null;
  const quote =
    graph === null ? quoteOfCalls(run, { request, parts }, nowMs) : quoteOfGraph(run, { request, graph, parts }, nowMs);
  return isAbove(quote, confirmOver) ? quote : null;
}

function isAbove({ worstNanoUsd, calls }: HeldQuote, over: ConfirmOver): boolean {
  return worstNanoUsd > (over.nanoUsd ?? Infinity) || calls > (over.calls ?? Infinity);
}

function* factsIn({ request, parts }: Pick<Quoted, "request" | "parts">): Generator<CallFacts> {
  for (const part of parts) for (const page of part) yield* readFacts(page.facts, request.models);
}

/** Calls with recorded answers cost nothing. */
function quoteOfCalls(run: RunState, quoted: Pick<Quoted, "request" | "parts">, nowMs: number): HeldQuote {
  const sum: HeldQuote = { worstNanoUsd: 0, likelyNanoUsd: 0, calls: 0 };
  for (const facts of factsIn(quoted)) {
    if (run.replay?.hasAnswer(facts) === true) continue;
    const quote = quoteFacts(run, facts, nowMs);
    if ("reason" in quote) continue;
    sum.worstNanoUsd += quote.worstNanoUsd;
    sum.likelyNanoUsd += quote.likelyNanoUsd;
    sum.calls += quote.callsMax ?? 1;
  }
  return sum;
}

/** Every element that a `foreach` may have counts, and what outputs can add to prompts. */
function quoteOfGraph(
  run: RunState,
  { request, graph, parts }: Quoted & { graph: CompiledGraph },
  nowMs: number,
): HeldQuote {
  const sum: HeldQuote = { worstNanoUsd: 0, likelyNanoUsd: 0, calls: 0 };
  const ofTasks = quoteFactsOf(graph, [...factsIn({ request, parts })]);
  for (const [position, { worst, likely }] of ofTasks.entries()) {
    const slots = graph.tasks[position]?.slots ?? 1;
    const [most, guess] = [quoteFacts(run, worst, nowMs), quoteFacts(run, likely, nowMs)];
    if ("reason" in most || "reason" in guess) continue;
    sum.worstNanoUsd += most.worstNanoUsd * slots;
    sum.likelyNanoUsd += guess.likelyNanoUsd * slots;
    sum.calls += (most.callsMax ?? 1) * slots;
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
