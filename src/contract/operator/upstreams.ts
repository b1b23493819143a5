/** `GET /upstreams` and `POST /upstreams/:name/resume`: the limits of each key as all runs share them. */
import * as z from "zod";
import { atFirstUse } from "../../at-first-use.ts";

const bucket = atFirstUse(() =>
  z
    .object({
      limit: z.number().meta({ description: "Per minute" }),
      remaining: z.number(),
      reset_at: z.iso.datetime().meta({ description: "When it is full again, if nothing is sent" }),
    })
    .nullable()
    .meta({ id: "RateBucket", description: "null: the provider names no such limit" }),
);

const modelLatency = atFirstUse(() =>
  z
    .object({
      model: z.string(),
      ttfb_p50_ms: z
        .number()
        .nullable()
        .meta({ description: "Time to the first byte of half of the answers, at most" }),
      ttfb_p95_ms: z.number().nullable(),
      p95_ms: z.number().nullable().meta({ description: "Time to the end of 95 % of the answers, at most" }),
      samples: z.int().meta({ description: "Number of answers measured; the latest count most" }),
    })
    .meta({ id: "ModelLatency", description: "null: not measured" }),
);

const busyModel = atFirstUse(() =>
  z
    .object({
      model: z.string(),
      reason: z.literal("overloaded"),
      wait_ms: z.number().meta({ description: "No attempt at the model starts before, ms" }),
    })
    .meta({ id: "BusyModel" }),
);

const upstreamGate = atFirstUse(() =>
  z
    .object({
      name: z.string().meta({ description: "Name of the upstream" }),
      key: z
        .string()
        .nullable()
        .meta({ description: "`secret:NAME` for one of several keys; null: the upstream has one or none" }),
      class: z.enum(["open", "paced", "shrunk", "stopped"]),
      reason: z.string().nullable().meta({
        description:
          "What calls wait for: `requests_per_minute`, `tokens_per_minute`, `width`; of a stopped key `insufficient_quota`, `invalid_key`, `forbidden`",
      }),
      width: z.number().nullable().meta({ description: "Learned width; null: none is needed so far" }),
      in_flight: z.int(),
      permits: z.int().nullable().meta({ description: "Attempts that runs may have in flight; null: not limited" }),
      waiting: z.int().meta({ description: "Attempts that wait for this key" }),
      runs: z.int().meta({ description: "Runs that use it now" }),
      wait_ms: z.number().meta({ description: "No attempt starts before, ms" }),
      buckets: z.object({ requests: bucket(), tokens: bucket(), input_tokens: bucket(), output_tokens: bucket() }),
      stopped: z
        .object({ since: z.iso.datetime(), message: z.string().nullable(), next_probe_at: z.iso.datetime() })
        .nullable(),
      last_error: z.object({ class: z.string(), message: z.string().nullable(), at: z.iso.datetime() }).nullable(),
      latency: z.array(modelLatency()).meta({ description: "How long attempts take, by model, over all runs" }),
      busy_models: z.array(busyModel()).meta({
        description:
          "Models that the provider calls overloaded while others of the key are answered: only their calls are narrowed",
      }),
    })
    .meta({ id: "UpstreamGate" }),
);
export type UpstreamGate = z.infer<ReturnType<typeof upstreamGate>>;

/** A key whose gate could not be read. */
const unreadGate = atFirstUse(() =>
  z
    .object({
      name: z.string(),
      key: z.string().nullable(),
      code: z.enum(["unreadable", "newer_storage", "overloaded"]),
      message: z.string(),
      retryable: z.boolean(),
    })
    .meta({ id: "UnreadGate" }),
);
export type UnreadGate = z.infer<ReturnType<typeof unreadGate>>;

/** `GET /upstreams`: one entry per key. */
export const upstreamList = atFirstUse(() =>
  z
    .object({
      object: z.literal("list"),
      data: z.array(upstreamGate()),
      unread: z.array(unreadGate()).optional().meta({ description: "Keys that `data` lacks; absent: none" }),
    })
    .meta({ id: "UpstreamList" }),
);
export type UpstreamList = z.infer<ReturnType<typeof upstreamList>>;

/** `POST /upstreams/:name/resume` */
export const resumedUpstream = atFirstUse(() =>
  upstreamList()
    .extend({ resumed: z.int().meta({ description: "Number of keys that were stopped and are used again" }) })
    .meta({ id: "ResumedUpstream" }),
);
export type ResumedUpstream = z.infer<ReturnType<typeof resumedUpstream>>;
