/**
 * The message of a chat completion beyond its text: whether it has anything, and its bytes as the upstream wrote them. A message
 * that was parsed and written again would lose the digits of large numbers and the order of some keys.
 */
import type { AnswerParts, Included } from "../../../call.ts";
import { isRecord } from "../../../text/json/record.ts";
import { firstElement, kindAt, member, readObject, scanObject, type JsonObject } from "../../../text/json/scan.ts";

/** Fields that say how a message is meant, not what it says; `content` is looked at apart. */
const OF_EVERY_MESSAGE: ReadonlySet<string> = new Set(
  "role content id type name status phase index weight prefix".split(" "),
);

/** Levels of a field that are searched for a value: what is hidden below is taken for one. */
const LEVELS_SEARCHED = 4;

/** Whether a message says more than its text does: it calls tools, refuses, has thoughts, annotations, sounds or parts of other kinds. */
export function hasMoreThanText(message: Record<string, unknown>): boolean {
  const { content } = message;
  if (Array.isArray(content) && content.some((part) => !isText(part))) return true;
  return Object.entries(message).some(([name, value]) => !OF_EVERY_MESSAGE.has(name) && saysSomething(value));
}

/** A part of text with nothing beside it, such as a citation. */
function isText(part: unknown): boolean {
  if (!isRecord(part) || typeof part["text"] !== "string") return false;
  return !Object.entries(part).some(([name, value]) => name !== "text" && name !== "type" && saysSomething(value));
}

/** Servers fill fields without a value with null, false, zero, or what is empty, some one level deeper. */
function saysSomething(value: unknown, level = 0): boolean {
  if (value === null || value === undefined || value === false || value === 0 || value === "") return false;
  if (typeof value !== "object" || level === LEVELS_SEARCHED) return true;
  return Object.values(value).some((each) => saysSomething(each, level + 1));
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/**
 * The parts of the first choice of a completion, from its body, which is JSON: its message if it has more than text or is included, its
 * log probabilities if they are.
 */
export function choiceParts(
  body: string,
  choice: Record<string, unknown>,
  include: readonly Included[],
): AnswerParts | undefined {
  const { message, logprobs } = choice;
  const wants = {
    message: include.includes("message") || (isRecord(message) && hasMoreThanText(message)),
    logprobs: include.includes("logprobs") && isRecord(logprobs),
  };
  if (!wants.message && !wants.logprobs) return undefined;
  const written = writtenChoice(body);
  const fieldOf = (name: "message" | "logprobs"): string => written(name) ?? JSON.stringify(choice[name]);
  return {
    ...(wants.message && { message: fieldOf("message") }),
    ...(wants.logprobs && { logprobs: fieldOf("logprobs") }),
  };
}

/** The text of a field of the first choice, as it was written; null if it cannot be read in place. */
function writtenChoice(body: string): (name: string) => string | null {
  const bytes = encoder.encode(body);
  const scan = scanObject(bytes);
  const choice = scan.ok ? firstOf(bytes, scan.object, "choices") : null;
  return (name) => {
    const found = choice === null ? null : member(choice, name);
    return found === null ? null : oneLine(decoder.decode(bytes.subarray(found.start, found.end)));
  };
}

/** The first element of a list, if it is an object. */
function firstOf(bytes: Uint8Array, object: JsonObject, name: string): JsonObject | null {
  const list = member(object, name);
  const at = list?.kind === "array" ? firstElement(bytes, list.start) : -1;
  return at !== -1 && kindAt(bytes, at) === "object" ? readObject(bytes, at) : null;
}

/** JSON without line breaks, which stand between its values only: it becomes a part of a line. */
export function oneLine(json: string): string {
  return /[\r\n]/.test(json) ? json.replace(/[\r\n]/g, " ") : json;
}
