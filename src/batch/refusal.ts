/**
 * Refusals of the file and batch routes in the words and codes of the OpenAI API, which its clients match on; the
 * reasons of `errors.ts` have other codes. All of them are deterministic: a retry does not help.
 */
import type * as z from "zod";
import { quoted } from "../errors.ts";
import { ERROR_MESSAGE_CHARS_MAX } from "../limits.ts";

/** A refused request: the HTTP status and the `error` object of the answer. Send `x-should-retry: false` with it. */
export type ApiRefusal = {
  status: 400 | 404 | 409;
  error: {
    message: string;
    type: "invalid_request_error";
    param: string | null;
    code: string;
    retryable: false;
  };
};

/** The result of checking a part of a request. */
export type Checked<T> = { ok: true; value: T } | { ok: false; refusal: ApiRefusal };

/** A fault, as OpenAI's `message`, `param` and `code`; null where OpenAI has no code. */
export type Fault = { message: string; param: string | null; code: string | null };

/** The gateway's code where OpenAI has none: every error of every route has one, by which programs sort errors. */
const CODES = { 400: "invalid_request", 404: "not_found", 409: "conflict" } as const;

/** The refusal for a fault. */
export function refusal(fault: Fault, status: ApiRefusal["status"] = 400): ApiRefusal {
  const message = quoted(fault.message, ERROR_MESSAGE_CHARS_MAX);
  const param = fault.param === null ? null : quoted(fault.param);
  const code = fault.code ?? CODES[status];
  return { status, error: { message, type: "invalid_request_error", param, code, retryable: false } };
}

/** A failed check. */
export function refused(fault: Fault, status: ApiRefusal["status"] = 400): { ok: false; refusal: ApiRefusal } {
  return { ok: false, refusal: refusal(fault, status) };
}

export function missing(param: string): Fault {
  return { message: `Missing required parameter: '${param}'.`, param, code: "missing_required_parameter" };
}

/** `expected` with its article: "a string". */
export function wrongType(param: string, expected: string, got: unknown): Fault {
  const message = `Invalid type for '${param}': expected ${expected}, but got ${nameOf(got)} instead.`;
  return { message, param, code: "invalid_type" };
}

/** An unsupported value; if only one is supported, the message names the field too. */
export function unsupported(param: string, got: string, supported: readonly string[]): Fault {
  const quoted = supported.map((value) => `'${value}'`);
  const last = quoted.pop() ?? "";
  const list = quoted.length === 0 ? last : `${quoted.join(", ")}${quoted.length > 1 ? "," : ""} and ${last}`;
  const values =
    quoted.length === 0 ? `The only supported value for '${param}' is ${list}.` : `Supported values are: ${list}.`;
  return { message: `Invalid value: '${shorten(got)}'. ${values}`, param, code: "invalid_value" };
}

export function tooLong(param: string, text: string, charsMax: number): Fault {
  const message = `Invalid '${param}': string too long. ${lengths(text, charsMax)}`;
  return { message, param, code: "string_above_max_length" };
}

/** An integer outside its bounds. */
export function outOfRange(param: string, got: number, { min, max }: { min: number; max: number }): Fault {
  if (got < min) {
    const message = `Invalid '${param}': integer below minimum value. Expected a value >= ${min}, but got ${got} instead.`;
    return { message, param, code: "integer_below_min_value" };
  }
  const message = `Invalid '${param}': integer above maximum value. Expected a value <= ${max}, but got ${got} instead.`;
  return { message, param, code: "integer_above_max_value" };
}

/** Expected and actual length, in characters as people count them: code points. */
export function lengths(text: string, charsMax: number): string {
  return `Expected a string with maximum length ${charsMax}, but got a string with length ${charsOf(text)} instead.`;
}

/** Code points of a text. */
export function charsOf(text: string): number {
  let chars = 0;
  for (const _ of text) chars += 1;
  return chars;
}

/** Longest value that is quoted back, characters. */
const QUOTED_CHARS_MAX = 64;

/** A client's text, cut for a message. */
export function shorten(text: string): string {
  return charsOf(text) > QUOTED_CHARS_MAX ? `${[...text].slice(0, QUOTED_CHARS_MAX).join("")}...` : text;
}

/** The name of a value's type in OpenAI's messages. */
function nameOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "number") return Number.isInteger(value) ? "an integer" : "a decimal number";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

const EXPECTED: Readonly<Record<string, string>> = {
  object: "an object",
  record: "an object",
  array: "an array",
  int: "an integer",
};

/** The first fault that a schema found in a body, in OpenAI's words. */
export function schemaFault(error: z.ZodError, body: unknown): Fault {
  const issue = error.issues[0];
  if (issue === undefined) return { message: "The request is invalid.", param: null, code: null };
  const param = issue.path.map(String).join(".");
  const value = issue.path.reduce<unknown>(memberOf, body);
  switch (issue.code) {
    case "unrecognized_keys": {
      const field = [...issue.path, issue.keys[0] ?? ""].map(String).join(".");
      return { message: `Unknown parameter: '${shorten(field)}'.`, param: shorten(field), code: "unknown_parameter" };
    }
    case "invalid_type":
      if (param === "") return { message: "Expected a JSON object as the body.", param: null, code: null };
      if (value === undefined) return missing(param);
      return wrongType(param, EXPECTED[issue.expected] ?? `a ${issue.expected}`, value);
    case "invalid_value":
      if (value === undefined) return missing(param);
      if (typeof value !== "string") return wrongType(param, "a string", value);
      return unsupported(param, value, issue.values.map(String));
    case "too_big":
    case "too_small": {
      const bound = Number(issue.code === "too_big" ? issue.maximum : issue.minimum);
      if (typeof value === "number") return outOfRange(param, value, { min: bound, max: bound });
      if (issue.code === "too_big" && typeof value === "string") return tooLong(param, value, bound);
      return { message: `Invalid '${param}': ${issue.message}.`, param, code: "invalid_value" };
    }
    default:
      return { message: `Invalid '${param}': ${issue.message}.`, param, code: "invalid_value" };
  }
}

function memberOf(value: unknown, name: PropertyKey): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
