/** A stream of the binding of Workers AI as chunks of a chat completion, as it comes. */
import { isRecord } from "../../../text/json/record.ts";
import { fieldsOf } from "../../../text/sse/fields.ts";
import { EventSplitter } from "../../../text/sse/splitter.ts";
import { finishOf, parsed, textOf, toolCalls, type Stated } from "./answers.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Turns events as they come; those in OpenAI's form pass byte for byte. A stream that breaks off ends without `[DONE]`, as it did. */
export class ChatEvents {
  readonly #stated: Stated;
  readonly #splitter = new EventSplitter();
  /** Whether an event had the older form: only then the end is the gateway's to write. */
  #isOlder = false;
  #calls = 0;
  #usage: unknown = null;
  #finish: unknown = null;

  constructor(stated: Stated) {
    this.#stated = stated;
  }

  /** What the bytes so far complete. */
  feed(bytes: Uint8Array): Uint8Array[] {
    return this.#splitter
      .feed(bytes)
      .map((piece) => (piece.kind === "event" ? this.#turned(piece.bytes) : piece.bytes));
  }

  /** What remains behind the last whole event. */
  rest(): Uint8Array {
    return this.#splitter.rest().bytes;
  }

  #turned(event: Uint8Array): Uint8Array {
    const { data } = fieldsOf(event);
    const text = data === null ? "" : decoder.decode(data).trim();
    if (text === "[DONE]") return this.#isOlder ? encoder.encode(`${this.#end()}data: [DONE]\n\n`) : event;
    const chunk = parsed(text);
    if (!isRecord(chunk) || "choices" in chunk || "error" in chunk || "errors" in chunk) return event;
    if (!("response" in chunk || "tool_calls" in chunk || "usage" in chunk)) return event;
    return encoder.encode(this.#delta(chunk));
  }

  #delta({ response, tool_calls: called, usage, finish_reason: finish }: Record<string, unknown>): string {
    const isFirst = !this.#isOlder;
    this.#isOlder = true;
    if (isRecord(usage)) this.#usage = usage;
    if (typeof finish === "string") this.#finish = finish;
    const calls = toolCalls(called, this.#stated.id, this.#calls).map((call, at) => ({
      ...call,
      index: this.#calls + at,
    }));
    this.#calls += calls.length;
    const content = textOf(response) ?? "";
    const delta = {
      ...(isFirst ? { role: "assistant" } : {}),
      ...(content === "" ? {} : { content }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    };
    if (Object.keys(delta).length === 0) return "";
    return this.#chunk({ choices: [{ index: 0, delta, finish_reason: null }] });
  }

  /** OpenAI's last two chunks: why the answer ended, and what it used. */
  #end(): string {
    const { cap } = this.#stated;
    const finish = finishOf({ stated: this.#finish, calls: this.#calls, usage: this.#usage, cap });
    const last = this.#chunk({ choices: [{ index: 0, delta: {}, finish_reason: finish }] });
    return this.#usage === null ? last : `${last}${this.#chunk({ choices: [], usage: this.#usage })}`;
  }

  #chunk(fields: Record<string, unknown>): string {
    const { id, created, model } = this.#stated;
    return `data: ${JSON.stringify({ id, object: "chat.completion.chunk", created, model, ...fields })}\n\n`;
  }
}
