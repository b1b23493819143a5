/** Objects that take the fields they name and no others. The refusal of another field suggests what its client meant. */
import * as z from "zod";
import { similarName } from "../providers/formats/request/field-table.ts";
import { ownParamFault } from "../providers/formats/request/own-params.ts";
import { REQUEST_FIELDS } from "../providers/formats/request/request-fields.ts";

/** A schema like `z.strictObject`, whose refusal of an unknown field carries a suggestion. */
export function strictFields<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: ({ code, keys }) =>
      code === "unrecognized_keys" && Array.isArray(keys) ? suggestion(String(keys[0]), known) : undefined,
  });
}

/**
 * What to do about an unknown field: send it in `params` if upstreams know it and the object has `params`, else use the
 * most similar of the known fields (`deadline_ms` for `deadline`, `budget` for `budget_usd`), else one of all.
 */
function suggestion(name: string, known: readonly string[]): string {
  const hasParams = known.includes("params");
  if (hasParams && REQUEST_FIELDS.chat.rules.has(name)) {
    const fault = ownParamFault(name, undefined);
    return fault === null ? `put it in params: {"params": {"${name}": …}}` : `params does not take it either. ${fault}`;
  }
  const longer = known.find((field) => field.startsWith(`${name}_`));
  const shorter = known.find((field) => name.startsWith(`${field}_`));
  const similar = longer ?? similarName(name, known) ?? shorter ?? null;
  if (similar !== null) return `did you mean ${similar}?`;
  if (hasParams) return "fields for the upstream belong in params";
  return `expected ${known.length === 1 ? "" : "one of "}${known.join(", ")}`;
}
