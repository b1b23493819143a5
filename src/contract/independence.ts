/** What the items of a batch state about each other, and what the check of it answers. */
import * as z from "zod";
import { ITEM_FILES_MAX } from "../limits.ts";
import { label } from "./fields.ts";
import { atFirstUse } from "../at-first-use.ts";

/** Fields of an item. Nothing but the check reads them. */
export const claimFields = atFirstUse(() => ({
  files: z.array(label).max(ITEM_FILES_MAX).optional().meta({ description: "What the call works on" }),
  writes: z.array(label).max(ITEM_FILES_MAX).optional().meta({ description: "What the call changes" }),
  output_location: label.optional().meta({ description: "Where its output goes" }),
}));

/** What an item states; absent from a call = nothing. */
export type Claims = { files: readonly string[]; writes: readonly string[]; outputLocation: string | null };

/** The claims of an item; undefined if it has none. */
export function claimsOf(item: z.infer<z.ZodObject<ReturnType<typeof claimFields>>>): Claims | undefined {
  const { files, writes, output_location: outputLocation } = item;
  if (files === undefined && writes === undefined && outputLocation === undefined) return undefined;
  return { files: files ?? [], writes: writes ?? [], outputLocation: outputLocation ?? null };
}

const INDEPENDENCE_POLICIES = ["report", "reject", "serialize"] as const;
export type IndependencePolicy = (typeof INDEPENDENCE_POLICIES)[number];

export const validateIndependence = atFirstUse(() =>
  z.enum(INDEPENDENCE_POLICIES).meta({
    description:
      "Checks before anything is sent whether the items can run at the same time. `report`: the answer has the checks. `reject`: items that are not independent are refused with 422 `invalid_graph`. `serialize`: items that name the same file or output run one after another",
  }),
);

/** What an answer says about independence; absent without `validate_independence`. */
export const independenceFields = atFirstUse(() => ({
  independence: z
    .object({
      pass: z.boolean(),
      checks: z.array(
        z.object({
          check: z.enum([
            "no_dependency",
            "complete_context",
            "no_shared_state",
            "distinct_output",
            "aggregation_declared",
          ]),
          pass: z.boolean(),
          items: z.array(z.string()).meta({ description: "Ids, or indexes, of the first items that fail it" }),
        }),
      ),
    })
    .optional(),
  conflicts: z
    .array(z.object({ file: z.string(), items: z.array(z.string()) }))
    .optional()
    .meta({ description: "Files that several items name" }),
}));
export type IndependenceReply = z.infer<z.ZodObject<ReturnType<typeof independenceFields>>>;
