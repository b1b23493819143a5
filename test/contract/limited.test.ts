/** The providers with limits that other tests and benchmarks use: they limit as they say, and report what they did. */
import { describe, expect, it } from "vitest";
import { AnthropicLimiter } from "../support/limited/anthropic-limiter.ts";
import { rising, steady, stragglers } from "../support/limited/latency.ts";
import type { Arrival, Limiter } from "../support/limited/limiter.ts";
import { goDuration, OpenAiLimiter } from "../support/limited/openai-limiter.ts";
import { inFlightLimiter, noLimiter, perSecondLimiter, stoppingLimiter } from "../support/limited/other-limiters.ts";
import { startLimitedServer } from "../support/limited/server.ts";

const arrival = (of: Partial<Arrival> = {}): Arrival => ({
  nowMs: 0,
  inFlight: 0,
  promptTokens: 10,
  capTokens: 10,
  ...of,
});

/** How many of so many requests at one time are admitted. */
function admitted(limiter: Limiter, count: number, of: Partial<Arrival> = {}): number {
  return Array.from({ length: count }, () => limiter.arrive(arrival(of))).filter(({ rejection }) => rejection === null)
    .length;
}

function rejectionOf(limiter: Limiter, of: Partial<Arrival> = {}) {
  const { rejection } = limiter.arrive(arrival(of));
  if (rejection === null) throw new Error("the request was admitted");
  return rejection;
}

describe("the limits of OpenAI's API", () => {
  it("admit the bucket, then its refill, and name both buckets in every answer", () => {
    const limiter = new OpenAiLimiter({ requestsPerMinute: 60, tokensPerMinute: 6_000 });
    expect(admitted(limiter, 100)).toBe(60);
    expect(admitted(limiter, 100, { nowMs: 5_000 })).toBe(5);
    expect(limiter.headersAt(5_000)).toEqual({
      "x-ratelimit-limit-requests": "60",
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-reset-requests": "1m0s",
      "x-ratelimit-limit-tokens": "6000",
      "x-ratelimit-remaining-tokens": "5200",
      "x-ratelimit-reset-tokens": "8s",
    });
  });

  it("count the prompt and the cap of a request before it starts", () => {
    const limiter = new OpenAiLimiter({ requestsPerMinute: 1_000, tokensPerMinute: 1_000 });
    expect(admitted(limiter, 10, { promptTokens: 100, capTokens: 300 })).toBe(2);
    const { status, code, headers } = rejectionOf(limiter, { promptTokens: 100, capTokens: 300 });
    expect({ status, code }).toEqual({ status: 429, code: "rate_limit_exceeded" });
    expect(headers).toMatchObject({ "retry-after": "12", "retry-after-ms": "12000" });
  });

  it("begin with a share of the bucket if the key was in use, and count refused requests if configured to", () => {
    const limiter = new OpenAiLimiter({
      requestsPerMinute: 60,
      tokensPerMinute: 1e6,
      fill: 0.1,
      countsRefused: true,
    });
    expect(admitted(limiter, 8)).toBe(6);
    expect(admitted(limiter, 1, { nowMs: 2_000 })).toBe(0);
    expect(admitted(limiter, 1, { nowMs: 5_000 })).toBe(1);
  });

  it.each([
    [0, "0s"],
    [120, "120ms"],
    [8_640, "8.64s"],
    [360_000, "6m0s"],
    [3_725_000, "1h2m5s"],
  ])("write %d ms as %s", (ms, text) => {
    expect(goDuration(ms)).toBe(text);
  });
});

describe("the limits of Anthropic's API", () => {
  const limits = { requestsPerMinute: 60, inputTokensPerMinute: 60_000, outputTokensPerMinute: 6_000 };

  it("count output when it is there, not the cap", () => {
    const limiter = new AnthropicLimiter(limits);
    expect(admitted(limiter, 1, { capTokens: 100_000 })).toBe(1);
    limiter.answered(7_000, 0);
    const { status, code, headers } = rejectionOf(limiter);
    expect({ status, code }).toEqual({ status: 429, code: "rate_limit_error" });
    expect(headers).toMatchObject({ "retry-after": "11", "anthropic-ratelimit-output-tokens-remaining": "0" });
  });

  it("state the time of day at which each bucket is full", () => {
    const limiter = new AnthropicLimiter(limits);
    const nowMs = Date.UTC(2026, 10, 22, 12, 0, 0, 250);
    expect(admitted(limiter, 3, { nowMs, promptTokens: 10_000 })).toBe(3);
    expect(limiter.headersAt(nowMs)).toMatchObject({
      "anthropic-ratelimit-requests-limit": "60",
      "anthropic-ratelimit-requests-remaining": "57",
      "anthropic-ratelimit-requests-reset": "2026-11-22T12:00:04Z",
      "anthropic-ratelimit-input-tokens-remaining": "30000",
      "anthropic-ratelimit-input-tokens-reset": "2026-11-22T12:00:31Z",
    });
  });

  it("are overloaded without a hint", () => {
    const limiter = new AnthropicLimiter({ ...limits, overloadedAt: 4 });
    expect(rejectionOf(limiter, { inFlight: 4 })).toMatchObject({ status: 529, code: "overloaded_error", headers: {} });
    expect(admitted(limiter, 1, { inFlight: 3 })).toBe(1);
  });
});

