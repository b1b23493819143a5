/** The text of a chat completion while it streams: what its events add to the first choice. */
import { tryParse } from "../../../text/json/parse.ts";
import { isRecord } from "../../../text/json/record.ts";
import { fieldsOf } from "../../../text/sse/fields.ts";
import { EventSplitter } from "../../../text/sse/splitter.ts";

const decoder = new TextDecoder();

export class ChatText {
  readonly #splitter = new EventSplitter();
  #finishReason: string | null = null;
  #hasFailed = false;

  /** Whether the model has ended its text by itself: it was not cut, and the stream reports no error. */
  get isWhole(): boolean {
    return this.#finishReason === "stop" && !this.#hasFailed;
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
    const choices: unknown = json["choices"];
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
    if (!isRecord(choice)) return "";
    if (typeof choice["finish_reason"] === "string") this.#finishReason = choice["finish_reason"];
    const { delta } = choice;
    return isRecord(delta) && typeof delta["content"] === "string" ? delta["content"] : "";
  }
}
