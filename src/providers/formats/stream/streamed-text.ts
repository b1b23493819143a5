/** The text of a model while it streams: what the events add to the first choice of a chat completion, or to the text of a message. */
import { tryParse } from "../../../text/json/parse.ts";
import { isRecord } from "../../../text/json/record.ts";
import { fieldsOf } from "../../../text/sse/fields.ts";
import { EventSplitter } from "../../../text/sse/splitter.ts";

/** The endpoints whose streams are read as text. */
export type TextEndpoint = "chat" | "messages";

/** What an event says. `end`: why the model has ended, in its provider's word; null = it goes on, as far as this event knows. */
type Said = { text: string; end: string | null };

/** How each endpoint's events are read, and its word for a text that the model has ended by itself. */
const READERS: Readonly<Record<TextEndpoint, { said: (event: Record<string, unknown>) => Said; whole: string }>> = {
  chat: { said: saidInChat, whole: "stop" },
  messages: { said: saidInMessage, whole: "end_turn" },
};

const decoder = new TextDecoder();

export class StreamedText {
  readonly #splitter = new EventSplitter();
  readonly #endpoint: TextEndpoint;
  #end: string | null = null;
  #hasFailed = false;

  constructor(endpoint: TextEndpoint) {
    this.#endpoint = endpoint;
  }

  /** Whether the model has ended its text by itself: it was not cut, and the stream reports no error. */
  get isWhole(): boolean {
    return this.#end === READERS[this.#endpoint].whole && !this.#hasFailed;
  }

  /** Takes the next bytes of the stream; returns the text of the events that they complete. */
  feed(chunk: Uint8Array): string {
    let text = "";
    for (const piece of this.#splitter.feed(chunk)) if (piece.kind === "event") text += this.#textOf(piece.bytes);
    return text;
  }

  #textOf(event: Uint8Array): string {
    const { data } = fieldsOf(event);
    const json = data === null ? undefined : tryParse(decoder.decode(data).trim());
    if (!isRecord(json)) return "";
    if (json["error"] != null) this.#hasFailed = true;
    const { text, end } = READERS[this.#endpoint].said(json);
    this.#end = end ?? this.#end;
    return text;
  }
}

function saidInChat({ choices }: Record<string, unknown>): Said {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  if (!isRecord(choice)) return { text: "", end: null };
  const { delta, finish_reason: end } = choice;
  return { text: isRecord(delta) ? textIn(delta["content"]) : "", end: wordIn(end) };
}

/** Thoughts and inputs of tools are no part of the text. */
function saidInMessage({ type, delta }: Record<string, unknown>): Said {
  if (!isRecord(delta)) return { text: "", end: null };
  const isText = type === "content_block_delta" && delta["type"] === "text_delta";
  return { text: isText ? textIn(delta["text"]) : "", end: wordIn(delta["stop_reason"]) };
}

function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function wordIn(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
