/** The texts of a call, for people who search in what was asked. */
import type { CallBody } from "../../../call.ts";
import { isRecord } from "../../../text/json/record.ts";
import { textsIn } from "../../../text/json/texts.ts";

/** Fields of messages and of whole requests whose values are texts, or lists of texts, or have them further below. */
const TEXT_FIELDS: ReadonlySet<string> = new Set([
  "content",
  "text",
  "prompt",
  "input",
  "instructions",
  "system",
  "messages",
  "function",
  "tool_calls",
  "arguments",
  "output",
  "thinking",
]);

/** Every text that a call has for its model or tool, as its client sent it; no addresses and no encoded media. */
export function* promptTexts({ system, prompt, messages, raw, tool }: CallBody): Generator<string> {
  for (const own of [system, prompt]) if (own !== undefined) yield own;
  if (messages !== undefined) yield* textsBelow(messages);
  if (raw !== undefined) yield* textsBelow(JSON.parse(raw.json));
  if (tool !== undefined) yield* textsIn(tool.input);
}

function* textsBelow(value: unknown): Generator<string> {
  if (Array.isArray(value)) {
    for (const each of value) yield* typeof each === "string" ? [each] : textsBelow(each);
  } else if (isRecord(value)) {
    for (const [name, each] of Object.entries(value)) {
      if (!TEXT_FIELDS.has(name)) continue;
      if (typeof each === "string") yield each;
      // The input of a tool that a model has called has names of its own.
      else if (name === "input" && isRecord(each)) yield* textsIn(each);
      else yield* textsBelow(each);
    }
  }
}
