/** `POST /plan`: a goal for which a model writes a graph of calls. */
import * as z from "zod";
import {
  PLAN_ROUNDS_MAX,
  PLAN_TASKS_DEFAULT,
  PLAN_TASKS_MAX,
  PROMPT_BYTES_MAX,
  TASK_ID_CHARS_MAX,
} from "../../limits.ts";
import { invalid, zodReason, errorBody, type Parsed } from "../errors.ts";
import { label } from "../fields.ts";
import { runningGroup } from "../groups.ts";
import { usageDocument } from "../query.ts";
import type { Notify } from "../../call.ts";
import { strictFields } from "../strict-fields.ts";
import { notifyOf, webhookField } from "../webhook.ts";
import { atFirstUse } from "../../at-first-use.ts";

const replan = atFirstUse(() =>
  strictFields({
    max_rounds: z.int().min(0).max(PLAN_ROUNDS_MAX).optional().meta({
      description: "Most further plans; default 1. With 0, the joiner only answers",
    }),
    stop_if_same: z.boolean().optional().meta({
      description: "Whether a plan that equals an earlier one ends the program instead of running again; default true",
    }),
    min_budget_usd: z.number().min(0).optional().meta({
      description: "No further plan is written once less than this is left of the budget; default 0",
    }),
  }),
);

export const planBody = atFirstUse(() =>
  strictFields({
    goal: z.string().min(1).max(PROMPT_BYTES_MAX).meta({ description: "What the plan is to achieve" }),
    planner_model: label.optional().meta({
      description: "The model that writes the plan and joins its results; default: the run's `default_model`",
    }),
    model: label.optional().meta({ description: "The model of the plan's tasks; default: the run's `default_model`" }),
    max_tasks: z
      .int()
      .min(1)
      .max(PLAN_TASKS_MAX)
      .optional()
      .meta({
        description: `Most tasks of a plan; default ${PLAN_TASKS_DEFAULT}`,
      }),
    run: z.boolean().optional().meta({ description: "`false`: the plan is written and checked only; default true" }),
    stream: z.boolean().optional().meta({
      description:
        "`true`: the plan runs while its model writes it. The answer is that of `/dag`, whole or as events; there is no joiner. Default false",
    }),
    webhook: webhookField().optional(),
    replan: replan().optional().meta({
      description:
        "A joiner reads the results of the graph: it answers, or says why another plan is needed. Absent: the outputs of the first graph are the result",
    }),
  }).meta({ id: "PlanRequest" }),
);

/** A request to plan; null = the run decides, or there is no joiner. */
export type PlanRequest = {
  goal: string;
  plannerModel: string | null;
  model: string | null;
  tasksMax: number;
  run: boolean;
  /** Whether the plan runs while it is written. */
  stream: boolean;
  replan: { roundsMax: number; stopIfSame: boolean; minBudgetUsd: number } | null;
  /** What of each of its graphs the operator's webhook is notified of; absent = what the run says. */
  notify?: Notify;
};

export function parsePlan(value: unknown): Parsed<PlanRequest> {
  const read = planBody().safeParse(value);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const { goal, planner_model, model, max_tasks, run = true, stream = false, replan: sent, webhook } = read.data;
  if (stream && (!run || sent !== undefined)) {
    return invalid("stream", "runs the plan while it is written, without a joiner; leave out replan and run: false");
  }
  const rules =
    sent === undefined
      ? null
      : {
          roundsMax: sent.max_rounds ?? 1,
          stopIfSame: sent.stop_if_same ?? true,
          minBudgetUsd: sent.min_budget_usd ?? 0,
        };
  const models = { plannerModel: planner_model ?? null, model: model ?? null };
  return {
    ok: true,
    value: {
      ...{ goal, ...models, tasksMax: max_tasks ?? PLAN_TASKS_DEFAULT, run, stream, replan: rules },
      ...notifyOf(webhook),
    },
  };
}

/** A task as a planner writes it. */
const plannedTask = atFirstUse(() =>
  z.strictObject({
    id: z.string().max(TASK_ID_CHARS_MAX),
    prompt: z.string().optional(),
    tool: z.string().optional().meta({ description: "The tool of the run that it calls instead of a model" }),
    input: z.unknown().optional(),
    dependencies: z.array(z.string()).optional(),
  }),
);
export type PlannedTask = z.infer<ReturnType<typeof plannedTask>>;

/** What a planner answers. */
export const plannedTasks = atFirstUse(() => z.object({ tasks: z.array(plannedTask()) }));

/** What a joiner answers. */
export const joined = atFirstUse(() =>
  z.object({
    action: z.enum(["finish", "replan"]),
    answer: z.string(),
    reason: z.string(),
  }),
);
export type Joined = z.infer<ReturnType<typeof joined>>;

/** A plan as the planner has written it. */
const writtenPlan = atFirstUse(() =>
  z.object({
    tasks: z.array(plannedTask()),
    repaired: z.boolean().meta({ description: "Whether the first plan was invalid, and written once more" }),
  }),
);

/** The answer for a client that does not wait for its plan's graph. */
export const acceptedPlan = atFirstUse(() =>
  runningGroup()
    .extend({ plan: writtenPlan().meta({ description: "What the graph was made of" }) })
    .meta({ id: "AcceptedPlan" }),
);

const planRound = atFirstUse(() =>
  writtenPlan().extend({
    graph: z.string().nullable().meta({ description: "The id of its graph, for `/dag/:id`; null: it did not run" }),
    status: z.string().nullable(),
    outputs: z.record(z.string(), z.unknown()),
    decision: joined().nullable(),
  }),
);
export type PlanRound = z.infer<ReturnType<typeof planRound>>;

export const STOPPED = ["planned", "no_replan", "finished", "max_rounds", "same_plan", "min_budget", "error"] as const;

export const planReply = atFirstUse(() =>
  z
    .object({
      object: z.literal("plan"),
      stopped: z.enum(STOPPED).meta({ description: "Why it has ended" }),
      answer: z.string().nullable().meta({ description: "The joiner's last answer; null without one" }),
      outputs: z.record(z.string(), z.unknown()).meta({ description: "Of the last graph" }),
      rounds: z.array(planRound()),
      error: z.union([errorBody().shape.error, z.null()]).meta({
        description: "Why a call after the first plan failed; what had ended by then is in the reply",
      }),
      usage: usageDocument(),
    })
    .meta({ id: "Plan" }),
);
export type PlanReply = z.infer<ReturnType<typeof planReply>>;
