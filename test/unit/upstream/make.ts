import type { Lease } from "../../../src/call.ts";
import type { AttemptDeps } from "../../../src/upstream/attempt.ts";
import type { Upstream } from "../../../src/upstream/config.ts";

export const KEY = "sk-test-0123456789abcdef";

export function makeUpstream(fields: Partial<Upstream> = {}): Upstream {
  return {
    name: "acme",
    kind: "openai",
    baseUrl: "https://acme.test/v1",
    apiKey: KEY,
    headers: {},
    models: ["*"],
    maxInFlight: 8,
    timeoutMs: 60_000,
    maxAttempts: 3,
    capField: "max_tokens",
    prices: [],
    ...fields,
  };
}

export function makeLease(fields: Partial<Lease> = {}): Lease {
  return { attemptId: "a1", upstream: "acme", model: "gpt-x", capTokens: null, timeoutMs: 60_000, ...fields };
}

/** Sleeps by the real clock and ends at once on abort, as the shells' sleep does. */
export function realSleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

export function makeDeps(fetchLike: typeof fetch, fields: Partial<AttemptDeps> = {}): AttemptDeps {
  return { fetch: fetchLike, now: Date.now, sleep: realSleep, ...fields };
}

/** The body of a chat completion. */
export function completion(content: unknown, fields: Record<string, unknown> = {}): string {
  return JSON.stringify({
    model: "gpt-x-2026",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    ...fields,
  });
}
