/**
 * Every way a request or a slot can fail, as data with its facts, and the one map from reason to wire.
 * Reasons cross object boundaries and are stored, so their facts are plain JSON values.
 */
import { ERROR_MESSAGE_CHARS_MAX, NAME_CHARS_MAX, RETRY_MAX_MS } from "./limits.ts";

/** A dimension of a budget. `new_tokens`: completion tokens, and prompt tokens that no cache had. */
export type Dimension = "usd" | "calls" | "prompt_tokens" | "completion_tokens" | "new_tokens";

type BudgetFacts = {
  dimension: Dimension;
  /** USD as decimal numbers for `usd`, counts otherwise. */
  limit: number;
  spent: number;
  reserved: number;
  remaining: number;
  /** The reservation that the call, or the child run, needs. */
  needed: number;
  /** The field of the request that needs it, if one does. */
  param?: string;
  /** The gateway's variable that sets the limit, if it is not the run's own. */
  variable?: string;
};

/** The provider's own code for its error, such as `context_length_exceeded`, without credentials; absent = it gave none. */
type UpstreamCode = { upstreamCode?: string };

/** A part of a parent's capacity that a child run was refused for: an amount of its budget, or a place for a child. */
export type CapacityShortage = {
  what: Dimension | "child_runs";
  /** USD as decimal numbers for `usd`, counts otherwise. */
  requested: number;
  /** What is free now, after requests that wait longer; for a request that can never fit, what could become free. */
  available: number;
  limit: number;
};

/** A batch whose least cost is above what its budget can have left; USD as decimal numbers for `usd`. */
type FloorFacts = { dimension: Dimension; limit: number; spent: number; held: number; needed: number };

export type Reason =
  | { reason: "invalid_request"; message: string; param: string | null }
  | { reason: "invalid_api_key"; message: string }
  | ({ reason: "budget_exhausted" } & BudgetFacts)
  | ({ reason: "in_flight_budget_exhausted" } & BudgetFacts)
  | { reason: "model_not_allowed"; model: string; usableModels?: string }
  | { reason: "depth_exceeded"; maxDepth: number }
  | { reason: "forbidden"; message: string; param?: string }
  | { reason: "not_found"; what: string; hint?: string }
  | { reason: "model_not_found"; model: string; usableModels?: string }
  | { reason: "method_not_allowed"; method: string; allowed: string }
  | { reason: "payload_too_large"; what: string; bytesMax: number; param: string | null }
  | { reason: "unsupported_media_type"; got: string; expected: string }
  | { reason: "idempotency_conflict" }
  | { reason: "cancelled"; message: string }
  | { reason: "budget_below_committed"; dimension: Dimension; limit: number; committed: number }
  | { reason: "stale_version"; version: number }
  | ({ reason: "infeasible"; message: string; reasons?: readonly CapacityShortage[] } & Partial<FloorFacts>)
  | { reason: "lease_lost"; leaseEnd: string }
  | { reason: "invalid_input"; message: string }
  | { reason: "tool_without_parameters"; message: string; param: string }
  | { reason: "no_capacity"; waitedMs: number; reasons: readonly CapacityShortage[] }
  | { reason: "unpriced_model"; model: string }
  /** `nearest`: the number of the recorded request that is most like it; null = it is not shown. */
  | { reason: "cassette_miss"; message: string; tape: string; nearest: number | null; differences: readonly string[] }
  | {
      reason: "invalid_graph";
      message: string;
      /** The field of the first fault; null = the graph as a whole. */
      param?: string | null;
      /** Ids of the tasks of a cycle, each of which depends on the next; the last is the first again. */
      cycle?: readonly string[];
    }
  | ({ reason: "upstream_rate_limited"; upstream: string; message: string; retryAfterMs: number | null } & UpstreamCode)
  | ({
      reason: "upstream_error";
      upstream: string;
      status: number | null;
      message: string;
      retryable: boolean;
    } & UpstreamCode)
  | { reason: "upstream_truncated"; upstream: string; message: string }
  /** `text`: the last answer; absent where it is stored beside the reason. */
  | { reason: "schema_violation"; message: string; text?: string }
  /** A task was skipped because of a task on which it depends, named by its id. */
  | { reason: "dependency_failed"; dependency: string }
  /** A task was skipped because its condition does not hold, or that of a task on which it depends; the named one decided it. */
  | { reason: "condition_not_met"; dependency: string }
  | { reason: "overloaded"; message: string; retryAfterMs: number }
  /** The disk of a gateway on its own machine: it is full, or what is left is kept for what is open. */
  | { reason: "storage_full"; message: string; retryAfterMs: number }
  /** A later version of the gateway has written the rows of an object. */
  | { reason: "newer_storage"; message: string }
  | { reason: "upstream_timeout"; upstream: string; timeoutMs: number }
  | { reason: "deadline_exceeded"; deadlineMs: number }
  | { reason: "misconfigured"; variable: string; message: string }
  /** `message`: what is wrong with a secret that is set; absent = it is not set. */
  | { reason: "missing_secret"; variable: string; message?: string }
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
  [fact: string]: string | number | boolean | null | readonly string[] | readonly CapacityShortage[];
};

