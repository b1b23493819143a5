/** `POST /dag`: calls with dependencies. Checks the form of a graph; what its ids and references mean is src/run/graph's. */
import { isRecord } from "../../text/json/record.ts";
import * as z from "zod";
import type { AggregateSpec } from "../../run/answers/aggregate.ts";
import type { Tier, TierMode } from "../../run/answers/tiers.ts";
import type { BodyOptions, Notify, ToolUse } from "../../call.ts";
import type { ContextReference } from "../../contexts/types.ts";
import type { Reason } from "../../errors.ts";
import { labelsOf, type CallLabels } from "../../labels.ts";
import { ITEM_NAME, TASK_ID } from "../../run/graph/refs.ts";
import {
  CONTEXT_LIMIT_CHARS_MAX,
  DEADLINE_MS_MAX,
  FALLBACK_CHARS_MAX,
  FOREACH_ITEMS_DEFAULT,
  GRAPH_SLOTS_MAX,
  GRAPH_EDGES_MAX,
  GRAPH_TASKS_MAX,
  PARALLEL_MAX,
  TASK_ALTERNATIVES_MAX,
  TASK_DURATION_MS_DEFAULT,
  TASK_ID_CHARS_MAX,
  TASK_RETRIES_MAX,
} from "../../limits.ts";
import { aggregate, parseAggregate } from "../aggregate/aggregate.ts";
import { tierMode, tierName, tieredFacts, tiersOf } from "../batch.ts";
import {
  SETTINGS_DEFAULT,
  callSettingsFields,
  parseSettings,
  settingsBase,
  type CallSettings,
  type FieldPath,
} from "../call-options.ts";
import { parseCall, type ParsedCall } from "../call.ts";
import { invalid, zodReason, type Parsed } from "../errors.ts";
import {
  callRulesFields,
  contentFields,
  exactlyOneOf,
  label,
  onExhausted,
  rulesOf,
  type OnExhausted,
  type SentRules,
} from "../fields.ts";
import { atLeast } from "../rules/at-least.ts";
import type { AskedRules } from "../rules/rule.ts";
import { askedRules, ruleFields } from "../rules/table.ts";
import { strictFields } from "../strict-fields.ts";
import { atOnce, SliceCount, type Sliced } from "../../text/bytes/slices.ts";
import { toolName } from "../tools.ts";
import {
  alternative,
  alternativesOf,
  runIf,
  runIfOf,
  type RequestedAlternative,
  type RequestedRunIf,
} from "./run-if.ts";
import { parseToolTask } from "./tool-task.ts";
import { notifyOf, webhookField } from "../webhook.ts";
import { atFirstUse } from "../../at-first-use.ts";

/** An id that references can name. `item` is none: `{{item.output}}` is a field of an element. */
const taskId = atFirstUse(() =>
  z
    .string()
    .min(1)
    .max(TASK_ID_CHARS_MAX)
    .regex(TASK_ID, "expected letters, digits, _, -, : and /")
    .refine(
      (id) => id !== ITEM_NAME,
      'is "item", which references use for the element of a foreach; expected another id',
    ),
);

