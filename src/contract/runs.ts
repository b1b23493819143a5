/** `POST /runs`, `GET /runs`, the run document and the budget document. */
import * as z from "zod";
import {
  BUDGET_COUNT_MAX,
  BUDGET_USD_MAX,
  CAPACITY_WAIT_MS_MAX,
  DEPTH_DEFAULT,
  DEPTH_MAX,
  EXPIRES_S_DEFAULT,
  EXPIRES_S_MAX,
  JSON_DEPTH_MAX,
  LIST_PAGE_DEFAULT,
  LIST_PAGE_MAX,
  METADATA_BYTES_MAX,
  MODEL_PATTERNS_MAX,
  PARALLEL_DEFAULT,
  PARALLEL_MAX,
  PARALLEL_UNLIMITED,
  PARALLEL_STABLE,
  RETENTION_S_DEFAULT,
  RETENTION_S_MAX,
  WEIGHT_MAX,
  WEIGHT_MIN,
  WINDOW_MS_DEFAULT,
  WINDOW_MS_MAX,
} from "../limits.ts";
import type { Parsed } from "./errors.ts";
import { zodReason } from "./errors.ts";
import {
  errorStyle,
  label,
  narrowedBy,
  onExhausted,
  percentiles,
  queryInt,
  queryNumber,
  REGIONS,
  wantedTier,
} from "./fields.ts";
import { groupWaits } from "./groups.ts";
import { runMatch, searchedRuns, searchText } from "./search.ts";
import { replayFields } from "./replay.ts";
import { strictFields } from "./strict-fields.ts";
import { nestsDeeperThan, utf8Bytes } from "./text.ts";
import { shownTool, toolList } from "./tools.ts";
import { shownWebhook, webhookField } from "./webhook.ts";
import { atFirstUse } from "../at-first-use.ts";

const count = z.int().min(0).max(BUDGET_COUNT_MAX);

const metadata = z
  .record(z.string(), z.unknown())
  .refine((value) => !nestsDeeperThan(value, JSON_DEPTH_MAX), {
    message: `expected at most ${JSON_DEPTH_MAX} levels of nesting`,
    abort: true,
  })
  .refine((value) => utf8Bytes(JSON.stringify(value)) <= METADATA_BYTES_MAX, {
    message: `expected at most ${METADATA_BYTES_MAX} bytes of JSON`,
  });

/** Names of sets of defaults. */
const PROFILES = ["default", "stable"] as const;

/** How large, how wide and how long a run may be. A limit that is left out does not bound; a limit of 0 allows nothing. */
const boundFields = () => ({
  name: label.optional(),
  budget: strictFields({
    usd: z.number().min(0).max(BUDGET_USD_MAX).optional(),
    calls: count.optional(),
    prompt_tokens: count.optional(),
    completion_tokens: count.optional(),
    new_tokens: count.optional().meta({
      description: "Completion tokens, and prompt tokens that the provider's cache did not have",
    }),
  }).optional(),
  calls: count.optional().meta({ description: "The same as `budget.calls`; both together are refused" }),
  wait_ms: z
    .int()
    .min(0)
    .max(CAPACITY_WAIT_MS_MAX)
    .optional()
    .meta({
      description:
        "Only for a child run: how long to wait until the parent has room for it, ms. Without room until then the answer is " +
        "409 `no_capacity`; if it can never fit, 422 `infeasible` at once. Without `wait_ms` it is 402 at once",
    }),
  max_parallel: z
    .int()
    .min(0)
    .max(PARALLEL_MAX)
    .optional()
    .meta({
      description: `Most calls in flight at once; 0: no limit of its own, which is ${PARALLEL_UNLIMITED} for a root run; default ${PARALLEL_DEFAULT}`,
    }),
  profile: z
    .enum(PROFILES)
    .optional()
    .meta({
      description: `Defaults of what is left out; \`stable\`: max_parallel ${PARALLEL_STABLE}`,
    }),
  weight: z.number().min(WEIGHT_MIN).max(WEIGHT_MAX).optional().meta({
    description:
      "The run's share of an upstream that is limited, relative to other runs; default 1; a child's is at most its parent's",
  }),
  max_depth: z
    .int()
    .min(0)
    .max(DEPTH_MAX)
    .optional()
    .meta({ description: `Levels of child runs that may exist below this run; default ${DEPTH_DEFAULT}` }),
  expires_in_s: z
    .int()
    .min(1)
    .max(EXPIRES_S_MAX)
    .optional()
    .meta({ description: `Lifetime of the run and its token, seconds; default ${EXPIRES_S_DEFAULT}` }),
  models: z.array(label).min(1).max(MODEL_PATTERNS_MAX).optional().meta({
    description: "Models that the run may use, as `upstream/model`; `*` matches any text; default: all",
  }),
});

