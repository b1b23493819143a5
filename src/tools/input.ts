/** What a tool gets: the input of a task whose references are replaced, and whether it fits the tool's parameters. */
import type { CallBody } from "../call.ts";
import { utf8Bytes } from "../contract/text.ts";
import type { Reason } from "../errors.ts";
import { TOOL_CALL_BYTES_MAX } from "../limits.ts";
import { isRecord } from "../text/json/record.ts";
import { withTexts } from "../text/json/texts.ts";
import { valueViolationOf } from "../text/schema/answer.ts";
import type { Tool } from "./tool.ts";

/** The schema of a tool's input; null = it takes any. */
export function parametersOf({
  parametersJson,
}: Pick<Tool, "parametersJson">): Readonly<Record<string, unknown>> | null {
  const parsed: unknown = parametersJson === undefined ? null : JSON.parse(parametersJson);
  return isRecord(parsed) ? parsed : null;
}

/** The input of a tool task, with the texts of its message, in which references have been replaced: the first is the tool's name. */
export function inputOf({ tool, messages }: Pick<CallBody, "tool" | "messages">): unknown {
  const message = messages?.at(-1);
  const content: unknown = isRecord(message) ? message["content"] : null;
  const parts: readonly unknown[] = Array.isArray(content) ? content : [];
  const texts = parts.slice(1).map((part) => (isRecord(part) ? String(part["text"]) : ""));
  let at = 0;
  return withTexts(tool?.input, () => texts[at++] ?? "");
}

/**
 * The input with numbers and truth values in place of texts where the parameters want these: an output is a text, and
 * `{{a.output}}` may be the number that a tool has returned.
 */
export function typedInput(input: unknown, parameters: Readonly<Record<string, unknown>> | null): unknown {
  const properties = parameters?.["properties"];
  if (!isRecord(properties) || !isRecord(input)) return input;
  const types = (name: string): unknown => {
    const property = properties[name];
    return isRecord(property) ? property["type"] : undefined;
  };
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [name, typed(value, types(name))]));
}

const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

function typed(value: unknown, type: unknown): unknown {
  if (typeof value !== "string") return value;
  const text = value.trim();
  if ((type === "number" || type === "integer") && NUMBER.test(text)) return Number(text);
  return type === "boolean" && (text === "true" || text === "false") ? text === "true" : value;
}

/** Why a tool does not get this input, whose request has this body; null if it does. */
export function inputRefusal(tool: Tool, input: unknown, body: string): Reason | null {
  if (utf8Bytes(body) > TOOL_CALL_BYTES_MAX) {
    return { reason: "payload_too_large", what: "the tool call", bytesMax: TOOL_CALL_BYTES_MAX, param: "input" };
  }
  const parameters = parametersOf(tool);
  const violation = parameters === null ? null : valueViolationOf(input, parameters);
  if (violation === null) return null;
  const message = `the input of the tool "${tool.name}" does not fit its parameters: ${violation}`;
  return { reason: "invalid_input", message };
}
