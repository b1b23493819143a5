/** The form that a request demands of its answer, as each protocol names it. */
import { isRecord } from "../../text/json/record.ts";

/** `json` without a schema: any JSON object. */
export type Format = { kind: "text" } | { kind: "json"; schema: unknown };

const TEXT: Format = { kind: "text" };

/** `response_format` of chat completions. */
export function chatFormat({ response_format: format }: Readonly<Record<string, unknown>>): Format {
  if (!isRecord(format)) return TEXT;
  if (format["type"] === "json_object") return { kind: "json", schema: null };
  const described = format["json_schema"];
  return isSchema(format) && isRecord(described) ? { kind: "json", schema: described["schema"] ?? null } : TEXT;
}

/** `text.format` of Responses. */
export function responsesFormat({ text }: Readonly<Record<string, unknown>>): Format {
  return directFormat(isRecord(text) ? text["format"] : undefined);
}

/** `output_config.format` of Anthropic's messages. */
export function messagesFormat({ output_config: config }: Readonly<Record<string, unknown>>): Format {
  return directFormat(isRecord(config) ? config["format"] : undefined);
}

function directFormat(format: unknown): Format {
  if (!isRecord(format)) return TEXT;
  if (format["type"] === "json_object") return { kind: "json", schema: null };
  return isSchema(format) ? { kind: "json", schema: format["schema"] ?? null } : TEXT;
}

function isSchema(format: Readonly<Record<string, unknown>>): boolean {
  return format["type"] === "json_schema";
}
