/** What the slots of a group would cost. */
import type { Quote } from "../../../src/run/money/quote.ts";
import type { CallFacts } from "../../../src/call.ts";
import { isAlike } from "../../../src/run/queue/alike.ts";
import { readFacts, type CallPage } from "../../../src/run/queue/call-page.ts";
import type { SlotFacts } from "../../../src/run/queue/slot.ts";
import { hasCourse } from "../../../src/run/continuations/table.ts";
import { quoteCall, quoteOfCourse } from "../../../src/run/quotes.ts";
import type { Target } from "../../../src/run/leases/shard.ts";
import type { Reason } from "../../../src/errors.ts";
import { SLICE_PIECE_CHARS } from "../../../src/limits.ts";
import type { Refused } from "../../../src/objects/methods/types.ts";
import { SliceCount, type Sliced } from "../../../src/text/bytes/slices.ts";
import type { RunState } from "../state.ts";
import type { ModelTargets } from "../targets.ts";

type Quoting = Pick<RunState, "engine"> & ModelTargets;

/** What a quote counts for in a slice, characters: it takes about as long as reading so many. */
export const QUOTE_CHARS = 4 * SLICE_PIECE_CHARS;

/** Quotes every slot of a group that is not opened, in slices: nothing is stored or reserved. `run`: why it may start nothing, if so. */
export function* quotingGroup(
  run: Quoting | Reason,
  models: readonly (string | null)[],
  pages: readonly Pick<CallPage, "facts">[],
  nowMs: number,
): Sliced<Quote[] | Refused> {
  if ("reason" in run) return { ok: false, reason: run };
  const slice = new SliceCount();
  const known = new Quotes(run, nowMs);
  const quotes: Quote[] = [];
  for (const { facts } of pages) {
    for (const slot of readFacts(facts, models)) {
      const quote = known.of(slot);
      if ("reason" in quote) return { ok: false, reason: quote };
      quotes.push(quote);
      if (slice.add(QUOTE_CHARS)) yield;
    }
  }
  return quotes;
}

/** Quotes of calls one after another: alike ones in a row are quoted once, and have one object. */
export class Quotes {
  readonly #run: Quoting;
  readonly #nowMs: number;
  #last: { facts: SlotFacts; quote: Quote } | null = null;

  constructor(run: Quoting, nowMs: number) {
    this.#run = run;
    this.#nowMs = nowMs;
  }

  /** The quote of a call, or why its model is refused. */
  of(facts: SlotFacts): Quote | Reason {
    if (this.#last !== null && isAlike(this.#last.facts, facts)) return this.#last.quote;
    const quote = quoteFacts(this.#run, facts, this.#nowMs);
    if (!("reason" in quote)) this.#last = { facts, quote };
    return quote;
  }
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
