/** `GET /groups/:id` and what is below it, and the headers that make a call outlive its client. */
import { z } from "@hono/zod-openapi";
import { GROUP_WAIT_MS_MAX, IDEMPOTENCY_KEY_CHARS_MAX, RESULTS_PAGE_DEFAULT, RESULTS_PAGE_MAX } from "../limits.ts";
import { batchReply, slotCounts, slotDocument } from "./batch.ts";
import type { Parsed } from "./errors.ts";
import { errorBody, invalid, zodReason } from "./errors.ts";
import { strictFields } from "./strict-fields.ts";
import { queryInt } from "./fields.ts";

/** A group that has not ended. */
export const runningGroup = batchReply
  .pick({ id: true, object: true, status: true, usage: true, metrics: true, effective_parallel: true })
  .extend({ count: z.int(), counts: slotCounts, created_at: z.iso.datetime(), ended_at: z.null() })
  .openapi("RunningGroup");

/** A slot as a page of results shows it: `result` and `error` are null until it has ended. */
const resultLine = slotDocument.extend({
  result: z.unknown(),
  error: z.union([errorBody.shape.error, z.null()]),
});

/** One page of `GET /groups/:id/results`, in input order; `next_after` is the cursor of the next. */
export const resultsPage = z
  .object({
    object: z.literal("list"),
    data: z.array(resultLine),
    has_more: z.boolean(),
    next_after: z.int().nullable(),
  })
  .openapi("Results");

const groupQuery = strictFields({ wait_ms: queryInt.pipe(z.int().min(0).max(GROUP_WAIT_MS_MAX)).optional() });

/** How long a request for a group waits for its end, ms. */
export function parseGroupQuery(query: Record<string, string>): Parsed<{ waitMs: number }> {
  const read = groupQuery.safeParse(query);
  return read.success
    ? { ok: true, value: { waitMs: read.data.wait_ms ?? 0 } }
    : { ok: false, reason: zodReason(read.error) };
}

const resultsQuery = strictFields({
  after: queryInt.pipe(z.int().min(-1)).optional(),
  limit: queryInt.pipe(z.int().min(1).max(RESULTS_PAGE_MAX)).optional(),
});

/** The page of results that a query names: `after` is the last index that the client has; -1 = none. */
export function parseResultsQuery(query: Record<string, string>): Parsed<{ after: number; limit: number }> {
  const read = resultsQuery.safeParse(query);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const { after, limit } = read.data;
  return { ok: true, value: { after: after ?? -1, limit: limit ?? RESULTS_PAGE_DEFAULT } };
}

/** The header's value as a key; null if it is missing. Keys are stored in rows and logs, so they are plain text. */
export function parseIdempotencyKey(header: string | undefined): Parsed<string | null> {
  if (header === undefined) return { ok: true, value: null };
  if (/^[\x21-\x7e]+$/.test(header) && header.length <= IDEMPOTENCY_KEY_CHARS_MAX) return { ok: true, value: header };
  return invalid(
    "idempotency-key",
    `expected 1 to ${IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters, such as a UUID`,
  );
}

/** Whether `Prefer` requests an answer before the work is done. Unknown preferences are ignored, as RFC 7240 requires. */
export function prefersAsync(header: string | undefined): boolean {
  return (header ?? "").split(",").some((preference) => /^\s*respond-async\s*(;|$)/i.test(preference));
}