/** One of `tasks`. */
export const dagTask = atFirstUse(() =>
  strictFields({
    id: taskId().meta({ description: "Distinct in its graph; references name it" }),
    ...contentFields(),
    ...callSettingsFields(),
    tool: toolName().optional().meta({
      description: "A tool of the run, which the task calls instead of a model. Its output is the tool's result",
    }),
    input: z.unknown().optional().meta({
      description: "What the tool gets, any JSON value; default `{}`. Its texts may have references",
    }),
    dependencies: z.array(z.string()).optional().meta({
      description: "Ids of tasks that must end first. References in the prompt add theirs",
    }),
    foreach: z.string().optional().meta({
      description:
        "`{{id.output.json.path}}`: one slot per element of that array. `{{id.outputs}}`: one per output of another `foreach` task, which starts as soon as that output is there",
    }),
    max_items: z
      .int()
      .min(1)
      .max(GRAPH_SLOTS_MAX)
      .optional()
      .meta({
        description: `Most elements of a \`foreach\` over an array; default ${FOREACH_ITEMS_DEFAULT}. A quote counts them all`,
      }),
    run_if: runIf().optional().meta({
      description:
        "Which ended dependencies let it start: `all_success` (default), `any`, `always`, a share of their slots that completed, or a condition on outputs. Else it is `skipped`",
    }),
    likely: z.boolean().optional().meta({
      description:
        "Whether the condition of its `run_if` is likely to hold: with `speculate`, its call is made before that is known. Default false",
    }),
    max_retries: z.int().min(0).max(TASK_RETRIES_MAX).optional().meta({
      description: "Retries after a transient failure; default: the upstream's `max_attempts` - 1",
    }),
    fallback: z
      .string()
      .max(FALLBACK_CHARS_MAX)
      .optional()
      .meta({ description: "Text that counts as its output if it fails" }),
    alternatives: z.array(alternative()).max(TASK_ALTERNATIVES_MAX).optional().meta({
      description:
        "Ids of tasks that start, one after another, only if it fails, until one completes in its place. With `when`, only where a condition on outputs holds",
    }),
    context_limit_chars: z.int().min(1).max(CONTEXT_LIMIT_CHARS_MAX).optional().meta({
      description: "Most characters of each output that is inserted into its prompt",
    }),
    tier: tierName(),
    phase: label.optional(),
    estimated_duration_ms: z
      .int()
      .min(0)
      .max(DEADLINE_MS_MAX)
      .optional()
      .meta({
        description: `For the critical path; default ${TASK_DURATION_MS_DEFAULT}`,
      }),
  }).meta({ id: "DagTask", ...exactlyOneOf([["prompt"], ["messages"], ["tool"]]) }),
);
type DagTaskInput = z.infer<ReturnType<typeof dagTask>>;

const dagOptions = atFirstUse(() =>
  strictFields({
    inject: z.enum(["template", "markdown"]).optional().meta({
      description:
        "`template` (default): outputs replace references. `markdown`: also, the outputs of all dependencies stand before the prompt as `## Result from id`",
    }),
    on_error: z.enum(["continue", "abort"]).optional().meta({
      description: "`abort`: after the first task that failed, no further one starts; default `continue`",
    }),
    schedule: z.enum(["critical_path", "fifo", "weight"]).optional().meta({
      description:
        "Which ready task starts first: that with the longest rest (default), the first in the list, or by weight",
    }),
    concurrency: z.int().min(1).max(PARALLEL_MAX).optional(),
    include: callSettingsFields().include,
  }),
);

const { dedupe, ...graphRulesFields } = callRulesFields();
// What a call of a graph sends is known when it starts, too late for a key of equal calls.
void dedupe;

export const dagBody = atFirstUse(() =>
  strictFields({
    tasks: z.array(dagTask()).min(1).max(GRAPH_TASKS_MAX),
    dependencies: z.record(z.string(), z.array(z.string())).optional().meta({
      description: 'Dependencies by task, beside those that the tasks name: `{"c": ["a", "b"]}`',
    }),
    options: dagOptions().optional(),
    ...callSettingsFields(),
    ...graphRulesFields,
    on_exhausted: onExhausted().optional(),
    at_least: atLeast().optional().meta({
      description: "The share of the calls that must complete for the graph to end as `completed`; default: all",
    }),
    webhook: webhookField().optional(),
    ...ruleFields(),
    speculate: strictFields({
      max_usd: z.number().positive().meta({
        description: "What early calls may cost in all whose tasks do not start after all, USD",
      }),
    })
      .optional()
      .meta({
        description: "Makes the calls of `likely` tasks before their conditions are known. Absent = none is made early",
      }),
    tiers: tierMode(),
    aggregate: aggregate().optional(),
    detach: z.boolean().optional().meta({
      description: "Whether the graph continues after its client disconnects; default true. Read it at `/dag/:id`",
    }),
  }).meta({ id: "Dag" }),
);

/** A task as src/run/graph reads it, with its call; null = the default. */
export type DagTask = {
  id: string;
  call: ParsedCall;
  body: ParsedCall["body"];
  dependencies: readonly string[];
  foreach: string | null;
  maxItems: number | null;
  runIf: RequestedRunIf | null;
  maxRetries: number | null;
  fallback: string | null;
  alternatives: readonly RequestedAlternative[];
  contextLimitChars: number | null;
  likely?: true;
  tier?: Tier;
  phase: string | null;
  estimatedDurationMs: number | null;
  /** The labels of its calls; absent = they have none. The name is that of stored rows. */
  step?: CallLabels;
};

