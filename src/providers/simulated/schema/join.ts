/** Joins two schemas that must both hold into one. */
import { isRecord } from "../../../text/json/record.ts";

export type Schema = Readonly<Record<string, unknown>>;

/** Keywords that say nothing about what is valid: of two, either may stay. */
const ANNOTATIONS = new Set(
  "title description default examples $comment $id $schema $defs definitions deprecated".split(" "),
);

const LOWER_BOUNDS = new Set("minimum exclusiveMinimum minLength minItems".split(" "));
const UPPER_BOUNDS = new Set("maximum exclusiveMaximum maxLength maxItems".split(" "));

/** The schema that both are parts of, or the keyword in which they cannot be joined. */
export function joined(one: Schema, other: Schema): Schema | string {
  const both: Record<string, unknown> = { ...one };
  for (const [keyword, value] of Object.entries(other)) {
    const present = both[keyword];
    if (present === undefined || ANNOTATIONS.has(keyword)) both[keyword] = value;
    else if (keyword === "properties" && isRecord(present) && isRecord(value)) both[keyword] = merged(present, value);
    else if (keyword === "required" && Array.isArray(present) && Array.isArray(value))
      both[keyword] = [...present, ...value];
    else if (LOWER_BOUNDS.has(keyword) && typeof present === "number" && typeof value === "number")
      both[keyword] = Math.max(present, value);
    else if (UPPER_BOUNDS.has(keyword) && typeof present === "number" && typeof value === "number")
      both[keyword] = Math.min(present, value);
    else if (JSON.stringify(present) !== JSON.stringify(value)) return keyword;
  }
  return both;
}

function merged(one: Schema, other: Schema): Schema {
  const shared = Object.keys(one).filter((name) => Object.hasOwn(other, name));
  const joint = shared.map((name) => [name, { allOf: [one[name], other[name]] }]);
  return { ...one, ...other, ...Object.fromEntries(joint) };
}
