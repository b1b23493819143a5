/**
 * What a call asks and what is answered, as the messages of OpenTelemetry's conventions for generative AI, which spans hold as JSON
 * texts (https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/). Of long ones the newest part that fits.
 */
import { isRecord } from "../../text/json/record.ts";
import { OTLP_CONTENT_CHARS_MAX, OTLP_CONTENT_PART_CHARS, OTLP_TEXT_CHARS_MAX } from "../../limits.ts";

type Part = { type: string; content?: string; name?: string; arguments?: string };
type Message = { role: string; parts: Part[]; finish_reason?: string };

/** A request: fields as in the body of any endpoint. */
export type Asked = {
  system?: unknown;
  instructions?: unknown;
  messages?: unknown;
  input?: unknown;
  prompt?: unknown;
};

/** What is left of the room of a text. */
class Room {
  #chars: number;

  constructor(chars: number) {
    this.#chars = chars;
  }

  get isUsedUp(): boolean {
    return this.#chars <= 0;
  }

  /** Room for what has no text. */
  take(): void {
    this.#chars -= OTLP_CONTENT_PART_CHARS;
  }

  /** As much of a text as there is room for, which ends with `…` if that is not all. */
  cut(text: string): string {
    const kept = text.length <= this.#chars ? text : `${text.slice(0, Math.max(0, this.#chars)).toWellFormed()}…`;
    this.#chars -= text.length + OTLP_CONTENT_PART_CHARS;
    return kept;
  }
}

/** The system's instructions as JSON text; null if there are none. */
export function instructionsJson({ system, instructions }: Asked): string | null {
  const parts = partsOf(system ?? instructions, new Room(OTLP_CONTENT_CHARS_MAX));
  return parts.length === 0 ? null : JSON.stringify(parts);
}

/** The messages as JSON text; null if there are none. */
export function inputJson({ messages, input, prompt }: Asked, room = new Room(OTLP_CONTENT_CHARS_MAX)): string | null {
  const list = Array.isArray(messages) ? messages : Array.isArray(input) ? input : [prompt ?? input];
  const kept: Message[] = [];
  for (const message of list.toReversed()) {
    if (room.isUsedUp) break;
    const read = messageOf(message, room);
    if (read !== null) kept.unshift(read);
  }
  return kept.length === 0 ? null : JSON.stringify(kept);
}

/** An answer: its text, and its message in the chat form, if that has more; undefined = it is the text only. */
export type Said = { text: string; message?: unknown };

/** The answer as JSON text: thoughts, text and calls of tools. Where the room ends, thoughts are cut first. */
export function outputJson({ text, message }: Said, finishReason: string | null): string {
  const room = new Room(OTLP_CONTENT_CHARS_MAX);
  const { tool_calls: called, reasoning, reasoning_content: thoughts } = isRecord(message) ? message : {};
  const calls = Array.isArray(called) ? called : [];
  const said = text === "" && calls.length > 0 ? [] : partsOf(text, room);
  const asked = calls.flatMap((call) => toolCall(call, room));
  const thought = reasoning ?? thoughts;
  const thinks = typeof thought === "string" && thought !== "" && !room.isUsedUp;
  const answer: Message = {
    role: "assistant",
    parts: [...(thinks ? [{ type: "reasoning", content: room.cut(thought) }] : []), ...said, ...asked],
    ...(finishReason === null ? {} : { finish_reason: cutName(finishReason) }),
  };
  return JSON.stringify([answer]);
}

function messageOf(message: unknown, room: Room): Message | null {
  if (typeof message === "string") return { role: "user", parts: partsOf(message, room) };
  if (!isRecord(message)) return null;
  const { role, content, tool_calls: calls } = message;
  const parts = [
    ...partsOf(content, room),
    ...(Array.isArray(calls) ? calls.flatMap((call) => toolCall(call, room)) : []),
  ];
  if (parts.length === 0) room.take();
  return { role: typeof role === "string" ? cutName(role) : "user", parts };
}

/** Of images, sounds and files only that they are there. */
function partsOf(content: unknown, room: Room): Part[] {
  if (typeof content === "string") return [{ type: "text", content: room.cut(content) }];
  if (!Array.isArray(content)) return [];
  const parts: Part[] = [];
  for (const part of content) {
    if (room.isUsedUp) break;
    if (!isRecord(part)) continue;
    const { text, type } = part;
    if (typeof text === "string") parts.push({ type: "text", content: room.cut(text) });
    else parts.push({ type: room.cut(typeof type === "string" ? cutName(type) : "unknown") });
  }
  return parts;
}

function toolCall(call: unknown, room: Room): Part[] {
  const called = isRecord(call) ? call["function"] : null;
  if (room.isUsedUp || !isRecord(called) || typeof called["name"] !== "string") return [];
  const given = called["arguments"];
  const args = typeof given === "string" ? { arguments: room.cut(given) } : {};
  return [{ type: "tool_call", name: cutName(called["name"]), ...args }];
}

function cutName(text: string): string {
  return text.slice(0, OTLP_TEXT_CHARS_MAX).toWellFormed();
}
