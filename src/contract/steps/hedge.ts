/** `hedge`: a second attempt of a call beside one that is much slower than the others. */
import * as z from "zod";
import type { HedgeRule } from "../../call.ts";
import { HEDGE_EXTRA_DEFAULT, HEDGE_EXTRA_MAX, TIMEOUT_MS_MAX } from "../../limits.ts";
import { strictFields } from "../strict-fields.ts";
import { atFirstUse } from "../../at-first-use.ts";

/** The field as it is documented. */
export const hedgeField = atFirstUse(() =>
  z
    .union([
      z.literal(false),
      strictFields({
        after: z
          .union([z.literal("p95"), z.int().min(1).max(TIMEOUT_MS_MAX)])
          .optional()
          .meta({
            description:
              "The time after which an attempt is slow, ms; `p95` (default): when it takes longer than 95 % of the calls to its model",
          }),
        max_extra: z
          .number()
          .gt(0)
          .max(HEDGE_EXTRA_MAX)
          .optional()
          .meta({
            description: `The most that second attempts may cost, as a fraction of what the group has cost; default ${HEDGE_EXTRA_DEFAULT}`,
          }),
      }),
    ])
    .meta({
      id: "Hedge",
      description:
        "A call that is much slower than the others gets a second attempt; the first answer counts. Default: as the upstream is configured, else `false`. See docs/routes.md",
    }),
);

/** The rule that a request names. */
export function hedgeOf(sent: z.infer<ReturnType<typeof hedgeField>>): HedgeRule | false {
  if (sent === false) return false;
  const { after = "p95", max_extra: maxExtra = HEDGE_EXTRA_DEFAULT } = sent;
  return { after, maxExtra };
}
