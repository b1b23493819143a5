/** Values that fit a schema of the document: the honest requests that hostile ones are bent from. */
import { z } from "zod";
import type { Random } from "../../bench/adversary/random.ts";
import type { Schema } from "./document.ts";

/** What values are drawn with. `words`: values that fields of these names get, such as ids that exist. */
export type Source = {
  random: Random;
  schemas: ReadonlyMap<string, Schema>;
  words: ReadonlyMap<string, readonly string[]>;
};

/** Levels below which only what is required is drawn: schemas contain themselves. */
const DEPTH_MAX = 4;
/** Shares of the fields that may be left out which are there, one of which each value has: many fields exclude each other. */
const OPTIONAL_SHARES = [0, 0.03, 0.03, 0.1, 0.4] as const;
const NUMBER_MAX = 1_000;

const keywords = z.looseObject({
  $ref: z.string().optional(),
  enum: z.array(z.unknown()).optional(),
  anyOf: z.array(z.record(z.string(), z.unknown())).optional(),
  oneOf: z.array(z.record(z.string(), z.unknown())).optional(),
  allOf: z.array(z.record(z.string(), z.unknown())).optional(),
  type: z.union([z.string(), z.array(z.string())]).optional(),
  properties: z.record(z.string(), z.record(z.string(), z.unknown())).default({}),
  required: z.array(z.string()).default([]),
  items: z.record(z.string(), z.unknown()).default({}),
  minItems: z.number().default(0),
  minimum: z.number().default(0),
  maximum: z.number().default(NUMBER_MAX),
});

/** A value for the field `name`; it mostly fits. */
export function valueFor(schema: Schema, source: Source, name = "", depth = 0): unknown {
  const { random, words } = source;
  const known = words.get(name);
  const read = keywords.parse(schema);
  if (read.$ref !== undefined) {
    const referred = source.schemas.get(read.$ref.replace("#/components/schemas/", "")) ?? {};
    return valueFor(referred, source, name, depth);
  }
  if (read.enum !== undefined && read.enum.length > 0) return random.pick(read.enum);
  const choices = read.anyOf ?? read.oneOf;
  if (choices !== undefined && choices.length > 0) return valueFor(random.pick(choices), source, name, depth);
  if (read.allOf !== undefined) {
    return Object.assign({}, ...read.allOf.map((part) => valueFor(part, source, name, depth)));
  }
  const type = Array.isArray(read.type) ? random.pick(read.type) : read.type;
  switch (type) {
    case "object":
      return objectFor(read, source, depth);
    case "array": {
      const length = read.minItems + (depth > DEPTH_MAX ? 0 : random.integer(0, 2));
      return Array.from({ length }, () => valueFor(read.items, source, name, depth + 1));
    }
    case "integer":
    case "number":
      return random.integer(read.minimum, Math.max(read.minimum, Math.min(read.maximum, NUMBER_MAX)));
    case "boolean":
      return random.chance(0.5);
    case "null":
      return null;
    default:
      return known === undefined ? textFor(random) : random.pick(known);
  }
}

function objectFor(read: z.infer<typeof keywords>, source: Source, depth: number): Record<string, unknown> {
  const share = depth <= DEPTH_MAX ? source.random.pick(OPTIONAL_SHARES) : 0;
  const fields = Object.entries(read.properties).filter(
    ([name]) => read.required.includes(name) || source.random.chance(share),
  );
  // Of most requests the content is required, and no schema says of which fields it is.
  const contents = Object.entries(read.properties).filter(([name]) => CONTENTS.has(name));
  if (depth === 0 && contents.length > 0 && !fields.some(([name]) => CONTENTS.has(name))) {
    fields.push(source.random.pick(contents));
  }
  return Object.fromEntries(fields.map(([name, field]) => [name, valueFor(field, source, name, depth + 1)]));
}

/** The fields of which a call, a batch or a graph needs one. */
const CONTENTS: ReadonlySet<string> = new Set(["prompt", "prompts", "items", "tasks", "text", "goal"]);

const TEXTS = ["one", "two words", "{{a.output}}", "", "ein größeres Wort 🏴‍☠️", '{"a":1}', "a\nb", "{{chunk}}"] as const;

function textFor(random: Random): string {
  return random.pick(TEXTS);
}
