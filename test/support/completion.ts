/**
 * OpenAI chat completions as fake upstreams speak them. The text echoes the last message, the usage is true to the
 * text (a token is four bytes, rounded up), and the completion obeys the requested cap.
 */
import { z } from "zod";
import type { Fault } from "./steering.ts";

const chatRequest = z.looseObject({
  model: z.string(),
  messages: z.array(z.looseObject({ content: z.unknown() })).min(1),
  max_tokens: z.number().optional(),
  max_completion_tokens: z.number().optional(),
});

/** What a fake upstream needs of a request. `capTokens` is null when the request sets none. */
export type Chat = {
  model: string;
  prompt: string;
  capTokens: number | null;
  messageCount: number;
  bytes: number;
  /** All of the request. */
  body: { messages: { role?: unknown; content?: unknown }[]; [field: string]: unknown };
};

/** The chat in a request body; null if the body is not a chat completion request. */
export function readChat(text: string): Chat | null {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return null;
  }
  const parsed = chatRequest.safeParse(body);
  if (!parsed.success) return null;
  const { model, messages, max_tokens, max_completion_tokens } = parsed.data;
  const content = messages.at(-1)?.content;
  const prompt = typeof content === "string" ? content : JSON.stringify(content);
  const bytes = messages.reduce((sum, message) => sum + byteLength(String(message.content)), 0);
  return {
    model,
    prompt,
    capTokens: max_tokens ?? max_completion_tokens ?? null,
    messageCount: messages.length,
    bytes,
    body: parsed.data,
  };
}

/** A completion that says `text` (default: the prompt), cut at the cap. `usage: false` leaves the usage out. */
export function completion(chat: Chat, options: { text?: string; usage?: boolean } = {}) {
  const whole = options.text ?? chat.prompt;
  const capBytes = (chat.capTokens ?? Infinity) * BYTES_PER_TOKEN;
  const isCut = byteLength(whole) > capBytes;
  const text = isCut ? cutToBytes(whole, capBytes) : whole;
  return {
    id: "chatcmpl-test",
    object: "chat.completion",
    created: 1_795_000_000,
    model: chat.model,
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: isCut ? "length" : "stop" }],
    ...(options.usage === false ? {} : { usage: usageOf(chat, text) }),
  };
}

/** The same completion as the events of a stream, with its usage at the end. */
export function completionEvents(chat: Chat): string {
  const { choices, usage, ...whole } = completion(chat);
  const chunk = { ...whole, object: "chat.completion.chunk" };
  const [choice] = choices;
  const events = [
    { ...chunk, choices: [{ index: 0, delta: choice?.message, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: choice?.finish_reason }] },
    { ...chunk, choices: [], usage },
  ];
  return [...events.map((event) => JSON.stringify(event)), "[DONE]"].map((data) => `data: ${data}\n\n`).join("");
}

/** A completion whose text comes in pieces, as the events of a stream: each is there when its piece is. */
export async function* streamedCompletion(
  chat: Chat,
  pieces: Iterable<string> | AsyncIterable<string>,
): AsyncGenerator<string> {
  const event = (more: object): string => `data: ${JSON.stringify({ ...chunk, ...more })}\n\n`;
  const { id, created, model } = completion(chat);
  const chunk = { id, object: "chat.completion.chunk", created, model };
  let text = "";
  for await (const piece of pieces) {
    text += piece;
    yield event({ choices: [{ index: 0, delta: { content: piece }, finish_reason: null }] });
  }
  yield event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  yield `${event({ choices: [], usage: usageOf(chat, text) })}data: [DONE]\n\n`;
}

/** An error in the shape of the OpenAI API. */
export function errorBody(status: number, message = `the upstream was told to answer ${status}`) {
  return { error: { message, type: "upstream_fault", param: null, code: `status_${status}` } };
}

/** The body of a broken answer with status 200. `reset` and `hang` are not bodies: the server makes them. */
export function faultBody(fault: Exclude<Fault, "reset" | "hang">, chat: Chat): { type: string; text: string } {
  const whole = completion(chat);
  const json = (value: unknown) => ({ type: "application/json", text: JSON.stringify(value) });
  switch (fault) {
    case "html":
      return { type: "text/html", text: "<html><body><h1>502 Bad Gateway</h1></body></html>" };
    case "truncated":
      return { type: "application/json", text: JSON.stringify(whole).slice(0, -20) };
    case "empty":
      return { type: "application/json", text: "" };
    case "not-json":
      return { type: "application/json", text: "upstream request timeout" };
    case "error-200":
      return json(errorBody(200));
    case "no-usage":
      return json(completion(chat, { usage: false }));
    case "no-choices":
      return json({ ...whole, choices: [] });
    case "null-content":
      return json({
        ...whole,
        choices: [{ index: 0, message: { role: "assistant", content: null }, finish_reason: "stop" }],
      });
    case "huge":
      return json(completion({ ...chat, capTokens: null }, { text: "x".repeat(HUGE_BYTES) }));
  }
}

const BYTES_PER_TOKEN = 4;
/** Above what one row of an object can hold. */
const HUGE_BYTES = 2_500_000;
export const TOKENS_PER_MESSAGE = 3;

function usageOf(chat: Chat, text: string) {
  const texts = Math.ceil(chat.bytes / BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE * chat.messageCount;
  const prompt_tokens = texts + Number(/(?:^|\/)template\/(\d+)/.exec(chat.model)?.[1] ?? 0);
  const completion_tokens = Math.ceil(byteLength(text) / BYTES_PER_TOKEN);
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function byteLength(text: string): number {
  return encoder.encode(text).byteLength;
}

function cutToBytes(text: string, bytesMax: number): string {
  return decoder.decode(encoder.encode(text).subarray(0, bytesMax)).replace(/\uFFFD+$/, "");
}
