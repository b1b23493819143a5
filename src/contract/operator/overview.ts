/** `GET /overview`: what all root runs do now, and what they have used in the last hours. */
import * as z from "zod";
import { OVERVIEW_HOURS, OVERVIEW_RUNS_MAX } from "../../limits.ts";
import { strictFields } from "../strict-fields.ts";
import { atFirstUse } from "../../at-first-use.ts";

export const overviewDocument = atFirstUse(() =>
  z
    .object({
      object: z.literal("overview"),
      at: z.iso.datetime(),
      since: z.iso
        .datetime()
        .meta({ description: "Start of the hour from which on `spent_usd` and what follows it count" }),
      runs: z.int(),
      working: z.int().meta({ description: "Runs with calls that are queued or in flight" }),
      in_flight: z.int(),
      queued: z.int(),
      calls_per_second: z
        .number()
        .meta({ description: "Attempts that ended, between the last two reports of each run" }),
      usd_per_minute: z.number(),
      spent_usd: z.number(),
      attempts: z.int(),
      failed: z.int().meta({ description: "Calls that failed, with or without an attempt" }),
      failures: z.array(z.object({ code: z.string(), calls: z.int() })),
      by_model: z
        .array(z.object({ model: z.string(), usd: z.number() }))
        .meta({ description: "Dearest first. What child runs have spent is in `spent_usd` only" }),
      by_name: z
        .array(z.object({ name: z.string().nullable(), usd: z.number(), runs: z.int(), failed: z.int() }))
        .meta({ description: "Runs with the same name together, dearest first; null: runs without a name" }),
      hours: z
        .array(z.object({ hour: z.iso.datetime(), usd: z.number(), attempts: z.int(), failed: z.int() }))
        .meta({ description: `Hours in which something was used, of the last ${OVERVIEW_HOURS}, oldest first` }),
      complete: z.boolean().meta({
        description: `False: a part of the list did not answer, or has more than ${OVERVIEW_RUNS_MAX} runs, of which the newest count`,
      }),
    })
    .meta({
      id: "Overview",
      description: "As the runs have last reported: a busy one reports every 10 s",
    }),
);
export type OverviewDocument = z.infer<ReturnType<typeof overviewDocument>>;

export const overviewQuery = atFirstUse(() =>
  strictFields({
    since: z.iso
      .datetime({ offset: true })
      .optional()
      .meta({
        description: `Default: the beginning of the day, UTC. What is older than ${OVERVIEW_HOURS} hours is not known`,
      }),
  }),
);
