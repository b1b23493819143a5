/**
 * How a schema reaches a model: in the field that its provider has for it, or as a sentence of the system message. Providers
 * take subsets of JSON Schema; whatever they make of it, the answer is checked here.
 */
import { isRecord } from "../json/record.ts";

type Schema = Readonly<Record<string, unknown>>;

/** OpenAI's field. `strict` binds the model, but only schemas of a subset may ask for it. */
export function chatResponseFormat(schema: Schema): object {
  const strict = schema["type"] === "object" && isWithin(schema, OPENAI_STRICT);
  return { type: "json_schema", json_schema: { name: "answer", schema, strict } };
}

/** Anthropic's field; null if the schema is outside of what it takes. */
export function messagesOutputFormat(schema: Schema): object | null {
  return isWithin(schema, ANTHROPIC) ? { type: "json_schema", schema } : null;
}

/** The sentence for models whose provider has no field for the schema. */
export function schemaInstruction(schema: Schema): string {
  return `${INSTRUCTION}${JSON.stringify(schema)}`;
}

const INSTRUCTION =
  "Answer with one JSON value and nothing else: no explanation, no code block. The value must fit this JSON Schema:\n";

/** A provider's subset of JSON Schema. */
type Subset = { keywords: ReadonlySet<string>; requiresAll: boolean };

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

/** https://platform.openai.com/docs/guides/structured-outputs#supported-schemas */
const OPENAI_STRICT: Subset = {
  keywords: words(
    `type enum const anyOf $ref $defs definitions properties required additionalProperties items description title pattern
    format multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems`,
  ),
  requiresAll: true,
};

/** https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations */
const ANTHROPIC: Subset = {
  keywords: words(
    "type enum const anyOf allOf $ref $defs definitions properties required additionalProperties items description title default format",
  ),
  requiresAll: false,
};

/** Whether a schema uses nothing else, and every object in it is closed: names all that it may have. */
function isWithin(schema: unknown, subset: Subset): boolean {
  if (!isRecord(schema)) return false;
  if (!Object.keys(schema).every((name) => subset.keywords.has(name))) return false;
  const { type, properties, required, additionalProperties } = schema;
  const types: unknown[] = Array.isArray(type) ? type : [type];
  if (properties !== undefined || types.includes("object")) {
    if (additionalProperties !== false || !isRecord(properties)) return false;
    const names: unknown[] = Array.isArray(required) ? required : [];
    if (subset.requiresAll && !Object.keys(properties).every((name) => names.includes(name))) return false;
  }
  return innerOf(schema).every((inner) => isWithin(inner, subset));
}

function innerOf({ properties, $defs, definitions, items, anyOf, allOf }: Schema): unknown[] {
  const named = [properties, $defs, definitions].flatMap((each) => (isRecord(each) ? Object.values(each) : []));
  const listed = [anyOf, allOf].flatMap((each) => (Array.isArray(each) ? (each as unknown[]) : []));
  return [...named, ...listed, ...(items === undefined ? [] : [items])];
}
