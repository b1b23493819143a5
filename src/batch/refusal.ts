/**
 * Refusals of the file and batch routes in the words and codes of the OpenAI API, which its clients match on; the
 * reasons of `errors.ts` have other codes. Everything here is deterministic: asking again does not help.
 */
import type { z } from "zod";

/** A request refused: the HTTP status and the `error` object of the answer. Send `x-should-retry: false` with it. */
export type ApiRefusal = {
  status: 400 | 404 | 409;
  error: {
    message: string;
    type: "invalid_request_error";
    param: string | null;
    code: string | null;
    retryable: false;
  };
};

/** What checking a piece of a request ends as. */
export type Checked<T> = { ok: true; value: T } | { ok: false; refusal: ApiRefusal };

/** What was wrong, as OpenAI's `message`, `param` and `code`. */
export type Fault = { message: string; param: string | null; code: string | null };

/** The refusal that a fault leads to. */
export function refusal({ message, param, code }: Fault, status: ApiRefusal["status"] = 400): ApiRefusal {
  return { status, error: { message, type: "invalid_request_error", param, code, retryable: false } };
}

/** A check that failed. */
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

/** A value that is none of the supported ones; where there is one only, the message names the field too. */
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

/** A client's text as a message quotes it. */
export function shorten(text: string): string {
  return charsOf(text) > QUOTED_CHARS_MAX ? `${[...text].slice(0, QUOTED_CHARS_MAX).join("")}...` : text;
}

/** A value's type as OpenAI's messages name it. */
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

/** The first thing that a schema found wrong with a body, in OpenAI's words. */
export function schemaFault(error: z.ZodError, body: unknown): Fault {
  const issue = error.issues[0];
  if (issue === undefined) return { message: "The request is invalid.", param: null, code: null };
  const param = issue.path.map(String).join(".");
  const value = issue.path.reduce<unknown>(memberOf, body);
  switch (issue.code) {
    case "unrecognized_keys": {
      const field = [...issue.path, issue.keys[0] ?? ""].map(String).join(".");
      return { message: `Unknown parameter: '${shorten(field)}'.`, param: field, code: "unknown_parameter" };
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
