import { describe, expect, it } from "vitest";
import type { Reason } from "../../src/errors.ts";
import { toWire } from "../../src/errors.ts";

const budget = { limit: 0.5, spent: 0.48, reserved: 0.01, remaining: 0.01, needed: 0.03 };

/** One sample per reason; the type makes a forgotten reason a compile error. */
const samples: { [K in Reason["reason"]]: Extract<Reason, { reason: K }> } = {
  invalid_request: { reason: "invalid_request", message: "max_tokens: too big", param: "max_tokens" },
  invalid_api_key: { reason: "invalid_api_key", message: "no credential" },
  budget_exhausted: { reason: "budget_exhausted", dimension: "usd", ...budget },
  in_flight_budget_exhausted: { reason: "in_flight_budget_exhausted", dimension: "usd", ...budget },
  model_not_allowed: { reason: "model_not_allowed", model: "gpt-x" },
  depth_exceeded: { reason: "depth_exceeded", maxDepth: 3 },
  forbidden: { reason: "forbidden", message: "operators only" },
  not_found: { reason: "not_found", what: "run r1" },
  model_not_found: { reason: "model_not_found", model: "gpt-x" },
  method_not_allowed: { reason: "method_not_allowed", method: "PUT", allowed: "GET, HEAD" },
  payload_too_large: { reason: "payload_too_large", what: "prompts[3]", bytesMax: 10, param: "prompts[3]" },
  unsupported_media_type: { reason: "unsupported_media_type", got: "image/png", expected: "application/json" },
  idempotency_conflict: { reason: "idempotency_conflict" },
  cancelled: { reason: "cancelled", message: "the run was cancelled" },
  budget_below_committed: { reason: "budget_below_committed", dimension: "calls", limit: 3, committed: 5 },
  stale_version: { reason: "stale_version", version: 4 },
  infeasible: { reason: "infeasible", message: "the floor of the batch does not fit" },
  unpriced_model: { reason: "unpriced_model", model: "gpt-x" },
  invalid_graph: { reason: "invalid_graph", message: "a cycle: a, b, a" },
  upstream_rate_limited: { reason: "upstream_rate_limited", upstream: "o", message: "slow down", retryAfterMs: 1_200 },
  upstream_error: { reason: "upstream_error", upstream: "o", status: 500, message: "answered 500", retryable: true },
  upstream_truncated: { reason: "upstream_truncated", upstream: "o", message: "ended early" },
  schema_violation: { reason: "schema_violation", message: "result.x: expected number" },
  overloaded: { reason: "overloaded", message: "too many calls wait", retryAfterMs: 500 },
  upstream_timeout: { reason: "upstream_timeout", upstream: "o", timeoutMs: 1_000 },
  deadline_exceeded: { reason: "deadline_exceeded", deadlineMs: 2_000 },
  misconfigured: { reason: "misconfigured", variable: "UPSTREAMS", message: "o.kind: unknown" },
  missing_secret: { reason: "missing_secret", variable: "ADMIN_KEY" },
  internal: { reason: "internal", message: "something broke" },
};

const statuses: { [K in Reason["reason"]]: number } = {
  invalid_request: 400,
  invalid_api_key: 401,
  budget_exhausted: 402,
  in_flight_budget_exhausted: 402,
  model_not_allowed: 403,
  depth_exceeded: 403,
  forbidden: 403,
  not_found: 404,
  model_not_found: 404,
  method_not_allowed: 405,
  payload_too_large: 413,
  unsupported_media_type: 415,
  idempotency_conflict: 409,
  cancelled: 409,
  budget_below_committed: 409,
  stale_version: 409,
  infeasible: 422,
  unpriced_model: 422,
  invalid_graph: 422,
  upstream_rate_limited: 429,
  upstream_error: 502,
  upstream_truncated: 502,
  schema_violation: 502,
  overloaded: 503,
  upstream_timeout: 504,
  deadline_exceeded: 504,
  misconfigured: 500,
  missing_secret: 503,
  internal: 500,
};

