/** An answer as JSON, and whether it fits the schema of its call. */
import { excessIn } from "../json/depth.ts";
import { tryParse } from "../json/parse.ts";
import { fieldMessage, quoted } from "../../errors.ts";
import { SCHEMA_ANSWER_DEPTH_MAX, SCHEMA_VIOLATION_CHARS_MAX } from "../../limits.ts";
import { compileSchema } from "./compile.ts";
import { runCounted } from "./steps.ts";

const encoder = new TextEncoder();
const FENCE = "```";

/** The JSON value of an answer: of all of its text, or of the code block that is all of it. Undefined = it is none. */
export function jsonOfAnswer(text: string): unknown {
  const json = withoutFence(text.trim());
  if (excessIn(encoder.encode(json), { levelsMax: SCHEMA_ANSWER_DEPTH_MAX, valuesMax: Infinity }) !== null)
    return undefined;
  return tryParse(json);
}

/** Models that are not held to a format like to put JSON into a code block. */
function withoutFence(text: string): string {
  const firstLineEnd = text.indexOf("\n");
  const isBlock = text.startsWith(FENCE) && text.endsWith(FENCE) && firstLineEnd !== -1;
  return isBlock && text.length - FENCE.length > firstLineEnd ? text.slice(firstLineEnd, -FENCE.length) : text;
}

/**
 * Why an answer does not fit, as a sentence for the model and for people: `$.items[3].name is missing`; null = it fits.
 * `endedAtCap`: whether the answer may only be cut off.
 */
export function violationOf(
  text: string,
  schema: Readonly<Record<string, unknown>>,
  endedAtCap: boolean,
): string | null {
  const value = jsonOfAnswer(text);
  if (value === undefined) {
    const cut = endedAtCap ? ", because it ended at its completion cap" : "";
    return `the answer is not JSON of at most ${SCHEMA_ANSWER_DEPTH_MAX} levels${cut}`;
  }
  return valueViolationOf(value, schema);
}

/** Why a JSON value does not fit, in the same form; null = it fits. */
export function valueViolationOf(value: unknown, schema: Readonly<Record<string, unknown>>): string | null {
  const compiled = compileSchema(schema);
  if (!compiled.ok) return quoted(`the schema cannot be checked: ${compiled.problem}`, SCHEMA_VIOLATION_CHARS_MAX);
  const found = runCounted((steps) => compiled.check(value, steps));
  if (found === null) return null;
  if (found === "too long") return "the answer is too large for its schema to be checked";
  return quoted(fieldMessage(`$${found.path}`, found.problem), SCHEMA_VIOLATION_CHARS_MAX);
}
