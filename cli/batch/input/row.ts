/** Reads a line of a .jsonl input as a row or as a complete batch request. */
import { Failure } from "../../failure.ts";
import { isObject, memberOf, parseJson, textOf } from "../../text/json.ts";
import { printable } from "../../text/printable.ts";

/** A prompt with its own settings. */
export type Row = {
  id?: string;
  prompt?: string;
  messages?: unknown[];
  model?: string;
  system?: string;
  max_tokens?: number;
  temperature?: number;
  params?: Record<string, unknown>;
};

/** A `request` is sent unchanged; `url` is its endpoint. `ignored`: unknown fields. */
export type Reading =
  | { kind: "request"; id: string; url: string | null }
  | { kind: "row"; row: Row; ignored: string[] };

const FIELDS = new Set([
  "id",
  "custom_id",
  "prompt",
  "messages",
  "model",
  "system",
  "max_tokens",
  "temperature",
  "params",
]);

/**
 * Reads a line of a .jsonl.
 * @throws {Failure} with the line and what is wrong with it.
 * @param line For error messages.
 */
export function readJsonRow(text: string, line: number): Reading {
  const value = parseJson(text);
  if (value === undefined) throw new Failure(`Line ${line} is not JSON: ${printable(text.slice(0, 60))}`);
  if (typeof value === "string") return { kind: "row", row: { prompt: filled(value, line) }, ignored: [] };
  if (!isObject(value)) throw new Failure(`Line ${line} is neither a JSON object nor a string.`);
  const isAsk = Object.hasOwn(value, "prompt") || Object.hasOwn(value, "messages");
  if (!isAsk && ["body", "method", "url"].some((name) => Object.hasOwn(value, name))) {
    const id = textOf(value, "custom_id");
    if (id === null || id === "") throw new Failure(`Line ${line} is a request without a custom_id.`);
    return { kind: "request", id, url: textOf(value, "url") };
  }
  if (!isAsk) throw new Failure(`Line ${line} has neither a prompt nor messages, and is not a request with a body.`);
  return { kind: "row", row: rowOf(value, line), ignored: Object.keys(value).filter((name) => !FIELDS.has(name)) };
}

function rowOf(value: Record<string, unknown>, line: number): Row {
  const isText = (found: unknown) => typeof found === "string";
  const isNumber = (found: unknown) => typeof found === "number";
  const field: (name: string, what: string, fits: (found: unknown) => boolean) => Record<string, unknown> = (
    name,
    what,
    fits,
  ) => {
    const found = memberOf(value, name) ?? undefined;
    if (found === undefined) return {};
    if (!fits(found)) throw new Failure(`Line ${line}: ${name} must be ${what}.`);
    return { [name]: found };
  };
  const { prompt, messages } = value;
  if (prompt != null && messages != null) throw new Failure(`Line ${line} has both a prompt and messages.`);
  if (prompt == null && messages == null) throw new Failure(`Line ${line} has neither a prompt nor messages.`);
  const id = memberOf(value, "custom_id") ?? memberOf(value, "id") ?? undefined;
  if (id !== undefined && typeof id !== "string" && typeof id !== "number") {
    throw new Failure(`Line ${line}: its id must be text or a number.`);
  }
  if (typeof prompt === "string") filled(prompt, line);
  return {
    ...(id === undefined ? {} : { id: String(id) }),
    ...field("prompt", "text", isText),
    ...field("messages", "a list that is not empty", (found) => Array.isArray(found) && found.length > 0),
    ...field("model", "text", isText),
    ...field("system", "text", isText),
    ...field("max_tokens", "a whole number above zero", (found) => Number.isSafeInteger(found) && Number(found) > 0),
    ...field("temperature", "a number", isNumber),
    ...field("params", "an object", isObject),
  };
}

export function filled(prompt: string, line: number): string {
  if (prompt.trim() === "") throw new Failure(`Line ${line} has an empty prompt.`);
  return prompt;
}
