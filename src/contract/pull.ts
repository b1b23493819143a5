/** `POST /runs/:id/claim`, `/heartbeat` and `/complete`: programs that take the calls of an upstream of the kind `pull`. */
import * as z from "zod";
import {
  BUDGET_COUNT_MAX,
  BUDGET_USD_MAX,
  ERROR_MESSAGE_CHARS_MAX,
  GROUP_WAIT_MS_MAX,
  PULL_ITEMS_MAX,
  PULL_LEASE_MS_DEFAULT,
  PULL_LEASE_MS_MAX,
  PULL_LEASE_MS_MIN,
} from "../limits.ts";
import { zodReason, type Parsed } from "./errors.ts";
import { exactlyOneOf, label } from "./fields.ts";
import { strictFields } from "./strict-fields.ts";
import { atFirstUse } from "../at-first-use.ts";

const leaseMs = z
  .int()
  .min(PULL_LEASE_MS_MIN)
  .max(PULL_LEASE_MS_MAX)
  .default(PULL_LEASE_MS_DEFAULT)
  .meta({ description: `How long a lease lasts without a heartbeat, ms; default ${PULL_LEASE_MS_DEFAULT}` });

const leaseId = label.meta({ description: "The item's `lease_id`" });

export const claimBody = atFirstUse(() =>
  strictFields({
    max: z.int().min(1).max(PULL_ITEMS_MAX).default(1).meta({ description: "Most items; default 1" }),
    wait_ms: z
      .int()
      .min(0)
      .max(GROUP_WAIT_MS_MAX)
      .default(0)
      .meta({ description: "How long to wait for the first item, ms; default 0" }),
    lease_ms: leaseMs,
    models: z.array(label).min(1).max(PULL_ITEMS_MAX).optional().meta({
      description: "Names of upstreams, or of models as `upstream/model`, whose items are wanted; default: all",
    }),
  }).meta({ id: "PullClaim" }),
);

const pullItem = atFirstUse(() =>
  z
    .object({
      lease_id: z.string(),
      upstream: z.string(),
      model: z.string(),
      attempt_id: z.string(),
      prompt: z.string().nullable().meta({ description: "The prompt, if the call is one text; else null" }),
      request: z.record(z.string(), z.unknown()).meta({ description: "The call as a chat completion request" }),
      lease_expires_at: z.iso.datetime(),
      deadline: z.iso.datetime().meta({ description: "When the gateway gives the call up" }),
    })
    .meta({ id: "PullItem" }),
);

export const claimReply = atFirstUse(() =>
  z.object({ object: z.literal("list"), items: z.array(pullItem()) }).meta({ id: "PullItems" }),
);
export type PullItemDocument = z.infer<ReturnType<typeof pullItem>>;

export const heartbeatBody = atFirstUse(() =>
  strictFields({
    lease_ids: z.array(leaseId).min(1).max(PULL_ITEMS_MAX),
    lease_ms: leaseMs,
  }).meta({ id: "PullHeartbeat" }),
);

export const heartbeatReply = atFirstUse(() =>
  z
    .object({
      object: z.literal("list"),
      leases: z.array(
        z.object({
          lease_id: z.string(),
          state: z.enum(["active", "completed", "cancelled", "expired", "unknown"]),
          lease_expires_at: z.iso.datetime().nullable(),
        }),
      ),
    })
    .meta({ id: "PullLeases" }),
);
export type HeartbeatDocument = z.infer<ReturnType<typeof heartbeatReply>>;

const tokens = z.int().min(0).max(BUDGET_COUNT_MAX);

export const completeBody = atFirstUse(() =>
  strictFields({
    lease_id: leaseId,
    text: z.string().optional(),
    json: z.unknown().optional().meta({ description: "Any JSON value, instead of `text`: the text is then its JSON" }),
    message: z
      .looseObject({
        role: z.literal("assistant").default("assistant"),
        content: z.union([z.string(), z.array(z.unknown()), z.null()]).default(null),
      })
      .optional()
      .meta({ description: "The whole message in the chat form, instead of `text`: it may have tool calls" }),
    finish_reason: z
      .enum(["stop", "length", "tool_calls", "content_filter"])
      .optional()
      .meta({ description: "Default `stop`, or `tool_calls` if the message has some" }),
    usage: strictFields({
      prompt_tokens: tokens,
      completion_tokens: tokens,
      cost: z.number().min(0).max(BUDGET_USD_MAX).optional().meta({ description: "What it cost, USD" }),
    }).optional(),
    error: strictFields({
      message: z.string().min(1).max(ERROR_MESSAGE_CHARS_MAX),
      retryable: z.boolean().default(true).meta({ description: "Whether another attempt may succeed; default true" }),
    }).optional(),
  })
    .refine(
      ({ text, json, message, error }) =>
        [text, json, message, error].filter((given) => given !== undefined).length === 1,
      {
        message: "expected exactly one of text, json, message and error",
        path: ["text"],
      },
    )
    .meta({ id: "PullComplete", ...exactlyOneOf([["text"], ["json"], ["message"], ["error"]]) }),
);

export const completeReply = atFirstUse(() =>
  z
    .object({ lease_id: z.string(), status: z.literal("completed"), repeated: z.boolean() })
    .meta({ id: "PullCompleted" }),
);

/** The answer to `POST /runs/:id/worker-token`; no other reply contains the token. */
export const workerToken = atFirstUse(() =>
  z
    .object({ object: z.literal("worker_token"), run_id: z.string(), token: z.string(), expires_at: z.iso.datetime() })
    .meta({ id: "WorkerToken" }),
);

export type ClaimBody = z.infer<ReturnType<typeof claimBody>>;
export type HeartbeatBody = z.infer<ReturnType<typeof heartbeatBody>>;
export type CompleteBody = z.infer<ReturnType<typeof completeBody>>;

export function parseClaim(value: unknown): Parsed<ClaimBody> {
  return parsed(claimBody().safeParse(value));
}

export function parseHeartbeat(value: unknown): Parsed<HeartbeatBody> {
  return parsed(heartbeatBody().safeParse(value));
}

export function parseComplete(value: unknown): Parsed<CompleteBody> {
  return parsed(completeBody().safeParse(value));
}

function parsed<T>(read: z.ZodSafeParseResult<T>): Parsed<T> {
  return read.success ? { ok: true, value: read.data } : { ok: false, reason: zodReason(read.error) };
}
