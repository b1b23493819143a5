import { describe, expect, it } from "vitest";
import { z } from "zod";
import { toWire } from "../../src/errors.ts";
import { SAMPLES } from "../support/reasons.ts";

const budget = { limit: 0.5, spent: 0.48, reserved: 0.01, remaining: 0.01, needed: 0.03 };

describe("toWire", () => {
  it("names the reason as the code, and a missing secret as a misconfiguration", () => {
    for (const [name, reason] of Object.entries(SAMPLES)) {
      expect(toWire(reason).error.code).toBe(name === "missing_secret" ? "misconfigured" : name);
    }
  });

  it("asks SDKs not to repeat exactly those requests that cannot succeed unchanged", () => {
    for (const reason of Object.values(SAMPLES)) {
      const { error, headers } = toWire(reason);
      expect(headers["x-should-retry"]).toBe(error.retryable ? undefined : "false");
    }
  });

  it("lets an upstream's own error say whether it is worth repeating", () => {
    const final = toWire({ ...SAMPLES.upstream_error, status: 401, retryable: false });
    expect(final.error).toMatchObject({ retryable: false, status: 401, upstream: "o" });
    expect(final.headers["x-should-retry"]).toBe("false");
  });

  it("bars a client from trying again on top of the gateway's attempts, and says what they took", () => {
    for (const reason of Object.values(SAMPLES)) {
      const { error, headers } = toWire(reason, { attempts: 3, chargedUsd: 0.0000005 });
      expect(error).toMatchObject({ attempts: 3, charged_usd: 5e-7, retryable: toWire(reason).error.retryable });
      expect(headers).toMatchObject({ "x-should-retry": "false", "x-fanout-attempts": "3" });
      expect(headers["x-fanout-charged-usd"]).toBe("0.0000005");
    }
  });

  it("bars it as well where an equal call made the attempts", () => {
    const { error, headers } = toWire(SAMPLES.upstream_rate_limited, { attempts: 0, chargedUsd: 0 });
    expect(error).toMatchObject({ attempts: 0, charged_usd: 0 });
    expect(headers).toMatchObject({ "x-should-retry": "false", "x-fanout-charged-usd": "0" });
  });

  it("names the field at fault", () => {
    expect(toWire(SAMPLES.invalid_request).error.param).toBe("max_tokens");
    expect(toWire(SAMPLES.payload_too_large).error).toMatchObject({ param: "prompts[3]", bytes_max: 10 });
    expect(toWire(SAMPLES.invalid_api_key).error.param).toBeNull();
  });

  it("keeps every message and fact a plain JSON value, or a list of texts or of flat objects", () => {
    for (const reason of Object.values(SAMPLES)) {
      const { error } = toWire(reason);
      expect(error.message).not.toBe("");
      expect(JSON.parse(JSON.stringify(error))).toEqual(error);
      const isPlain = (value: unknown): boolean => value === null || typeof value !== "object";
      const isFlat = (value: unknown): boolean =>
        isPlain(value) || Object.values(z.record(z.string(), z.unknown()).parse(value)).every(isPlain);
      for (const fact of Object.values(error)) {
        expect(Array.isArray(fact) ? fact.every(isFlat) : isPlain(fact)).toBe(true);
      }
    }
  });

  it("says how many whole seconds and milliseconds to wait, rounded up", () => {
    expect(toWire(SAMPLES.upstream_rate_limited).headers).toEqual({ "retry-after": "2", "retry-after-ms": "1200" });
    expect(toWire(SAMPLES.overloaded).headers).toEqual({ "retry-after": "1", "retry-after-ms": "500" });
    const past = toWire({ ...SAMPLES.overloaded, retryAfterMs: -5 });
    expect(past.headers).toEqual({ "retry-after": "0", "retry-after-ms": "0" });
  });

  it("advises a wait on every 429 and 503, also where none is known", () => {
    const unknown = toWire({ ...SAMPLES.upstream_rate_limited, retryAfterMs: null });
    expect(unknown.headers).toEqual({ "retry-after": "10", "retry-after-ms": "10000" });
    const secret = toWire(SAMPLES.missing_secret);
    expect(secret.headers["retry-after"]).toBe("60");
    expect(secret.error.message).toContain("ADMIN_KEY");
  });

  it("names the methods of a path, and the scheme of a credential", () => {
    expect(toWire(SAMPLES.method_not_allowed).headers["allow"]).toBe("GET, HEAD");
    expect(toWire(SAMPLES.invalid_api_key).headers["www-authenticate"]).toBe("Bearer");
    expect(toWire(SAMPLES.forbidden).headers["www-authenticate"]).toBeUndefined();
  });

  it("keeps the sentence about depth that programs in the field match on", () => {
    expect(toWire(SAMPLES.depth_exceeded).error).toMatchObject({
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
    const { error } = toWire(SAMPLES.in_flight_budget_exhausted);
    expect(error.message).not.toContain("exceeded");
    expect(error).toMatchObject({ code: "in_flight_budget_exhausted", retryable: true });
  });
});
