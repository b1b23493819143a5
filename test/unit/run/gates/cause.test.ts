import { describe, expect, it } from "vitest";
import { accepts, causeOf } from "../../../../src/run/gates/cause.ts";
import { FALLBACK_CAUSES, type FailureClass, type FallbackCause } from "../../../../src/call.ts";
import type { Reason } from "../../../../src/errors.ts";

function error(status: number | null, upstreamCode?: string, message = "no"): Reason {
  const code = upstreamCode === undefined ? {} : { upstreamCode };
  return { reason: "upstream_error", upstream: "acme", status, message, retryable: false, ...code };
}

function limited(upstreamCode?: string): Reason {
  const code = upstreamCode === undefined ? {} : { upstreamCode };
  return { reason: "upstream_rate_limited", upstream: "acme", message: "slow", retryAfterMs: null, ...code };
}

function failureOf(failureClass: FailureClass, reason: Reason) {
  const attempt = { kind: "failure", answered: true, retryAfterMs: null, latencyMs: 1 } as const;
  return { ...attempt, class: failureClass, reason };
}

const cause = (failureClass: FailureClass, reason: Reason) => causeOf(failureOf(failureClass, reason));

describe("the cause of a failure", () => {
  it.each(["rejected", "rate_limited"] as const)(
    "is stop for an attempt that is %s because of its key",
    (failureClass) => {
      const stopped = { ...failureOf(failureClass, error(401)), stop: "insufficient_quota" } as const;
      expect(causeOf(stopped)).toBe("stop");
    },
  );

  it("is rate_limited for any other 429", () => {
    expect(cause("rate_limited", limited())).toBe("rate_limited");
    expect(cause("rate_limited", limited("rate_limit_exceeded"))).toBe("rate_limited");
  });

  it("is timeout for an attempt that took too long", () => {
    expect(cause("unknown", { reason: "upstream_timeout", upstream: "acme", timeoutMs: 5 })).toBe("timeout");
  });

  it.each([
    ["a 503", "transient", error(503)],
    ["a connection that was lost", "unknown", error(null)],
    ["a 403 that may be billed", "unknown", error(403, "permission_error")],
  ] as const)("is upstream_error for %s", (_, failureClass, reason) => {
    expect(cause(failureClass, reason)).toBe("upstream_error");
  });

  it.each([
    ["OpenAI's code", error(400, "context_length_exceeded")],
    ["llama.cpp's code", error(400, "exceed_context_size_error")],
    ["Anthropic's words", error(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")],
    ["Anthropic's status", error(413, "request_too_large", "Prompt is too long")],
    ["vLLM's words", error(400, "BadRequestError", "This model's maximum context length is 8192 tokens.")],
    ["Google's words", error(400, undefined, "The input token count exceeds the context window of the model")],
  ])("is context_length by %s", (_, reason) => {
    expect(cause("rejected", reason)).toBe("context_length");
  });

  it.each([
    ["a 403 about the request's content", error(403)],
    ["an invalid request", error(400, "invalid_request_error", "temperature must be below 2")],
    ["a missing model", error(404, "model_not_found")],
    ["a call that was never sent", { reason: "invalid_request", message: "no", param: null }],
  ] as const)("is none for %s", (_, reason) => {
    expect(cause("rejected", reason)).toBeNull();
  });
});

describe("a target of a route", () => {
  const choice = (on: readonly FallbackCause[] | null) => ({ targets: [], on });

  it("without causes takes calls for any of them but a prompt that is too long", () => {
    const taken = FALLBACK_CAUSES.filter((each) => accepts(choice(null), each));
    expect(taken).toEqual(["rate_limited", "stop", "timeout", "upstream_error"]);
  });

  it("with causes takes calls for those alone", () => {
    const taken = FALLBACK_CAUSES.filter((each) => accepts(choice(["stop", "context_length"]), each));
    expect(taken).toEqual(["stop", "context_length"]);
  });
});
