/** Finds the error that an upstream's body reports, in the shapes seen in the field, and the words to show of it. */
import { isRecord } from "./record.ts";

/** An error reported inside a 200: its HTTP status if it names or implies one, and whether an answer had begun. */
export type AnswerError = { message: string; status: number | null; afterStart: boolean };

/** Names of errors that mean a status; anything else is final. */
const STATUS_BY_NAME: ReadonlyMap<string, number> = new Map([
  ["rate_limit_exceeded", 429],
  ["rate_limit_error", 429],
  ["rate_limited", 429],
  ["too_many_requests", 429],
  ["timeout", 408],
  ["request_timeout", 408],
  ["server_error", 500],
  ["api_error", 500],
  ["internal_error", 500],
  ["internal_server_error", 500],
  ["bad_gateway", 502],
  ["service_unavailable", 503],
  ["overloaded", 503],
  ["timeout_error", 504],
  ["overloaded_error", 529],
]);

/** The error in a parsed 200 body: a top-level `error`, an error object, or an error of the first choice. */
export function errorIn(json: unknown): AnswerError | null {
  if (!isRecord(json)) return null;
  const { error, choices, content, usage } = json;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  if (isRecord(choice) && isRecord(choice["error"])) return described(choice["error"], true);
  const begun = choice !== undefined || (Array.isArray(content) && content.length > 0);
  const afterStart = begun || (usage !== undefined && usage !== null);
  if (isRecord(error)) return described(error, afterStart);
  if (typeof error === "string" && error !== "") return { message: error, status: null, afterStart };
  return json["object"] === "error" ? described(json, afterStart) : null;
}

/** The words of an error body: its message field if it is JSON of a known shape, else the text; "" for a page. */
export function errorText(text: string): string {
  const start = text.trimStart().slice(0, 1);
  if (start === "<") return "an HTML or XML page";
  if (start !== "{") return text;
  try {
    return messageIn(JSON.parse(text)) ?? text;
  } catch {
    return text;
  }
}

function described(error: Record<string, unknown>, afterStart: boolean): AnswerError {
  return { message: messageIn({ error }) ?? "no message", status: impliedStatus(error), afterStart };
}

function messageIn(json: unknown): string | null {
  if (!isRecord(json)) return null;
  const { error, message, detail } = json;
  if (typeof error === "string") return error;
  if (isRecord(error) && typeof error["message"] === "string") return error["message"];
  if (typeof message === "string") return message;
  return typeof detail === "string" ? detail : null;
}

/** A numeric code (also as text) is an HTTP status; a name may stand in `code`, `type` or `status`. */
function impliedStatus(error: Record<string, unknown>): number | null {
  for (const field of [error["code"], error["status"], error["type"]]) {
    if (typeof field === "number" || (typeof field === "string" && /^\d{3}$/.test(field))) {
      const status = Number(field);
      if (Number.isInteger(status) && status >= 400 && status <= 599) return status;
    } else if (typeof field === "string") {
      const status = STATUS_BY_NAME.get(field.toLowerCase());
      if (status !== undefined) return status;
    }
  }
  return null;
}
