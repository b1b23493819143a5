/**
 * Every way a request or a slot can fail, as data with its facts, and the one map from reason to wire.
 * Reasons cross object boundaries and are stored, so their facts are plain JSON values.
 */

/** A dimension of a budget. */
export type Dimension = "usd" | "calls" | "prompt_tokens" | "completion_tokens";

type BudgetFacts = {
  dimension: Dimension;
  /** USD as decimal numbers for `usd`, counts otherwise. */
  limit: number;
  spent: number;
  reserved: number;
  remaining: number;
  /** What the call would have had to reserve. */
  needed: number;
};

export type Reason =
  | { reason: "invalid_request"; message: string; param: string | null }
  | { reason: "invalid_api_key"; message: string }
  | ({ reason: "budget_exhausted" } & BudgetFacts)
  | ({ reason: "in_flight_budget_exhausted" } & BudgetFacts)
  | { reason: "model_not_allowed"; model: string }
  | { reason: "depth_exceeded"; maxDepth: number }
  | { reason: "forbidden"; message: string }
  | { reason: "not_found"; what: string }
  | { reason: "model_not_found"; model: string }
  | { reason: "method_not_allowed"; method: string; allowed: string }
  | { reason: "payload_too_large"; what: string; bytesMax: number; param: string | null }
  | { reason: "unsupported_media_type"; got: string; expected: string }
  | { reason: "idempotency_conflict" }
  | { reason: "cancelled"; message: string }
  | { reason: "budget_below_committed"; dimension: Dimension; limit: number; committed: number }
  | { reason: "stale_version"; version: number }
  | { reason: "infeasible"; message: string }
  | { reason: "unpriced_model"; model: string }
  | { reason: "invalid_graph"; message: string }
  | { reason: "upstream_rate_limited"; upstream: string; message: string; retryAfterMs: number | null }
  | { reason: "upstream_error"; upstream: string; status: number | null; message: string; retryable: boolean }
  | { reason: "upstream_truncated"; upstream: string; message: string }
  | { reason: "schema_violation"; message: string }
  | { reason: "overloaded"; message: string; retryAfterMs: number }
  | { reason: "upstream_timeout"; upstream: string; timeoutMs: number }
  | { reason: "deadline_exceeded"; deadlineMs: number }
  | { reason: "misconfigured"; variable: string; message: string }
  | { reason: "missing_secret"; variable: string }
  | { reason: "internal"; message: string };

/** The OpenAI API's error types, by which its SDKs and their users sort errors. */
export type ErrorType =
  | "invalid_request_error"
  | "authentication_error"
  | "permission_error"
  | "insufficient_quota"
  | "rate_limit_error"
  | "upstream_error"
  | "server_error";

/** The `error` object of a failed request or slot: the six fields every error has, then the facts of its reason. */
export type WireError = {
  message: string;
  type: ErrorType;
  code: string;
  param: string | null;
  retryable: boolean;
  [fact: string]: string | number | boolean | null;
};

/** A reason as an HTTP answer: status, body and headers (`retry-after`…, `x-should-retry`, `allow`). */
export type WireFailure = { status: number; error: WireError; headers: Record<string, string> };
