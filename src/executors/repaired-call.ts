/** A single call as its Worker makes it: which request its next attempt is, and in which service tier. */
import { isBudgetReason } from "../run/money/admit.ts";
import type { CallBody, CallFacts, Outcome } from "../call.ts";
import { repairedFacts } from "../run/group/schema-check.ts";
import type { Reason } from "../errors.ts";
import { repairedBody, type Repair } from "../text/schema/repair.ts";

/** The reason of a call whose last answer does not fit its schema. */
export function violated(text: string, violation: string): Reason {
  return { reason: "schema_violation", message: violation, text };
}

export class RepairedCall {
  readonly #body: CallBody;
  #facts: CallFacts;
  #repairsLeft: number;
  #repairBytes = 0;
  #repair: Repair | null = null;

  constructor({ body, facts }: { body: CallBody; facts: CallFacts }) {
    this.#body = body;
    this.#facts = facts;
    this.#repairsLeft = facts.schemaRetries ?? 0;
  }

  /** The body of the next attempt. */
  get body(): CallBody {
    return this.#repair === null ? this.#body : repairedBody(this.#body, this.#repair);
  }

  /** An attempt as it is reported to the run: with a request for another answer if this one does not fit. */
  checked(outcome: Outcome): { kind: "ended"; outcome: Outcome; nextFacts?: CallFacts } {
    if (outcome.kind === "failure" && outcome.refusesTier === true) {
      this.#facts = { ...this.#facts, wantedTier: "default" };
      return { kind: "ended", outcome, nextFacts: this.#nextFacts() };
    }
    if (outcome.kind !== "success" || outcome.checked === undefined || outcome.checked.violation === null) {
      return { kind: "ended", outcome };
    }
    const { checked, text } = outcome;
    this.#repair = { text, violation: outcome.checked.violation };
    if (this.#repairsLeft === 0) return { kind: "ended", outcome };
    this.#repairsLeft -= 1;
    this.#repairBytes = checked.repairBytes ?? 0;
    const again = { ...outcome, checked: { ...checked, again: true as const } };
    return { kind: "ended", outcome: again, nextFacts: this.#nextFacts() };
  }

  #nextFacts(): CallFacts {
    return this.#repair === null ? this.#facts : repairedFacts(this.#facts, this.#repairBytes);
  }

  /** What the call ends with if another answer is refused for the budget or its deadline; null = with that refusal. */
  violationInsteadOf(refusal: Reason): Reason | null {
    if (this.#repair === null || !(isBudgetReason(refusal) || refusal.reason === "deadline_exceeded")) return null;
    return violated(this.#repair.text, this.#repair.violation);
  }
}