/** What a run does with its calls. */
const handlingFields = () => ({
  default_model: label.optional(),
  error_style: errorStyle().optional(),
  window_ms: z
    .int()
    .min(0)
    .max(WINDOW_MS_MAX)
    .optional()
    .meta({
      description: `Calls of /query that arrive within this time of each other, ms, form one group; default ${WINDOW_MS_DEFAULT}`,
    }),
  unpriced: z.enum(["refuse", "free"]).optional(),
  retention_s: z
    .int()
    .min(0)
    .max(RETENTION_S_MAX)
    .optional()
    .meta({
      description: `How long results and the log are kept after the run ends, seconds; default ${RETENTION_S_DEFAULT}`,
    }),
  region: z.enum(REGIONS).optional().meta({
    description: "Where in the world the run should begin, as a hint; default: near the client, where that is known",
  }),
  tools: toolList().optional(),
  metadata: metadata.optional(),
  confirm_over: strictFields({
    usd: z.number().min(0).max(BUDGET_USD_MAX).optional(),
    calls: count.optional(),
  })
    .refine(({ usd, calls }) => usd !== undefined || calls !== undefined, "expected usd, calls or both")
    .optional()
    .meta({
      minProperties: 1,
      description:
        "Batches and graphs whose quote is above one of these are held as `awaiting_confirmation` until `POST /groups/:id/confirm`; `usd` is compared with the worst case. A child run has its parent's, too",
    }),
  on_exhausted: onExhausted().optional(),
  service_tier: wantedTier().optional(),
  webhook: webhookField().optional(),
  ...replayFields(),
});

/** The request as documented. */
export const runBody = atFirstUse(() =>
  strictFields({ ...boundFields(), ...handlingFields() }).meta({ id: "RunRequest" }),
);
export type RunRequest = z.infer<ReturnType<typeof runBody>>;

/** `PATCH /runs/:id`: new absolute limits; missing ones stay. */
export const patchBody = atFirstUse(() =>
  strictFields({
    budget: runBody().shape.budget,
    max_parallel: runBody().shape.max_parallel,
    paused: z.boolean().optional(),
    expires_in_s: runBody().shape.expires_in_s.meta({
      description:
        "New lifetime of the run from now, seconds, at most its parent's; the answer has a new `token`, because the old one ends with the old lifetime",
    }),
    models: runBody().shape.models.meta({
      description: "Only of a root run: models that it may use from now on; child runs that are open keep theirs",
    }),
  }).meta({ id: "RunPatch" }),
);
export type RunPatchRequest = z.infer<ReturnType<typeof patchBody>>;

const budgetLine = atFirstUse(() =>
  z.object({
    limit: z.number().nullable(),
    spent: z.number(),
    reserved: z.number(),
    remaining: z.number().nullable(),
  }),
);

/** Four numbers in each dimension; `limit` and `remaining` are null for a dimension without a limit. */
export const budgetDocument = atFirstUse(() =>
  z
    .object({
      usd: budgetLine(),
      calls: budgetLine(),
      prompt_tokens: budgetLine(),
      completion_tokens: budgetLine(),
      new_tokens: budgetLine(),
    })
    .meta({ id: "Budget" }),
);
export type BudgetDocument = z.infer<ReturnType<typeof budgetDocument>>;

/** A key that its provider refuses and for which calls of the run wait. */
const blockedKey = atFirstUse(() =>
  z
    .object({
      upstream: z.string(),
      key: z
        .string()
        .nullable()
        .meta({ description: "`secret:NAME` for one of several keys; null: the upstream has one or none" }),
      reason: z.enum(["insufficient_quota", "invalid_key", "forbidden"]),
      since: z.iso.datetime(),
    })
    .meta({ id: "BlockedKey" }),
);
export type BlockedKey = z.infer<ReturnType<typeof blockedKey>>;

