/** The wire form of an error, and how a failed schema becomes a reason that names the field. */
import * as z from "zod";
import { fieldMessage, quoted, type Reason } from "../errors.ts";
import { atFirstUse } from "../at-first-use.ts";

/** What reading a piece of a request ends as: its value, or why it is refused. */
export type Parsed<T> = { ok: true; value: T } | { ok: false; reason: Reason };

/** A request refused because of one field, with what is wrong with it; `param` null = the whole body. */
export function invalid(param: string | null, problem: string): { ok: false; reason: Reason } {
  const field = param === null ? null : quoted(param);
  return { ok: false, reason: { reason: "invalid_request", message: fieldMessage(field, problem), param: field } };
}

const capacityShortage = atFirstUse(() =>
  z
    .object({ what: z.string(), requested: z.number(), available: z.number(), limit: z.number() })
    .meta({ id: "CapacityShortage" }),
);

/** `{"error": …}`: the same six fields on every route, then the facts of the reason. */
export const errorBody = atFirstUse(() =>
  z
    .object({
      error: z
        .object({
          message: z.string(),
          type: z.enum([
            "invalid_request_error",
            "authentication_error",
            "permission_error",
            "insufficient_quota",
            "rate_limit_error",
            "upstream_error",
            "server_error",
          ]),
          code: z.string(),
          param: z.string().nullable(),
          retryable: z.boolean(),
          attempts: z.int().optional().meta({
            description: "Number of attempts that the gateway made; absent if it made none, except in `errors[i]`",
          }),
          charged_usd: z.number().optional().meta({
            description: "Total charge for these attempts, USD",
          }),
          upstream_code: z.string().optional().meta({
            description: "The provider's error code, such as `context_length_exceeded`; absent if it sent none",
          }),
        })
        .catchall(
          z.union([z.string(), z.number(), z.boolean(), z.null(), z.array(z.string()), z.array(capacityShortage())]),
        ),
    })
    .meta({ id: "Error" }),
);

/** An error on Anthropic's routes: the same fields, with the type that this API gives the status. */
export const anthropicErrorBody = atFirstUse(() =>
  z
    .object({ type: z.literal("error"), error: errorBody().shape.error.extend({ type: z.string() }) })
    .meta({ id: "AnthropicError" }),
);

/** An upstream's own error, relayed as the upstream wrote it. */
export const relayedErrorBody = atFirstUse(() =>
  z.looseObject({ error: z.unknown() }).meta({
    id: "UpstreamError",
    description: "An upstream's error as it wrote it. It may lack fields that the gateway's errors have",
  }),
);

/**
 * The first fault that a schema found: its JSON path, such as `items[3].max_tokens`, and what was expected. `at`: where in the request
 * the value is that the schema was given.
 */
export function zodReason(error: z.ZodError, at: readonly PropertyKey[] = []): Reason {
  const issue = error.issues[0];
  if (issue === undefined) return invalid(null, "does not have the expected form").reason;
  if (issue.code === "unrecognized_keys") {
    const field = quoted(pathText([...at, ...issue.path, ...issue.keys.slice(0, 1)]));
    return { reason: "invalid_request", message: `unknown field "${field}"; ${issue.message}`, param: field };
  }
  const path = [...at, ...issue.path];
  const param = path.length === 0 ? null : pathText(path);
  // Zod opens with a heading such as "Too big: "; what was expected follows it.
  const problem = issue.message.replace(/^(Invalid|Too)[a-z ]*: /, "");
  return invalid(param, inWords(problem)).reason;
}

/** What a schema calls kinds of values, in words of JSON. */
const KINDS: Readonly<Record<string, string>> = {
  object: "a JSON object",
  record: "a JSON object",
  array: "an array",
  string: "a text",
  number: "a number",
  int: "an integer",
  boolean: "true or false",
  undefined: "nothing",
};

const kindOf = (name: string): string => KINDS[name] ?? name;

const BOUNDS: Readonly<Record<string, string>> = {
  ">=": "at least",
  "<=": "at most",
  ">": "more than",
  "<": "less than",
};

/** The schemas' own sentences in words; a sentence of another form was written for people. */
function inWords(problem: string): string {
  const [, expected, received] = /^expected (\w+), received (\w+)$/.exec(problem) ?? [];
  if (expected === "int" && received === "number") return "expected an integer, received a number that is none";
  if (expected !== undefined && received !== undefined)
    return `expected ${kindOf(expected)}, received ${kindOf(received)}`;
  const [, bound = "", most] = /^expected \w+ to be ([<>]=?)(\S+)$/.exec(problem) ?? [];
  if (most !== undefined) return `expected a number of ${BOUNDS[bound] ?? bound} ${most}`;
  const [, size = "", count, parts = ""] =
    /^expected \w+ to have ([<>]=?)(\d+) (items|characters)$/.exec(problem) ?? [];
  if (count === undefined) return problem;
  return `expected ${BOUNDS[size] ?? size} ${count} ${count === "1" ? parts.slice(0, -1) : parts}`;
}

function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part}]`;
    return text === "" ? String(part) : `${text}.${String(part)}`;
  }, "");
}
