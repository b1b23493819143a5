/**
 * What follows the check of an answer against the schema of its call. An answer that does not fit was delivered and is charged
 * as such, but for its call the attempt failed: the call is asked again with what is wrong, or ends with `schema_violation`.
 */
import type { CallFacts, Outcome } from "../../call.ts";
import { REPAIR_MESSAGES_MAX } from "../../limits.ts";
import { hasInvalidAnswer, type SlotRecord } from "./record.ts";
import type { AttemptInFlight } from "../leases/shard.ts";

type Checking = Pick<AttemptInFlight, "schemaRetries">;

/** The outcome of an attempt for its call: a failure if its answer does not fit. */
export function judged(outcome: Outcome, { schemaRetries }: Checking): Outcome {
  if (outcome.kind !== "success" || schemaRetries === undefined) return outcome;
  const { checked, text, latencyMs } = outcome;
  const failed = { kind: "failure" as const, answered: true, retryAfterMs: null, latencyMs };
  if (checked === undefined) {
    const message = "the executor of this call did not check the answer";
    return { ...failed, class: "transient", reason: { reason: "internal", message } };
  }
  if (checked.violation === null) return outcome;
  return {
    ...failed,
    class: "rejected",
    reason: { reason: "schema_violation", message: checked.violation },
    body: text,
  };
}

/** True if the outcome is that of an answer that does not fit. */
export function isViolation(outcome: Outcome): outcome is Outcome & { kind: "failure" } {
  return outcome.kind === "failure" && outcome.reason.reason === "schema_violation";
}

/** Notes in a slot's record what the check of an answer has found; `isAskedAgain`: whether another one is requested. */
export function noteCheck(record: SlotRecord, reported: Outcome, isAskedAgain: boolean): void {
  if (reported.kind !== "success" || reported.checked === undefined) return;
  const { violation, repairBytes = 0 } = reported.checked;
  const repairs = (record.checks?.repairs ?? 0) + (isAskedAgain ? 1 : 0);
  record.checks = violation === null ? { repairs, violation } : { repairs, violation, repairBytes };
}

/** The facts of a slot's next attempt, which repeats an answer that does not fit. */
export function factsWithRepair<Facts extends CallFacts>(facts: Facts, record: SlotRecord | undefined): Facts {
  if (!hasInvalidAnswer(record)) return facts;
  const { repairBytes = 0 } = record.checks;
  return repairedFacts(facts, repairBytes);
}

/** The facts of a call whose request has an answer that does not fit, and what is wrong with it. */
export function repairedFacts<Facts extends CallFacts>(facts: Facts, repairBytes: number): Facts {
  const { textTokensMax } = facts;
  const repaired = {
    ...facts,
    promptBytes: facts.promptBytes + repairBytes,
    messageCount: facts.messageCount + REPAIR_MESSAGES_MAX,
  };
  return textTokensMax === undefined ? repaired : { ...repaired, textTokensMax: textTokensMax + repairBytes };
}
