/** Whether a schema that a client sends is accepted: its bounds, and whether all of it can be checked. */
import { SCHEMA_BYTES_MAX } from "../../limits.ts";
import { compileSchema } from "./compile.ts";
import { schemaInstruction } from "./forms.ts";

/** What is wrong with a schema, and where: `.properties.age.minimum`, "" = all of it. Its nesting must have been bounded before. */
export type SchemaFault = { path: string; problem: string };

/** The longest form in which a schema is sent, whose size is reserved; or why it is refused. */
export function acceptedSchema(
  schema: Readonly<Record<string, unknown>>,
): { ok: true; sentAs: string } | ({ ok: false } & SchemaFault) {
  const sentAs = schemaInstruction(schema);
  // A character has three bytes at most as UTF-16 counts it, so most schemas need no second look.
  const isLarge = sentAs.length * 3 > SCHEMA_BYTES_MAX && new TextEncoder().encode(sentAs).length > SCHEMA_BYTES_MAX;
  if (isLarge) return { ok: false, path: "", problem: `expected at most ${SCHEMA_BYTES_MAX} bytes` };
  const compiled = compileSchema(schema);
  return compiled.ok ? { ok: true, sentAs } : compiled;
}

/** Fields of `params` that ask for a format, too: which of the two holds would be the upstream's choice. */
const OTHER_FORMATS = [
  "response_format",
  "output_format",
  "guided_json",
  "guided_regex",
  "guided_choice",
  "guided_grammar",
];

/** The field of `params` that contradicts a schema; null = none does. */
export function otherFormatIn(params: Readonly<Record<string, unknown>> | undefined): string | null {
  if (params === undefined) return null;
  const { output_config: config } = params;
  if (typeof config === "object" && config !== null && "format" in config) return "output_config.format";
  return OTHER_FORMATS.find((name) => params[name] !== undefined && params[name] !== null) ?? null;
}
