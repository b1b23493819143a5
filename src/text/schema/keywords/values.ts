/** Keywords about a value as a whole, about numbers and about texts. */
import { isRecord } from "../../json/record.ts";
import { canonicalJson } from "../canonical.ts";
import { misfit, type Check, type Keyword } from "../types.ts";

const TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"] as const;
type TypeName = (typeof TYPES)[number];

/** The JSON type of a value. */
function typeOf(value: unknown): Exclude<TypeName, "integer"> {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
    return typeof value as "string";
  return "object";
}

function isOfType(value: unknown, name: TypeName): boolean {
  return name === "integer" ? Number.isInteger(value) : typeOf(value) === name;
}

const type: Keyword = (sent, { refuse }) => {
  const names: unknown[] = Array.isArray(sent) ? sent : [sent];
  const expected = TYPES.filter((name) => names.includes(name));
  if (names.length === 0 || expected.length !== names.length)
    return refuse(`expected ${TYPES.join(", ")} or a list of them`);
  const problem = `expected ${expected.join(" or ")}`;
  return (value) =>
    expected.some((name) => isOfType(value, name)) ? null : misfit(`${problem}, received ${typeOf(value)}`);
};

const enumeration: Keyword = (sent, { refuse }) => {
  if (!Array.isArray(sent) || sent.length === 0) return refuse("expected a list of values");
  return oneOfValues(sent);
};

/** Characters of the allowed values that a problem shows. */
const SHOWN_CHARS = 200;

function oneOfValues(values: readonly unknown[]): Check {
  const allowed = new Set(values.map((value) => canonicalJson(value)));
  const shown = [...allowed].join(", ");
  const problem = `expected ${shown.length > SHOWN_CHARS ? `${shown.slice(0, SHOWN_CHARS).toWellFormed()}…` : shown}`;
  return (value, steps) => (allowed.has(canonicalJson(value, steps)) ? null : misfit(problem));
}

/** A keyword whose value is a number, about numbers. */
function numeric(problem: string, holds: (value: number, bound: number) => boolean, boundMin = -Infinity): Keyword {
  return (bound, { refuse }) => {
    if (typeof bound !== "number" || bound <= boundMin) {
      return refuse(boundMin === 0 ? "expected a number above 0" : "expected a number");
    }
    return (value) => (typeof value !== "number" || holds(value, bound) ? null : misfit(`${problem} ${bound}`));
  };
}

/** Whether a number is a multiple. Decimals are not exact in a computer: .3 ÷ .1 may miss 3 by the last digit. */
function isMultiple(value: number, divisor: number): boolean {
  if (Number.isInteger(value) && Number.isInteger(divisor)) return value % divisor === 0;
  const times = value / divisor;
  return Math.abs(times - Math.round(times)) <= Math.abs(times) * 2 * Number.EPSILON;
}

/** A keyword about the length of a text, in characters. */
function length(problem: string, holds: (chars: number, bound: number) => boolean): Keyword {
  return (bound, { refuse }) => {
    if (!isCount(bound)) return refuse("expected a whole number from 0 on");
    return (value, steps) => {
      if (typeof value !== "string") return null;
      steps.spend(value.length);
      return holds([...value].length, bound) ? null : misfit(`${problem} ${bound} characters`);
    };
  };
}

/** True for a number of things. */
export function isCount(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0;
}

const pattern: Keyword = (source, { refuse, pattern: compile }) => {
  if (typeof source !== "string") return refuse("expected a text: a regular expression");
  const matches = compile(source);
  if (matches === null) return null;
  return (value, steps) =>
    typeof value !== "string" || matches(value, steps) ? null : misfit(`does not match the pattern ${source}`);
};

/** Compiles the schemas that are only referred to, so that a fault in one is found even where nothing refers to it. */
const definitions: Keyword = (sent, { inner, refuse }) => {
  if (!isRecord(sent)) return refuse("expected an object of schemas");
  for (const [name, schema] of Object.entries(sent)) inner(schema, `.${name}`, "part");
  return null;
};

export const VALUE_KEYWORDS: Readonly<Record<string, Keyword>> = {
  type,
  enum: enumeration,
  const: (sent) => oneOfValues([sent]),
  minimum: numeric("expected a number from", (value, bound) => value >= bound),
  maximum: numeric("expected a number up to", (value, bound) => value <= bound),
  exclusiveMinimum: numeric("expected a number above", (value, bound) => value > bound),
  exclusiveMaximum: numeric("expected a number below", (value, bound) => value < bound),
  multipleOf: numeric("expected a multiple of", isMultiple, 0),
  minLength: length("expected at least", (chars, bound) => chars >= bound),
  maxLength: length("expected at most", (chars, bound) => chars <= bound),
  pattern,
  $defs: definitions,
  definitions,
};
