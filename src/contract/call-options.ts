/**
 * The options of a call: the schema of each, and where its value goes. A new option is added here and to `DispatchOptions`
 * or `BodyOptions` in src/call.ts; docs/query.md describes it.
 */
import * as z from "zod";
import { INCLUDED, type BodyOptions, type DispatchOptions, type Priority } from "../call.ts";
import { quoted, type Reason } from "../errors.ts";
import {
  CALL_STEPS_MAX,
  JSON_DEPTH_MAX,
  MAX_TOKENS_MAX,
  PARAMS_ENTRIES_MAX,
  SCHEMA_BYTES_MAX,
  SCHEMA_RETRIES_DEFAULT,
  SCHEMA_RETRIES_MAX,
  TIMEOUT_MS_MAX,
  TOOL_TURNS_DEFAULT,
} from "../limits.ts";
import type { ContextReference } from "../contexts/types.ts";
import { CACHE_MARKS } from "../providers/formats/request/inner-fields.ts";
import { COUNTS, OWN_PARAMS } from "../providers/formats/request/own-params.ts";
import { acceptedSchema, otherFormatIn } from "../text/schema/accept.ts";
import { sizeOf, type TextSize } from "./chat-fields.ts";
import { cacheChoiceOf, cacheField, type CacheChoice } from "./contexts/cache.ts";
import { contextField, referenceOf } from "./contexts/reference.ts";
import { invalid, type Parsed } from "./errors.ts";
import { ABSENT, label, wantedTier } from "./fields.ts";
import { Params } from "./params.ts";
import type { Sliced } from "../text/bytes/slices.ts";
import { cascadeFields, cascadeOf, gatesOf } from "./steps/cascade.ts";
import { hedgeField, hedgeOf } from "./steps/hedge.ts";
import { samplesField, samplingOf } from "./steps/samples.ts";
import { toolUseSettings } from "./steps/tool-use.ts";
import { nestsDeeperThan, textFault } from "./text.ts";
import { atFirstUse } from "../at-first-use.ts";

/** The urgency of each name; the names of tiers among them. */
export const PRIORITIES = {
  critical: 4,
  high: 3,
  normal: 2,
  medium: 2,
  low: 1,
  background: 0,
  P0: 4,
  P1: 3,
  P2: 2,
} as const satisfies Record<string, Priority>;

const PRIORITY_NAMES = ["critical", "high", "normal", "medium", "low", "background", "P0", "P1", "P2"] as const;

const priority = z.union(
  [z.enum(PRIORITY_NAMES), z.literal([4, 3, 2, 1, 0]).meta({ type: "integer", enum: [4, 3, 2, 1, 0] })],
  {
    error: `expected one of ${PRIORITY_NAMES.join(", ")}, or 4 (critical) to 0 (background)`,
  },
);

/** The urgency that a wire value names. */
function priorityOf(value: z.infer<typeof priority>): Priority {
  return typeof value === "number" ? value : PRIORITIES[value];
}

/** What of a call is sent to its upstream, and what it may take. */
const sentFields = () => ({
  model: label.optional().meta({
    description: "`upstream/model`, or a model name that an upstream lists; default: the run's `default_model`",
  }),
  system: z
    .string()
    .optional()
    .meta({ description: "Text of a system message that is placed before the other messages" }),
  max_tokens: z.int().min(1).max(MAX_TOKENS_MAX).optional().meta({ description: "Completion cap, in tokens" }),
  temperature: z.number().min(0).optional(),
  priority: priority.optional().meta({ description: "Default `normal`. A queued call rises one level every 30 s" }),
  timeout_ms: z
    .int()
    .min(1)
    .max(TIMEOUT_MS_MAX)
    .optional()
    .meta({ description: "Time limit of one attempt, ms; default: the upstream's" }),
  reserve: z.enum(["learned", "worst"]).optional().meta({
    description:
      "Completion cap of a call without `max_tokens` if the run has a limit. `worst`: 4,096 tokens. `learned`: if the budget is tight, a cap that earlier answers of the run fit; an answer that ends at that cap is requested again with 4,096. Default: `learned` in a batch. A `/query` call that is not stored always uses `worst`",
  }),
  params: z
    .record(z.string(), z.unknown())
    .optional()
    .meta({
      properties: paramsProperties(),
      description: `Further fields for the upstream, forwarded unchanged; at most ${PARAMS_ENTRIES_MAX}. A run with a limit in USD or tokens refuses fields whose cost nothing bounds`,
    }),
  schema: z
    .record(z.string(), z.unknown())
    .optional()
    .meta({
      description: `JSON Schema that the answer must fit, of at most ${SCHEMA_BYTES_MAX} bytes. It is sent to the upstream and the answer is checked here; the value is \`json\` beside the text. See docs/schema.md`,
    }),
});

