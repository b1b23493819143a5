/** How votes are compared, for every field that counts them. */
import * as z from "zod";
import type { Comparison } from "../call.ts";
import { NAME_CHARS_MAX } from "../limits.ts";
import { invalid, type Parsed } from "./errors.ts";
import { ABSENT } from "./fields.ts";
import { atFirstUse } from "../at-first-use.ts";

/** The fields of whatever compares answers. */
export const comparisonFields = atFirstUse(() => ({
  by: z.enum(["normalized", "exact", "json_key"]).optional().meta({
    description:
      "When two answers are one vote. `normalized` (default): without case, white space, quotation marks and final punctuation. `exact`: letter by letter. `json_key`: by the value at `key` in their JSON",
  }),
  key: z
    .string()
    .min(1)
    .max(NAME_CHARS_MAX)
    .optional()
    .meta({ description: "With `json_key`: the path of the value, such as `verdict` or `result.0.label`" }),
}));

/** The share of equal votes that decides. */
export const agreeField = atFirstUse(() => ({
  agree: z
    .number()
    .gt(0)
    .max(1)
    .optional()
    .meta({ description: "The share of the votes that must be for one answer; default 0.75" }),
}));

/** For the OpenAPI document: what holds of these fields together. The parser checks it. */
export const COMPARED = {
  anyOf: [
    { required: ["by", "key"], properties: { by: { enum: ["json_key"] } } },
    { properties: { by: { enum: ["normalized", "exact"] }, key: ABSENT } },
  ],
};

/** The comparison that a request names at `path`. */
export function comparisonOf(
  { by = "normalized", key }: { by?: "normalized" | "exact" | "json_key" | undefined; key?: string | undefined },
  path: string,
): Parsed<Comparison> {
  if (by === "json_key") {
    return key === undefined
      ? invalid(`${path}.key`, "is missing; expected the path of the value that is compared")
      : { ok: true, value: { by, key } };
  }
  return key === undefined
    ? { ok: true, value: { by } }
    : invalid(`${path}.key`, 'is for "by": "json_key" only; leave it out, or set by');
}
