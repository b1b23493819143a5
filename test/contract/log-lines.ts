/** What each event of a run's log says, field by field: nothing is missing and nothing is added. */
import { z } from "zod";

const amounts = z.strictObject({
  usd: z.number(),
  calls: z.int(),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  new_tokens: z.int(),
});
/** What an attempt reserves or is charged: it is one call by itself. */
const limits = z.strictObject({
  usd: z.number().nullable(),
  calls: z.int().nullable(),
  prompt_tokens: z.int().nullable(),
  completion_tokens: z.int().nullable(),
  new_tokens: z.int().nullable(),
});
const code = z.string().nullable();
const call = {
  index: z.int().nullable(),
  call_id: z.string().nullable(),
  item_id: z.string().optional(),
  step: z.int().min(1).nullable(),
  steps: z.int().min(1).optional(),
};
const attempt = { ...call, attempt: z.int().min(1), upstream: z.string(), model: z.string() };
const iso = z.iso.datetime().nullable();

/** The facts of the gateway's own events, by `event_type`. */
const FACTS = {
  run_opened: { name: z.string().nullable(), limits, max_parallel: z.int() },
  group_started: { count: z.int(), effective_parallel: z.int(), tasks: z.int().optional() },
  attempt_started: {
    ...attempt,
    route: z.string().optional(),
    fallback: z.enum(["rate_limited", "stop", "timeout", "upstream_error", "context_length"]).optional(),
    queued_ms: z.number(),
    reserved: amounts,
  },
  attempt_ended: {
    ...attempt,
    outcome: z.enum(["success", "rejected", "transient", "rate_limited", "unknown"]),
    code,
    upstream_code: code,
    capped_by: z.literal("budget").optional(),
    latency_ms: z.number(),
    estimated: z.boolean(),
    charged: amounts,
  },
  retry_scheduled: { ...call, attempt: z.int().min(2), delay_ms: z.number(), code: z.string() },
  throttled: {
    upstream: z.string(),
    gate: z.string(),
    cause: z.string(),
    retry_after_ms: z.number(),
    waiting_for: z.strictObject({
      gate: z.string(),
      reason: z.enum(["requests_per_minute", "tokens_per_minute", "width", "stopped"]),
      ready_in_ms: z.number(),
    }),
  },
  slot_completed: {
    ...call,
    status: z.enum(["completed", "failed", "cancelled"]),
    attempts: z.int(),
    hasError: z.boolean(),
    code,
    upstream_code: code,
    message: z.string().nullable(),
    model: z.string().nullable(),
    finish_reason: z.string().nullable(),
    capped_by: z.literal("budget").optional(),
    usage: z.strictObject({
      prompt_tokens: z.int(),
      completion_tokens: z.int(),
      total_tokens: z.int(),
      cost: z.number(),
    }),
    timestamps: z.strictObject({ llm_call_start: iso, llm_call_end: iso }),
  },
  slots_cancelled: { count: z.int(), status: z.enum(["cancelled", "failed"]), code: z.string(), message: z.string() },
  slot_skipped: { ...call, code: z.string(), message: z.string() },
  group_completed: {
    count: z.int(),
    status: z.enum(["completed", "partial", "failed", "cancelled", "escalated"]),
    execution_ms: z.number(),
    cost: z.number(),
    sequential_ms: z.number(),
    speedup: z.number().nullable(),
    peak_parallel: z.int(),
    completed: z.int(),
    failed: z.int(),
    cancelled: z.int(),
    skipped: z.int().optional(),
    saved_calls: z.int().optional(),
    aborted_calls: z.int().optional(),
    saved_usd: z.strictObject({ worst_usd: z.number(), likely_usd: z.number() }).optional(),
    shadow: z.boolean().optional(),
    narrowed_by: z
      .strictObject({
        by: z.literal("budget"),
        dimension: z.enum(["usd", "calls", "prompt_tokens", "completion_tokens"]),
        width: z.int(),
        of: z.int(),
        share: z.number(),
        per_call: z.number(),
        remedy: z.string(),
      })
      .optional(),
  },
  budget_refused: {
    ...call,
    code: z.string(),
    dimension: z.string(),
    limit: z.number(),
    spent: z.number(),
    reserved: z.number(),
    needed: z.number(),
  },
  overrun: { ...attempt, dimensions: z.array(z.string()).min(1), reserved: amounts, charged: amounts },
  tool_called: {
    tool: z.string(),
    ok: z.boolean(),
    status: z.int().nullable(),
    code,
    latency_ms: z.number(),
    bytes: z.int(),
    attempts: z.int().min(0),
  },
  child_opened: { child_run_id: z.string(), reserved: limits },
  child_closed: { child_run_id: z.string(), spent: amounts },
  run_closed: { status: z.enum(["closed", "cancelled", "expired"]) },
} as const;

const common = {
  seq: z.int().min(1),
  ts: z.iso.datetime(),
  run_id: z.string(),
  parent_run_id: z.string().nullable(),
  parallel_group_id: z
    .string()
    .regex(/^pg-\d{13}-[0-9a-z]{1,6}$/)
    .nullable(),
  depth: z.int().min(0),
  step: z.null(),
};

/** Every event of the gateway's own. */
export const EVENT_TYPES = Object.keys(FACTS);

/** The form of one kind of event. */
export function lineSchema<T extends keyof typeof FACTS>(type: T) {
  return z.strictObject({ ...common, event_type: z.literal(type), ...FACTS[type] });
}

export const ownLine = z.discriminatedUnion("event_type", [
  lineSchema("run_opened"),
  lineSchema("group_started"),
  lineSchema("attempt_started"),
  lineSchema("attempt_ended"),
  lineSchema("retry_scheduled"),
  lineSchema("throttled"),
  lineSchema("slot_completed"),
  lineSchema("slots_cancelled"),
  lineSchema("slot_skipped"),
  lineSchema("group_completed"),
  lineSchema("budget_refused"),
  lineSchema("overrun"),
  lineSchema("tool_called"),
  lineSchema("child_opened"),
  lineSchema("child_closed"),
  lineSchema("run_closed"),
]);

/** One event of the gateway's own, as promised. */
export type OwnLine = z.infer<typeof ownLine>;