/** A graph to be compiled and opened; null = the run decides. */
export type DagRequest = SentRules & {
  /** In the order of the list. */
  tasks: readonly DagTask[];
  /** The settings of all calls as they were sent: tasks that are added later inherit them, too. */
  settings: SentSettings;
  /** Options that the calls share. The body of a call without its own option refers to these very values. */
  defaults: BodyOptions;
  /** The tools that the models of tasks may use that name none; null = they may use none. */
  toolUse: ToolUse | null;
  /** The stored text of tasks that name none; null = they have none. */
  context: ContextReference | null;
  inject: "template" | "markdown";
  onError: "continue" | "abort";
  schedule: "critical_path" | "fifo" | "weight";
  concurrency: number | null;
  /** What it asks of its group beside its tasks. */
  rules: AskedRules;
  /** What its results are combined to. */
  aggregate: AggregateSpec | null;
  /** What early calls may cost for nothing; null = none is made. */
  speculate: { maxUsd: number } | null;
  /** How the tiers of its tasks matter; null = they have none. */
  tiers: TierMode | null;
  /** Whether the graph continues after its client has left. */
  detach: boolean;
  /** What its calls do when the budget is used up; null = the run decides. */
  onExhausted: OnExhausted | null;
  /** What of it the operator's webhook is notified of; absent = what the run says. */
  notify?: Notify;
};

/** A parsed JSON body as a graph, or the first reason to refuse its form. */
export function parseDag(value: unknown): Parsed<DagRequest> {
  return atOnce(dagParsing(value));
}

/** The same in slices. */
export function* dagParsing(value: unknown): Sliced<Parsed<DagRequest>> {
  const excess = excessOf(value);
  if (excess !== null) return excess;
  const read = dagBody().safeParse(value);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const { tasks: inputs, dependencies = {}, options = {}, detach } = read.data;
  const sent = { ...read.data, include: options.include ?? read.data.include };
  const settings = parseSettings(sent, yield* settingsBase(sent), (field) => field);
  if (!settings.ok) return settings;
  const mapped = new Map(Object.entries(dependencies));
  const slice = new SliceCount();
  const tasks: DagTask[] = [];
  for (const [index, input] of inputs.entries()) {
    const task = taskOf(input, settings.value, (field) => `tasks[${index}].${field}`);
    if (!task.ok) return task;
    tasks.push(withMapped(task.value, mapped));
    if (slice.add(task.value.call.facts.promptBytes)) yield;
  }
  for (const id of mapped.keys()) return invalid(`dependencies.${id}`, "is not the id of a task");
  const judged = judgedOf(read.data);
  if (!judged.ok) return judged;
  const { inject = "template", on_error: onError = "continue", schedule = "critical_path", concurrency } = options;
  const hasTiers = tasks.some(({ tier }) => tier !== undefined);
  const tiers = tiersOf({ tiers: read.data.tiers ?? null }, hasTiers);
  const { body: defaults, context, dispatch } = settings.value;
  const shared = { defaults, context, toolUse: dispatch.toolUse ?? null, settings: sentSettings(sent) };
  const onExhausted = read.data.on_exhausted ?? null;
  const speculate = read.data.speculate === undefined ? null : { maxUsd: read.data.speculate.max_usd };
  const guards = { onExhausted, speculate, ...notifyOf(read.data.webhook) };
  const rules = { ...rulesOf(read.data), ...shared, detach: detach ?? true, ...guards };
  return {
    ok: true,
    value: { ...rules, ...judged.value, ...tiers, tasks, inject, onError, schedule, concurrency: concurrency ?? null },
  };
}

/** The rules over the results of the graph. */
function judgedOf(sent: z.infer<ReturnType<typeof dagBody>>): Parsed<Pick<DagRequest, "rules" | "aggregate">> {
  const rules = askedRules(sent);
  if (!rules.ok) return rules;
  const combined = parseAggregate(sent.aggregate);
  if (combined.ok && combined.value?.strategy === "vote" && combined.value.escalatesGroup === true) {
    return invalid("aggregate.escalate", "is for a batch only; leave it out, and look at aggregation.decided");
  }
  return combined.ok ? { ok: true, value: { rules: rules.value, aggregate: combined.value } } : combined;
}

/** Call settings as a client sent them, by the names of their fields. */
export type SentSettings = Readonly<Record<string, unknown>>;

const settingsSchema = atFirstUse(() => z.object(callSettingsFields()));

