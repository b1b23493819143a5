/**
 * Translates a call's prompt or OpenAI-style messages for Anthropic's Messages API: a system text beside the messages, parts of text and
 * images in its own form, calls of tools and their results. Everything else is refused: to leave a part out would change the question,
 * and a part whose tokens are not counted would exceed the prompt's bound.
 */
import type { CallBody } from "../../../call.ts";
import type { Reason } from "../../../errors.ts";
import { NAME_CHARS_MAX } from "../../../limits.ts";
import { isRecord } from "../../../text/json/record.ts";
import { ASSISTANT_FIELDS, assistantBlocks, RESULT_FIELDS, resultBlock } from "./assistant.ts";

/**
 * `system` is a text, or text blocks if there are several; null if there is none. `messages` are JSON texts: the inputs of calls keep the
 * digits of their numbers.
 */
export type Conversation = { system: string | readonly unknown[] | null; messages: readonly string[] };

type Refused = { ok: false; reason: Reason };

/** OpenAI's roles for the system text. */
const SYSTEM_ROLES: readonly unknown[] = ["system", "developer"];
/** Roles in the list of messages; whether a later `system` message is accepted is up to the provider. */
const ROLES: readonly unknown[] = ["user", "assistant", "system", "tool"];

/** The conversation of a call. Its system text is `system`, then the system messages at the beginning. */
export function conversationOf(body: CallBody): ({ ok: true } & Conversation) | Refused {
  const given = body.messages ?? [{ role: "user", content: body.prompt ?? "" }];
  const others = given.findIndex((message) => !(isRecord(message) && SYSTEM_ROLES.includes(message["role"])));
  const systemCount = others === -1 ? given.length : others;
  const system: unknown[] = body.system === undefined ? [] : [body.system];
  const messages: string[] = [];
  let results: string[] = [];
  const endResults = (): void => {
    // All results of one turn are one message of the user.
    if (results.length > 0) messages.push(`{"role":"user","content":[${results.join(",")}]}`);
    results = [];
  };
  for (const [index, message] of given.entries()) {
    const isSystem = index < systemCount;
    const read = messageOf(message, `messages[${index}]`, isSystem);
    if (!read.ok) return read;
    if (read.role === "tool") {
      results.push(...read.blocks);
      continue;
    }
    endResults();
    if (isSystem) system.push(read.content);
    else messages.push(messageJson(read));
  }
  endResults();
  return { ok: true, system: joined(system), messages };
}

type MessageRead = {
  ok: true;
  role: unknown;
  content: string | readonly unknown[];
  /** The content as JSON texts of blocks, of a result and of an assistant's message with more than content. */
  blocks: readonly string[];
};

function messageJson({ role, content, blocks }: MessageRead): string {
  if (blocks.length === 0) return JSON.stringify({ role, content });
  return `{"role":${JSON.stringify(role)},"content":[${blocks.join(",")}]}`;
}

function messageOf(message: unknown, at: string, isSystem: boolean): MessageRead | Refused {
  if (!isRecord(message)) return refused(at, "expected an object with role and content");
  const { role } = message;
  if (!isSystem && !ROLES.includes(role)) return refused(`${at}.role`, "expected user, assistant, tool or system");
  const known = isSystem ? NO_FIELDS : (FIELDS.get(role) ?? NO_FIELDS);
  const more = Object.keys(message).filter(
    (name) => name !== "role" && name !== "content" && message[name] !== null && message[name] !== undefined,
  );
  const extra = more.find((name) => !known.has(name));
  if (extra !== undefined) {
    const name = extra.slice(0, NAME_CHARS_MAX).toWellFormed();
    return refused(`${at}.${name}`, "is not known here; leave it out");
  }
  const content = contentOf(message, at, { isTextOnly: isSystem || role === "system", mayMiss: more.length > 0 });
  if (!content.ok) return content;
  if (role === "tool") return withBlocks(resultBlock(message, content.content), { role, content: content.content }, at);
  const base = { role, content: content.content };
  if (role !== "assistant" || more.length === 0) return { ok: true, ...base, blocks: [] };
  return withBlocks(assistantBlocks(message, textBlocks(content.content)), base, at);
}

const NO_FIELDS: ReadonlySet<string> = new Set();
/** Fields that a message may have beside its content, by its role. */
const FIELDS: ReadonlyMap<unknown, ReadonlySet<string>> = new Map([
  ["assistant", ASSISTANT_FIELDS],
  ["tool", RESULT_FIELDS],
]);

function withBlocks(
  read: ReturnType<typeof assistantBlocks>,
  { role, content }: Pick<MessageRead, "role" | "content">,
  at: string,
): MessageRead | Refused {
  if (!read.ok) return refused(`${at}.${read.field}`, `expected ${read.expected}`);
  return { ok: true, role, content, blocks: read.blocks };
}

/** The content as blocks; the API refuses empty ones. */
function textBlocks(content: string | readonly unknown[]): readonly unknown[] {
  if (typeof content !== "string") return content;
  return content === "" ? [] : [{ type: "text", text: content }];
}

type ContentRead = { ok: true; content: string | readonly unknown[] };

function contentOf(
  { content }: Readonly<Record<string, unknown>>,
  at: string,
  { isTextOnly, mayMiss }: { isTextOnly: boolean; mayMiss: boolean },
): ContentRead | Refused {
  if (typeof content === "string") return { ok: true, content };
  if (mayMiss && (content === undefined || content === null)) return { ok: true, content: "" };
  if (!Array.isArray(content)) return refused(`${at}.content`, "expected a text or an array of parts");
  for (const [index, part] of content.entries()) {
    const fault = partFault(part, isTextOnly);
    if (fault !== null) return refused(`${at}.content[${index}].${fault.field}`, fault.message);
  }
  return { ok: true, content };
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
