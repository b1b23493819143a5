/**
 * Translates a call's prompt or OpenAI-style messages for Anthropic's Messages API: a system text beside the messages, and
 * parts of text and images in its own form. Everything else is refused: to leave a part out would change the question,
 * and a part whose tokens are not counted would exceed the prompt's bound.
 */
import type { CallBody } from "../../../call.ts";
import type { Reason } from "../../../errors.ts";
import { NAME_CHARS_MAX } from "../../../limits.ts";
import { isRecord } from "../../../text/json/record.ts";

/** `system` is a text, or text blocks if there are several; null if there is none. */
export type Conversation = { system: string | readonly unknown[] | null; messages: readonly unknown[] };

type Refused = { ok: false; reason: Reason };

/** OpenAI's roles for the system text. */
const SYSTEM_ROLES: readonly unknown[] = ["system", "developer"];
/** Roles in the list of messages; whether a later `system` message is accepted is up to the provider. */
const ROLES: readonly unknown[] = ["user", "assistant", "system"];

/** The conversation of a call. Its system text is `system`, then the system messages at the beginning. */
export function conversationOf(body: CallBody): ({ ok: true } & Conversation) | Refused {
  const given = body.messages ?? [{ role: "user", content: body.prompt ?? "" }];
  const others = given.findIndex((message) => !(isRecord(message) && SYSTEM_ROLES.includes(message["role"])));
  const systemCount = others === -1 ? given.length : others;
  const system: unknown[] = body.system === undefined ? [] : [body.system];
  const messages: unknown[] = [];
  for (const [index, message] of given.entries()) {
    const isSystem = index < systemCount;
    const read = messageOf(message, `messages[${index}]`, isSystem);
    if (!read.ok) return read;
    if (isSystem) system.push(read.content);
    else messages.push({ role: read.role, content: read.content });
  }
  return { ok: true, system: joined(system), messages };
}

type MessageRead = { ok: true; role: unknown; content: string | readonly unknown[] };

function messageOf(message: unknown, at: string, isSystem: boolean): MessageRead | Refused {
  if (!isRecord(message)) return refused(at, "expected an object with role and content");
  const { role, content } = message;
  if (!isSystem && !ROLES.includes(role)) {
    return refused(`${at}.role`, "expected user, assistant or system; results of tools are not translated");
  }
  const extra = Object.keys(message).find(
    (name) => name !== "role" && name !== "content" && message[name] !== null && message[name] !== undefined,
  );
  if (extra !== undefined) {
    const name = extra.slice(0, NAME_CHARS_MAX).toWellFormed();
    return refused(`${at}.${name}`, "expected a role and a content only");
  }
  if (typeof content === "string") return { ok: true, role, content };
  if (!Array.isArray(content)) return refused(`${at}.content`, "expected a text or an array of parts");
  const isTextOnly = isSystem || role === "system";
  for (const [index, part] of content.entries()) {
    const fault = partFault(part, isTextOnly);
    if (fault !== null) return refused(`${at}.content[${index}].${fault.field}`, fault.message);
  }
  return { ok: true, role, content };
}

function partFault(part: unknown, isTextOnly: boolean): { field: string; message: string } | null {
  const type = isRecord(part) ? part["type"] : undefined;
  if (isRecord(part) && type === "text") {
    return typeof part["text"] === "string" ? null : { field: "text", message: "expected a text" };
  }
  if (isTextOnly) return { field: "type", message: "expected text, the only type in a system message" };
  if (isRecord(part) && type === "image") {
    return isRecord(part["source"]) ? null : { field: "source", message: "expected an object that holds the image" };
  }
  return { field: "type", message: 'expected text or image, as in {"type":"image","source":{…}}' };
}

/** One text stays a text; several become blocks, so that nothing is inserted between them. The API refuses empty blocks. */
function joined(system: readonly unknown[]): Conversation["system"] {
  const [only, ...more] = system;
  if (typeof only === "string" && more.length === 0) return only === "" ? null : only;
  const blocks = system
    .flatMap((content) => (typeof content === "string" ? [{ type: "text", text: content }] : content))
    .filter((block) => !(isRecord(block) && block["text"] === ""));
  return blocks.length === 0 ? null : blocks;
}

function refused(param: string, expected: string): Refused {
  const message = `${param}: ${expected} (the model is at an Anthropic upstream)`;
  return { ok: false, reason: { reason: "invalid_request", message, param } };
}