export const runStatus = atFirstUse(() => z.enum(["active", "paused", "closed", "cancelled", "expired", "escalated"]));

const lastCallAt = atFirstUse(() =>
  z.iso
    .datetime()
    .nullable()
    .meta({ description: "When an attempt of the run's own calls last ended; null: none has, or it is not known" }),
);

const childCounts = atFirstUse(() =>
  z
    .object({ opened: z.int(), open: z.int() })
    .meta({ id: "ChildCounts", description: "How many child runs the run has opened, and how many of these are open" }),
);

const ownSpent = atFirstUse(() =>
  z.number().meta({ description: "USD of its own calls; `budget.usd.spent` has also what ended child runs spent" }),
);

const failures = z.record(z.string(), z.int()).meta({
  description:
    "Calls that have failed, with or without an attempt, by the code of their error. Cancelled calls are not among them",
});

/** How long the calls of a run took and were queued whose last attempt has ended. */
const callTimes = atFirstUse(() => ({
  latency_ms: percentiles().optional().meta({
    description: "Of the calls whose last attempt has ended: the time of all their attempts; null: there are none",
  }),
  queued_ms: percentiles().optional().meta({
    description: "Of the same calls: from their arrival to the start of the first attempt",
  }),
}));

/** A run as shown. */
export const runDocument = atFirstUse(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("run"),
      name: z.string().nullable(),
      status: runStatus(),
      parent_id: z.string().nullable(),
      depth: z.int(),
      created_at: z.iso.datetime(),
      expires_at: z.iso.datetime(),
      budget: budgetDocument(),
      max_parallel: z.int(),
      effective_parallel: z.int(),
      weight: z.number(),
      blocked: z.array(blockedKey()).nullable().meta({
        description: "Keys that their providers refuse and for which calls of the run wait; null: there are none",
      }),
      in_flight: z.int().optional().meta({
        description:
          "Attempts of the run's own calls; absent while a deployment has not replaced the object of the run",
      }),
      last_call_at: lastCallAt().optional(),
      own_spent_usd: ownSpent().optional(),
      children: childCounts().optional(),
      stats: z.object({
        total_queries: z.int(),
        parallel_batches: z.int(),
        sequential_queries: z.int(),
        total_parallel_queries: z.int(),
        pending_queries: z.int(),
      }),
      metrics: z.object({
        wall_ms: z.number(),
        sequential_ms: z.number(),
        speedup: z.number().nullable(),
        peak_parallel: z.int(),
        success_rate: z.number().nullable(),
        attempts: z.int(),
        retries: z.int(),
        failures: failures.optional(),
        ...callTimes(),
      }),
      region: z.enum(REGIONS).nullable(),
      replay: z.literal("run").nullable().meta({ description: "`run`: its answers are recorded and replayed" }),
      replay_from: z.string().nullable().meta({
        description:
          "Another run whose recorded answers it also replays; the parent, if the run is a child and names no run",
      }),
      webhook: shownWebhook(),
      tools: z.array(shownTool()),
      metadata: z.record(z.string(), z.unknown()),
    })
    .meta({ id: "Run" }),
);
export type RunDocument = z.infer<ReturnType<typeof runDocument>>;

const subtreeLine = atFirstUse(() => z.object({ spent: z.number(), in_flight: z.number() }));

/** What a run and everything open below it have spent and have in flight; `complete`: no run was left out. */
const subtreeDocument = atFirstUse(() =>
  z
    .object({
      runs: z.int(),
      complete: z.boolean(),
      budget: z.object({
        usd: subtreeLine(),
        calls: subtreeLine(),
        prompt_tokens: subtreeLine(),
        completion_tokens: subtreeLine(),
        new_tokens: subtreeLine(),
      }),
    })
    .meta({ id: "Subtree" }),
);

