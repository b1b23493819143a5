/** A text that is the same for equal JSON values: the order of names does not matter. */
import type { StepCounter } from "./types.ts";

/** The text of a value. `steps` counts the work, if the value is an answer's. */
export function canonicalJson(value: unknown, steps?: StepCounter): string {
  if (typeof value === "string") steps?.spend(value.length);
  steps?.spend(1);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((part) => canonicalJson(part, steps)).join(",")}]`;
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, part]) => `${JSON.stringify(name)}:${canonicalJson(part, steps)}`).join(",")}}`;
}
