import { describe, expect, it } from "vitest";
import { classify } from "../../../../src/providers/classify.ts";
import { STOP_RULES, stopOf } from "../../../../src/providers/limits/stop.ts";
import { completion, makeUpstream } from "../make.ts";

type Body = Record<string, unknown>;

function failureOf(status: number, body: Body, upstream = makeUpstream()) {
  const text = JSON.stringify(body);
  const outcome = classify(upstream, "m", { status, headers: new Headers(), nowMs: 0, body: { ok: true, text } });
  if (outcome.kind !== "failure") throw new Error("it is no failure");
  return outcome;
}

describe("a failure of the key", () => {
  it.each<[string, number, Body, string]>([
    [
      "OpenAI's quota",
      429,
      { error: { code: "insufficient_quota", message: "You exceeded it" } },
      "insufficient_quota",
    ],
    ["a quota named by its type", 429, { error: { type: "insufficient_quota", message: "x" } }, "insufficient_quota"],
    ["OpenAI's hard limit", 400, { error: { code: "billing_hard_limit_reached" } }, "insufficient_quota"],
    [
      "Anthropic's credit",
      400,
      {
        type: "error",
        error: { type: "invalid_request_error", message: "Your credit balance is too low to access it." },
      },
      "insufficient_quota",
    ],
    ["Anthropic's billing", 402, { error: { type: "billing_error", message: "x" } }, "insufficient_quota"],
    ["DeepSeek's balance", 402, { error: { message: "Insufficient Balance" } }, "insufficient_quota"],
    ["xAI's credit", 403, { error: "Your team has used all available credits" }, "insufficient_quota"],
    ["a wrong key", 401, { error: { message: "Incorrect API key provided", code: "invalid_api_key" } }, "invalid_key"],
    ["a page instead of an error", 401, {}, "invalid_key"],
    ["a region", 403, { error: { message: "Country, region, or territory not supported" } }, "forbidden"],
    ["an organization", 403, { error: { message: "This organization has been disabled." } }, "forbidden"],
  ])("is recognized: %s", (_name, status, body, stop) => {
    expect(failureOf(status, body)).toMatchObject({ stop });
  });

  it.each<[string, number, Body]>([
    ["a rate limit", 429, { error: { code: "rate_limit_exceeded", message: "Rate limit reached for requests" } }],
    [
      "a request that its credit cannot pay",
      402,
      { error: { message: "requires more credits, or fewer max_tokens." } },
    ],
    ["a model that the key may not use", 403, { error: { message: "Project p does not have access to model m" } }],
    ["moderation", 403, { error: { message: "Your input was flagged; account a" } }],
    ["a resource", 403, { error: { message: "Your API key does not have permission to use the specified resource." } }],
    ["a 403 that names nothing", 403, { error: { message: "Forbidden" } }],
    ["a bad request", 400, { error: { message: "max_tokens is too large" } }],
    ["an overload", 529, { error: { type: "overloaded_error", message: "Overloaded" } }],
  ])("is not %s", (_name, status, body) => {
    expect(failureOf(status, body)).not.toHaveProperty("stop");
  });

  it("is recognized inside a 200, but not after the answer has begun", () => {
    const error = { code: 402, message: "Insufficient credits" };
    expect(failureOf(200, { error })).toMatchObject({ stop: "insufficient_quota" });
    expect(failureOf(200, { error, choices: [{ message: { content: "a" } }] })).not.toHaveProperty("stop");
  });

  it("is none where the attempt may have been billed", () => {
    const charging = makeUpstream({ errorsCost: "reservation" });
    const body = { error: { message: "This organization has been disabled." } };
    expect(failureOf(403, body, charging)).toMatchObject({ class: "unknown" });
    expect(failureOf(403, body, charging)).not.toHaveProperty("stop");
  });

  it("is no answer of a model", () => {
    const outcome = classify(makeUpstream(), "m", {
      status: 200,
      headers: new Headers(),
      nowMs: 0,
      body: { ok: true, text: completion("insufficient_quota: your credit balance is too low") },
    });
    expect(outcome).toMatchObject({ kind: "success" });
  });

  it("has a source for every rule, and each rule can be reached", () => {
    for (const rule of STOP_RULES) {
      expect(rule.source).not.toBe("");
      const [status = 0] = rule.statuses;
      const message = [
        "credit balance is too low",
        "account suspended",
        "used up your daily free allocation",
        "API key not valid",
        "",
      ].find((text) => rule.words?.test(text) ?? true);
      expect(stopOf(status, { message: message ?? "", codes: [...(rule.codes ?? [])] })).toBe(rule.stop);
    }
  });
});
