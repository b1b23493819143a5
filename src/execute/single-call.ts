/** A call whose client waits for its whole answer. */
import type { CallBody, CallFacts, CallRules, Lease, Outcome } from "../call.ts";
import type { Reason } from "../errors.ts";
import { attemptCall } from "./attempt.ts";
import { executeCall, type CallDeps, type CallUsage } from "./call.ts";

/** What a call ended as, with what all its attempts took and cost. */
export type SingleCallEnd = CallUsage & {
  outcome:
    | { ok: true; text: string; model: string; finishReason: string | null; upstream?: string }
    | { ok: false; reason: Reason };
};

/** Makes a call under a run. Rejects only if the run object is unreachable. */
export async function makeCall(
  call: CallRules & { body: CallBody; facts: CallFacts },
  deps: CallDeps,
): Promise<SingleCallEnd> {
  const { end, usage } = await executeCall(
    {
      ...call,
      waitsForGate: call.deadlineMs !== null,
      mayUseCredit: call.deadlineMs === null && call.facts.dedupeKey === undefined,
    },
    async (attempt) => {
      const outcome = await attemptCall(attempt, call.body, {
        upstreams: deps.config.upstreams,
        headersLimited: false,
      });
      return { kind: "ended" as const, outcome };
    },
    deps,
  );
  if (end.kind === "ended") return { ...usage, outcome: outcomeOf(end.outcome, end.lease) };
  if (end.kind === "shared") return { ...usage, outcome: outcomeOf(end.outcome, null) };
  return { ...usage, outcome: { ok: false, reason: end.kind === "refused" ? end.reason : CLIENT_GONE } };
}

const CLIENT_GONE: Reason = { reason: "cancelled", message: "the client left before its call started" };

function outcomeOf(outcome: Outcome, lease: Lease | null): SingleCallEnd["outcome"] {
  if (outcome.kind === "failure") return { ok: false, reason: outcome.reason };
  const { text, model, finishReason } = outcome;
  const upstream = lease?.route === undefined ? {} : { upstream: lease.upstream };
  return { ok: true, text, model, finishReason, ...upstream };
}