/** The run's calls that have not ended, all of one moment. */
const runQueue = atFirstUse(() =>
  z
    .object({
      in_flight: z.int(),
      queued: z.int(),
      waiting_for: groupWaits().meta({
        description: "What the queued calls wait for; their `slots` add up to `queued`",
      }),
      narrowed_by: narrowedBy().optional().meta({
        description: "Why fewer calls of a group are in flight than it may have; absent: as many are",
      }),
    })
    .meta({ id: "RunQueue" }),
);

/** The answer to `GET /runs/:id`; `subtree` and `queue` if the query requests them. */
export const runLookDocument = atFirstUse(() =>
  runDocument().extend({ subtree: subtreeDocument().optional(), queue: runQueue().optional() }).meta({ id: "RunLook" }),
);

/** The answer to `POST /runs`: the only time the token is shown. */
export const openedRunDocument = atFirstUse(() =>
  runDocument().extend({ token: z.string() }).meta({ id: "OpenedRun" }),
);

const modelUsage = atFirstUse(() =>
  z.object({
    input_tokens: z.int(),
    output_tokens: z.int(),
    calls: z.int(),
    cost: z.number(),
  }),
);

/** The answer to `PATCH /runs/:id`; `token` if the request has changed the lifetime. */
export const patchedRunDocument = atFirstUse(() =>
  runDocument().extend({ token: z.string().optional() }).meta({ id: "PatchedRun" }),
);

/** `GET /runs/:id/usage`: what was charged since it was last reset, in all and by `upstream/model`; USD. */
export const usageTotals = atFirstUse(() =>
  z
    .object({
      object: z.literal("usage"),
      llm_calls: z.int(),
      input_tokens: z.int(),
      output_tokens: z.int(),
      cost: z.number(),
      calls_by_model: z.record(z.string(), modelUsage()),
      ...callTimes(),
      subtree: modelUsage().extend({ runs: z.int(), complete: z.boolean() }).optional().meta({
        description: "With the child runs, since the run was opened: resets do not count; requested by `?subtree=1`",
      }),
    })
    .meta({ id: "UsageTotals" }),
);
export type UsageDocument = z.infer<ReturnType<typeof usageTotals>>;

/** What the list of runs itself knows of one: the parts of its document with which a run reports how far it is. */
export const runSummary = atFirstUse(() =>
  z.object({
    id: z.string(),
    object: z.literal("run_summary"),
    name: z.string().nullable(),
    status: runStatus(),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    budget: z.object({ usd: budgetLine() }),
    in_flight: z.int().nullable().meta({ description: "Attempts at upstreams; null: not known" }),
    stats: z.object({ total_queries: z.int(), pending_queries: z.int() }),
    metrics: z.object({ attempts: z.int(), success_rate: z.number().nullable(), failures: failures.optional() }),
    last_call_at: lastCallAt().optional(),
    own_spent_usd: ownSpent().optional(),
    children: childCounts().optional(),
    spend_by_model: z.record(z.string(), z.number()).optional().meta({
      description:
        "USD that the run's own calls have cost, by `upstream/model`; those of child runs are not among them",
    }),
  }),
);
export type RunSummary = z.infer<ReturnType<typeof runSummary>>;

/** The same in a list. */
export const listedSummary = atFirstUse(() =>
  runSummary()
    .extend({
      updated_at: z.iso.datetime().meta({ description: "When the list learned of these figures" }),
    })
    .meta({ id: "RunSummary" }),
);
export type ListedSummary = z.infer<ReturnType<typeof listedSummary>>;

/** A run that a list could not read. */
export const unreadRun = atFirstUse(() =>
  z
    .object({
      id: z.string(),
      created_at: z.string().nullable().meta({ description: "null = the list does not know it" }),
      code: z.enum(["unreadable", "newer_storage", "overloaded", "deleted"]),
      message: z.string(),
      retryable: z.boolean(),
    })
    .meta({ id: "UnreadRun" }),
);
export type UnreadRun = z.infer<ReturnType<typeof unreadRun>>;

const matched = atFirstUse(() => ({
  match: runMatch().optional().meta({ description: "With `search`: where the text is" }),
}));

