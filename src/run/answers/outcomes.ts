/** How a slot, or a group, has ended, as one word: for programs that repeat what may help. */
export const OUTCOMES = [
  "SUCCESS",
  "PARTIAL_SUCCESS",
  "EMPTY_OUTPUT",
  "SCHEMA_VIOLATION",
  "TIMEOUT",
  "RETRYABLE_FAILURE",
  "NONRETRYABLE_FAILURE",
  "CANCELLED",
] as const;
export type Outcome = (typeof OUTCOMES)[number];