describe("limits without headers", () => {
  it("refuse what exceeds a number in flight, or a rate", () => {
    expect(admitted(inFlightLimiter(4), 10, { inFlight: 3 })).toBe(10);
    expect(admitted(inFlightLimiter(4), 10, { inFlight: 4 })).toBe(0);
    const rate = perSecondLimiter(5);
    expect(admitted(rate, 10)).toBe(5);
    expect(admitted(rate, 10, { nowMs: 999 })).toBe(0);
    expect(admitted(rate, 10, { nowMs: 1_000 })).toBe(5);
    expect(rejectionOf(rate, { nowMs: 1_001 })).toMatchObject({ status: 429, headers: {} });
  });

  it("stop after so many calls, and on demand, until the key recovers", () => {
    const limiter = stoppingLimiter("insufficient_quota", 3);
    expect(admitted(limiter, 10)).toBe(3);
    expect(rejectionOf(limiter)).toMatchObject({ status: 429, code: "insufficient_quota" });
    limiter.recover();
    expect(admitted(limiter, 10)).toBe(10);
    limiter.stop();
    expect(admitted(limiter, 10)).toBe(0);
    expect(rejectionOf(stoppingLimiter("invalid_api_key", 0)).status).toBe(401);
  });
});

describe("latencies", () => {
  it("have the share of stragglers, or rise with what is in flight", () => {
    const latency = stragglers(10, { share: 0.02, times: 20 });
    const all = Array.from({ length: 1_000 }, (_, number) => latency({ number, inFlight: 1 }));
    expect(all.filter((ms) => ms === 200)).toHaveLength(20);
    expect(all.filter((ms) => ms === 10)).toHaveLength(980);
    expect([1, 4, 8, 16].map((inFlight) => rising(10, 4)({ number: 0, inFlight }))).toEqual([10, 10, 20, 40]);
  });
});

describe("a limited server", () => {
  const chat = { model: "m", max_tokens: 8, messages: [{ role: "user", content: "Hello, you" }] };
  const post = (url: string, body: unknown) => fetch(url, { method: "POST", body: JSON.stringify(body) });

  it("answers and refuses in the form of each protocol, and records both", async () => {
    const server = await startLimitedServer(stoppingLimiter("insufficient_quota", 2), steady(1));
    try {
      const openai = await post(`${server.baseUrl}/chat/completions`, chat);
      expect(await openai.json()).toMatchObject({ choices: [{ message: { content: "Hello, you" } }] });
      const anthropic = await post(`${server.origin}/v1/messages`, chat);
      expect(await anthropic.json()).toMatchObject({ content: [{ type: "text", text: "Hello, you" }] });
      const refusals = await Promise.all([
        post(`${server.baseUrl}/chat/completions`, chat),
        post(`${server.origin}/v1/messages`, chat),
      ]);
      expect(refusals.map(({ status }) => status)).toEqual([429, 429]);
      const bodies = await Promise.all(refusals.map((refusal) => refusal.json()));
      expect(bodies).toMatchObject([
        { error: { code: "insufficient_quota" } },
        { type: "error", error: { type: "insufficient_quota" } },
      ]);
      expect(server.admitted()).toHaveLength(2);
      expect(server.rejected()).toHaveLength(2);
      expect(server.peakInFlight()).toBe(1);
    } finally {
      await server.stop();
    }
  });

  it("streams, with the limits in its headers", async () => {
    const limiter = new OpenAiLimiter({ requestsPerMinute: 60, tokensPerMinute: 6_000 });
    const server = await startLimitedServer(limiter, steady(1));
    try {
      const openai = await post(`${server.baseUrl}/chat/completions`, { ...chat, stream: true });
      expect(openai.headers.get("x-ratelimit-limit-requests")).toBe("60");
      expect(await openai.text()).toMatch(/"content":"Hello, you".*\[DONE\]/s);
      const anthropic = await post(`${server.origin}/v1/messages`, { ...chat, stream: true });
      expect(await anthropic.text()).toMatch(/message_start.*"text":"Hello, you".*message_stop/s);
    } finally {
      await server.stop();
    }
  });

  it("frees the place of a client that leaves", async () => {
    const server = await startLimitedServer(noLimiter(), steady(60_000));
    try {
      const leaving = new AbortController();
      const request = fetch(`${server.baseUrl}/chat/completions`, {
        method: "POST",
        body: JSON.stringify(chat),
        signal: leaving.signal,
      });
      request.catch(() => undefined);
      await expect.poll(() => server.inFlight()).toBe(1);
      leaving.abort();
      await expect.poll(() => server.inFlight()).toBe(0);
      expect(server.admitted()).toMatchObject([{ status: 200, answeredMs: null }]);
    } finally {
      await server.stop();
    }
  });
});
