/**
 * An answer that ended at a learned cap: the call is made once more, at once, without such a cap (learned/caps.ts). Until that has
 * answered, its slot keeps the short answer: it is paid for.
 */
import { LEARNED_CAP_TOKENS_SHORT } from "../../limits.ts";
import { hasShortAnswer } from "../group/record.ts";
import type { Continuation } from "./continuation.ts";

export const shortAnswer: Continuation = {
  /** Kept if the budget pays for no better one: for none, or for fewer tokens than a short answer may have. */
  left(record, hindrance) {
    if (!hasShortAnswer(record)) return null;
    if (hindrance.kind === "capped" && hindrance.capTokens >= LEARNED_CAP_TOKENS_SHORT) return null;
    return { ...record, state: "completed", reason: null, cappedBy: "budget" };
  },
};
