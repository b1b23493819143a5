/** The beginning of what a call asks, for people who look at it. */
import { isRecord } from "../../../text/json/record.ts";
import { TEXT_HEAD_CHARS } from "../../../limits.ts";

type Asked = { prompt?: string; messages?: readonly unknown[]; raw?: { json: string } };

/** The beginning of the prompt, or of the last message that has a text; null if none has. */
export function headOf({ prompt, messages, raw }: Asked): string | null {
  const text = prompt ?? lastText(messages ?? messagesIn(raw?.json ?? "{}"));
  return text === null ? null : cutText(text);
}

/** The beginning of a text, which ends with `…` if more follows. */
export function cutText(text: string): string {
  if (text.length <= TEXT_HEAD_CHARS) return text;
  // A character outside of the first plane is two units, which stay together.
  const end = /[\uD800-\uDBFF]/.test(text[TEXT_HEAD_CHARS - 1] ?? "") ? TEXT_HEAD_CHARS - 1 : TEXT_HEAD_CHARS;
  return `${text.slice(0, end)}…`;
}

function lastText(messages: readonly unknown[]): string | null {
  for (const message of messages.toReversed()) {
    const text = isRecord(message) ? textOf(message["content"]) : null;
    if (text !== null && text !== "") return text;
  }
  return null;
}

function textOf(content: unknown): string | null {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return null;
  const texts = content.flatMap((part: unknown) =>
    isRecord(part) && typeof part["text"] === "string" ? [part["text"]] : [],
  );
  return texts.length === 0 ? null : texts.join("\n");
}

/** The messages of a whole request body; of one that has a prompt or an input instead, that as a message. */
function messagesIn(json: string): readonly unknown[] {
  const body: unknown = JSON.parse(json);
  if (!isRecord(body)) return [];
  const { messages, prompt, input } = body;
  if (Array.isArray(messages)) return messages;
  if (Array.isArray(input)) return input;
  return [{ content: prompt ?? input }];
}
