/** `on_error: "abort"`: after a failure that nothing answers for, no further slot of the group starts. */
import type { ActiveRule, Rule } from "./rule.ts";

export type AbortRequest = { onError: "continue" | "abort" };

/** Absent = the other slots go on. */
export type AbortFacts = { onError?: "abort" };

export const abort: Rule<AbortRequest, AbortFacts> = {
  stored: ({ onError }) => (onError === "abort" ? { onError } : {}),
  again: ({ onError }) => (onError === undefined ? {} : { onError }),
  of: ({ onError }) => (onError === undefined ? null : ABORT),
};

const ABORT: ActiveRule = {
  onFailure: () => [{ kind: "abort", message: 'an earlier slot failed and on_error is "abort"' }],
};