describe("toWire", () => {
  it("gives every reason the status of the contract's table", () => {
    const actual = Object.fromEntries(Object.entries(samples).map(([name, reason]) => [name, toWire(reason).status]));
    expect(actual).toEqual(statuses);
  });

  it("names the reason as the code, and a missing secret as a misconfiguration", () => {
    for (const [name, reason] of Object.entries(samples)) {
      expect(toWire(reason).error.code).toBe(name === "missing_secret" ? "misconfigured" : name);
    }
  });

  it("tells SDKs not to repeat exactly those requests that cannot succeed unchanged", () => {
    const repeatable = Object.values(samples)
      .filter((reason) => toWire(reason).error.retryable)
      .map((reason) => reason.reason);
    expect(repeatable).toEqual([
      "in_flight_budget_exhausted",
      "upstream_rate_limited",
      "upstream_error",
      "upstream_truncated",
      "overloaded",
      "upstream_timeout",
      "deadline_exceeded",
      "internal",
    ]);
    for (const reason of Object.values(samples)) {
      const { error, headers } = toWire(reason);
      expect(headers["x-should-retry"]).toBe(error.retryable ? undefined : "false");
    }
  });

  it("lets an upstream's own error say whether it is worth repeating", () => {
    const final = toWire({ ...samples.upstream_error, status: 401, retryable: false });
    expect(final.error).toMatchObject({ retryable: false, status: 401, upstream: "o" });
    expect(final.headers["x-should-retry"]).toBe("false");
  });

  it("names the field at fault", () => {
    expect(toWire(samples.invalid_request).error.param).toBe("max_tokens");
    expect(toWire(samples.payload_too_large).error).toMatchObject({ param: "prompts[3]", bytes_max: 10 });
    expect(toWire(samples.invalid_api_key).error.param).toBeNull();
  });

  it("keeps every message and fact on one level of plain JSON values", () => {
    for (const reason of Object.values(samples)) {
      const { error } = toWire(reason);
      expect(error.message).not.toBe("");
      expect(JSON.parse(JSON.stringify(error))).toEqual(error);
      for (const fact of Object.values(error)) expect(fact === null || typeof fact !== "object").toBe(true);
    }
  });

  it("says how many whole seconds and milliseconds to wait, rounded up", () => {
    expect(toWire(samples.upstream_rate_limited).headers).toEqual({ "retry-after": "2", "retry-after-ms": "1200" });
    expect(toWire(samples.overloaded).headers).toEqual({ "retry-after": "1", "retry-after-ms": "500" });
    const past = toWire({ ...samples.overloaded, retryAfterMs: -5 });
    expect(past.headers).toEqual({ "retry-after": "0", "retry-after-ms": "0" });
  });

  it("advises a wait on every 429 and 503, also where none is known", () => {
    const unknown = toWire({ ...samples.upstream_rate_limited, retryAfterMs: null });
    expect(unknown.headers).toEqual({ "retry-after": "10", "retry-after-ms": "10000" });
    const secret = toWire(samples.missing_secret);
    expect(secret.headers["retry-after"]).toBe("60");
    expect(secret.error.message).toContain("ADMIN_KEY");
  });

  it("names the methods of a path, and the scheme of a credential", () => {
    expect(toWire(samples.method_not_allowed).headers["allow"]).toBe("GET, HEAD");
    expect(toWire(samples.invalid_api_key).headers["www-authenticate"]).toBe("Bearer");
    expect(toWire(samples.forbidden).headers["www-authenticate"]).toBeUndefined();
  });

  it("keeps the sentence about depth that programs in the field match on", () => {
    expect(toWire(samples.depth_exceeded).error).toMatchObject({
      message: "MAXIMUM DEPTH REACHED. You must solve this task on your own without calling llm_query.",
      max_depth: 3,
    });
  });
});

describe("messages about a budget", () => {
  const message = (dimension: "usd" | "calls" | "prompt_tokens" | "completion_tokens", facts: typeof budget) =>
    toWire({ reason: "budget_exhausted", dimension, ...facts }).error.message;
  const counts = { limit: 200, spent: 199, reserved: 1, remaining: 0, needed: 1 };

  it("begin as programs in the field expect, in each dimension", () => {
    expect(message("usd", budget)).toMatch(/^Budget exceeded: \$0\.48 spent, limit is \$0\.50; /);
    expect(message("calls", counts)).toMatch(/^Global call budget exceeded: 199 spent, limit is 200; /);
    expect(message("prompt_tokens", counts)).toMatch(/^Prompt token budget exceeded: 199 spent, limit is 200; /);
    expect(message("completion_tokens", counts)).toMatch(/^Completion token budget exceeded: 199 spent, /);
  });

  it("show nano-USD without an exponent", () => {
    expect(message("usd", { ...budget, needed: 0.000000001 })).toContain("this call needs $0.000000001");
    expect(message("usd", { ...budget, spent: 1e-9, limit: 1_000_000 })).toContain(
      "$0.000000001 spent, limit is $1000000.00",
    );
  });

  it("carry the four numbers as facts", () => {
    const { error } = toWire({ reason: "budget_exhausted", dimension: "usd", ...budget });
    expect(error).toMatchObject({ dimension: "usd", type: "insufficient_quota", ...budget });
  });

  it("do not call a budget exceeded that is only reserved for calls in flight", () => {
    const { error } = toWire(samples.in_flight_budget_exhausted);
    expect(error.message).not.toContain("exceeded");
    expect(error).toMatchObject({ code: "in_flight_budget_exhausted", retryable: true });
  });
});