/** A reason as an HTTP answer: status, body and headers (`retry-after`…, `x-should-retry`, `allow`). */
export type WireFailure = { status: number; error: WireError; headers: Record<string, string> };

/** What a call that failed used up: the attempts that the gateway made of it, and what they were charged in USD. */
export type Spent = { attempts: number; chargedUsd: number };

/** Thrown to leave a handler with an expected failure; `onError` of the app is the one place that catches it. */
export class Refusal extends Error {
  readonly reason: Reason;
  /** Null if no attempt was made. */
  readonly spent: Spent | null;
  /** Named as the platform names it: a Refusal of an object that called another one crosses the RPC with its properties. */
  readonly overloaded: boolean;

  constructor(reason: Reason, spent: Spent | null = null) {
    super(reason.reason);
    this.name = "Refusal";
    this.reason = reason;
    this.spent = spent;
    this.overloaded = reason.reason === "overloaded";
  }
}

/** Whether the same request may succeed if it is sent again unchanged. */
export function isRetryable(reason: Reason): boolean {
  return reason.reason === "upstream_error" ? reason.retryable : WIRE[reason.reason].retryable;
}

/** A text that a client sent, as an error quotes it: whole, or its beginning. */
export function quoted(text: string, charsMax: number = NAME_CHARS_MAX): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).toWellFormed()}…`;
}

/**
 * A message about one field of a request or of the configuration, or about the body (null): `model: expected a text`,
 * `the body is not JSON`.
 * @param problem A predicate that begins with a verb, or what was expected.
 */
export function fieldMessage(field: string | null, problem: string): string {
  const subject = field ?? "the body";
  return PREDICATE.test(problem) ? `${subject} ${problem}` : `${subject}: ${problem}`;
}

/** How problems begin that complete a sentence about their field. */
const PREDICATE = /^(?:is|has|contains|opens|appears|refers|needs|does|must|cannot) /;

/**
 * Whether a client should send the same request again. Not after the gateway has made its attempts: a client with attempts
 * of its own would multiply the two, and the cost. `spent` null = no attempt was made.
 */
function shouldResend(reason: Reason, spent: Spent | null): boolean {
  return isRetryable(reason) && spent === null;
}

/**
 * The reason as a request is refused with: the wait of an overload, or of a full disk, is drawn from once to twice the time that its reason names,
 * so that clients that were refused together do not come back together. `random` is uniform in [0, 1).
 */
export function withJitter(reason: Reason, random: () => number): Reason {
  if (reason.reason !== "overloaded" && reason.reason !== "storage_full") return reason;
  return { ...reason, retryAfterMs: Math.floor(reason.retryAfterMs * (1 + random())) };
}

/** The one map from a reason to its HTTP answer; for a slot of a group, only its `error` is used. */
export function toWire(reason: Reason, spent: Spent | null = null): WireFailure {
  const { status, type } = WIRE[reason.reason];
  const error: WireError = {
    message: quoted(messageOf(reason), ERROR_MESSAGE_CHARS_MAX),
    type,
    code: reason.reason === "missing_secret" ? "misconfigured" : reason.reason,
    param: "param" in reason && reason.param !== undefined && reason.param !== null ? quoted(reason.param) : null,
    retryable: isRetryable(reason),
  };
  if (spent !== null) Object.assign(error, { attempts: spent.attempts, charged_usd: spent.chargedUsd });
  // The reason's remaining facts follow under their wire names; the fields every error has are set above, once.
  for (const [name, fact] of Object.entries(reason)) {
    if (name === "reason" || name in error) continue;
    // The answer that does not fit is the client's: it paid for it.
    const isAnswer = reason.reason === "schema_violation" && name === "text";
    error[snakeCase(name)] = typeof fact === "string" && !isAnswer ? quoted(fact) : fact;
  }
  return { status, error, headers: headersOf(reason, status, spent) };
}

/** Programs in the field match on this text. */
const DEPTH_MESSAGE = "MAXIMUM DEPTH REACHED. You must solve this task on your own without calling llm_query.";

type WireForm = { status: number; type: ErrorType; retryable: boolean };

const final = (status: number, type: ErrorType): WireForm => ({ status, type, retryable: false });
const retryable = (status: number, type: ErrorType): WireForm => ({ status, type, retryable: true });

/** The status and type of every reason, and whether it is retryable. The compiler refuses a reason without a row. */
const WIRE: { readonly [Name in Reason["reason"]]: WireForm } = {
  invalid_request: final(400, "invalid_request_error"),
  invalid_api_key: final(401, "authentication_error"),
  budget_exhausted: final(402, "insufficient_quota"),
  in_flight_budget_exhausted: retryable(402, "rate_limit_error"),
  model_not_allowed: final(403, "permission_error"),
  depth_exceeded: final(403, "permission_error"),
  forbidden: final(403, "permission_error"),
  not_found: final(404, "invalid_request_error"),
  model_not_found: final(404, "invalid_request_error"),
  method_not_allowed: final(405, "invalid_request_error"),
  payload_too_large: final(413, "invalid_request_error"),
  unsupported_media_type: final(415, "invalid_request_error"),
  idempotency_conflict: final(409, "invalid_request_error"),
  cancelled: final(409, "invalid_request_error"),
  budget_below_committed: final(409, "invalid_request_error"),
  stale_version: final(409, "invalid_request_error"),
  lease_lost: final(409, "invalid_request_error"),
  invalid_input: final(400, "invalid_request_error"),
  no_capacity: retryable(409, "rate_limit_error"),
  infeasible: final(422, "invalid_request_error"),
  tool_without_parameters: final(422, "invalid_request_error"),
  unpriced_model: final(422, "invalid_request_error"),
  cassette_miss: final(422, "invalid_request_error"),
  invalid_graph: final(422, "invalid_request_error"),
  upstream_rate_limited: retryable(429, "rate_limit_error"),
  // Each has its own `retryable`, which is the upstream's.
  upstream_error: retryable(502, "upstream_error"),
  upstream_truncated: retryable(502, "upstream_error"),
  schema_violation: final(502, "upstream_error"),
  dependency_failed: final(424, "invalid_request_error"),
  condition_not_met: final(424, "invalid_request_error"),
  overloaded: retryable(503, "server_error"),
  storage_full: retryable(507, "server_error"),
  newer_storage: final(503, "server_error"),
  upstream_timeout: retryable(504, "upstream_error"),
  deadline_exceeded: retryable(504, "server_error"),
  misconfigured: final(500, "server_error"),
  missing_secret: final(503, "server_error"),
  internal: retryable(500, "server_error"),
};

/** The message of a reason. A reason without a `message` among its facts does not compile until it has a case here. */
function messageOf(r: Reason): string {
  switch (r.reason) {
    case "budget_exhausted":
      return exhaustedMessage(r);
    case "in_flight_budget_exhausted":
      return inFlightMessage(r);
    case "model_not_allowed":
      return `the run may not use the model "${r.model}"${usable(r)}`;
    case "depth_exceeded":
      return DEPTH_MESSAGE;
    case "not_found":
      return `${quoted(r.what)} not found${r.hint === undefined ? "" : `; ${r.hint}`}`;
    case "model_not_found":
      return `no configured upstream serves the model "${r.model}"${usable(r)}`;
    case "method_not_allowed":
      return `${r.method} is not allowed here; allowed: ${r.allowed}`;
    case "payload_too_large":
      return `${r.what} is too large: at most ${r.bytesMax} bytes are accepted`;
    case "unsupported_media_type":
      return mediaTypeMessage(r);
    case "idempotency_conflict":
      return "this Idempotency-Key was used before with another request body";
    case "budget_below_committed":
      return belowCommittedMessage(r);
    case "dependency_failed":
      return `the task "${r.dependency}", on which this one depends, did not complete`;
    case "condition_not_met":
      return `the task was skipped because of what the task "${r.dependency}" ended as: a condition does not hold`;
    case "stale_version":
      return `the version of the graph is now ${r.version}`;
    case "lease_lost":
      return `the lease of this item is ${r.leaseEnd}, so its answer was not used; claim another item`;
    case "no_capacity":
      return `the parent run has no room for this child run now: ${r.reasons.map(shortageText).join("; ")}`;
    case "unpriced_model":
      return `model "${r.model}" has no price, so its cost cannot be bounded`;
    case "missing_secret":
      return r.message ?? `the secret ${r.variable} is not set; set it to use this gateway`;
    case "upstream_timeout":
      return `upstream "${r.upstream}" did not answer within ${r.timeoutMs} ms`;
    case "deadline_exceeded":
      return `the deadline of ${r.deadlineMs} ms passed before the call ended`;
    case "misconfigured":
      return fieldMessage(r.variable, r.message);
    default:
      return r.message;
  }
}

/** Which models the run may use instead; a reason may name none. */
function usable({ usableModels = "" }: { usableModels?: string }): string {
  return usableModels === "" ? "" : `; the run may use ${usableModels}`;
}

/** Programs in the field match on how these begin: the name, "exceeded", what is spent, what the limit is. */
const BUDGET_NAMES: Record<Dimension, string> = {
  usd: "Budget",
  calls: "Global call budget",
  prompt_tokens: "Prompt token budget",
  completion_tokens: "Completion token budget",
  new_tokens: "New token budget",
};

function exhaustedMessage({ dimension, limit, spent, reserved, needed, param, variable }: BudgetFacts): string {
  const show = dimension === "usd" ? dollars : String;
  const head = `${BUDGET_NAMES[dimension]} exceeded: ${show(spent)} spent, limit is ${show(limit)}`;
  if (variable !== undefined) {
    return `${head}; ${show(reserved)} is reserved by this gateway's runs of the day and this needs ${show(needed)}: the limit is ${variable}`;
  }
  // A child run names the field that is too large; it can name less.
  if (param !== undefined)
    return `${head}; ${show(reserved)} is reserved, so ${show(Math.max(0, limit - spent - reserved))} is left for the child run, which needs ${show(needed)} (${param}): give it no more than is left, or have the operator raise the limit (PATCH /runs/:id)`;
  return `${head}; ${show(reserved)} is reserved and this call needs ${show(needed)}; the operator can raise the limit (PATCH /runs/:id)`;
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

