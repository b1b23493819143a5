/** How the beginning of a prompt that calls share is cached by their provider. */
import * as z from "zod";
import type { SharedPrefix } from "../../call.ts";
import { WARM_MS_DEFAULT, WARM_MS_MAX } from "../../limits.ts";
import { strictFields } from "../strict-fields.ts";
import { atFirstUse } from "../../at-first-use.ts";

const lifetime = strictFields({
  ttl: z.enum(["5m", "1h"]).optional().meta({
    description: "How long Anthropic keeps it after its last use; default 5 minutes. Other providers do not take it",
  }),
  warm_ms_max: z
    .int()
    .min(0)
    .max(WARM_MS_MAX)
    .optional()
    .meta({
      description: `Longest wait for the first call, whose answer makes it readable, ms; default ${WARM_MS_DEFAULT}`,
    }),
}).meta({ id: "CacheLifetime" });

/** The field `cache` of a call. */
export const cacheField = atFirstUse(() => z.union([z.enum(["auto", "off"]), lifetime]));

/** What a call says of the cache. */
export type CacheChoice = Pick<SharedPrefix, "ttl" | "warmMs">;

/** Null = it is not to be used. */
export function cacheChoiceOf(value: z.infer<ReturnType<typeof cacheField>>): CacheChoice | null {
  if (value === "off") return null;
  if (value === "auto") return {};
  const { ttl, warm_ms_max: warmMs } = value;
  return { ...(ttl === undefined ? {} : { ttl }), ...(warmMs === undefined ? {} : { warmMs }) };
}
