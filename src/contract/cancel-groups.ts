/** `POST /groups/cancel` and `DELETE /groups/:id`: which groups stop, and what becomes of their calls in flight. */
import * as z from "zod";
import { CANCEL_NAMES_MAX, GROUP_WAIT_MS_MAX, IDEMPOTENCY_KEY_CHARS_MAX } from "../limits.ts";
import { slotCounts } from "./batch.ts";
import { zodReason, type Parsed } from "./errors.ts";
import { strictFields } from "./strict-fields.ts";
import { atFirstUse } from "../at-first-use.ts";

const inFlight = atFirstUse(() => z.enum(["end", "abort"]));

/** What becomes of the calls in flight of a group that is cancelled: they `end` by themselves, or are aborted. */
export type InFlightRule = z.infer<ReturnType<typeof inFlight>>;

const key = z.string().min(1).max(IDEMPOTENCY_KEY_CHARS_MAX);

export const cancelGroupsBody = atFirstUse(() =>
  strictFields({
    idempotency_keys: z
      .array(key)
      .default([])
      .meta({ description: "Keys of the requests that have opened the groups" }),
    ids: z.array(key).default([]).meta({ description: "Ids of groups" }),
    in_flight: inFlight().default("end").meta({
      description:
        "Calls in flight: `end` lets them end, so that they cost what they cost; `abort` closes their connections, and they stay charged at their reservation. Default `end`",
    }),
    wait_ms: z
      .int()
      .min(0)
      .max(GROUP_WAIT_MS_MAX)
      .default(0)
      .meta({ description: "How long to wait for the end of calls in flight, ms; default 0" }),
  })
    .refine(({ idempotency_keys, ids }) => idempotency_keys.length + ids.length > 0, {
      error: "expected the name of a group, in ids or idempotency_keys",
    })
    .refine(({ idempotency_keys, ids }) => idempotency_keys.length + ids.length <= CANCEL_NAMES_MAX, {
      error: `expected at most ${CANCEL_NAMES_MAX} names`,
    })
    .meta({ id: "CancelGroups" }),
);

export const cancelGroupsReply = atFirstUse(() =>
  z
    .object({
      object: z.literal("cancellation"),
      groups: z.int().meta({ description: "Groups that were found" }),
      ids: z.array(z.string()).meta({ description: "Their ids" }),
      running: z.int().meta({ description: "How many of these groups have calls in flight" }),
      counts: slotCounts().meta({ description: "The calls of these groups, by their state" }),
      spent_usd: z.number().meta({ description: "What these groups have cost so far" }),
      unknown: z.array(z.string()).meta({ description: "Names under which the run has no group" }),
    })
    .meta({ id: "Cancellation" }),
);
export type CancelGroupsDocument = z.infer<ReturnType<typeof cancelGroupsReply>>;

export type CancelGroupsBody = z.infer<ReturnType<typeof cancelGroupsBody>>;

export function parseCancelGroups(value: unknown): Parsed<CancelGroupsBody> {
  const read = cancelGroupsBody().safeParse(value);
  return read.success ? { ok: true, value: read.data } : { ok: false, reason: zodReason(read.error) };
}

const cancelQuery = atFirstUse(() => strictFields({ in_flight: inFlight().optional() }));

/** What `DELETE /groups/:id` does with calls in flight. */
export function parseCancelQuery(query: Record<string, string>): Parsed<InFlightRule> {
  const read = cancelQuery().safeParse(query);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  return { ok: true, value: read.data.in_flight ?? "abort" };
}
