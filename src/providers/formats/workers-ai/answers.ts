/**
 * Answers of the binding of Workers AI in OpenAI's form. Newer models answer in that form already, and pass as they are; older ones answer
 * with `response`, and with calls of tools without ids.
 */
import { isRecord } from "../../../text/json/record.ts";

/** What an answer is stated with: a new id, the time in seconds, and of the request its model and its cap. */
export type Stated = { id: string; created: number; model: string; cap: number | null };

/** A chat's answer as a chat completion. What is neither form is left as it is, for the reader of answers to refuse. */
export function completionOf(answer: unknown, { id, created, model, cap }: Stated): unknown {
  if (!isRecord(answer) || "choices" in answer || !("response" in answer || "tool_calls" in answer)) return answer;
  const { response, tool_calls: called, usage } = answer;
  const calls = toolCalls(called, id, 0);
  const finish = finishOf({ stated: answer["finish_reason"], calls: calls.length, usage, cap });
  const message = {
    role: "assistant",
    content: textOf(response),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  const choices = [{ index: 0, message, finish_reason: finish }];
  return { id, object: "chat.completion", created, model, choices, ...(isRecord(usage) ? { usage } : {}) };
}

/** JSON mode answers with the value itself. */
export function textOf(response: unknown): string | null {
  if (response === undefined || response === null) return null;
  return typeof response === "string" ? response : JSON.stringify(response);
}

/** Calls of tools with ids, and with their arguments as text. `from`: how many came before in the same answer. */
export function toolCalls(called: unknown, id: string, from: number): Record<string, unknown>[] {
  const listed: unknown[] = Array.isArray(called) ? called : [];
  return listed.filter(isRecord).map((call, at) => {
    const named = isRecord(call["function"]) ? call["function"] : call;
    const { name, arguments: given } = named;
    const text = typeof given === "string" ? given : JSON.stringify(given ?? {});
    const own = typeof call["id"] === "string" && call["id"] !== "" ? call["id"] : `call_${id}_${from + at}`;
    return { id: own, type: "function", function: { name, arguments: text } };
  });
}

/** Why an answer ended: the older form does not say that it was cut, except by as many tokens as the cap. */
export function finishOf(ended: { stated: unknown; calls: number; usage: unknown; cap: number | null }): string {
  if (typeof ended.stated === "string") return ended.stated;
  if (ended.calls > 0) return "tool_calls";
  const tokens = isRecord(ended.usage) ? ended.usage["completion_tokens"] : null;
  return ended.cap !== null && typeof tokens === "number" && tokens >= ended.cap ? "length" : "stop";
}

/** Vectors as OpenAI lists them. `base64`: as little-endian 32-bit floats, which OpenAI's clients ask for. */
export function embeddingsOf(answer: unknown, { model }: Pick<Stated, "model">, base64: boolean): unknown {
  const vectors: unknown = isRecord(answer) ? answer["data"] : null;
  if (!isRecord(answer) || !Array.isArray(vectors) || !vectors.every(isVector)) return answer;
  const { usage } = answer;
  const data = vectors.map((vector, index) => ({
    object: "embedding",
    index,
    embedding: base64 ? floatsIn(vector) : vector,
  }));
  return { object: "list", data, model, ...(isRecord(usage) ? { usage } : {}) };
}

function isVector(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((each) => typeof each === "number");
}

function floatsIn(vector: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(vector.length * 4));
  for (const [at, value] of vector.entries()) view.setFloat32(at * 4, value, true);
  return btoa(Array.from(new Uint8Array(view.buffer), (byte) => String.fromCharCode(byte)).join(""));
}

/**
 * No data center has room for the model. Cloudflare says it with a 429, but it is no limit of the key, so it is stated as the overload that it
 * is. Source: Cloudflare Workers AI, errors (developers.cloudflare.com/workers-ai/platform/errors, July 2026).
 */
const OUT_OF_CAPACITY = 3040;
const OVERLOADED = 503;

/**
 * A failure of the binding as OpenAI's error, with Cloudflare's number as its code. A text that is not of its forms stays as it is.
 * The binding's own reader looks for the same two: `internalCode` with `description`, and a list `errors`.
 */
export function errorOf(status: number, text: string): { status: number; text: string } {
  const body = parsed(text);
  if (!isRecord(body)) return { status, text };
  const listed: unknown = Array.isArray(body["errors"]) ? body["errors"][0] : undefined;
  const first = isRecord(listed) ? listed : {};
  const code = body["internalCode"] ?? first["code"];
  const message = body["description"] ?? body["message"] ?? first["message"];
  if (typeof code !== "number" || typeof message !== "string") return { status, text };
  const error = { message: `${code}: ${message}`, type: "workers_ai", code: String(code) };
  return { status: code === OUT_OF_CAPACITY ? OVERLOADED : status, text: JSON.stringify({ error }) };
}

/** A text as JSON; null if it is none. */
export function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return null;
  }
}
