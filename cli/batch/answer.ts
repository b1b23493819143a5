/** Reads one line of a batch's output: the text of the answer, or its error. */
import { csvLine } from "./input/csv.ts";
import { isObject, jsonLine, memberOf, parseJson, textOf } from "../text/json.ts";

export type AnswerError = { code: string | null; message: string; status?: number };
export type Answer = { error: AnswerError } | { error: null; fields: Record<string, unknown> };

const MISSING = { code: "missing", message: "The batch has no answer for this line." };

/** @param line Null if the batch has no line for it. */
export function readAnswer(line: Buffer | null): Answer {
  if (line === null) return { error: MISSING };
  const value = parseJson(line.toString("utf8"));
  const error = memberOf(value, "error");
  if (error != null) return { error: errorOf(error) };
  const response = memberOf(value, "response");
  const status = memberOf(response, "status_code");
  const body = memberOf(response, "body");
  // An upstream may return 200 with an error in the body.
  const fault = memberOf(body, "error");
  if (typeof status === "number" && (status < 200 || status > 299))
    return { error: { ...errorOf(fault ?? body), status } };
  if (fault != null) return { error: errorOf(fault) };
  return isObject(body) ? { error: null, fields: fieldsOf(body) } : { error: errorOf(null) };
}

function errorOf(error: unknown): AnswerError {
  const message = typeof error === "string" ? error : textOf(error, "message");
  return { code: textOf(error, "code") ?? textOf(error, "type"), message: message ?? "The server gave no reason." };
}

/** The fields of an answer, by the shape of its endpoint; the whole body if the shape is unknown. */
function fieldsOf(body: Record<string, unknown>): Record<string, unknown> {
  const { choices, output, data } = body;
  if (Array.isArray(choices) && choices.length > 0) return choiceFields(choices);
  if (Array.isArray(output)) return { text: outputText(output) };
  if (Array.isArray(data) && data.every((one) => isObject(one) && "embedding" in one)) {
    const embeddings = data.map((one) => memberOf(one, "embedding"));
    return embeddings.length === 1 ? { embedding: embeddings[0] } : { embeddings };
  }
  return { body };
}

function choiceFields(choices: unknown[]) {
  const texts = choices.map((choice) => {
    const message = memberOf(choice, "message");
    return textOf(message, "content") ?? textOf(choice, "text") ?? textOf(message, "refusal") ?? "";
  });
  const calls = memberOf(memberOf(choices[0], "message"), "tool_calls");
  return {
    text: texts[0],
    ...(texts.length > 1 ? { texts } : {}),
    ...(Array.isArray(calls) && calls.length > 0 ? { tool_calls: calls } : {}),
    finish_reason: textOf(choices[0], "finish_reason"),
  };
}

/** @param output Of the Responses API. */
function outputText(output: unknown[]) {
  const parts = output.flatMap((item) => {
    const content = memberOf(item, "content");
    return Array.isArray(content) ? content : [];
  });
  const texts = parts.filter((part) => textOf(part, "type") === "output_text").map((part) => textOf(part, "text"));
  return texts.map((text) => text ?? "").join("");
}

function plainText(answer: Answer) {
  if (answer.error !== null) return "";
  const { text, ...others } = answer.fields;
  if (typeof text === "string") return text;
  return JSON.stringify(others["embedding"] ?? others["embeddings"] ?? others["body"] ?? null);
}

/** A line of a .jsonl file, with its line break. The functions for .csv and .txt below also add the line break. */
export function asJsonLine(id: string, answer: Answer): string {
  const { error } = answer;
  return `${jsonLine(error === null ? { custom_id: id, ...answer.fields } : { custom_id: id, error })}\n`;
}

export const CSV_HEADER = csvLine(["custom_id", "text", "error"]);

export function asCsvLine(id: string, answer: Answer): string {
  return csvLine([id, plainText(answer), answer.error === null ? "" : errorText(answer.error)]);
}

/** One line per answer, so that line k answers prompt k: line breaks within an answer are escaped. */
export function asTextLine(answer: Answer): string {
  const text = answer.error === null ? plainText(answer) : `[error] ${errorText(answer.error)}`;
  return `${text.replace(/[\\\n\r\v\f\u0085\u2028\u2029]/g, escapeOf)}\n`;
}

function escapeOf(char: string) {
  if (char === "\\") return "\\\\";
  if (char === "\n") return "\\n";
  return char === "\r" ? "\\r" : `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

export function errorText({ code, message, status }: AnswerError): string {
  const name = code ?? (status === undefined ? null : String(status));
  return name === null ? message : `${name}: ${message}`;
}

/** The raw output line for an input line that has no answer. */
export function missingLine(id: string): Buffer<ArrayBuffer> {
  return Buffer.from(`${jsonLine({ id: null, custom_id: id, response: null, error: MISSING })}\n`);
}
