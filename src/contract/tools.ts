/** Tools of a run as `POST /runs` registers and its document shows them, and `POST /tool_call`. */
import * as z from "zod";
import {
  JSON_DEPTH_MAX,
  TOOL_DESCRIPTION_CHARS_MAX,
  TOOL_TIMEOUT_MS_DEFAULT,
  TOOL_TIMEOUT_MS_MAX,
  TOOL_URL_CHARS_MAX,
  TOOLS_PER_RUN_MAX,
} from "../limits.ts";
import { acceptedSchema } from "../text/schema/accept.ts";
import type { Parsed } from "./errors.ts";
import { invalid, zodReason } from "./errors.ts";
import { strictFields } from "./strict-fields.ts";
import { nestsDeeperThan, textFault } from "./text.ts";
import { atFirstUse } from "../at-first-use.ts";

/** The name of a tool, in the form that models and their APIs accept for functions. */
export const toolName = atFirstUse(() =>
  z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "expected 1 to 64 letters, digits, _ and -"),
);

const registration = atFirstUse(() =>
  strictFields({
    name: toolName(),
    url: z.string().min(1).max(TOOL_URL_CHARS_MAX).meta({
      format: "uri",
      description:
        "Address to which the gateway posts a call: http or https, on a public host or a host that `TOOL_HOSTS` lists",
    }),
    description: z
      .string()
      .max(TOOL_DESCRIPTION_CHARS_MAX)
      .refine((text) => textFault(text) === null, "expected well-formed text without NUL")
      .optional(),
    parameters: z.record(z.string(), z.unknown()).optional().meta({
      description:
        "JSON Schema of `input`, an object: it is checked before a call, and planners are offered it. Arguments of LLMCompiler's steps fill its properties in their order",
    }),
    idempotent: z.boolean().optional().meta({
      description: "If true, the gateway retries a call once after a lost connection; default false",
    }),
    timeout_ms: z
      .int()
      .min(1)
      .max(TOOL_TIMEOUT_MS_MAX)
      .optional()
      .meta({ description: `Time limit of a call, including its retry, ms; default ${TOOL_TIMEOUT_MS_DEFAULT}` }),
  }),
);

/** The field `tools` of `POST /runs`. */
export const toolList = atFirstUse(() =>
  z
    .array(registration())
    .max(TOOLS_PER_RUN_MAX)
    .superRefine((tools, context) => {
      const names = new Set<string>();
      for (const [index, { name, parameters }] of tools.entries()) {
        const fault = parameters === undefined ? null : parametersFault(parameters);
        if (fault !== null) context.addIssue({ code: "custom", path: [index, "parameters"], message: fault });
        const message = "is the name of another tool in this list; expected unique names";
        if (names.has(name)) context.addIssue({ code: "custom", path: [index, "name"], message });
        names.add(name);
      }
    })
    .meta({
      description: "Tools that the run's code may call with `/tool_call`. Only the operator can register tools",
    }),
);

/** Why a schema of inputs is not accepted; null if it is. */
function parametersFault(parameters: Readonly<Record<string, unknown>>): string | null {
  if (nestsDeeperThan(parameters, JSON_DEPTH_MAX)) return `expected at most ${JSON_DEPTH_MAX} levels of nesting`;
  const accepted = acceptedSchema(parameters);
  return accepted.ok ? null : `${accepted.path} ${accepted.problem}`.trim();
}

/** A tool as a run's document shows it. */
export const shownTool = atFirstUse(() =>
  z
    .object({
      name: z.string(),
      description: z.string().nullable(),
      parameters: z.record(z.string(), z.unknown()).optional(),
      idempotent: z.boolean(),
      timeout_ms: z.int(),
      url: z.string().optional().meta({ description: "Shown to the operator only" }),
    })
    .meta({ id: "Tool" }),
);

/** `POST /tool_call`. The servers that had this route before ignored unknown fields, and so does this one. */
export const toolCallBody = atFirstUse(() =>
  z
    .looseObject({
      tool_name: toolName(),
      input: z.unknown().optional().meta({ description: "Any JSON value; default `{}`" }),
    })
    .meta({ id: "ToolCall" }),
);

export const toolCallReply = atFirstUse(() =>
  z
    .object({ result: z.unknown().meta({ description: "Any JSON value: the tool's answer" }) })
    .meta({ id: "ToolResult" }),
);

/** A call of a tool as requested. */
export type ToolCall = { name: string; input: unknown };

/** A parsed JSON body as a tool call. */
export function parseToolCall(value: unknown): Parsed<ToolCall> {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const name = isObject && "tool_name" in value ? value.tool_name : undefined;
  if (isObject && (name === undefined || name === null || name === "")) {
    return { ok: false, reason: { reason: "invalid_request", message: "missing tool_name", param: "tool_name" } };
  }
  const read = toolCallBody().safeParse(value);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const { tool_name, input = {} } = read.data;
  return nestsDeeperThan(input, JSON_DEPTH_MAX)
    ? invalid("input", `expected at most ${JSON_DEPTH_MAX} levels of nesting`)
    : { ok: true, value: { name: tool_name, input } };
}
