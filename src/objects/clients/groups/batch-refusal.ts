/**
 * What nobody pays for is refused before its pages are made: a batch of tens of thousands of tiny calls costs its Worker and its run far more
 * than its body, wherever that is refused later.
 */
import type { CallFacts } from "../../../call.ts";
import { Refusal } from "../../../errors.ts";
import { OPENED_AT_ONCE_MAX, PRICED_KINDS_MAX } from "../../../limits.ts";
import { CallPageBuilder } from "../../../run/queue/call-page.ts";
import type { OpenGroupRequest } from "../../methods/groups.ts";
import type { Refused } from "../../methods/types.ts";
import type { RunCaller } from "../caller.ts";
import { objectFailure } from "../retry.ts";

type Call = { facts: CallFacts };

/** What is looked at of an opening. `calls`: a list, if they are at hand; those of a large body are parsed anew each time they are read. */
export type BatchAsked = {
  calls: Iterable<Call>;
  dedupe: boolean;
  graph?: unknown;
  rules: Pick<
    OpenGroupRequest,
    "count" | "onBudget" | "onExhausted" | "single" | "idempotencyKey" | "replay" | "batchId"
  >;
};

/**
 * Asks the run whether a batch of many calls of a few kinds would be refused, and throws that Refusal. True if the run has said that it may
 * open; false if it was not asked, or does not know: then the opening decides.
 */
export async function refuseUnpaid(run: Pick<RunCaller, "callWithRetry">, asked: BatchAsked): Promise<boolean> {
  const { calls, rules } = asked;
  // Of equal calls one is paid for, and recorded ones cost nothing. Lines of a batch file fail one by one.
  const isPlain =
    !asked.dedupe && asked.graph === undefined && rules.replay === undefined && rules.batchId === undefined;
  if (!isPlain || rules.count <= OPENED_AT_ONCE_MAX || !isList(calls)) return false;
  const kinds = kindsOf(calls);
  if (kinds === null) return false;
  const builder = new CallPageBuilder({});
  const texts = Array.from(kinds, ([facts, count]) => builder.kind(facts, count));
  const { count, onBudget, onExhausted, single, idempotencyKey } = rules;
  const request = {
    ...{ count, onBudget, single, ...(onExhausted !== undefined && { onExhausted }) },
    ...{ idempotencyKey: idempotencyKey?.key ?? null, models: builder.models, kinds: texts },
  };
  const refused = await run
    .callWithRetry<Refused | null>((stub) => stub.refusalOfBatch(request))
    .catch((error: unknown): undefined => {
      // An object that a deploy has not replaced yet decides with the opening.
      if (objectFailure(error) !== "outdated") throw error;
    });
  if (refused?.ok === false) throw new Refusal(refused.reason);
  return refused === null;
}

function isList(calls: Iterable<Call>): calls is readonly Call[] {
  return Array.isArray(calls);
}

/** How many calls have each object of facts; null = they have too many. */
function kindsOf(calls: readonly Call[]): Map<CallFacts, number> | null {
  const kinds = new Map<CallFacts, number>();
  for (const { facts } of calls) {
    kinds.set(facts, (kinds.get(facts) ?? 0) + 1);
    if (kinds.size > PRICED_KINDS_MAX) return null;
  }
  return kinds;
}
