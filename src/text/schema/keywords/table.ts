/** Every keyword that is checked, and those that are refused because they are not. All others describe. */
import type { Keyword } from "../types.ts";
import { ARRAY_KEYWORDS } from "./arrays.ts";
import { COMBINING_KEYWORDS } from "./combining.ts";
import { OBJECT_KEYWORDS } from "./objects.ts";
import { VALUE_KEYWORDS } from "./values.ts";

/** The keywords that are checked. */
export const KEYWORDS: ReadonlyMap<string, Keyword> = new Map(
  Object.entries({ ...VALUE_KEYWORDS, ...ARRAY_KEYWORDS, ...OBJECT_KEYWORDS, ...COMBINING_KEYWORDS }),
);

/** Keywords that would restrict an answer but are not checked, each with what to use instead. `$id` may name the whole. */
export const UNSUPPORTED: ReadonlyMap<string, string> = new Map([
  ["unevaluatedProperties", "use additionalProperties"],
  ["unevaluatedItems", "use items"],
  ["dependencies", "use dependentRequired or dependentSchemas"],
  ["$anchor", 'refer to a place by its path: {"$ref": "#/$defs/name"}'],
  ["$dynamicAnchor", ""],
  ["$dynamicRef", "use $ref"],
  ["$recursiveAnchor", ""],
  ["$recursiveRef", "use $ref"],
  ["$id", "only the whole schema may have one"],
]);
