/** What the slots of a group would cost. */
import type { Quote } from "../../../src/budget/quote.ts";
import { readFacts, type CallPage } from "../../../src/engine/call-page.ts";
import { hasCourse } from "../../../src/engine/course/course.ts";
import { quoteCall } from "../../../src/engine/quotes/call.ts";
import { quoteOfCourse } from "../../../src/engine/quotes/course.ts";
import type { Target } from "../../../src/engine/shard.ts";
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
      const ofModels: Quote[] = [];
      for (const model of [facts.model, ...(facts.cascade?.models ?? [])]) {
        const target = run.resolve(model);
        if ("reason" in target) return { ok: false, reason: target };
        ofModels.push({ ...quoteCall(run.engine, target, facts, nowMs), model: nameOf(target) });
      }
      const [only] = ofModels;
      quotes.push(only !== undefined && !hasCourse(facts) ? only : quoteOfCourse(ofModels, facts));
    }
  }
  return quotes;
}

/** The name by which a request asks for the target. */
function nameOf({ route, upstream, model }: Target): string {
  return route ?? `${upstream}/${model}`;
}
