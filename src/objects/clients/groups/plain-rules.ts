/** The rules of a group for which no client has set any: those of a single call, or of calls that the gateway itself makes. */
import type { OpenGroupRequest } from "../../methods/groups.ts";

/** Every rule that must be set, except `count` and `detach`, which each opener decides. */
export const PLAIN_RULES = {
  idempotencyKey: null,
  single: false,
  background: false,
  hasCustomIds: false,
  concurrency: null,
  onError: "continue",
  onBudget: "partial",
  onLost: "retry",
  split: false,
  deadlineMs: null,
  errorStyle: null,
} as const satisfies Partial<OpenGroupRequest>;