/** One page of `GET /runs`, newest first. */
export const runList = atFirstUse(() =>
  z
    .object({
      object: z.literal("list"),
      data: z.array(runDocument().extend(matched())),
      has_more: z.boolean(),
      next_cursor: z.string().nullable(),
      unread: z.array(unreadRun()).meta({
        description: "Runs of this page that have no document in `data`, and why. They may not fit a filter",
      }),
      missing_parts: z
        .int()
        .optional()
        .meta({ description: "Parts of the list that did not answer: runs of theirs are missing on this page" }),
      search: searchedRuns().optional().meta({ description: "With `search`: how far this page has come" }),
    })
    .meta({ id: "RunList" }),
);
export type RunList = z.infer<ReturnType<typeof runList>>;

/** One page of `GET /runs?view=summary`. */
export const runSummaryList = atFirstUse(() =>
  runList()
    .extend({ data: z.array(listedSummary().extend(matched())) })
    .meta({ id: "RunSummaryList" }),
);

const usd = queryNumber
  .pipe(z.number().min(0).max(BUDGET_USD_MAX))
  .meta({ type: "number", minimum: 0, maximum: BUDGET_USD_MAX });
const pageLimit = atFirstUse(() =>
  queryInt.pipe(z.int().min(1).max(LIST_PAGE_MAX)).meta({ type: "integer", minimum: 1, maximum: LIST_PAGE_MAX }),
);

/** The query of `GET /runs`; its numbers arrive as text. */
export const runListQuery = atFirstUse(() =>
  strictFields({
    limit: pageLimit().optional(),
    cursor: label.optional(),
    status: runStatus().optional(),
    name: label.optional().meta({ description: "Runs whose name contains this text" }),
    opened_after: z.iso.datetime({ offset: true }).optional(),
    opened_before: z.iso.datetime({ offset: true }).optional(),
    spent_usd_min: usd.optional(),
    spent_usd_max: usd.optional(),
    search: searchText()
      .optional()
      .meta({
        description:
          "Runs with this text in their name, id or codes of failures, or in an id, prompt, answer or error of one of their calls. " +
          "The page says how far it has searched",
      }),
    view: z.enum(["summary"]).optional().meta({
      description:
        "`summary`: what the list itself knows of each run. It wakes no run, so figures are some seconds old",
    }),
  }),
);
export type RunListQuery = z.infer<ReturnType<typeof runListQuery>>;

export const childListQuery = atFirstUse(() =>
  strictFields({
    limit: pageLimit().optional(),
    cursor: z
      .string()
      .regex(/^\d{1,15}$/, "expected the next_cursor of an earlier page")
      .optional(),
  }),
);

/** A parsed JSON body as a request for a run, or the first reason to refuse it. */
export function parseRun(value: unknown): Parsed<RunRequest> {
  const read = runBody().safeParse(value);
  return read.success ? { ok: true, value: read.data } : { ok: false, reason: zodReason(read.error) };
}

/** A parsed JSON body as a change to a run. */
export function parsePatch(value: unknown): Parsed<RunPatchRequest> {
  const read = patchBody().safeParse(value);
  return read.success ? { ok: true, value: read.data } : { ok: false, reason: zodReason(read.error) };
}

const runLookQuery = atFirstUse(() =>
  strictFields({ subtree: z.enum(["0", "1"]).optional(), queue: z.enum(["0", "1"]).optional() }),
);

/** `?subtree=1&queue=1` of `GET /runs/:id`. */
export function parseRunLookQuery(query: Record<string, string>): Parsed<{ subtree: boolean; queue: boolean }> {
  const read = runLookQuery().safeParse(query);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  return { ok: true, value: { subtree: read.data.subtree === "1", queue: read.data.queue === "1" } };
}

/** The query parameters of `GET /runs`. */
export function parseRunListQuery(query: Record<string, string>): Parsed<RunListQuery> {
  const read = runListQuery().safeParse(query);
  return read.success ? { ok: true, value: read.data } : { ok: false, reason: zodReason(read.error) };
}

/** The query parameters of `GET /runs/:id/children`; `before`: the number of the oldest child that the client has. */
export function parseChildListQuery(query: Record<string, string>): Parsed<{ limit: number; before: number }> {
  const read = childListQuery().safeParse(query);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const { limit = LIST_PAGE_DEFAULT, cursor } = read.data;
  return { ok: true, value: { limit, before: cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(cursor) } };
}
