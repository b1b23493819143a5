/** A sample of every reason for which a request or a slot can fail. `docs/errors.md` is checked against them. */
import type { Reason } from "../../src/errors.ts";

const budget = { limit: 0.5, spent: 0.48, reserved: 0.01, remaining: 0.01, needed: 0.03 };

/** One sample of each reason, with every fact that it can have. The compiler refuses a reason without one. */
export const SAMPLES: { [K in Reason["reason"]]: Extract<Reason, { reason: K }> } = {
  invalid_request: { reason: "invalid_request", message: "max_tokens: too big", param: "max_tokens" },
  invalid_api_key: { reason: "invalid_api_key", message: "no credential" },
  budget_exhausted: { reason: "budget_exhausted", dimension: "usd", ...budget },
  in_flight_budget_exhausted: { reason: "in_flight_budget_exhausted", dimension: "usd", ...budget },
  model_not_allowed: { reason: "model_not_allowed", model: "gpt-x", usableModels: "o/*" },
  depth_exceeded: { reason: "depth_exceeded", maxDepth: 3 },
  forbidden: { reason: "forbidden", message: "operators only" },
  not_found: { reason: "not_found", what: "run r1", hint: "GET /runs lists all" },
  model_not_found: { reason: "model_not_found", model: "gpt-x", usableModels: "o/*" },
  method_not_allowed: { reason: "method_not_allowed", method: "PUT", allowed: "GET, HEAD" },
  payload_too_large: { reason: "payload_too_large", what: "prompts[3]", bytesMax: 10, param: "prompts[3]" },
  unsupported_media_type: { reason: "unsupported_media_type", got: "image/png", expected: "application/json" },
  idempotency_conflict: { reason: "idempotency_conflict" },
  cancelled: { reason: "cancelled", message: "the run was cancelled" },
  budget_below_committed: { reason: "budget_below_committed", dimension: "calls", limit: 3, committed: 5 },
  stale_version: { reason: "stale_version", version: 4 },
  infeasible: {
    reason: "infeasible",
    message: "the floor of the batch does not fit",
    dimension: "usd",
    limit: 1,
    spent: 0,
    held: 0,
    needed: 2,
  },
  unpriced_model: { reason: "unpriced_model", model: "gpt-x" },
  invalid_graph: { reason: "invalid_graph", message: "a cycle: a, b, a" },
  upstream_rate_limited: {
    reason: "upstream_rate_limited",
    upstream: "o",
    message: "slow down",
    retryAfterMs: 1_200,
    upstreamCode: "rate_limit_exceeded",
  },
  upstream_error: {
    reason: "upstream_error",
    upstream: "o",
    status: 500,
    message: "answered 500",
    retryable: true,
    upstreamCode: "server_error",
  },
  upstream_truncated: { reason: "upstream_truncated", upstream: "o", message: "ended early" },
  schema_violation: { reason: "schema_violation", message: "result.x: expected number" },
  overloaded: { reason: "overloaded", message: "too many calls wait", retryAfterMs: 500 },
  upstream_timeout: { reason: "upstream_timeout", upstream: "o", timeoutMs: 1_000 },
  deadline_exceeded: { reason: "deadline_exceeded", deadlineMs: 2_000 },
  misconfigured: { reason: "misconfigured", variable: "UPSTREAMS", message: "o.kind: unknown" },
  missing_secret: { reason: "missing_secret", variable: "ADMIN_KEY" },
  internal: { reason: "internal", message: "something broke" },
};
