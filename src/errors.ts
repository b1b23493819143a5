/**
 * Every way a request or a slot can fail, as data with its facts, and the one map from reason to wire.
 * Reasons cross object boundaries and are stored, so their facts are plain JSON values.
 */
import { RETRY_MAX_MS } from "./limits.ts";

/** A dimension of a budget. */
export type Dimension = "usd" | "calls" | "prompt_tokens" | "completion_tokens";

type BudgetFacts = {
  dimension: Dimension;
  /** USD as decimal numbers for `usd`, counts otherwise. */
  limit: number;
  spent: number;
  reserved: number;
  remaining: number;
  /** What the call, or the child run, would have had to reserve. */
  needed: number;
  /** The field that asked for it, where one did. */
  param?: string;
};

export type Reason =
  | { reason: "invalid_request"; message: string; param: string | null }
  | { reason: "invalid_api_key"; message: string }
  | ({ reason: "budget_exhausted" } & BudgetFacts)
  | ({ reason: "in_flight_budget_exhausted" } & BudgetFacts)
  | { reason: "model_not_allowed"; model: string }
  | { reason: "depth_exceeded"; maxDepth: number }
  | { reason: "forbidden"; message: string; param?: string }
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

/** Thrown to leave a handler with an expected failure; `onError` of the app is the one place that catches it. */
export class Refusal extends Error {
  readonly reason: Reason;

  constructor(reason: Reason) {
    super(reason.reason);
    this.name = "Refusal";
    this.reason = reason;
  }
}

/** Whether the same request may succeed if it is simply sent again later. */
export function isRetryable(reason: Reason): boolean {
  switch (reason.reason) {
    case "upstream_error":
      return reason.retryable;
    case "in_flight_budget_exhausted":
    case "upstream_rate_limited":
    case "upstream_truncated":
    case "upstream_timeout":
    case "overloaded":
    case "deadline_exceeded":
    case "internal":
      return true;
    default:
      return false;
  }
}

/** The one map from a reason to its HTTP answer; for a slot of a group, only its `error` is used. */
export function toWire(reason: Reason): WireFailure {
  const { status, type, message } = describe(reason);
  const retryable = isRetryable(reason);
  const error: WireError = {
    message,
    type,
    code: reason.reason === "missing_secret" ? "misconfigured" : reason.reason,
    param: "param" in reason ? (reason.param ?? null) : null,
    retryable,
  };
  // The reason's remaining facts follow under their wire names; the fields every error has are set above, once.
  for (const [name, fact] of Object.entries(reason)) {
    if (name !== "reason" && !(name in error)) error[snakeCase(name)] = fact;
  }
  return { status, error, headers: headersOf(reason, { status, retryable }) };
}

/** Programs in the field match on this text. */
const DEPTH_MESSAGE = "MAXIMUM DEPTH REACHED. You must solve this task on your own without calling llm_query.";

type Description = { status: number; type: ErrorType; message: string };

const answer = (status: number, type: ErrorType, message: string): Description => ({ status, type, message });

