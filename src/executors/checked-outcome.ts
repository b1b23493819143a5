/** What the check of an answer against the schema of its call has found. */
import { endedAtCap } from "../run/money/capped.ts";
import type { Lease, Outcome } from "../call.ts";
import { violationOf } from "../text/schema/answer.ts";
import { repairBytes } from "../text/schema/repair.ts";

/** The outcome with what the check of its answer has found. */
export function checkedOutcome(outcome: Outcome, schema: Record<string, unknown>, lease: Lease): Outcome {
  if (outcome.kind !== "success") return outcome;
  const { text } = outcome;
  const violation = violationOf(text, schema, endedAtCap(outcome, lease));
  if (violation === null) return { ...outcome, checked: { violation } };
  return { ...outcome, checked: { violation, repairBytes: repairBytes(schema, { text, violation }) } };
}
