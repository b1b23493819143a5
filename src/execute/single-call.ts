/** A call whose client waits for its whole answer. */
import type { CallBody, CallFacts, CallRules, Outcome } from "../call.ts";
import type { Reason } from "../errors.ts";
import { attemptCall } from "./attempt.ts";
import { executeCall, type CallDeps, type CallUsage } from "./call.ts";

/** What a call ended as, with what all its attempts took and cost. */
export type SingleCallEnd = CallUsage & {
  outcome: { ok: true; text: string; model: string; finishReason: string | null } | { ok: false; reason: Reason };
};

/** Makes a call under a run. Rejects only if the run object is unreachable. */
export async function makeCall(
  call: CallRules & { body: CallBody; facts: CallFacts },
  deps: CallDeps,
): Promise<SingleCallEnd> {
  const { end, usage } = await executeCall(
    { ...call, mayUseCredit: call.deadlineMs === null && call.facts.dedupeKey === undefined },
    async (attempt) => {
      const outcome = await attemptCall(attempt, call.body, {
        upstreams: deps.config.upstreams,
        headersLimited: false,
      });
      return { kind: "ended" as const, outcome };
    },
    deps,
  );
  if (end.kind === "ended" || end.kind === "shared") return { ...usage, outcome: outcomeOf(end.outcome) };
  return { ...usage, outcome: { ok: false, reason: end.kind === "refused" ? end.reason : CLIENT_GONE } };
}

const CLIENT_GONE: Reason = { reason: "cancelled", message: "the client left before its call started" };

function outcomeOf(outcome: Outcome): SingleCallEnd["outcome"] {
  return outcome.kind === "success"
    ? { ok: true, text: outcome.text, model: outcome.model, finishReason: outcome.finishReason }
    : { ok: false, reason: outcome.reason };
}
