/** What the slots of a group would cost. */
import type { Quote } from "../../../src/run/money/quote.ts";
import type { CallFacts } from "../../../src/call.ts";
import { readFacts, type CallPage } from "../../../src/run/queue/call-page.ts";
import { hasCourse } from "../../../src/run/continuations/table.ts";
import { quoteCall } from "../../../src/run/quotes/call.ts";
import { quoteOfCourse } from "../../../src/run/quotes/course.ts";
import type { Target } from "../../../src/run/leases/shard.ts";
import type { Reason } from "../../../src/errors.ts";
import type { Refused } from "../../../src/objects/methods/types.ts";
import type { RunState } from "../state.ts";
import type { ModelTargets } from "../targets.ts";

type Quoting = Pick<RunState, "engine"> & ModelTargets;

/** Quotes every slot of a group that is not opened: nothing is stored or reserved. `run`: why it may start nothing, if so. */
export function quoteGroup(
  run: Quoting | Reason,
  models: readonly (string | null)[],
  pages: readonly CallPage[],
  nowMs: number,
): Quote[] | Refused {
  if ("reason" in run) return { ok: false, reason: run };
  const quotes: Quote[] = [];
  for (const page of pages) {
    for (const facts of readFacts(page.facts, models)) {
      const quote = quoteFacts(run, facts, nowMs);
      if ("reason" in quote) return { ok: false, reason: quote };
      quotes.push(quote);
    }
  }
  return quotes;
}

/** Quotes one call at all of its models, or says why one of them is refused. */
export function quoteFacts(run: Quoting, facts: CallFacts, nowMs: number): Quote | Reason {
  const ofModels: Quote[] = [];
  for (const model of [facts.model, ...(facts.cascade?.models ?? [])]) {
    const target = run.targets.resolve(model);
    if ("reason" in target) return target;
    ofModels.push({ ...quoteCall(run.engine, target, facts, nowMs), model: nameOf(target) });
  }
  const [only] = ofModels;
  return only !== undefined && !hasCourse(facts) ? only : quoteOfCourse(ofModels, facts);
}

/** The name by which a request asks for the target. */
function nameOf({ route, upstream, model }: Target): string {
  return route ?? `${upstream}/${model}`;
}
