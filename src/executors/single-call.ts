/** A call whose client waits for its whole answer. */
import { partsOf } from "../answer.ts";
import type { AnswerParts, CallBody, CallFacts, CallRules, Lease, Outcome } from "../call.ts";
import type { Reason } from "../errors.ts";
import { patienceOf } from "../run/leases/single-call.ts";
import { attemptCall } from "./attempt.ts";
import { RepairedCall, violated } from "./repaired-call.ts";
import { executeCall, clientOutcome, type CallDeps, type CallUsage } from "./call.ts";

/** What a call ended as, with what all its attempts took and cost. */
export type SingleCallEnd = CallUsage & {
  outcome:
    | {
        ok: true;
        text: string;
        parts?: AnswerParts;
        model: string;
        finishReason: string | null;
        upstream?: string;
        isJson?: true;
        replayed?: true;
      }
    | { ok: false; reason: Reason };
};

/** Makes a call under a run. Rejects only if the run object is unreachable. */
export async function makeCall(
  call: CallRules & { body: CallBody; facts: CallFacts; epoch?: string },
  deps: CallDeps,
): Promise<SingleCallEnd> {
  const repairing = new RepairedCall(call);
  const { end, usage } = await executeCall(
    {
      ...call,
      ...patienceOf(call.deadlineMs),
      mayUseCredit: mayUseCredit(call),
    },
    async (attempt) => {
      const made = { upstreams: deps.config.upstreams, headersLimited: false, run: deps.run };
      return repairing.checked(await attemptCall(attempt, repairing.body, made));
    },
    deps,
  );
  if (end.kind === "ended") return { ...usage, outcome: outcomeOf(clientOutcome(end), end.lease) };
  if (end.kind === "shared") return { ...usage, outcome: outcomeOf(end.outcome, null) };
  if (end.kind === "replayed") return { ...usage, outcome: { ok: true, ...end.answer, replayed: true } };
  const reason = end.kind === "refused" ? (repairing.violationInsteadOf(end.reason) ?? end.reason) : CLIENT_GONE;
  return { ...usage, outcome: { ok: false, reason } };
}

/** The run object must start what may wait there, shares an answer or its beginning, is recorded, or is sent in a tier. */
function mayUseCredit({ deadlineMs, facts, epoch }: CallRules & { facts: CallFacts; epoch?: string }): boolean {
  const isShared = facts.dedupeKey !== undefined || facts.shared !== undefined;
  return deadlineMs === null && !isShared && facts.wantedTier === undefined && epoch === undefined;
}

const CLIENT_GONE: Reason = { reason: "cancelled", message: "the client left before its call started" };

function outcomeOf(outcome: Outcome, lease: Lease | null): SingleCallEnd["outcome"] {
  if (outcome.kind === "failure") {
    const { reason, body } = outcome;
    // The answer of an equal call does not fit: its text is beside the reason.
    return { ok: false, reason: reason.reason === "schema_violation" ? { ...reason, text: body ?? "" } : reason };
  }
  const { text, model, finishReason, checked } = outcome;
  if (checked !== undefined && checked.violation !== null)
    return { ok: false, reason: violated(text, checked.violation) };
  const upstream = lease?.route === undefined ? {} : { upstream: lease.upstream };
  const isJson = checked === undefined ? {} : { isJson: true as const };
  return { ok: true, text, ...partsOf(outcome), model, finishReason, ...upstream, ...isJson };
}