/** One shortage in words: "calls: 5 requested, 2 available of 10". */
export function shortageText({ what, requested, available, limit }: CapacityShortage): string {
  const show = what === "usd" ? dollars : String;
  return `${what}: ${show(requested)} requested, ${show(available)} available of ${show(limit)}`;
}

function mediaTypeMessage(r: { got: string; expected: string }): string {
  return `content type "${quoted(r.got)}" is not supported; expected ${r.expected}`;
}

/** Cents at least and nano-USD at most, never an exponent: "$0.50", "$0.000000125". */
export function dollars(usd: number): string {
  const [whole = "0", decimals = ""] = usd.toFixed(9).split(".");
  return `$${whole}.${decimals.replace(/0+$/, "").padEnd(2, "0")}`;
}

/** USD as a header carries it: a decimal number without an exponent, which shells cannot calculate with. */
export function usdText(usd: number): string {
  return usd.toFixed(9).replace(/\.?0+$/, "");
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Retry delay while a secret is missing, or a version to be deployed, ms: an operator needs about this long. */
const OPERATOR_RETRY_MS = 60_000;

function headersOf(reason: Reason, status: number, spent: Spent | null) {
  const headers: Record<string, string> = {};
  if (!shouldResend(reason, spent)) headers["x-should-retry"] = "false";
  if (spent !== null) {
    headers["x-fanout-attempts"] = String(spent.attempts);
    headers["x-fanout-charged-usd"] = usdText(spent.chargedUsd);
  }
  if (reason.reason === "method_not_allowed") headers["allow"] = reason.allowed;
  if (status === 401) headers["www-authenticate"] = "Bearer";
  if (status === 429 || status === 503 || status === 507) {
    const stated = "retryAfterMs" in reason ? reason.retryAfterMs : OPERATOR_RETRY_MS;
    Object.assign(headers, retryHeaders(stated));
  }
  return headers;
}

/** When to retry, in the two forms that clients read; if the delay is unknown, the longest retry delay of the gateway. */
export function retryHeaders(statedMs: number | null): Record<string, string> {
  const retryAfterMs = Math.max(0, Math.ceil(statedMs ?? RETRY_MAX_MS));
  return { "retry-after": String(Math.ceil(retryAfterMs / 1000)), "retry-after-ms": String(retryAfterMs) };
}
