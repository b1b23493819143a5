/** What the routes of graphs answer. */
import * as z from "zod";
import { batchReply, slotCounts } from "../batch.ts";
import { stopReplyFields } from "../rules/stop-when.ts";
import { speculationReply } from "../aggregate/speculation.ts";
import { errorBody } from "../errors.ts";
import { answerJson, answerParts } from "../fields.ts";
import { runIf } from "./run-if.ts";
import { usageDocument } from "../query.ts";
import { toolUseFields } from "../steps/tool-use.ts";
import { atFirstUse } from "../../at-first-use.ts";

/** The answer to `POST /dag/validate`. An invalid graph is refused with 422 instead. */
export const graphValidation = atFirstUse(() =>
  z
    .object({
      object: z.literal("graph_validation"),
      valid: z.literal(true),
      warnings: z.array(
        z.object({
          code: z.enum(["orphans", "long_task", "short_prompt", "unused_reference"]),
          message: z.string(),
          tasks: z.array(z.string()).meta({ description: "Ids of the first tasks that it is about" }),
        }),
      ),
      stats: z.object({
        total: z.int().meta({ description: "Number of tasks" }),
        edges: z.int(),
        slots: z.int().meta({ description: "Most calls, with `max_items` of each `foreach` and without retries" }),
        roots: z.int().meta({ description: "Tasks that wait for nothing" }),
        parallelizable: z.int().meta({ description: "Tasks that share their level with another one" }),
        max_depth: z.int().meta({ description: "Number of levels" }),
        max_width: z.int().meta({ description: "Tasks of the largest level" }),
        critical_path: z.array(z.string()).meta({ description: "Longest chain of tasks by estimated duration" }),
        critical_path_ms: z.number().meta({ description: "Its estimated duration, ms" }),
      }),
    })
    .meta({ id: "GraphValidation" }),
);
export type GraphValidation = z.infer<ReturnType<typeof graphValidation>>;

/** The answer to `POST /dag?quote=1`: nothing was reserved or sent. `fits`: the worst of all calls fits what is left, in every dimension. */
export const dagQuoteReply = atFirstUse(() =>
  z
    .object({
      object: z.literal("quote"),
      worst_usd: z.number(),
      likely_usd: z.number(),
      remaining_usd: z.number().nullable(),
      fits: z.boolean(),
      tasks: z.array(
        z.object({
          id: z.string(),
          model: z.string().nullable().meta({ description: "The model that it would use, its own or inherited" }),
          calls_max: z.int().meta({ description: "Its slots: `max_items` of a `foreach`" }),
          worst_usd: z.number(),
          likely_usd: z.number(),
          prompt_tokens_max: z.int(),
          completion_tokens_max: z.int(),
        }),
      ),
    })
    .meta({ id: "DagQuote" }),
);
export type DagQuoteReply = z.infer<ReturnType<typeof dagQuoteReply>>;

/** What became of a task. */
const taskDocument = atFirstUse(() =>
  z.object({
    output: z
      .string()
      .nullable()
      .optional()
      .meta({ description: "The text of a completed task, else null; absent for a `foreach`" }),
    outputs: z
      .array(z.string().nullable())
      .optional()
      .meta({ description: "Of a `foreach`: the outputs in the order of its elements, null for those that failed" }),
    json: answerJson().meta({
      description:
        "Of a task with a `schema`: its output as JSON; of a `foreach` those of its outputs, null for the failed",
    }),
    message: answerParts().message,
    messages: z
      .array(z.union([z.looseObject({}), z.null()]))
      .optional()
      .meta({
        description: "Of a `foreach` of which an element has a `message`: those of its elements, null for the others",
      }),
    logprobs: z
      .union([z.record(z.string(), z.unknown()), z.array(z.unknown())])
      .optional()
      .meta({ description: "With `include`: the log probabilities; of a `foreach` a list of them" }),
    transcript: answerParts().transcript,
    transcripts: z
      .array(z.unknown())
      .optional()
      .meta({ description: "Of a `foreach`: those of its elements, null for the others" }),
    ...toolUseFields(),
    errors: z.array(z.union([errorBody().shape.error, z.null()])).optional(),
    status: z.enum(["queued", "running", "completed", "partial", "failed", "skipped", "cancelled"]).meta({
      description: "`partial`: some elements of a `foreach` completed",
    }),
    error: z.union([errorBody().shape.error, z.null()]).meta({
      description:
        "The first error of its calls. A task with `fallback` completed: the error says why the fallback was used",
    }),
    duration_ms: z.number().nullable().meta({ description: "Duration of its call, of the longest of a `foreach`" }),
    // A union: `nullable()` of a named schema is written as one that null does not fit.
    usage: z.union([usageDocument(), z.null()]),
    attempts: z.int(),
    model: z.string().nullable().optional(),
    slots: z.int().optional().meta({ description: "Of a `foreach`: how many calls it has" }),
    fallback: z.literal(true).optional(),
    replaced_by: z.string().optional().meta({ description: "The alternative that completed in its place" }),
    not_needed: z.literal(true).optional().meta({ description: "An alternative that was not started" }),
    phase: z.string().optional(),
  }),
);

