/** The facts of a call in whose texts references were replaced: measured like those of a call that arrived with these texts. */
import type { CallBody } from "../../../src/call.ts";
import { readChatFields, sizeOf, type TextSize } from "../../../src/contract/chat-fields.ts";
import type { SlotFacts } from "../../../src/run/queue/slot.ts";
import type { Reason } from "../../../src/errors.ts";
import { PROMPT_BYTES_MAX } from "../../../src/limits.ts";

type Measured<T> = { ok: true; facts: T } | { ok: false; reason: Reason };

/** The sizes of a body's own texts. */
export type ContentSize = TextSize & { messages: number };

/** `old` is the size of the stored body that `stored` are the facts of; `after` has other texts, and may have one more message. */
export function substitutedFacts(stored: SlotFacts, old: ContentSize, after: CallBody): Measured<SlotFacts> {
  const now = contentSize(after);
  if (!now.ok) return now;
  if (now.facts.jsonBytes > PROMPT_BYTES_MAX) {
    const what = "the prompt with its inserted outputs";
    return { ok: false, reason: { reason: "payload_too_large", what, bytesMax: PROMPT_BYTES_MAX, param: null } };
  }
  const facts = { ...stored };
  facts.promptBytes += now.facts.textBytes - old.textBytes;
  facts.messageCount += now.facts.messages - old.messages;
  const textTokens = (stored.textTokensMax ?? stored.promptBytes) + now.facts.textTokensMax - old.textTokensMax;
  if (textTokens < facts.promptBytes) facts.textTokensMax = textTokens;
  else delete facts.textTokensMax;
  return { ok: true, facts };
}

export function contentSize({ prompt, messages, system }: CallBody): Measured<ContentSize> {
  const size = { textBytes: 0, textTokensMax: 0, jsonBytes: 0, messages: messages?.length ?? 0 };
  for (const text of [prompt, system]) if (text !== undefined) addTo(size, sizeOf(text));
  if (messages === undefined) return { ok: true, facts: size };
  const read = readChatFields(messages, "messages", (field) => field ?? "messages");
  if (!read.ok) return { ok: false, reason: read.reason };
  addTo(size, read.value);
  return { ok: true, facts: size };
}

function addTo(size: TextSize, more: TextSize): void {
  size.textBytes += more.textBytes;
  size.textTokensMax += more.textTokensMax;
  size.jsonBytes += more.jsonBytes;
}
