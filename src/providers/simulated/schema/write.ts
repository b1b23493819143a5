/**
 * Writes a value that follows a JSON Schema, as a provider with structured outputs does. The value depends on the schema and a
 * text alone, so that runs can be repeated. A schema that it cannot follow is refused, never answered wrongly.
 */
import { isRecord } from "../../../text/json/record.ts";
import { fraction, promptHash } from "../hash.ts";
import { joined, type Schema } from "./join.ts";
import { numberWithin } from "./number.ts";
import { stringOf } from "./string.ts";

/** The value as JSON, or why the schema cannot be followed. */
export type Written = { ok: true; json: string } | { ok: false; message: string };

/** `text`: what strings are made of. `items`: elements of each array, as far as its bounds allow; null = one to three. */
export type Source = { text: string; items: number | null };

/** Most values in one answer: a schema of a few bytes can describe a tree without end. */
const VALUES_MAX = 50_000;
/** Depth from which optional parts are left out, so that a schema that contains itself ends. */
const DEPTH_FULL = 8;
/** Depth at which a schema is taken to have no end; also keeps recursion off the end of the stack. */
const DEPTH_MAX = 64;
/** Characters of all strings together: `minLength` could ask for any number. */
const CHARACTERS_MAX = 1_000_000;

/** Keywords that narrow what is valid in a way that this writer does not follow. Others are followed or are annotations. */
const UNFOLLOWED = [
  ...["not", "if", "pattern", "contains", "dependentSchemas", "dependentRequired", "dependencies"],
  ...["minProperties", "maxProperties", "$dynamicRef", "$recursiveRef"],
];

type Writer = {
  readonly root: unknown;
  readonly source: Source;
  valuesLeft: number;
  charactersLeft: number;
  /** The first reason why the schema cannot be followed; values after it do not matter. */
  refusal: string | null;
};

/** Where a value is: `path` seeds its choices. */
type Place = { path: string; depth: number };

export function writeJson(schema: unknown, source: Source): Written {
  const writer: Writer = {
    root: schema,
    source,
    valuesLeft: VALUES_MAX,
    charactersLeft: CHARACTERS_MAX,
    refusal: null,
  };
  const value = valueOf(writer, schema, { path: "$", depth: 0 });
  if (writer.refusal !== null) return { ok: false, message: `the schema cannot be simulated: ${writer.refusal}` };
  return { ok: true, json: JSON.stringify(value) };
}

function refuse(writer: Writer, why: string): null {
  writer.refusal ??= why;
  return null;
}

function valueOf(writer: Writer, given: unknown, place: Place): unknown {
  if (writer.refusal !== null) return null;
  if (--writer.valuesLeft < 0) return refuse(writer, `it asks for more than ${VALUES_MAX} values`);
  if (place.depth > DEPTH_MAX) return refuse(writer, `it is nested more than ${DEPTH_MAX} deep`);
  if (given === false) return refuse(writer, `no value is valid at ${place.path}`);
  const schema = given === true ? {} : given;
  if (!isRecord(schema)) return refuse(writer, `${place.path} is no schema`);
  const unfollowed = UNFOLLOWED.find((keyword) => Object.hasOwn(schema, keyword));
  if (unfollowed !== undefined) return refuse(writer, `${unfollowed} at ${place.path}`);
  const simpler = simplerForm(writer, schema, place);
  if (simpler !== null) return valueOf(writer, simpler, { ...place, depth: place.depth + 1 });
  if (Object.hasOwn(schema, "const")) return schema["const"];
  const { enum: values } = schema;
  if (Array.isArray(values)) {
    return values.length === 0 ? refuse(writer, `enum is empty at ${place.path}`) : pick(writer, values, place);
  }
  return typedValue(writer, schema, place);
}

/** The keywords that a schema puts in place of, or beside, its own rules. */
const FORMS = ["$ref", "allOf", "anyOf", "oneOf"] as const;

/** The schema with its first reference, intersection or union resolved; null if it has none. */
function simplerForm(writer: Writer, schema: Schema, place: Place): unknown {
  const keyword = FORMS.find((name) => schema[name] !== undefined);
  if (keyword === undefined) return null;
  const { [keyword]: form, ...rest } = schema;
  const parts = keyword === "$ref" ? [referenced(writer.root, form)] : form;
  if (!Array.isArray(parts) || parts.length === 0) return refuse(writer, `${keyword} at ${place.path} is empty`);
  const chosen = keyword === "$ref" || keyword === "allOf" ? parts : [alternative(writer, parts, place)];
  let whole: Schema = rest;
  for (const part of chosen) {
    if (part === true) continue;
    if (!isRecord(part)) return refuse(writer, `${keyword} at ${place.path} leads to no schema`);
    const both = joined(whole, part);
    if (typeof both === "string") return refuse(writer, `two schemas at ${place.path} differ in ${both}`);
    whole = both;
  }
  return whole;
}

