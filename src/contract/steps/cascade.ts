/** `models` and `escalate_on`: a call that goes to its next model if the answer of the previous one is not good enough. */
import * as z from "zod";
import { GATES, type Cascade, type Gate, type JsonGate } from "../../call.ts";
import { CASCADE_MODELS_MAX, NAME_CHARS_MAX } from "../../limits.ts";
import { tryParse } from "../../text/json/parse.ts";
import { invalid, type Parsed } from "../errors.ts";
import { label } from "../fields.ts";
import { strictFields } from "../strict-fields.ts";
import { atFirstUse } from "../../at-first-use.ts";

const condition = atFirstUse(() =>
  strictFields({
    json: z
      .string()
      .max(2 * NAME_CHARS_MAX)
      .meta({
        description:
          "A condition on a value in the answer's JSON: `$.confidence < 0.7`. It holds also if there is none",
      }),
  }),
);

/** The fields of a call that goes to several models. */
export const cascadeFields = atFirstUse(() => ({
  models: z.array(label).min(2).max(CASCADE_MODELS_MAX).optional().meta({
    description:
      "In place of `model`: the models to ask, one after another. The next is asked if `escalate_on` stops the answer of the one before. See docs/cascades.md",
  }),
  escalate_on: z
    .union([
      z
        .array(z.union([z.enum(GATES), condition()]))
        .min(1)
        .max(GATES.length + 1),
      condition(),
    ])
    .optional()
    .meta({
      description: `What of an answer sends the call to the next of \`models\`; default \`${JSON.stringify(GATES)}\``,
    }),
}));

/** What became of a call with `models`, in each answer that shows a call. */
export const stepsDocument = atFirstUse(() =>
  z
    .array(z.object({ model: z.string(), outcome: z.string(), attempts: z.int(), cost: z.number() }))
    .optional()
    .meta({
      description:
        "Of a call with `models` that went on to another one: each model that it was sent to, why it went on (`outcome`), and what that cost",
    }),
);

type Sent = z.infer<z.ZodObject<ReturnType<typeof cascadeFields>>>;

/** The models after the first. `before`: the gates that the call inherits. */
export function cascadeOf(models: readonly string[], before: Cascade | undefined): Cascade {
  return { ...gatesIn(before), models: models.slice(1) };
}

function gatesIn(before: Cascade | undefined): Omit<Cascade, "models"> {
  if (before === undefined) return { on: GATES };
  const { models, ...gates } = before;
  void models;
  return gates;
}

/** The gates that a request names at `path`. */
export function gatesOf(sent: NonNullable<Sent["escalate_on"]>, path: string): Parsed<Pick<Cascade, "on" | "json">> {
  const entries = Array.isArray(sent) ? sent : [sent];
  const on: Gate[] = [];
  let json: JsonGate | null = null;
  for (const entry of entries) {
    if (typeof entry === "string") on.push(entry);
    else {
      if (json !== null) return invalid(path, "expected at most one condition");
      json = jsonGateOf(entry.json);
      if (json === null) return invalid(path, JSON_GATE_FAULT);
    }
  }
  return { ok: true, value: { on: [...new Set(on)], ...(json !== null && { json }) } };
}

const CONDITION = /^\s*\$((?:\.[\w-]+|\[\d+\])+)\s*(<=|>=|==|!=|<|>)\s*(\S.*?)\s*$/;

/** What a text is refused with that `jsonGateOf` cannot read. */
export const JSON_GATE_FAULT =
  'expected a condition such as "$.confidence < 0.7": a path, < <= > >= == or !=, and a value';

/** A condition on a value in the JSON of an answer, as a client writes it; null if it is none. */
export function jsonGateOf(text: string): JsonGate | null {
  const [, path = "", operator, literal = ""] = CONDITION.exec(text) ?? [];
  const value = tryParse(literal);
  if (!isOperator(operator) || !isScalar(value)) return null;
  if (operator !== "==" && operator !== "!=" && typeof value !== "number") return null;
  const key = path.replaceAll("[", ".").replaceAll("]", "").slice(1);
  return { key, operator, value };
}

const OPERATORS: readonly string[] = ["<", "<=", ">", ">=", "==", "!="];

function isOperator(text: string | undefined): text is JsonGate["operator"] {
  return text !== undefined && OPERATORS.includes(text);
}

function isScalar(value: unknown): value is JsonGate["value"] {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}
