/** Whether an answer ended at the completion cap of its request, and whether the budget lowered that cap. */
import type { CapKind, Outcome } from "../../call.ts";

/**
 * Finish reasons that mean "at the cap": of chat and text completions, of messages, and of an incomplete response, each
 * as OpenAI's and Anthropic's references document it.
 */
const AT_CAP: ReadonlySet<string> = new Set(["length", "max_tokens", "max_output_tokens"]);

/** The cap in the request of an attempt; null = none. */
type Capped = { capTokens: number | null; capKind?: CapKind };

/**
 * True if the answer ended at its cap. An upstream that names no finish reason is judged by the tokens that it counted.
 */
export function endedAtCap(outcome: Outcome, { capTokens }: Capped): boolean {
  if (outcome.kind !== "success" || capTokens === null) return false;
  if (outcome.finishReason !== null) return AT_CAP.has(outcome.finishReason);
  return outcome.usage !== null && outcome.usage.completionTokens >= capTokens;
}

/** `cappedBy` of an outcome, to spread into a reply or an event; empty if its answer was not cut. */
export function cappedOf(outcome: Outcome): { cappedBy?: "budget" } {
  return outcome.kind === "success" && outcome.cappedBy !== undefined ? { cappedBy: outcome.cappedBy } : {};
}

/**
 * The outcome, marked as cut by the budget if its answer ended at a cap that the budget had lowered, or at a learned
 * cap and is not requested again.
 */
export function markCapped(outcome: Outcome, lease: Capped): Outcome {
  if (outcome.kind !== "success" || !isLowered(lease) || !endedAtCap(outcome, lease)) return outcome;
  return { ...outcome, cappedBy: "budget" };
}

function isLowered({ capKind }: Capped): boolean {
  return capKind === "budget" || capKind === "learned";
}