/** Deep down the shortest alternative, which is most likely to end: often `{"type": "null"}`. */
function alternative(writer: Writer, parts: readonly unknown[], place: Place): unknown {
  if (!isMinimal(writer, place)) return pick(writer, parts, place);
  const lengths = parts.map((part) =>
    isRecord(part) && part["$ref"] !== undefined ? Infinity : JSON.stringify(part).length,
  );
  return parts[lengths.indexOf(Math.min(...lengths))];
}

/** The schema at a JSON pointer of the root, which is the only place that a reference can name here. */
function referenced(root: unknown, reference: unknown): unknown {
  if (typeof reference !== "string" || !/^#(\/|$)/.test(reference)) return undefined;
  const steps = reference.split("/").slice(1);
  return steps.reduce<unknown>((at, step) => {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    return (isRecord(at) || Array.isArray(at)) && Object.hasOwn(at, name) ? Reflect.get(at, name) : undefined;
  }, root);
}

// ─── Values by type ───

function typedValue(writer: Writer, schema: Schema, place: Place): unknown {
  const type = typeOf(schema, isMinimal(writer, place));
  switch (type) {
    case "object":
      return objectOf(writer, schema, place);
    case "array":
      return arrayOf(writer, schema, place);
    case "string": {
      const text = stringOf(schema, { text: writer.source.text, seed: seedAt(writer, place) });
      if (text === null) return refuse(writer, `the length or format at ${place.path}`);
      writer.charactersLeft -= text.length;
      return writer.charactersLeft < 0 ? refuse(writer, `it asks for more than ${CHARACTERS_MAX} characters`) : text;
    }
    case "number":
    case "integer": {
      const value = numberWithin(schema, { isWhole: type === "integer", share: fraction(seedAt(writer, place)) });
      return value ?? refuse(writer, `no number is within the bounds at ${place.path}`);
    }
    case "boolean":
      return promptHash(seedAt(writer, place)) % 2 === 0;
    case "null":
      return null;
    default:
      return refuse(writer, `type ${JSON.stringify(type)} at ${place.path}`);
  }
}

/** Of several types the first that is not null, and null where a schema that contains itself should end. */
function typeOf(schema: Schema, isMinimal: boolean): unknown {
  const { type } = schema;
  if (Array.isArray(type)) {
    return isMinimal && type.includes("null") ? "null" : (type.find((name) => name !== "null") ?? "null");
  }
  if (type !== undefined) return type;
  const has = (...keywords: readonly string[]): boolean => keywords.some((keyword) => Object.hasOwn(schema, keyword));
  if (has("properties", "required", "additionalProperties")) return "object";
  if (has("items", "prefixItems", "minItems")) return "array";
  return has("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum") ? "number" : "string";
}

/** With every property that the schema describes: clients of structured outputs require all of them. */
function objectOf(writer: Writer, schema: Schema, place: Place): Record<string, unknown> {
  const { required, additionalProperties: others } = schema;
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const demanded: readonly unknown[] = Array.isArray(required) ? required : [];
  const names = new Set(isMinimal(writer, place) ? [] : Object.keys(properties));
  for (const name of demanded) if (typeof name === "string") names.add(name);
  if (names.size === 0 && isRecord(others) && !isMinimal(writer, place)) names.add("key");
  const entries = Array.from(names, (name): [string, unknown] => {
    const rule = Object.hasOwn(properties, name) ? properties[name] : (others ?? true);
    return [name, valueOf(writer, rule, below(place, `.${name}`))];
  });
  return Object.fromEntries(entries);
}

function arrayOf(writer: Writer, schema: Schema, place: Place): unknown[] {
  const { items, prefixItems, minItems, maxItems, uniqueItems } = schema;
  const first: readonly unknown[] = Array.isArray(prefixItems) ? prefixItems : [];
  const least = Math.max(typeof minItems === "number" ? minItems : 0, 0);
  const most = items === false ? first.length : typeof maxItems === "number" ? maxItems : Infinity;
  const wished = writer.source.items ?? 1 + Math.floor(fraction(seedAt(writer, place)) * 3);
  const length = isMinimal(writer, place) ? least : Math.min(most, Math.max(least, first.length, wished));
  if (length > most) refuse(writer, `minItems is above maxItems at ${place.path}`);
  const values: unknown[] = [];
  const seen = new Set<string>();
  for (let index = 0; index < length && writer.refusal === null; index++) {
    const value = valueOf(writer, first[index] ?? items ?? true, below(place, `[${index}]`));
    const json = JSON.stringify(value);
    if (uniqueItems !== true || !seen.has(json)) values.push(value);
    seen.add(json);
  }
  if (values.length < least) refuse(writer, `too few different elements at ${place.path}`);
  return values;
}

// ─── Choices ───

function isMinimal(writer: Writer, { depth }: Place): boolean {
  return depth >= DEPTH_FULL || writer.valuesLeft < VALUES_MAX / 2;
}

function below({ path, depth }: Place, step: string): Place {
  return { path: `${path}${step}`, depth: depth + 1 };
}

function seedAt({ source }: Writer, { path }: Place): string {
  return `${path}:${source.text}`;
}

function pick(writer: Writer, choices: readonly unknown[], place: Place): unknown {
  return choices[promptHash(seedAt(writer, place)) % choices.length];
}
