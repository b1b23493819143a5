/** Chat messages stay opaque; only what every upstream refuses, or no store can represent, is refused here. */
import type { Reason } from "../errors.ts";
import { JSON_DEPTH_MAX } from "../limits.ts";
import { invalid } from "./errors.ts";
import { nestsDeeperThan, textFault } from "./text.ts";

type Fault = { ok: false; reason: Reason };

/** Why a conversation cannot be sent, or null: it must consist of objects with a role whose content is text, parts or null. */
export function messagesFault(messages: readonly unknown[], path: (field: string) => string): Fault | null {
  if (messages.length === 0) return invalid(path("messages"), "is empty; expected at least one message");
  for (const [index, message] of messages.entries()) {
    const fault = messageFault(message, (field) => path(`messages[${index}]${field}`));
    if (fault !== null) return fault;
  }
  return nestsDeeperThan(messages, JSON_DEPTH_MAX)
    ? invalid(path("messages"), `expected at most ${JSON_DEPTH_MAX} levels of nesting`)
    : null;
}

function messageFault(message: unknown, at: (field: string) => string): Fault | null {
  if (typeof message !== "object" || message === null || Array.isArray(message)) {
    return invalid(at(""), "expected an object with role and content");
  }
  if (!("role" in message) || typeof message.role !== "string" || message.role === "") {
    return invalid(at(".role"), "expected a text such as user, assistant or system");
  }
  // An assistant's message that only calls tools has no content.
  if (!("content" in message) || message.content === null) return null;
  if (typeof message.content === "string") {
    const fault = textFault(message.content);
    return fault === null ? null : invalid(at(".content"), fault);
  }
  if (Array.isArray(message.content)) return partsFault(message.content, at);
  return invalid(at(".content"), "expected a text, an array of parts or null");
}

function partsFault(parts: readonly unknown[], at: (field: string) => string): Fault | null {
  for (const [index, part] of parts.entries()) {
    if (typeof part !== "object" || part === null || !("text" in part) || typeof part.text !== "string") continue;
    const fault = textFault(part.text);
    if (fault !== null) return invalid(at(`.content[${index}].text`), fault);
  }
  return null;
}
