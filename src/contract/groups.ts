/** `GET /groups/:id` and what is below it, and the headers that make a call outlive its client. */
import * as z from "zod";
import { OUTCOMES } from "../run/answers/outcomes.ts";
import {
  GROUP_WAIT_MS_MAX,
  IDEMPOTENCY_KEY_CHARS_MAX,
  RESULTS_PAGE_DEFAULT,
  RESULTS_PAGE_MAX,
  WAITS_NAMED_MAX,
} from "../limits.ts";
import { batchReply, slotCounts, slotDocument } from "./batch.ts";
import type { Parsed } from "./errors.ts";
import { errorBody, invalid, zodReason } from "./errors.ts";
import { strictFields } from "./strict-fields.ts";
import { queryInt } from "./fields.ts";
import { atFirstUse } from "../at-first-use.ts";

const readyInMs = z
  .number()
  .nullable()
  .meta({ description: "When a call may start as far as is known, ms from now; null: not known" });

const atGate = atFirstUse(() =>
  z.object({
    gate: z.string().meta({ description: "Name of the upstream, or `NAME#SECRET` for one of its keys" }),
    reason: z.enum(["requests_per_minute", "tokens_per_minute", "width", "stopped"]),
    model: z.string().optional().meta({
      description:
        "The model that the provider calls overloaded, whose calls alone wait; absent: all calls of the key do",
    }),
    ready_in_ms: readyInMs,
  }),
);

const dimension = z.enum(["usd", "calls", "prompt_tokens", "completion_tokens", "new_tokens"]);

const forBudget = atFirstUse(() =>
  z.object({
    budget: dimension,
    exhausted: z.literal(true).optional().meta({
      description: "The budget is used up and the group pauses; absent: reservations of calls in flight hold it",
    }),
  }),
);

const forTasks = atFirstUse(() =>
  z.object({
    dependency: z
      .array(z.string())
      .max(WAITS_NAMED_MAX)
      .meta({ description: "Ids of tasks that must end before; the first of them" }),
  }),
);

const forContext = atFirstUse(() =>
  z.object({
    context: z.string().meta({
      description: "Id of a context: the first call with it writes it to the provider's cache, the others then read it",
    }),
  }),
);

const forPrefix = atFirstUse(() =>
  z.object({
    prefix: z.enum(["system", "marked"]).meta({
      description:
        "The first call with the same system message, or with the same beginning that its client has marked, writes it to the provider's cache, the others then read it",
    }),
  }),
);

const forProvider = atFirstUse(() =>
  z.object({
    provider_batch: z.string().nullable().meta({
      description: "The upstream whose batch has the call; null: it goes into the next batch",
    }),
  }),
);

const forRetry = atFirstUse(() => z.object({ retry: z.literal(true), ready_in_ms: z.number() }));

const forConfirmation = atFirstUse(() => z.object({ confirmation: z.literal(true) }));

const forTier = atFirstUse(() =>
  z.object({ tier: z.literal(true).meta({ description: "The calls of an earlier tier" }) }),
);

const forEqualCall = atFirstUse(() =>
  z.object({
    equal_call: z.literal(true).meta({ description: "The answer of an equal call in flight, which it shares" }),
  }),
);

const forPermit = atFirstUse(() => z.object({ permit: z.literal(true) }));

/** One of these objects; its first field says which. */
export const waitingFor = atFirstUse(() =>
  z
    .union([
      atGate(),
      forBudget(),
      forContext(),
      forPrefix(),
      forTasks(),
      forProvider(),
      forRetry(),
      forConfirmation(),
      forTier(),
      forEqualCall(),
      forPermit(),
    ])
    .meta({
      id: "WaitingFor",
      description: "null: it is not queued, it shares the answer of an equal call in flight, or its tier has not begun",
    }),
);
export type ShownWaiting = z.infer<ReturnType<typeof waitingFor>>;

const slots = z.int().meta({ description: "Queued calls of the group that wait for this" });

/** What the queued calls of a group wait for: one entry for each cause, most calls first. */
export const groupWaits = atFirstUse(() =>
  z
    .array(
      z.union([
        atGate().extend({ slots }),
        forBudget().extend({ slots }),
        forContext().extend({ slots }),
        forPrefix().extend({ slots }),
        forTasks().extend({ slots }),
        forProvider().extend({ slots }),
        forRetry().extend({ slots }),
        forConfirmation().extend({ slots }),
        forTier().extend({ slots }),
        forEqualCall().extend({ slots }),
        forPermit().extend({ slots }),
      ]),
    )
    .meta({ id: "GroupWaits" }),
);

/** Where in the queue of its run a group is. */
const queuePlace = atFirstUse(() =>
  z
    .object({
      queue_position: z
        .int()
        .min(1)
        .meta({ description: "Of the call of the group that starts next; 1 = it is the first" }),
      queued_ahead: z.int().min(0).meta({ description: "Calls of the run that come before it" }),
    })
    .meta({ id: "QueuePlace", description: "Absent: no queued call could start now" }),
);

const heldQuote = atFirstUse(() =>
  z.object({ worst_usd: z.number(), likely_usd: z.number(), calls: z.int() }).meta({
    id: "HeldQuote",
    description:
      "With the status `awaiting_confirmation`: what the group would cost, which is above `confirm_over` of its run",
  }),
);