const ids = z.array(z.string());

/** The answer of a graph, which may still be running. */
export const graphReply = atFirstUse(() =>
  batchReply()
    .pick({ status: true, usage: true, effective_parallel: true, created_at: true, ended_at: true })
    .extend(batchReply().pick({ aggregation: true, escalations: true, warnings: true, notes: true }).shape)
    .extend(stopReplyFields())
    .extend({ speculation: speculationReply().optional() })
    .extend({
      id: z.string(),
      object: z.literal("graph"),
      version: z.int(),
      plan: z
        .object({
          state: z.enum(["open", "ended", "cut"]).meta({ description: "`cut`: it broke off before its end" }),
          errors: z.array(z.object({ line: z.int(), message: z.string() })),
          tasks: z.array(z.looseObject({})).optional().meta({
            description:
              "In the answer of `/plan` with `stream`: the tasks as the planner has written them, in their order",
          }),
        })
        .optional()
        .meta({
          description: "Of a graph that runs while its plan arrives: how much has come, and lines that are no tasks",
        }),
      tasks: z.record(z.string(), taskDocument()),
      outputs: z.record(z.string(), z.union([z.string(), z.array(z.string().nullable()), z.null()])).meta({
        description: "By id: the output of each task that nothing depends on",
      }),
      completed: ids,
      partial: ids,
      failed: ids,
      skipped: ids,
      cancelled: ids,
      metrics: batchReply().shape.metrics.extend({
        critical_path_ms: z.number().meta({
          description: "Duration of the longest chain of calls: the graph could not have ended sooner",
        }),
      }),
      count: z.int(),
      counts: slotCounts(),
    })
    .meta({ id: "Graph" }),
);

const place = z.int().min(0);

/** The shape of a graph: its tasks, which refer to each other by their places in `tasks`, counted from 0. */
export const graphOutline = atFirstUse(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("graph_outline"),
      version: z.int(),
      status: graphReply().shape.status,
      slots: z.int().meta({ description: "Indexes that its calls can have; some have none" }),
      tasks: z.array(
        z.object({
          id: z.string(),
          first: z.int().meta({ description: "Index of its first call in the group, as the log names it" }),
          slots: z.int().meta({ description: "Indexes of its calls: 1, or the most that a `foreach` may have" }),
          dependencies: z.array(place).meta({ description: "Tasks that must end first" }),
          run_if: runIf().optional().meta({ description: "Which of these let it start; absent: `all_success`" }),
          alternatives: z.array(place).optional().meta({ description: "Tasks that are tried in turn if it fails" }),
          alternative_of: place.optional().meta({ description: "The task that it replaces" }),
          follows: place.optional().meta({
            description: "Of a pipeline: the `foreach` whose elements it follows, each as soon as it completed",
          }),
          tier: z.enum(["P0", "P1", "P2"]).optional(),
          phase: z.string().optional(),
          estimated_duration_ms: z.number().optional(),
        }),
      ),
    })
    .meta({ id: "GraphOutline" }),
);
