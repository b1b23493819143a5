/** `at_least`: when a group counts as completed although calls of it failed. */
import * as z from "zod";
import type { NamedRule } from "./rule.ts";
import { atFirstUse } from "../../at-first-use.ts";

/** The share; what it is a share of, each body says of its own calls. */
export const atLeast = atFirstUse(() => z.number().gt(0).max(1));

export const atLeastRule: NamedRule<{ at_least?: number | undefined }> = {
  read: ({ at_least: share }) => ({ ok: true, value: share === undefined ? {} : { atLeast: share } }),
};