/** A group that has not ended. */
export const runningGroup = atFirstUse(() =>
  batchReply()
    .pick({ id: true, object: true, status: true, usage: true, metrics: true, effective_parallel: true })
    .extend({
      count: z.int(),
      counts: slotCounts(),
      created_at: z.iso.datetime(),
      ended_at: z.null(),
      waiting_for: groupWaits().meta({ description: "What the queued calls wait for, most calls first" }),
      error: errorBody().shape.error.optional().meta({
        description:
          "Of a group that awaits its confirmation, in the answer to the request that opened it: why it has no results",
      }),
      quote: heldQuote().optional(),
      paused: z.object({ budget: dimension, since: z.iso.datetime() }).optional().meta({
        description:
          'With `on_exhausted: "pause"`: the budget is used up, and nothing starts until the limit is raised',
      }),
      queue: queuePlace().optional(),
    })
    .meta({ id: "RunningGroup" }),
);

/** A slot as a page of results shows it: `result` and `error` are null until it has ended, `waiting_for` unless it is queued. */
const resultLine = atFirstUse(() =>
  slotDocument().extend({
    result: z.unknown(),
    error: z.union([errorBody().shape.error, z.null()]),
    waiting_for: waitingFor().nullable(),
  }),
);

const head = z.string().nullable();

/** A slot as `GET /groups/:id/slots/:index` shows it. */
export const slotLook = atFirstUse(() =>
  slotDocument()
    .omit({ json: true, message: true, logprobs: true, transcript: true })
    .extend({
      error: resultLine().shape.error,
      waiting_for: resultLine().shape.waiting_for,
      prompt_head: head.meta({
        description:
          "The beginning of its prompt, or of its last message, as the client sent it; null if it has no text, or a large batch has stored it in R2",
      }),
      result_head: head.meta({ description: "The beginning of its answer; null if there is none" }),
    })
    .meta({ id: "SlotLook" }),
);

/** One page of `GET /groups/:id/results`, in input order; `next_after` is the cursor of the next. */
export const resultsPage = atFirstUse(() =>
  z
    .object({
      object: z.literal("list"),
      data: z.array(resultLine()),
      has_more: z.boolean(),
      next_after: z.int().nullable(),
    })
    .meta({ id: "Results" }),
);

const groupQuery = atFirstUse(() =>
  strictFields({ wait_ms: queryInt.pipe(z.int().min(0).max(GROUP_WAIT_MS_MAX)).optional() }),
);

/** How long a request for a group waits for its end, ms. */
export function parseGroupQuery(query: Record<string, string>): Parsed<{ waitMs: number }> {
  const read = groupQuery().safeParse(query);
  return read.success
    ? { ok: true, value: { waitMs: read.data.wait_ms ?? 0 } }
    : { ok: false, reason: zodReason(read.error) };
}

/** The forms of a report. `coordinator` and `swarm` are those that two other systems read. */
const REPORT_FORMATS = ["markdown", "json", "coordinator", "swarm"] as const;
export type ReportFormat = (typeof REPORT_FORMATS)[number];

const reportQuery = atFirstUse(() => strictFields({ format: z.enum(REPORT_FORMATS).optional() }));

/** The form of a report that the query names, or else the client's `Accept`. */
export function parseReportQuery(query: Record<string, string>, accept: string | undefined): Parsed<ReportFormat> {
  const read = reportQuery().safeParse(query);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const preferred = accept?.includes("application/json") === true ? "json" : "markdown";
  return { ok: true, value: read.data.format ?? preferred };
}

/** How it has ended as one word, and whether it is worth another round. */
const outcomeFields = atFirstUse(() => ({
  outcome: z.enum(OUTCOMES).nullable().meta({ description: "Null while it runs" }),
  retry_recommended: z.boolean().meta({
    description:
      "Whether another round may help: not after limits, for which the gateway has waited, nor after permanent failures",
  }),
}));

/** The JSON form of a report. */
export const reportDocument = atFirstUse(() =>
  z
    .object({
      object: z.literal("report"),
      id: z.string(),
      status: batchReply().shape.status,
      ...outcomeFields(),
      agents: z.array(
        z.object({
          agent: z.string(),
          status: z.string(),
          ...outcomeFields(),
          output_location: z.string().nullable(),
          key_findings: z.string().nullable(),
        }),
      ),
      failed: z.array(
        z.object({
          agent: z.string(),
          error: z.object({ code: z.string(), message: z.string() }),
          impact: z.string(),
          action: z.enum(["Retry", "Skip", "Escalate"]),
        }),
      ),
      metrics: batchReply().shape.metrics.extend({
        agents: z.int(),
        completed: z.int(),
        peak_concurrency: z.int(),
        cost: z.number(),
      }),
      aggregation: batchReply().shape.aggregation,
    })
    .meta({ id: "Report" }),
);

const resultsQuery = atFirstUse(() =>
  strictFields({
    after: queryInt.pipe(z.int().min(-1)).optional(),
    limit: queryInt.pipe(z.int().min(1).max(RESULTS_PAGE_MAX)).optional(),
  }),
);

/** The page of results that a query names: `after` is the last index that the client has; -1 = none. */
export function parseResultsQuery(query: Record<string, string>): Parsed<{ after: number; limit: number }> {
  const read = resultsQuery().safeParse(query);
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

/** `GET /groups/:id/names`: a page of the ids that a client gave to its calls. */
export const slotNames = atFirstUse(() =>
  z
    .object({
      object: z.literal("list"),
      from: z.int(),
      data: z.array(z.string().nullable()).meta({ description: "Empty: the client gave no ids" }),
      has_more: z.boolean(),
    })
    .meta({ id: "SlotNames" }),
);

const namesQuery = atFirstUse(() => strictFields({ from: queryInt.pipe(z.int().min(0)).optional() }));

export function parseNamesQuery(query: Record<string, string>): Parsed<{ from: number }> {
  const read = namesQuery().safeParse(query);
  return read.success
    ? { ok: true, value: { from: read.data.from ?? 0 } }
    : { ok: false, reason: zodReason(read.error) };
}
