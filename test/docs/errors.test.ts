/** That docs/errors.md tells of every error what src/errors.ts makes of it. */
import { expect, it } from "vitest";
import { toWire, type Reason } from "../../src/errors.ts";
import { codesIn, rowsOf } from "./tables.ts";

const budget = { dimension: "usd", limit: 1, spent: 1, reserved: 0, remaining: 0, needed: 1 } as const;

/** One of each: a new reason does not compile until it stands here, and does not pass until it stands in the page. */
const reasons: { [name in Reason["reason"]]: Reason & { reason: name } } = {
  invalid_request: { reason: "invalid_request", message: "m", param: null },
  invalid_api_key: { reason: "invalid_api_key", message: "m" },
  budget_exhausted: { reason: "budget_exhausted", ...budget },
  in_flight_budget_exhausted: { reason: "in_flight_budget_exhausted", ...budget },
  model_not_allowed: { reason: "model_not_allowed", model: "m" },
  depth_exceeded: { reason: "depth_exceeded", maxDepth: 3 },
  forbidden: { reason: "forbidden", message: "m" },
  not_found: { reason: "not_found", what: "w" },
  model_not_found: { reason: "model_not_found", model: "m" },
  method_not_allowed: { reason: "method_not_allowed", method: "PUT", allowed: "GET" },
  payload_too_large: { reason: "payload_too_large", what: "w", bytesMax: 1, param: null },
  unsupported_media_type: { reason: "unsupported_media_type", got: "a", expected: "b" },
  idempotency_conflict: { reason: "idempotency_conflict" },
  cancelled: { reason: "cancelled", message: "m" },
  budget_below_committed: { reason: "budget_below_committed", dimension: "usd", limit: 1, committed: 2 },
  stale_version: { reason: "stale_version", version: 1 },
  infeasible: { reason: "infeasible", message: "m" },
  unpriced_model: { reason: "unpriced_model", model: "m" },
  invalid_graph: { reason: "invalid_graph", message: "m" },
  upstream_rate_limited: { reason: "upstream_rate_limited", upstream: "u", message: "m", retryAfterMs: 1 },
  upstream_error: { reason: "upstream_error", upstream: "u", status: 500, message: "m", retryable: true },
  upstream_truncated: { reason: "upstream_truncated", upstream: "u", message: "m" },
  schema_violation: { reason: "schema_violation", message: "m" },
  overloaded: { reason: "overloaded", message: "m", retryAfterMs: 1 },
  upstream_timeout: { reason: "upstream_timeout", upstream: "u", timeoutMs: 1 },
  deadline_exceeded: { reason: "deadline_exceeded", deadlineMs: 1 },
  misconfigured: { reason: "misconfigured", variable: "V", message: "m" },
  missing_secret: { reason: "missing_secret", variable: "V" },
  internal: { reason: "internal", message: "m" },
};

it("tells the status of every code, whether it is retryable, and its facts", async () => {
  const documented = (await rowsOf("docs/errors.md", "code")).map(([code, status, retryable, facts]) => ({
    code: codesIn(code).join(),
    status: Number(status),
    retryable,
    facts: codesIn(facts).toSorted(),
  }));
  const sixOfAll = ["message", "type", "code", "param", "retryable"];
  const made = Object.values(reasons).map((reason) => {
    const { status, error } = toWire(reason);
    const retryable = error.code === "upstream_error" ? "as it was" : error.retryable ? "yes" : "no";
    const facts = Object.keys(error).filter((name) => !sixOfAll.includes(name));
    return { code: error.code, status, retryable, facts: facts.toSorted() };
  });
  const sorted = (rows: typeof made) =>
    rows.toSorted((a, b) => (`${a.code} ${a.status}` < `${b.code} ${b.status}` ? -1 : 1));
  expect(sorted(documented.map((row) => ({ ...row, retryable: row.retryable ?? "" })))).toEqual(sorted(made));
});