/** What the gateway does with a call and its answer. */
const handlingFields = () => ({
  context: contextField().optional().meta({
    description:
      "A text that was stored at `POST /contexts`, or a part of it; it is placed before the prompt. See docs/contexts.md",
  }),
  cache: cacheField().optional().meta({
    description:
      "How a `context` or a long `system` that calls share is cached by their provider: `auto` (default), `off`, or how long. See docs/contexts.md",
  }),
  schema_retries: z
    .int()
    .min(0)
    .max(SCHEMA_RETRIES_MAX)
    .optional()
    .meta({
      description: `Times that the model is asked again, with what is wrong, after an answer that does not fit \`schema\`; default ${SCHEMA_RETRIES_DEFAULT}. After that the call fails with \`schema_violation\``,
    }),
  include: z.array(z.enum(INCLUDED)).max(INCLUDED.length).optional().meta({
    description:
      "What the answer shows beside its text. `message`: the whole message of the model, also if it has only text. `logprobs`: the log probabilities, if `params` ask the upstream for them. `transcript`: of a call with `tools`, the messages before its answer. A message that has more than text (tool calls, thoughts, a refusal, citations) is always shown. See docs/messages.md",
  }),
  ...toolUseSettings(),
  service_tier: wantedTier().optional(),
  ...cascadeFields(),
  samples: samplesField().optional(),
  hedge: hedgeField().optional(),
  step: z.int().min(1).max(CALL_STEPS_MAX).optional().meta({
    description: "At which step of its program the call is made, from 1: events of the log about the call have it",
  }),
  steps: z.int().min(1).max(CALL_STEPS_MAX).optional().meta({
    description: "How many steps that program has; default: unknown. At least `step`",
  }),
});

/** The options of a call: on `/query`, on an item of a `/batch`, and at its top level as the default of all items. */
export const callSettingsFields = atFirstUse(() => ({ ...sentFields(), ...handlingFields() }));

/** For the OpenAPI document: the entries that `params` must not have, and those of which it takes some values only. */
function paramsProperties() {
  const refused = [...OWN_PARAMS.keys()].map((name) => [name, ABSENT] as const);
  const counts = [...COUNTS].map((name) => [name, { enum: [1, null] }] as const);
  const marks = Object.keys(CACHE_MARKS).map((name) => [name, { type: ["object" as const, "null" as const] }] as const);
  const tools = { type: ["array" as const, "null" as const], items: { type: "object" as const } };
  return { ...Object.fromEntries([...refused, ...counts, ...marks]), tools };
}

/** The settings as a client sends them. */
export type CallSettingsInput = z.infer<z.ZodObject<ReturnType<typeof callSettingsFields>>>;
/** Names a field of the call being parsed from the root of the request: `"system"` → `"items[3].system"`. */
export type FieldPath = (field: string) => string;

/** A call's options with the sizes of those that count as prompt; shared by every call that does not override them. */
export type CallSettings = {
  dispatch: DispatchOptions;
  body: BodyOptions;
  /** Size of `system`. */
  systemSize: TextSize;
  /** Size of `schema` as it is sent; null = there is none. */
  schemaSize: TextSize | null;
  /** `params`, read as fields of a chat completion. */
  params: Params;
  /** The stored text that a call refers to; null = none. */
  context: ContextReference | null;
  /** How what it shares is cached; null = not. */
  cache: CacheChoice | null;
};

/** The settings of a call whose request names none. */
export const SETTINGS_DEFAULT: CallSettings = {
  dispatch: { model: null, maxTokens: null, priority: 2, timeoutMs: null },
  body: {},
  context: null,
  cache: {},
  systemSize: { textBytes: 0, textTokensMax: 0, jsonBytes: 0 },
  schemaSize: null,
  params: Params.NONE,
};

/** What the settings that many calls share are laid over. The facts of their `params` are read in slices. */
export function* settingsBase({ params }: Pick<CallSettingsInput, "params">): Sliced<CallSettings> {
  if (params == null) return SETTINGS_DEFAULT;
  const path = (name: string | null): string => (name === null ? "params" : `params.${name}`);
  return { ...SETTINGS_DEFAULT, params: yield* Params.ahead(params, path) };
}

type Refusal = { ok: false; reason: Reason };
/** Writes one field into the settings; returns why it is refused, or null. */
type OptionWriter<Value> = (value: Value, settings: CallSettings, path: FieldPath) => Refusal | null;
type OptionWriters<Input> = { readonly [Name in keyof Input]-?: OptionWriter<NonNullable<Input[Name]>> };

/**
 * Where each field of `callSettingsFields` goes; the compiler refuses a field without an entry. `dispatch` and `body` are
 * carried whole from here on: pages, defaults, lanes and Workers name none of their members.
 */