/** Exhaustive on purpose: a new reason does not compile until it has a status here. */
function describe(r: Reason): Description {
  switch (r.reason) {
    case "invalid_request":
      return answer(400, "invalid_request_error", r.message);
    case "invalid_api_key":
      return answer(401, "authentication_error", r.message);
    case "budget_exhausted":
      return answer(402, "insufficient_quota", exhaustedMessage(r));
    case "in_flight_budget_exhausted":
      return answer(402, "rate_limit_error", inFlightMessage(r));
    case "model_not_allowed":
      return answer(403, "permission_error", `model "${r.model}" is not among the models this run may use`);
    case "depth_exceeded":
      return answer(403, "permission_error", DEPTH_MESSAGE);
    case "forbidden":
      return answer(403, "permission_error", r.message);
    case "not_found":
      return answer(404, "invalid_request_error", `${r.what} not found`);
    case "model_not_found":
      return answer(404, "invalid_request_error", `no configured upstream serves the model "${r.model}"`);
    case "method_not_allowed":
      return answer(405, "invalid_request_error", `${r.method} is not allowed here; allowed: ${r.allowed}`);
    case "payload_too_large":
      return answer(413, "invalid_request_error", `${r.what} is too large: at most ${r.bytesMax} bytes are accepted`);
    case "unsupported_media_type":
      return answer(415, "invalid_request_error", `content type "${r.got}" is not supported; expected ${r.expected}`);
    case "idempotency_conflict":
      return answer(409, "invalid_request_error", "this Idempotency-Key was used before with another request body");
    case "budget_below_committed":
      return answer(409, "invalid_request_error", belowCommittedMessage(r));
    case "stale_version":
      return answer(409, "invalid_request_error", `the graph has moved on: its version is now ${r.version}`);
    case "cancelled":
      return answer(409, "invalid_request_error", r.message);
    case "unpriced_model":
      return answer(422, "invalid_request_error", `model "${r.model}" has no price, so its cost cannot be bounded`);
    case "infeasible":
    case "invalid_graph":
      return answer(422, "invalid_request_error", r.message);
    case "upstream_rate_limited":
      return answer(429, "rate_limit_error", r.message);
    case "upstream_error":
    case "upstream_truncated":
    case "schema_violation":
      return answer(502, "upstream_error", r.message);
    case "overloaded":
      return answer(503, "server_error", r.message);
    case "missing_secret":
      return answer(503, "server_error", `the secret ${r.variable} is not set; set it to use this gateway`);
    case "upstream_timeout":
      return answer(504, "upstream_error", `upstream "${r.upstream}" did not answer within ${r.timeoutMs} ms`);
    case "deadline_exceeded":
      return answer(504, "server_error", `the deadline of ${r.deadlineMs} ms passed before the call ended`);
    case "misconfigured":
      return answer(500, "server_error", `${r.variable}: ${r.message}`);
    case "internal":
      return answer(500, "server_error", r.message);
  }
}

/** Programs in the field match on how these begin: the name, "exceeded", what is spent, what the limit is. */
const BUDGET_NAMES: Record<Dimension, string> = {
  usd: "Budget",
  calls: "Global call budget",
  prompt_tokens: "Prompt token budget",
  completion_tokens: "Completion token budget",
};

function exhaustedMessage({ dimension, limit, spent, reserved, needed }: BudgetFacts): string {
  const show = dimension === "usd" ? dollars : String;
  const head = `${BUDGET_NAMES[dimension]} exceeded: ${show(spent)} spent, limit is ${show(limit)}`;
  return `${head}; ${show(reserved)} is reserved and this call needs ${show(needed)}`;
}

function inFlightMessage({ dimension, limit, spent, reserved, needed }: BudgetFacts): string {
  const show = dimension === "usd" ? dollars : String;
  const head = `${BUDGET_NAMES[dimension]} in use: ${show(spent)} spent and ${show(reserved)} reserved by calls in flight`;
  return `${head}, limit is ${show(limit)}; this call needs ${show(needed)}, try again when they have settled`;
}

function belowCommittedMessage(r: { dimension: Dimension; limit: number; committed: number }): string {
  const show = r.dimension === "usd" ? dollars : String;
  return `budget.${r.dimension}: ${show(r.limit)} is below the ${show(r.committed)} already spent or reserved`;
}

/** Cents at least and nano-USD at most, never an exponent: "$0.50", "$0.000000125". */
function dollars(usd: number): string {
  const [whole = "0", decimals = ""] = usd.toFixed(9).split(".");
  return `$${whole}.${decimals.replace(/0+$/, "").padEnd(2, "0")}`;
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Wait advised where a secret is missing, ms: an operator needs about this long to set one. */
const MISSING_SECRET_RETRY_MS = 60_000;

function headersOf(reason: Reason, { status, retryable }: { status: number; retryable: boolean }) {
  const headers: Record<string, string> = {};
  if (!retryable) headers["x-should-retry"] = "false";
  if (reason.reason === "method_not_allowed") headers["allow"] = reason.allowed;
  if (status === 401) headers["www-authenticate"] = "Bearer";
  if (status === 429 || status === 503) {
    const stated = "retryAfterMs" in reason ? reason.retryAfterMs : MISSING_SECRET_RETRY_MS;
    Object.assign(headers, retryHeaders(stated));
  }
  return headers;
}

/** When to come again, in the two forms that clients read; where nobody has said, the longest delay of our own. */
export function retryHeaders(statedMs: number | null): Record<string, string> {
  const retryAfterMs = Math.max(0, Math.ceil(statedMs ?? RETRY_MAX_MS));
  return { "retry-after": String(Math.ceil(retryAfterMs / 1000)), "retry-after-ms": String(retryAfterMs) };
}
