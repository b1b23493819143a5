import { describe, expect, it } from "vitest";
import { causeOf } from "../../../../src/engine/routes/cause.ts";
import type { FailureClass } from "../../../../src/call.ts";
import type { Reason } from "../../../../src/errors.ts";

function error(status: number | null, upstreamCode?: string, message = "no"): Reason {
  const code = upstreamCode === undefined ? {} : { upstreamCode };
  return { reason: "upstream_error", upstream: "acme", status, message, retryable: false, ...code };
}

function limited(upstreamCode?: string): Reason {
  const code = upstreamCode === undefined ? {} : { upstreamCode };
  return { reason: "upstream_rate_limited", upstream: "acme", message: "slow", retryAfterMs: null, ...code };
}

function cause(failureClass: FailureClass, reason: Reason) {
  return causeOf({ kind: "failure", class: failureClass, reason, answered: true, retryAfterMs: null, latencyMs: 1 });
}

describe("the cause of a failure", () => {
  it.each([
    ["401", "rejected", error(401)],
    ["402", "rejected", error(402)],
    ["a 429 for a quota", "rate_limited", limited("insufficient_quota")],
    ["a 403 for the key's permission", "rejected", error(403, "permission_error")],
    ["a spent billing limit", "rejected", error(400, "billing_hard_limit_reached")],
    [
      "spent credit",
      "rejected",
      error(400, "invalid_request_error", "Your credit balance is too low to access the API."),
    ],
  ] as const)("is stop for %s", (_, failureClass, reason) => {
    expect(cause(failureClass, reason)).toBe("stop");
  });

  it("is rate_limited for any other 429", () => {
    expect(cause("rate_limited", limited())).toBe("rate_limited");
    expect(cause("rate_limited", limited("rate_limit_exceeded"))).toBe("rate_limited");
  });

  it.each([
    ["a 403 about the request's content", "rejected", error(403)],
    ["a 403 that may be billed", "unknown", error(403, "permission_error")],
    ["a 503", "transient", error(503)],
    ["a connection that was lost", "unknown", error(null)],
    ["a timeout", "unknown", { reason: "upstream_timeout", upstream: "acme", timeoutMs: 5 }],
  ] as const)("is another for %s", (_, failureClass, reason) => {
    expect(cause(failureClass, reason)).toBe("other");
  });
});
