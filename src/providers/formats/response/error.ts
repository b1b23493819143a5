/** Finds the error that an upstream's body reports, in the forms that providers use: its message and its codes. */
import { isRecord } from "../../../text/json/record.ts";

/** The message of an error, and its codes, the most specific first. Nothing is redacted. */
export type ErrorWords = { message: string; codes: string[] };

/** An error reported inside a 200: its HTTP status if it names or implies one, and whether an answer had begun. */
export type AnswerError = ErrorWords & { status: number | null; afterStart: boolean };

/** Names of errors that imply a status. */
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
  ["invalid_request_error", 400],
  ["context_length_exceeded", 400],
  ["authentication_error", 401],
  ["invalid_api_key", 401],
  ["billing_error", 402],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["model_not_found", 404],
  ["request_too_large", 413],
  ["insufficient_quota", 429],
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
  if (typeof error === "string" && error !== "") {
    return { message: error, codes: codesIn(json), status: null, afterStart };
  }
  return json["object"] === "error" ? described(json, afterStart) : null;
}

/** The message and codes of an error body of a known form; its text otherwise. A page of HTML or XML is not quoted. */
export function errorWords(text: string): ErrorWords {
  const start = text.trimStart().slice(0, 1);
  if (start === "<") return { message: "an HTML or XML page", codes: [] };
  if (start !== "{" && start !== "[") return { message: text, codes: [] };
  try {
    const parsed: unknown = JSON.parse(text);
    // Gemini's compatible endpoint wraps its error in a list.
    const json: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
    return { message: messageIn(json) ?? text, codes: codesIn(json) };
  } catch {
    return { message: text, codes: [] };
  }
}

function described(error: Record<string, unknown>, afterStart: boolean): AnswerError {
  const message = messageIn({ error }) ?? "no message";
  return { message, codes: codesIn({ error }), status: impliedStatus(error), afterStart };
}

function messageIn(json: unknown): string | null {
  if (!isRecord(json)) return null;
  const { error, errors, message, detail } = json;
  if (typeof error === "string") return error;
  // Cloudflare's API lists its errors.
  const listed: unknown = Array.isArray(errors) ? errors[0] : null;
  if (isRecord(listed) && typeof listed["message"] === "string") return listed["message"];
  if (isRecord(error) && typeof error["message"] === "string") return error["message"];
  if (typeof message === "string") return message;
  return typeof detail === "string" ? detail : null;
}

/** Most levels of Azure's inner errors that are read: each is more specific than the one around it. */
const INNER_ERRORS_MAX = 4;

/**
 * The codes of an error body, inner errors included. A number, also as text, is a status, not a code. Without a code,
 * the type (Anthropic) or the status in words (Google) identifies the error.
 */
export function codesIn(json: unknown): string[] {
  if (!isRecord(json)) return [];
  const codes: string[] = [];
  const kinds: string[] = [];
  let error: unknown = isRecord(json["error"]) ? json["error"] : json;
  for (let depth = 0; depth < INNER_ERRORS_MAX && isRecord(error); depth++) {
    const { code, type, status } = error;
    if (isName(code)) codes.push(code);
    for (const kind of [type, status]) if (isName(kind) && kind !== "error") kinds.push(kind);
    error = error["innererror"] ?? error["inner_error"] ?? error["innerError"];
  }
  return [...codes, ...kinds];
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && !/^\d{3}$/.test(value);
}

/** A numeric code (also as text) is an HTTP status; a name may be in `code`, `type` or `status`. */
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
