/** `hedge` of an upstream: when its calls get a second attempt beside a slow one, unless they say otherwise. */
import * as z from "zod";
import type { HedgeRule } from "../../call.ts";
import { HEDGE_EXTRA_DEFAULT, HEDGE_EXTRA_MAX, TIMEOUT_MS_MAX } from "../../limits.ts";
import { atFirstUse } from "../../at-first-use.ts";

const afterError = `must be p95, or a whole number of milliseconds from 1 to ${TIMEOUT_MS_MAX}`;
const extraError = `must be a number above 0 and at most ${HEDGE_EXTRA_MAX}`;

/** The configured field; absent = never. */
export const hedgeField = atFirstUse(() =>
  z
    .strictObject(
      {
        after: z.union([z.literal("p95"), z.int().min(1).max(TIMEOUT_MS_MAX)], { error: afterError }).default("p95"),
        max_extra: z
          .number({ error: extraError })
          .gt(0, { error: extraError })
          .max(HEDGE_EXTRA_MAX, { error: extraError })
          .default(HEDGE_EXTRA_DEFAULT),
      },
      { error: "must be an object with after and max_extra" },
    )
    .optional(),
);

export function hedgeOf(field: z.infer<ReturnType<typeof hedgeField>>): { hedge?: HedgeRule } {
  return field === undefined ? {} : { hedge: { after: field.after, maxExtra: field.max_extra } };
}
