import { describe, expect, it } from "vitest";
import { parseUpstreams } from "../../../../src/providers/upstreams.ts";

const parse = (adaptive?: unknown) =>
  parseUpstreams(
    { up: { kind: "openai", base_url: "http://up.test/v1", ...(adaptive === undefined ? {} : { adaptive }) } },
    {},
  );

function adaptiveOf(adaptive?: unknown) {
  const parsed = parse(adaptive);
  if (!parsed.ok) throw new Error(`${parsed.path}: ${parsed.message}`);
  return parsed.upstreams[0]?.adaptive;
}

function refusalOf(adaptive: unknown): string {
  const parsed = parse(adaptive);
  if (parsed.ok) throw new Error("the configuration was accepted");
  return `${parsed.path} ${parsed.message}`;
}

describe("adaptive of an upstream", () => {
  it("is aimd unless it is configured", () => {
    expect(adaptiveOf()).toEqual({ mode: "aimd" });
  });

  it.each(["aimd", "off"])("can be %s, which has no fields", (mode) => {
    expect(adaptiveOf({ mode })).toEqual({ mode });
    expect(refusalOf({ mode, max_penalty: 3 })).toBe("UPSTREAMS.up.adaptive.max_penalty is not a known field");
  });

  it("can be penalty, with the requirement's weights, decay and bounds where none are named", () => {
    expect(adaptiveOf({ mode: "penalty" })).toEqual({
      mode: "penalty",
      weights: { rateLimited: 2, overloaded: 1.5, timeout: 1, schemaViolation: 0.5 },
      decay: "linear",
      maxPenalty: 3,
      decayMs: 480_000,
    });
  });

  it("takes every figure of penalty", () => {
    const weights = { rate_limit: 1, capacity: 2, timeout: 3, schema_violation: 0 };
    expect(adaptiveOf({ mode: "penalty", weights, decay: "hybrid", max_penalty: 0, decay_ms: 1_000 })).toEqual({
      mode: "penalty",
      weights: { rateLimited: 1, overloaded: 2, timeout: 3, schemaViolation: 0 },
      decay: "hybrid",
      maxPenalty: 0,
      decayMs: 1_000,
    });
  });

  it.each([
    ["aimd", "UPSTREAMS.up.adaptive must be an object with a mode"],
    [{}, "UPSTREAMS.up.adaptive.mode must be aimd, penalty or off"],
    [{ mode: "fast" }, "UPSTREAMS.up.adaptive.mode must be aimd, penalty or off"],
    [{ mode: "penalty", max_penalty: 101 }, "UPSTREAMS.up.adaptive.max_penalty must be a number from 0 to 100"],
    [{ mode: "penalty", decay: "slow" }, "UPSTREAMS.up.adaptive.decay must be linear, exponential or hybrid"],
    [{ mode: "penalty", decay_ms: 999 }, "UPSTREAMS.up.adaptive.decay_ms must be a number from 1000 to 86400000"],
    [
      { mode: "penalty", weights: { timeout: "1" } },
      "UPSTREAMS.up.adaptive.weights.timeout must be a number from 0 to 100",
    ],
    [{ mode: "penalty", weights: { other: 1 } }, "UPSTREAMS.up.adaptive.weights.other is not a known field"],
  ])("is refused as %j", (adaptive, message) => {
    expect(refusalOf(adaptive)).toBe(message);
  });
});
