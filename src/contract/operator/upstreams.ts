/** `GET /upstreams` and `POST /upstreams/:name/resume`: the limits of each key as all runs share them. */
import { z } from "@hono/zod-openapi";

const bucket = z
  .object({
    limit: z.number().openapi({ description: "Per minute" }),
    remaining: z.number(),
    reset_at: z.iso.datetime().openapi({ description: "When it is full again, if nothing is sent" }),
  })
  .nullable()
  .openapi("RateBucket", { description: "null: the provider names no such limit" });

const modelLatency = z
  .object({
    model: z.string(),
    ttfb_p50_ms: z
      .number()
      .nullable()
      .openapi({ description: "Time to the first byte of half of the answers, at most" }),
    ttfb_p95_ms: z.number().nullable(),
    p95_ms: z.number().nullable().openapi({ description: "Time to the end of 95 % of the answers, at most" }),
    samples: z.int().openapi({ description: "Number of answers measured; the latest count most" }),
  })
  .openapi("ModelLatency", { description: "null: not measured" });

const upstreamGate = z
  .object({
    name: z.string().openapi({ description: "Name of the upstream" }),
    key: z
      .string()
      .nullable()
      .openapi({ description: "`secret:NAME` for one of several keys; null: the upstream has one or none" }),
    class: z.enum(["open", "paced", "shrunk", "stopped"]),
    reason: z.string().nullable().openapi({
      description:
        "What calls wait for: `requests_per_minute`, `tokens_per_minute`, `width`; of a stopped key `insufficient_quota`, `invalid_key`, `forbidden`",
    }),
    width: z.number().nullable().openapi({ description: "Learned width; null: none is needed so far" }),
    in_flight: z.int(),
    permits: z.int().nullable().openapi({ description: "Attempts that runs may have in flight; null: not limited" }),
    waiting: z.int().openapi({ description: "Attempts that wait for this key" }),
    runs: z.int().openapi({ description: "Runs that use it now" }),
    wait_ms: z.number().openapi({ description: "No attempt starts before, ms" }),
    buckets: z.object({ requests: bucket, tokens: bucket, input_tokens: bucket, output_tokens: bucket }),
    stopped: z
      .object({ since: z.iso.datetime(), message: z.string().nullable(), next_probe_at: z.iso.datetime() })
      .nullable(),
    last_error: z.object({ class: z.string(), message: z.string().nullable(), at: z.iso.datetime() }).nullable(),
    latency: z.array(modelLatency).openapi({ description: "How long attempts take, by model, over all runs" }),
  })
  .openapi("UpstreamGate");
export type UpstreamGate = z.infer<typeof upstreamGate>;

/** `GET /upstreams`: one entry per key. */
export const upstreamList = z
  .object({ object: z.literal("list"), data: z.array(upstreamGate) })
  .openapi("UpstreamList");
export type UpstreamList = z.infer<typeof upstreamList>;

/** `POST /upstreams/:name/resume` */
export const resumedUpstream = upstreamList
  .extend({ resumed: z.int().openapi({ description: "Number of keys that were stopped and are used again" }) })
  .openapi("ResumedUpstream");
export type ResumedUpstream = z.infer<typeof resumedUpstream>;
