/**
 * The embedded upstream: answers chat completion requests without network, key or chance, so that trials and tests are
 * repeatable. It sits where `fetch` sits, and its answers go through the same classifier as a provider's.
 */
import { isRecord } from "./record.ts";
import { parseSimulatedModel, type SimulatedModel } from "./simulated-model.ts";
import { simulatedText } from "./simulated-text.ts";

export type SimulatedDeps = {
  now: () => number;
  /** Calls `elapsed` after `ms`, unless what it returns is called first. */
  timer: (ms: number, elapsed: () => void) => () => void;
  signal: AbortSignal;
  /** Which attempt of its call this is, from 1. */
  attempt: number;
};

/** A token is four bytes of UTF-8, begun ones counted. */
const BYTES_PER_TOKEN = 4;

const encoder = new TextEncoder();

/** Answers the body of a chat completion request like an OpenAI server. Rejects with the signal's reason on abort. */
export async function simulatedFetch(requestBody: string, deps: SimulatedDeps): Promise<Response> {
  const request: unknown = JSON.parse(requestBody);
  const id = isRecord(request) && typeof request["model"] === "string" ? request["model"] : "";
  const parsed = parseSimulatedModel(id);
  if (!parsed.ok) return errorResponse(parsed.status, parsed.message, null);
  const messages = isRecord(request) && Array.isArray(request["messages"]) ? request["messages"] : [];
  const prompt = lastUserText(messages);
  const { model } = parsed;
  await wait(latencyMs(model, prompt), deps);
  const { failure } = model;
  if (failure !== null && deps.attempt <= failure.times && fraction(`fail:${prompt}`) < failure.rate) {
    return errorResponse(failure.status, `simulated failure with status ${failure.status}`, failure.retryAfterMs);
  }
  const completion = capped(simulatedText(model.name, prompt), capTokens(request));
  return completionResponse({ id, prompt, messages, completion, createdMs: deps.now() });
}

/**
 * 32-bit FNV-1a over UTF-16 code units, then two rounds of multiply and shift so that prompts which differ only in
 * their last characters spread over the whole range.
 */
export function promptHash(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** A fraction in [0, 1) that depends on the text alone. */
function fraction(text: string): number {
  return promptHash(text) / 2 ** 32;
}

function latencyMs({ minMs, maxMs }: SimulatedModel, prompt: string): number {
  return minMs === maxMs ? minMs : minMs + Math.floor(fraction(`wait:${prompt}`) * (maxMs - minMs + 1));
}

async function wait(ms: number, { timer, signal }: SimulatedDeps): Promise<void> {
  signal.throwIfAborted();
  if (ms === 0) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stopTimer = timer(ms, resolve);
  const leave = (): void => {
    stopTimer();
    reject(signal.reason);
  };
  signal.addEventListener("abort", leave, { once: true });
  await promise;
  signal.removeEventListener("abort", leave);
}

function lastUserText(messages: readonly unknown[]): string {
  const last = messages.findLast((message) => isRecord(message) && message["role"] === "user");
  return isRecord(last) ? contentText(last["content"]) : "";
}

function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return content === undefined || content === null ? "" : JSON.stringify(content);
  return content.map((part) => (isRecord(part) && typeof part["text"] === "string" ? part["text"] : "")).join("");
}

function capTokens(request: unknown): number {
  if (!isRecord(request)) return Number.POSITIVE_INFINITY;
  const cap = request["max_completion_tokens"] ?? request["max_tokens"];
  return typeof cap === "number" ? cap : Number.POSITIVE_INFINITY;
}

type Completion = { text: string; tokens: number; finishReason: "stop" | "length" };

/** Cut to the cap at the last whole character that fits. */
function capped(text: string, tokensMax: number): Completion {
  const bytes = encoder.encode(text);
  const tokens = Math.ceil(bytes.byteLength / BYTES_PER_TOKEN);
  if (tokens <= tokensMax) return { text, tokens, finishReason: "stop" };
  let end = Math.floor(tokensMax * BYTES_PER_TOKEN);
  // Bytes 10xxxxxx continue a character; cutting before one would split it.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  const cut = new TextDecoder().decode(bytes.subarray(0, end));
  return { text: cut, tokens: Math.ceil(end / BYTES_PER_TOKEN), finishReason: "length" };
}

function completionResponse(answer: {
  id: string;
  prompt: string;
  messages: readonly unknown[];
  completion: Completion;
  createdMs: number;
}): Response {
  const { id, prompt, completion } = answer;
  const promptBytes = answer.messages.reduce<number>(
    (bytes, message) => bytes + encoder.encode(isRecord(message) ? contentText(message["content"]) : "").byteLength,
    0,
  );
  const promptTokens = Math.ceil(promptBytes / BYTES_PER_TOKEN);
  const finishReason = completion.finishReason;
  return jsonResponse(
    200,
    {},
    {
      id: `chatcmpl-sim-${promptHash(prompt).toString(16).padStart(8, "0")}`,
      object: "chat.completion",
      created: Math.floor(answer.createdMs / 1_000),
      model: id,
      choices: [{ index: 0, message: { role: "assistant", content: completion.text }, finish_reason: finishReason }],
      usage: {
        prompt_tokens: promptTokens,
        completion_tokens: completion.tokens,
        total_tokens: promptTokens + completion.tokens,
      },
    },
  );
}

function errorResponse(status: number, message: string, retryAfterMs: number | null): Response {
  const headers: Record<string, string> = {};
  if (retryAfterMs !== null) headers["retry-after-ms"] = String(retryAfterMs);
  const type = status === 429 ? "rate_limit_error" : status >= 500 ? "server_error" : "invalid_request_error";
  const code = status === 404 ? "model_not_found" : null;
  return jsonResponse(status, headers, { error: { message, type, param: code === null ? null : "model", code } });
}

/** Its length is announced so that it is read by the fast path, as most providers' answers are. */
function jsonResponse(status: number, headers: Record<string, string>, value: unknown): Response {
  const bytes = encoder.encode(JSON.stringify(value));
  return new Response(bytes, {
    status,
    headers: { ...headers, "content-type": "application/json", "content-length": String(bytes.byteLength) },
  });
}
