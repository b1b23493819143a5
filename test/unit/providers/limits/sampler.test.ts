import { describe, expect, it } from "vitest";
import { RATE_SAMPLE_EVERY_MS } from "../../../../src/limits.ts";
import { COMMON_LIMIT_HEADERS } from "../../../../src/providers/limits/rate-headers.ts";
import { RateSampler } from "../../../../src/providers/limits/sampler.ts";

function answer(remaining: number, status = 200): Response {
  const headers = { "x-ratelimit-limit-requests": "100", "x-ratelimit-remaining-requests": String(remaining) };
  return new Response(null, { status, headers });
}

const look = (sentMs: number, nowMs: number) => ({ sentMs, nowMs, shown: COMMON_LIMIT_HEADERS });

describe("RateSampler", () => {
  it("hands out what it has seen once, with the age since the request was sent", () => {
    const sampler = new RateSampler();
    sampler.see("a", answer(9), look(1_000, 1_400));
    expect(sampler.take(1_500)).toMatchObject({ a: { ageMs: 500, requests: { remaining: 9 } } });
    expect(sampler.take(1_600)).toBeNull();
  });

  it("reads one answer per interval and gate, and every rejection", () => {
    const sampler = new RateSampler();
    sampler.see("a", answer(9), look(0, 1_000));
    sampler.see("a", answer(8), look(1, 1_000 + RATE_SAMPLE_EVERY_MS - 1));
    sampler.see("b", answer(7), look(1, 1_000));
    expect(sampler.take(2_000)).toMatchObject({ a: { requests: { remaining: 9 } }, b: { requests: { remaining: 7 } } });
    sampler.see("a", answer(6), look(2, 1_000 + RATE_SAMPLE_EVERY_MS));
    sampler.see("a", answer(0, 429), look(3, 1_001 + RATE_SAMPLE_EVERY_MS));
    expect(sampler.take(2_000)).toMatchObject({ a: { requests: { remaining: 0 } } });
  });

  it("keeps the sample of the request that was sent last, whichever answer comes last", () => {
    const sampler = new RateSampler();
    sampler.see("a", answer(5), look(900, 1_000));
    sampler.see("a", answer(9), look(100, 1_000 + RATE_SAMPLE_EVERY_MS));
    expect(sampler.take(2_000)).toMatchObject({ a: { ageMs: 1_100, requests: { remaining: 5 } } });
  });

  it("has nothing of an upstream without such headers", () => {
    const sampler = new RateSampler();
    sampler.see("a", new Response(null), look(0, 1_000));
    expect(sampler.take(2_000)).toBeNull();
    // And looks at it again after the interval.
    sampler.see("a", answer(5), look(1_000, 1_000 + RATE_SAMPLE_EVERY_MS));
    expect(sampler.take(2_000)).not.toBeNull();
  });
});
