/** What a model that combines or judges answers is to do, in a client's words. */
import * as z from "zod";
import { RUBRIC_CHARS_MAX } from "../../limits.ts";
import { textFault } from "../text.ts";
import { atFirstUse } from "../../at-first-use.ts";

export const instruction = atFirstUse(() =>
  z
    .string()
    .min(1)
    .max(RUBRIC_CHARS_MAX)
    .refine((text) => textFault(text) === null, "expected well-formed text without NUL"),
);