const OPTION_WRITERS: OptionWriters<CallSettingsInput> = {
  model: (model, { dispatch }) => {
    // A call that names one model leaves the models that it would inherit.
    delete dispatch.cascade;
    return written(dispatch, { model });
  },
  max_tokens: (maxTokens, { dispatch }) => written(dispatch, { maxTokens }),
  priority: (priority, { dispatch }) => written(dispatch, { priority: priorityOf(priority) }),
  timeout_ms: (timeoutMs, { dispatch }) => written(dispatch, { timeoutMs }),
  reserve: (reserve, { dispatch }) => written(dispatch, { reserve }),
  temperature: (temperature, { body }) => written(body, { temperature }),
  system: (system, settings, path) => {
    const fault = textFault(system);
    if (fault !== null) return invalid(path("system"), fault);
    settings.systemSize = sizeOf(system);
    return written(settings.body, { system });
  },
  params: (sent, settings, path) => {
    const params = settings.params.with(sent, (name) => path(name === null ? "params" : `params.${name}`));
    if (!params.ok) return params;
    settings.params = params.value;
    return written(settings.body, { params: params.value.values });
  },
  schema: (schema, settings, path) => {
    if (nestsDeeperThan(schema, JSON_DEPTH_MAX)) {
      return invalid(path("schema"), `expected at most ${JSON_DEPTH_MAX} levels of nesting`);
    }
    const accepted = acceptedSchema(schema);
    if (!accepted.ok) return invalid(path(`schema${quoted(accepted.path)}`), accepted.problem);
    settings.schemaSize = sizeOf(accepted.sentAs);
    return written(settings.body, { schema });
  },
  cache: (cache, settings) => written(settings, { cache: cacheChoiceOf(cache) }),
  context: (context, settings) => written(settings, { context: referenceOf(context) }),
  schema_retries: (schemaRetries, { dispatch }) => written(dispatch, { schemaRetries }),
  models: (models, { dispatch }) =>
    written(dispatch, { model: models[0] ?? null, cascade: cascadeOf(models, dispatch.cascade) }),
  escalate_on: (sent, { dispatch }, path) => {
    if (dispatch.cascade === undefined) return invalid(path("escalate_on"), "needs models");
    const gates = gatesOf(sent, path("escalate_on"));
    return gates.ok ? written(dispatch, { cascade: { models: dispatch.cascade.models, ...gates.value } }) : gates;
  },
  include: (include, { body }) => written(body, { include }),
  tools: (names, { dispatch }) => {
    const { maxTurns = TOOL_TURNS_DEFAULT } = dispatch.toolUse ?? {};
    return written(dispatch, { toolUse: { tools: [...new Set(names)], maxTurns } });
  },
  max_turns: (maxTurns, { dispatch }, path) => {
    if (dispatch.toolUse === undefined) return invalid(path("max_turns"), "needs tools");
    return written(dispatch, { toolUse: { ...dispatch.toolUse, maxTurns } });
  },
  service_tier: (wantedTier, { dispatch }) => written(dispatch, { wantedTier }),
  samples: (samples, { dispatch }, path) => {
    const sampling = samplingOf(samples, path("samples"));
    return sampling.ok ? written(dispatch, { sampling: sampling.value }) : sampling;
  },
  hedge: (hedge, { dispatch }) => written(dispatch, { hedge: hedgeOf(hedge) }),
  step: (step, { dispatch }) => written(dispatch, { step }),
  steps: (steps, { dispatch }) => written(dispatch, { steps }),
};

function written<T extends object>(target: T, fields: Partial<T>): null {
  Object.assign(target, fields);
  return null;
}

/** Lays the settings that a request or an item names over those it inherits; `params` are merged entry by entry. */
export function parseSettings(input: CallSettingsInput, base: CallSettings, path: FieldPath): Parsed<CallSettings> {
  if (input.model !== undefined && input.models !== undefined) {
    return invalid(path("models"), "give either model or models, not both");
  }
  const settings = { ...base, dispatch: { ...base.dispatch }, body: { ...base.body } };
  const refused = writeOptions(OPTION_WRITERS, input, settings, path);
  if (refused !== null) return refused;
  const { toolUse } = settings.dispatch;
  // The same value for all calls that share it.
  if (
    toolUse !== undefined &&
    (toolUse.transcript ?? false) !== (settings.body.include?.includes("transcript") ?? false)
  ) {
    const { transcript: _, ...rest } = toolUse;
    settings.dispatch.toolUse = toolUse.transcript === true ? rest : { ...rest, transcript: true };
  }
  const other = settings.schemaSize === null ? null : otherFormatIn(settings.body.params);
  if (other !== null) return invalid(path("schema"), `cannot be combined with params.${other}; send one of them`);
  if (settings.dispatch.cascade !== undefined && settings.dispatch.sampling !== undefined) {
    return invalid(path("samples"), "cannot be combined with models: each sample would be several calls");
  }
  const { step = 0, steps = Infinity } = settings.dispatch;
  if (step > steps) return invalid(path("step"), `is ${step}, above steps (${steps})`);
  return { ok: true, value: settings };
}

function writeOptions<Input extends object>(
  writers: OptionWriters<Input>,
  input: Input,
  settings: CallSettings,
  path: FieldPath,
): Refusal | null {
  for (const name in writers) {
    const value = input[name];
    if (value === undefined || value === null) continue;
    const refused = writers[name](value, settings, path);
    if (refused !== null) return refused;
  }
  return null;
}
