import { describe, expect, it } from "vitest";
import type { Classification } from "../../../../src/call.ts";
import { withTierRefusal } from "../../../../src/providers/limits/tier-refusal.ts";

type Failure = Extract<Classification, { kind: "failure" }>;

const limited = (message: string, upstreamCode?: string): Failure => ({
  ...{ kind: "failure", class: "rate_limited", answered: true, retryAfterMs: 3_000 },
  reason: {
    ...{ reason: "upstream_rate_limited", upstream: "up", message, retryAfterMs: 3_000 },
    ...(upstreamCode === undefined ? {} : { upstreamCode }),
  },
});

const refused = (status: number, message: string, failureClass: Failure["class"] = "rejected"): Failure => ({
  ...{ kind: "failure", class: failureClass, answered: true, retryAfterMs: null },
  reason: { reason: "upstream_error", upstream: "up", status, message, retryable: false },
});

describe("a refusal of the tier alone", () => {
  it.each([
    ["OpenAI's flex without room", 429, limited("up answered 429: Resource unavailable")],
    ["the same by its code", 429, limited("up answered 429", "resource_unavailable")],
    ["Groq's flex without room", 498, refused(498, "capacity_exceeded", "transient")],
    ["a model that is not sold in it", 400, refused(400, "Invalid service_tier argument")],
  ])("is %s: final at the tier, without a wait", (_, status, answer) => {
    expect(withTierRefusal(status, answer)).toEqual({
      ...answer,
      ...{ class: "rejected", retryAfterMs: null, refusesTier: true },
    });
  });

  it.each([
    ["a rate limit of the key", 429, limited("Rate limit reached: capacity", "rate_limit_exceeded")],
    ["a 429 that says nothing", 429, limited("up answered 429")],
    ["a quota that is used up", 429, { ...limited("no capacity", "insufficient_quota"), stop: "insufficient_quota" }],
    ["another 400", 400, refused(400, "messages: expected an array")],
    ["a 500, whatever it says", 500, refused(500, "flex has no capacity", "transient")],
    ["what may have been billed", 400, refused(400, "flex: content_filter", "unknown")],
  ] as const)("is not %s", (_, status, answer) => {
    expect(withTierRefusal(status, answer)).toBe(answer);
  });

  it("is no answer", () => {
    const answer = { kind: "success", text: "flex", model: "m", finishReason: "stop", usage: null } as const;
    expect(withTierRefusal(200, answer)).toBe(answer);
  });
});
