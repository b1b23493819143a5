import { describe, expect, it } from "vitest";
import { COMMON_LIMIT_HEADERS, readRateSample } from "../../../../src/providers/limits/rate-headers.ts";

const NOW_MS = Date.parse("2026-11-22T10:00:00Z");
const MINUTE_MS = 60_000;

const read = (headers: Record<string, string>) =>
  readRateSample(new Headers(headers), { ageMs: 700, nowMs: NOW_MS, shown: COMMON_LIMIT_HEADERS });

describe("readRateSample", () => {
  it("reads OpenAI's requests and tokens", () => {
    const sample = read({
      "x-ratelimit-limit-requests": "5000",
      "x-ratelimit-remaining-requests": "4999",
      "x-ratelimit-reset-requests": "12ms",
      "x-ratelimit-limit-tokens": "160000",
      "x-ratelimit-remaining-tokens": "159976",
      "x-ratelimit-reset-tokens": "9ms",
    });
    expect(sample).toEqual({
      ageMs: 700,
      requests: { limit: 5_000, remaining: 4_999, resetMs: 12, windowMs: MINUTE_MS },
      tokens: { limit: 160_000, remaining: 159_976, resetMs: 9, windowMs: MINUTE_MS },
    });
  });

  it("reads Anthropic's four kinds, and leaves out the one that repeats another", () => {
    const kinds = ["requests", "tokens", "input-tokens", "output-tokens"];
    const named = kinds.flatMap((kind, index) => [
      [`anthropic-ratelimit-${kind}-limit`, "1000"],
      [`anthropic-ratelimit-${kind}-remaining`, String(900 - index)],
      [`anthropic-ratelimit-${kind}-reset`, "2026-11-22T10:00:06Z"],
    ]);
    const bucket = (remaining: number) => ({ limit: 1_000, remaining, resetMs: 6_000, windowMs: MINUTE_MS });
    expect(read(Object.fromEntries(named))).toEqual({
      ageMs: 700,
      requests: bucket(900),
      inputTokens: bucket(898),
      outputTokens: bucket(897),
    });
  });

  it("reads Anthropic's tokens where it names no other kind", () => {
    const sample = read({ "anthropic-ratelimit-tokens-limit": "80000", "anthropic-ratelimit-tokens-remaining": "5" });
    expect(sample).toEqual({ ageMs: 700, tokens: { limit: 80_000, remaining: 5, resetMs: null, windowMs: MINUTE_MS } });
  });

  it("recognizes Groq's requests per day by the time that their bucket takes to fill", () => {
    // 14,400 a day are one per 6 s; thirty of them come back within three minutes.
    const sample = read({
      "x-ratelimit-limit-requests": "14400",
      "x-ratelimit-remaining-requests": "14370",
      "x-ratelimit-reset-requests": "3m0s",
    });
    expect(sample?.requests).toEqual({ limit: 14_400, remaining: 14_370, resetMs: 180_000, windowMs: 86_400_000 });
  });

  it("reads the windows that names speak of", () => {
    const cerebras = read({
      "x-ratelimit-limit-requests-day": "1000000",
      "x-ratelimit-remaining-requests-day": "999997",
      "x-ratelimit-reset-requests-day": "33011.382867097855",
      "x-ratelimit-limit-tokens-minute": "150000",
      "x-ratelimit-remaining-tokens-minute": "149000",
      "x-ratelimit-reset-tokens-minute": "11.382867097855",
    });
    expect(cerebras?.requests).toMatchObject({ limit: 1_000_000, windowMs: 86_400_000 });
    expect(cerebras?.tokens).toMatchObject({ limit: 150_000, remaining: 149_000, windowMs: MINUTE_MS });
    const mistral = read({ "x-ratelimit-limit-req-minute": "720", "x-ratelimit-remaining-req-minute": "717" });
    expect(mistral?.requests).toEqual({ limit: 720, remaining: 717, resetMs: null, windowMs: MINUTE_MS });
    const fireworks = read({
      "x-ratelimit-limit-tokens-prompt": "3600000",
      "x-ratelimit-remaining-tokens-prompt": "3599999",
      "x-ratelimit-limit-tokens-generated": "36000",
      "x-ratelimit-remaining-tokens-generated": "100",
    });
    expect(fireworks).toMatchObject({ inputTokens: { limit: 3_600_000 }, outputTokens: { remaining: 100 } });
  });

  it("reads OpenRouter's plain names, with a reset in ms since 1970", () => {
    const sample = read({
      "x-ratelimit-limit": "20",
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset": String(NOW_MS + 42_000),
    });
    expect(sample?.requests).toEqual({ limit: 20, remaining: 0, resetMs: 42_000, windowMs: MINUTE_MS });
  });

  it("reads Azure's remaining tokens without a limit, and ignores its limits of -1 and 0", () => {
    expect(read({ "x-ratelimit-remaining-tokens": "100", "x-ratelimit-reset-tokens": "1" })?.tokens).toEqual({
      limit: null,
      remaining: 100,
      resetMs: 1_000,
      windowMs: MINUTE_MS,
    });
    expect(read({ "x-ratelimit-limit-tokens": "-1", "x-ratelimit-remaining-tokens": "-1" })).toBeNull();
    expect(read({ "x-ratelimit-limit-tokens": "0", "x-ratelimit-remaining-tokens": "0" })).toBeNull();
  });

  it("reads nothing where no header speaks of a limit, or its figures cannot be read", () => {
    expect(read({ "content-type": "application/json" })).toBeNull();
    expect(read({ "x-ratelimit-remaining-requests": "many" })).toBeNull();
    expect(read({ "x-ratelimit-limit-requests": "10" })).toBeNull();
  });
});
