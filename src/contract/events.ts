/** `GET` and `POST /runs/:id/log`, `GET /runs/:id/events`. */
import * as z from "zod";
import { CLIENT_EVENT_BYTES_MAX, CLIENT_EVENTS_PER_POST_MAX, JSON_DEPTH_MAX } from "../limits.ts";
import { atOnce, SliceCount, type Sliced } from "../text/bytes/slices.ts";
import type { Parsed } from "./errors.ts";
import { invalid, zodReason } from "./errors.ts";
import { queryInt } from "./fields.ts";
import { strictFields } from "./strict-fields.ts";
import { nestsDeeperThan, utf8Bytes } from "./text.ts";
import { atFirstUse } from "../at-first-use.ts";

/** Names of the gateway's own events: a client that could write them could forge its bill. */
const OWN = new Set([
  "run_opened",
  "run_closed",
  "child_opened",
  "child_closed",
  "credit_lost",
  "group_started",
  "confirmation_awaited",
  "group_confirmed",
  "group_paused",
  "group_resumed",
  "group_completed",
  "attempt_started",
  "attempt_ended",
  "retry_scheduled",
  "throttled",
  "slot_completed",
  "slots_cancelled",
  "slot_skipped",
  "budget_refused",
  "escalated",
  "overrun",
  "tool_called",
]);

const usage = z.record(z.string(), z.unknown());

/** A client's own event. The gateway adds its number, its time and the run. */
export const clientEvent = atFirstUse(() =>
  strictFields({
    event_type: z
      .string()
      .regex(/^[a-z][a-z0-9_]{0,63}$/, "expected a name of small letters, digits and _, such as final_result")
      .refine((name) => !OWN.has(name), "is reserved for the gateway's own events; use another name"),
    parallel_group_id: z
      .string()
      .regex(/^pg-\d{13}-[0-9a-z]{1,6}$/, "expected the id of a group")
      .nullable()
      .optional(),
    step: z.int().min(0).max(Number.MAX_SAFE_INTEGER).nullable().optional(),
    code: z.string().nullable().optional(),
    output: z.string().nullable().optional(),
    hasError: z.boolean().optional(),
    reasoning: z.string().nullable().optional(),
    usage: usage.nullable().optional(),
    timestamps: usage.nullable().optional(),
    data: z.unknown().optional(),
  }).meta({ id: "ClientEvent" }),
);
export type ClientEvent = z.infer<ReturnType<typeof clientEvent>>;

/** The answer to `POST /runs/:id/log`: how many were added, and the number of the last. */
export const appendedReply = atFirstUse(() =>
  z.object({ object: z.literal("log"), appended: z.int(), seq: z.int() }).meta({ id: "Appended" }),
);

/** One event or a list of them, each with its JSON text. */
export function parseClientEvents(value: unknown): Parsed<SentEvent[]> {
  return atOnce(clientEventsReading(value));
}

type SentEvent = { event: ClientEvent; json: string };

/** The same in slices: a list has megabytes, each event of which is checked and written as JSON again. */
export function* clientEventsReading(value: unknown): Sliced<Parsed<SentEvent[]>> {
  const slice = new SliceCount();
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length > CLIENT_EVENTS_PER_POST_MAX) {
    return invalid(null, `has ${list.length} events; expected at most ${CLIENT_EVENTS_PER_POST_MAX}`);
  }
  const events: SentEvent[] = [];
  for (const [index, entry] of list.entries()) {
    const at = Array.isArray(value) ? `[${index}]` : null;
    const read = clientEvent().safeParse(entry);
    if (!read.success) return { ok: false, reason: placed(zodReason(read.error), at) };
    if (nestsDeeperThan(read.data, JSON_DEPTH_MAX)) {
      return invalid(at, `expected at most ${JSON_DEPTH_MAX} levels of nesting`);
    }
    const json = JSON.stringify(read.data);
    if (utf8Bytes(json) > CLIENT_EVENT_BYTES_MAX) {
      return invalid(at, `is too large; expected at most ${CLIENT_EVENT_BYTES_MAX} bytes of JSON`);
    }
    events.push({ event: read.data, json });
    if (slice.add(json.length)) yield;
  }
  return { ok: true, value: events };
}

const afterText = atFirstUse(() => queryInt.pipe(z.int().min(0)).optional());
const limitText = atFirstUse(() => queryInt.pipe(z.int().min(1)).optional());

/** The number of events that a reader of the log wants at most; the other parameters are those of `parseAfter`. */
export function parseLogLimit(query: Record<string, string>): Parsed<number> {
  const read = strictFields({ after: afterText(), limit: limitText() }).safeParse(query);
  return read.success ? { ok: true, value: read.data.limit ?? Infinity } : { ok: false, reason: zodReason(read.error) };
}

/** The number after which a reader continues: the header that browsers send when they reconnect, or the query's. */
export function parseAfter(query: Record<string, string>, lastEventId: string | undefined): Parsed<number> {
  const read = strictFields({ after: afterText() }).safeParse(query);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  if (lastEventId === undefined || lastEventId === "") return { ok: true, value: read.data.after ?? 0 };
  if (/^\d{1,15}$/.test(lastEventId)) return { ok: true, value: Number(lastEventId) };
  return invalid("last-event-id", "expected the id of an event of this run: a number");
}

const flagText = atFirstUse(() => z.enum(["0", "1"]).optional());

/** `?reset=1` and `?subtree=1` of `GET /runs/:id/usage`. */
export function parseUsageQuery(query: Record<string, string>): Parsed<{ reset: boolean; subtree: boolean }> {
  const read = strictFields({ reset: flagText(), subtree: flagText() }).safeParse(query);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  return { ok: true, value: { reset: read.data.reset === "1", subtree: read.data.subtree === "1" } };
}

function placed(reason: ReturnType<typeof zodReason>, at: string | null): ReturnType<typeof zodReason> {
  if (at === null || reason.reason !== "invalid_request") return reason;
  const param = reason.param === null ? at : `${at}.${reason.param}`;
  return { ...reason, message: `${at}: ${reason.message}`, param };
}