/** Stored settings as the input that they were. Throws if they are none: what is stored was read before. */
export function settingsInput(sent: SentSettings): z.infer<ReturnType<typeof settingsSchema>> {
  return settingsSchema().parse(sent);
}

function sentSettings(read: Readonly<Record<string, unknown>>): SentSettings {
  return Object.fromEntries(
    Object.keys(callSettingsFields()).flatMap((name) => (read[name] === undefined ? [] : [[name, read[name]]])),
  );
}

/** One line of a plan as a task, which has the default settings; or why it is none. */
export function parsePlanTask(value: unknown): Parsed<DagTask> {
  const excess = edgeExcess([value]);
  if (excess !== null) return excess;
  const read = dagTask().safeParse(value);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  return taskOf(read.data, SETTINGS_DEFAULT, (field) => field);
}

/** Counts before the tasks are parsed: a body may have millions of them, or of their dependencies. */
function excessOf(value: unknown): { ok: false; reason: Reason } | null {
  if (!isRecord(value)) return null;
  const { tasks, dependencies } = value;
  const listed: readonly unknown[] = Array.isArray(tasks) ? tasks : [];
  if (listed.length > GRAPH_TASKS_MAX) {
    return invalid("tasks", `has ${listed.length} tasks; expected at most ${GRAPH_TASKS_MAX}`);
  }
  const mapped = isRecord(dependencies) ? Object.values(dependencies) : [];
  if (mapped.length > GRAPH_TASKS_MAX) {
    return invalid("dependencies", `has ${mapped.length} entries; expected at most ${GRAPH_TASKS_MAX}`);
  }
  return edgeExcess([{ dependencies: mapped.flat() }, ...listed]);
}

/** Why tasks that are not parsed yet have too many dependencies; null if they do not. A schema would note a fault for each. */
export function edgeExcess(tasks: readonly unknown[]): { ok: false; reason: Reason } | null {
  const edges = tasks.reduce<number>((sum, task) => {
    const list = isRecord(task) ? task["dependencies"] : null;
    return sum + (Array.isArray(list) ? list.length : 0);
  }, 0);
  if (edges <= GRAPH_EDGES_MAX) return null;
  return invalid("dependencies", `has ${edges} dependencies in all; expected at most ${GRAPH_EDGES_MAX}`);
}

/** One task over the settings of its graph. */
export function taskOf(input: DagTaskInput, defaults: CallSettings, path: FieldPath): Parsed<DagTask> {
  const settings = parseSettings(input, defaults, path);
  if (!settings.ok) return settings;
  const { tool } = input;
  if (tool === undefined && input.input !== undefined) return invalid(path("input"), "needs tool: the name of a tool");
  const isLikely = input.likely === true;
  if (tool !== undefined && isLikely)
    return invalid(path("likely"), "is for calls of a model, and the task calls a tool");
  const call =
    tool === undefined
      ? parseCall(input, settings.value, path)
      : parseToolTask({ ...input, tool }, settings.value, path);
  if (!call.ok) return call;
  const rule = runIfOf(input.run_if, path("run_if"));
  if (!rule.ok) return rule;
  const alternatives = alternativesOf(input.alternatives ?? [], path("alternatives"));
  if (!alternatives.ok) return alternatives;
  const facts = tieredFacts(call.value.facts, input);
  const step = labelsOf(facts);
  return {
    ok: true,
    value: {
      id: input.id,
      call: { ...call.value, facts },
      body: call.value.body,
      dependencies: input.dependencies ?? [],
      foreach: input.foreach ?? null,
      maxItems: input.max_items ?? null,
      runIf: rule.value,
      maxRetries: input.max_retries ?? null,
      fallback: input.fallback ?? null,
      alternatives: alternatives.value,
      contextLimitChars: input.context_limit_chars ?? null,
      ...(isLikely && { likely: true as const }),
      ...(facts.tier !== undefined && { tier: facts.tier }),
      phase: input.phase ?? null,
      estimatedDurationMs: input.estimated_duration_ms ?? null,
      ...(step !== undefined && { step }),
    },
  };
}

/** The task with its dependencies of the map, which it takes out of it. */
function withMapped(task: DagTask, mapped: Map<string, string[]>): DagTask {
  const more = mapped.get(task.id);
  if (more === undefined) return task;
  mapped.delete(task.id);
  return { ...task, dependencies: [...task.dependencies, ...more] };
}
