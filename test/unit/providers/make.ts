import { ANY_TOKENS } from "../../../src/run/money/estimate.ts";
import type { Lease } from "../../../src/call.ts";
import type { AttemptDeps } from "../../../src/providers/attempt.ts";
import type { Upstream } from "../../../src/providers/config/types.ts";

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
    errorsCost: "free",
    aggregate: "json",
    abortCost: "reservation",
    promptCache: "none",
    streamUsage: "auto",
    adaptive: { mode: "aimd" },
    bounds: ANY_TOKENS,
    allowParams: [],
    prices: [],
    ...fields,
  };
}

export function makeAnthropic(fields: Partial<Upstream> = {}): Upstream {
  return makeUpstream({ kind: "anthropic", baseUrl: "https://acme.test", ...fields });
}

export function makeLease(fields: Partial<Lease> = {}): Lease {
  return { attemptId: "a1", upstream: "acme", model: "gpt-x", capTokens: null, timeoutMs: 60_000, ...fields };
}

/** The real clock, as the shells pass it. */
export function realTimer(ms: number, elapsed: () => void): () => void {
  const timer = setTimeout(elapsed, ms);
  return () => clearTimeout(timer);
}

export function makeDeps(fetchLike: typeof fetch, fields: Partial<AttemptDeps> = {}): AttemptDeps {
  return { fetch: fetchLike, now: Date.now, timer: realTimer, controller: new AbortController(), ...fields };
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

/** The body of a message of Anthropic's. */
export function message(content: unknown, fields: Record<string, unknown> = {}): string {
  return JSON.stringify({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-x-20260901",
    content,
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 5 },
    ...fields,
  });
}
