/** How a slot, or a group, has ended as one word, and whether another round is worth it: for programs that retry members. */
import { OUTCOMES, type Outcome } from "../../run/answers/outcomes.ts";
import { isFinalState } from "../../run/queue/slot.ts";
import type { SlotView } from "../../objects/methods/groups.ts";
import { votedText } from "../../run/answers/voted-text.ts";
import { partsOf } from "../../answer.ts";
import { slotError } from "./slot.ts";

/** Null = it has not ended. */
export type Ended = { outcome: Outcome | null; retry_recommended: boolean };

const TIMEOUTS: ReadonlySet<string> = new Set(["upstream_timeout", "deadline_exceeded"]);

/** The gateway has made the retries that a limit allows: another round would meet the same limit. */
const LIMITS: ReadonlySet<string> = new Set(["upstream_rate_limited", "in_flight_budget_exhausted", "overloaded"]);

export function outcomeOf(slot: SlotView): Ended {
  if (!isFinalState(slot.state)) return { outcome: null, retry_recommended: false };
  if (slot.state === "completed") {
    const isEmpty = votedText({ text: slot.text ?? "", ...partsOf(slot) }).trim() === "";
    return { outcome: isEmpty ? "EMPTY_OUTPUT" : "SUCCESS", retry_recommended: isEmpty };
  }
  const error = slotError(slot);
  if (slot.state !== "failed" || error === null) return { outcome: "CANCELLED", retry_recommended: false };
  if (TIMEOUTS.has(error.code)) return { outcome: "TIMEOUT", retry_recommended: true };
  if (error.code === "schema_violation") return { outcome: "SCHEMA_VIOLATION", retry_recommended: true };
  if (!error.retryable) return { outcome: "NONRETRYABLE_FAILURE", retry_recommended: false };
  return { outcome: "RETRYABLE_FAILURE", retry_recommended: !LIMITS.has(error.code) };
}

/** The outcome of a group, from those of its slots. */
export class GroupOutcome {
  readonly #counts = new Map<Outcome | null, number>();
  #slots = 0;
  #isRetryRecommended = false;

  add({ outcome, retry_recommended }: Ended): void {
    this.#slots += 1;
    this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + 1);
    this.#isRetryRecommended ||= retry_recommended;
  }

  get ended(): Ended {
    const count = (outcome: Outcome | null): number => this.#counts.get(outcome) ?? 0;
    const retry_recommended = this.#isRetryRecommended;
    if (count(null) > 0) return { outcome: null, retry_recommended: false };
    if (count("SUCCESS") === this.#slots) return { outcome: "SUCCESS", retry_recommended };
    if (count("SUCCESS") > 0) return { outcome: "PARTIAL_SUCCESS", retry_recommended };
    // All ended badly: with one word if it is the same for all.
    const alike = OUTCOMES.find((outcome) => count(outcome) === this.#slots);
    const mixed = retry_recommended ? "RETRYABLE_FAILURE" : "NONRETRYABLE_FAILURE";
    return { outcome: alike ?? mixed, retry_recommended };
  }
}
