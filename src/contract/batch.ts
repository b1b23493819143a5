/** `POST /batch`: an ordered list of calls. */
import * as z from "zod";
import { areAlike, BATCH_TIER, type CallFacts, type Notify, type SharedBody, type ToolUse } from "../call.ts";
import type { AggregateSpec } from "../run/answers/aggregate.ts";
import { splitName } from "../contexts/resolve.ts";
import type { ContextReference } from "../contexts/types.ts";
import { TIER_NAMES, type Tier, type TierMode } from "../run/answers/tiers.ts";
import type { Reason } from "../errors.ts";
import { isLabelled } from "../labels.ts";
import {
  BATCH_TIER_DEADLINE_MS_MIN,
  CHUNK_PLACE,
  ITEMS_PER_BATCH_MAX,
  MISSING_LISTED_MAX,
  PARALLEL_MAX,
} from "../limits.ts";
import { PRIORITIES, callSettingsFields, parseSettings, settingsBase, type CallSettings } from "./call-options.ts";
import { callOf, parseCall, type CallContent, type ParsedCall } from "./call.ts";
import type { Parsed } from "./errors.ts";
import { errorBody, invalid, zodReason } from "./errors.ts";
import { aggregate, aggregation, parseAggregate } from "./aggregate/aggregate.ts";
import { speculationReply } from "./aggregate/speculation.ts";
import {
  claimFields,
  claimsOf,
  independenceFields,
  validateIndependence,
  type Claims,
  type IndependencePolicy,
} from "./independence.ts";
import { overField, overOf, type Over } from "./contexts/reference.ts";
import { isLongPrompt, LongPrompts } from "./long-prompts.ts";
import { PlainPrompts } from "./plain-prompts.ts";
import { atLeast } from "./rules/at-least.ts";
import type { AskedRules } from "./rules/rule.ts";
import { stopReplyFields } from "./rules/stop-when.ts";
import { askedRules, ruleFields } from "./rules/table.ts";
import { replayedFlag } from "./replay.ts";
import { ONE_FORM_OF_BATCH } from "./batch-forms.ts";
import { strictFields } from "./strict-fields.ts";
import type { ErrorStyle, OnExhausted, SentRules } from "./fields.ts";
import {
  answeredBy,
  answerJson,
  answerParts,
  batchTier,
  callRulesFields,
  cappedBy,
  contentFields,
  errorStyle,
  errorStyleOf,
  label,
  narrowedBy,
  onExhausted,
  ONE_CONTENT,
  percentiles,
  rulesOf,
} from "./fields.ts";
import { agentsFields, copiesOfOne, type Copied } from "./agents.ts";
import { stepsDocument } from "./steps/cascade.ts";
import { sampledFields } from "./steps/samples.ts";
import { toolUseFields } from "./steps/tool-use.ts";
import { usageDocument } from "./query.ts";
import { atOnce, SliceCount, type Sliced } from "../text/bytes/slices.ts";
import { notifyOf, webhookField } from "./webhook.ts";
import { atFirstUse } from "../at-first-use.ts";

/** How much a call matters. */
export const tierName = atFirstUse(() =>
  z.enum(TIER_NAMES).optional().meta({
    description:
      "How much the call matters; default `P2`. If it fails, the answer lists it in `escalations` (`P0`), `warnings` (`P1`) or `notes` (`P2`). It also sets the default of `priority`",
  }),
);

/** One of `items`. */
export const batchItem = atFirstUse(() =>
  strictFields({
    id: label.optional(),
    tier: tierName(),
    ...contentFields(),
    ...callSettingsFields(),
    ...claimFields(),
  }).meta({ id: "BatchItem", ...ONE_CONTENT }),
);
export type BatchItem = z.infer<ReturnType<typeof batchItem>>;

export const tierMode = atFirstUse(() =>
  z.enum(["strict", "priority"]).optional().meta({
    description:
      "`strict`: calls of a tier start when all of the tiers before it have ended. `priority` (default if one has a tier): tiers only order the queue",
  }),
);

/** The request as documented. Prompts are checked by hand below: a schema per prompt would cost more than the rest. */
export const batchBody = atFirstUse(() =>
  strictFields({
    prompts: z
      .custom<readonly unknown[]>((value) => Array.isArray(value), "expected an array of texts")
      .optional()
      .meta({ type: "array", items: { type: "string" }, maxItems: ITEMS_PER_BATCH_MAX }),
    items: z.array(batchItem()).max(ITEMS_PER_BATCH_MAX).optional(),
    over: overField().optional(),
    ...contentFields(),
    prompt: z.string().optional().meta({ description: "The one prompt of a batch with `over`, `agents` or `n`" }),
    ...agentsFields(),
    ...callSettingsFields(),
    service_tier: batchTier().optional(),
    ...callRulesFields(),
    ...ruleFields(),
    tiers: tierMode(),
    aggregate: aggregate().optional(),
    validate_independence: validateIndependence().optional(),
    detach: z.boolean().optional().meta({
      description: "Whether the group continues after its client disconnects; default true. Read it at `/groups/:id`",
    }),
    concurrency: z.int().min(1).max(PARALLEL_MAX).optional(),
    error_style: errorStyle().optional(),
    on_error: z.enum(["continue", "abort"]).optional(),
    on_budget: z.enum(["refuse", "partial"]).optional().meta({
      description:
        "`partial` (default): slots run until the budget is spent. `refuse`: if the slots cannot all fit the budget, the whole batch is refused with 422 `infeasible`",
    }),
    on_exhausted: onExhausted().optional(),
    at_least: atLeast().optional().meta({
      description:
        "The share of the calls that must complete for the group to end as `completed`; the answer lists the others in `missing`. Default: all, so one failed call makes it `partial`",
    }),
    webhook: webhookField().optional(),
    budget_policy: z.enum(["shared", "split"]).optional().meta({
      description:
        "`shared` (default): slots share the remaining budget. `split`: a slot may reserve at most an equal share of it",
    }),
  }).meta({ id: "Batch", ...ONE_FORM_OF_BATCH }),
);

/** One call of a batch; `id` is the client's custom id. `claims`: what it works on; absent = it does not say. */
export type BatchCall = ParsedCall & { id: string | null; claims?: Claims };

/** A batch ready to be opened; null = the run decides. */
export type BatchRequest = SentRules & {
  /** In input order. Those of a large batch are parsed anew each time they are read, so read them once or twice. */
  calls: Iterable<BatchCall> & { readonly length: number };
  /** Set if all calls are the same one, `n` times: it is measured, sent to the run and stored once. Absent = each is its own. */
  isCopied?: true;
  /** The custom ids of the calls; empty if none has one. */
  ids: readonly (string | null)[];
  /** Set if a call has labels, for which the log then looks; absent = none has. */
  hasLabels?: true;
  /** Options that the calls share. The body of a call without its own option refers to these very values. */
  defaults: SharedBody;
  concurrency: number | null;
  errorStyle: ErrorStyle | null;
  onError: "continue" | "abort";
  /** Whether a batch that can never fit the budget is refused whole, or runs until the budget is spent. */
  onBudget: "refuse" | "partial";
  /** What its calls do when the budget is used up; null = the run decides. */
  onExhausted: OnExhausted | null;
  /** What it asks of its group beside its calls. */
  rules: AskedRules;
  /** What of it the operator's webhook is notified of; absent = what the run says. */
  notify?: Notify;
  /** Whether each slot gets its equal share of the budget. */
  split: boolean;
  /** Whether the group continues after its client has left. */
  detach: boolean;
  /** What its answers are combined to. */
  aggregate: AggregateSpec | null;
  /** What follows if its items are not independent; null = that is not checked. */
  independence: IndependencePolicy | null;
  /** How the tiers of its calls matter; null = they have none. */
  tiers: TierMode | null;
  /** Whether its calls go through batches of their provider, if it sells them. */
  viaBatches: boolean;
  /** What its calls refer to; before that is found, they cannot be opened. */
  contexts: ContextNeeds;
  /** The tools of the run that its models may use: those of calls that name none (null = none), and whether a call has some. */
  tools: { default: ToolUse | null; areUsed: boolean };
};

/**
 * The texts that the calls of a batch refer to. `default`: that of the calls which name none. `over`: the batch has a call for
 * each chunk of a context, and its one call is the prompt of all.
 */
export type ContextNeeds = {
  named: ReadonlyMap<string, ContextReference>;
  default: ContextReference | null;
  over: Over | null;
};

/** One slot of a group, in input order, beside `results` and `errors`. */
export const slotDocument = atFirstUse(() =>
  z.object({
    index: z.int(),
    id: z.string().nullable(),
    status: z.enum(["queued", "running", "completed", "failed", "skipped", "cancelled"]),
    model: z.string().nullable(),
    // A union: `nullable()` of a named schema is written as one that null does not fit.
    usage: z.union([usageDocument(), z.null()]),
    latency_ms: z.number().nullable(),
    queued_ms: z.number().nullable(),
    attempts: z.int(),
    finish_reason: z.string().nullable(),
    json: answerJson(),
    ...answerParts(),
    capped_by: cappedBy(),
    upstream: answeredBy(),
    steps: stepsDocument(),
    ...sampledFields(),
    ...toolUseFields(),
    replayed: replayedFlag(),
    estimated: z
      .boolean()
      .meta({ description: "True if the cost of an attempt is unknown and its reservation was charged" }),
  }),
);

/** How many slots of a group are in each state. */
export const slotCounts = atFirstUse(() =>
  z.object({
    queued: z.int(),
    running: z.int(),
    completed: z.int(),
    failed: z.int(),
    skipped: z.int(),
    cancelled: z.int(),
  }),
);

/** A failed call of a batch with tiers. */
const tierFailure = atFirstUse(() =>
  z.object({
    index: z.int(),
    id: z.string().nullable(),
    tier: z.enum(TIER_NAMES),
    code: z.string(),
    message: z.string(),
  }),
);

/** The answer: `results` and `responses` are the same list. `id` is null for an empty batch, which opens no group. */
export const batchReply = atFirstUse(() =>
  z
    .object({
      id: z.string().nullable(),
      object: z.literal("group"),
      status: z.enum(["awaiting_confirmation", "running", "completed", "partial", "failed", "cancelled", "escalated"]),
      results: z.array(z.unknown()),
      responses: z.array(z.unknown()),
      errors: z.array(z.union([errorBody().shape.error, z.null()])),
      items: z.array(slotDocument()),
      usage: usageDocument(),
      metrics: z.object({
        wall_ms: z.number(),
        sequential_ms: z.number(),
        speedup: z.number().nullable(),
        peak_parallel: z.int(),
        success_rate: z.number().nullable(),
        latency_ms: percentiles().optional().meta({
          description: "Of the calls that have ended: the time of all their attempts; null: none was sent",
        }),
        queued_ms: percentiles().optional().meta({
          description: "Of the same calls: from the group's opening to the start of the first attempt",
        }),
        narrowed_by: narrowedBy().optional().meta({
          description: "Why fewer calls were in flight than the group may have; absent: as many were",
        }),
      }),
      effective_parallel: z.int(),
      count: z.int(),
      counts: slotCounts(),
      created_at: z.iso.datetime(),
      ended_at: z.iso.datetime().nullable(),
      ...stopReplyFields(),
      speculation: speculationReply().optional(),
      replayed: z.int().optional().meta({
        description: "Calls that were answered with recorded answers; absent if the run records none",
      }),
      missing: z
        .array(z.int())
        .max(MISSING_LISTED_MAX)
        .optional()
        .meta({ description: "With `at_least`: indexes of the calls that did not complete; of many, the first" }),
      aggregation: aggregation().optional(),
      ...independenceFields(),
      escalations: z.array(tierFailure()).optional().meta({ description: "Failed calls of `P0`; of many, the first" }),
      warnings: z.array(tierFailure()).optional().meta({ description: "Failed calls of `P1`" }),
      notes: z.array(tierFailure()).optional().meta({ description: "Failed calls of `P2`" }),
    })
    .meta({ id: "Group" }),
);

const quoteLine = atFirstUse(() =>
  z.object({
    worst_usd: z.number(),
    likely_usd: z.number(),
    prompt_tokens_max: z.int(),
    completion_tokens_max: z.int(),
  }),
);

/** The answer to `POST /batch?quote=1`: nothing was reserved or sent. `fits`: the worst of all slots fits what is left, in every dimension. */
export const quoteReply = atFirstUse(() =>
  z
    .object({
      object: z.literal("quote"),
      worst_usd: z.number(),
      likely_usd: z.number(),
      remaining_usd: z.number().nullable(),
      fits: z.boolean(),
      items: z.array(quoteLine().extend({ index: z.int() })),
    })
    .meta({ id: "Quote" }),
);
export type QuoteReply = z.infer<ReturnType<typeof quoteReply>>;

/** Whether the query requests a quote only. An unknown value is refused: it would run, and spend, what was to be quoted. */
export function parseQuote(quote: string | undefined): Parsed<boolean> {
  if (quote === undefined || quote === "0") return { ok: true, value: false };
  return quote === "1" ? { ok: true, value: true } : invalid("quote", "expected 1 for a quote, or 0 to run the batch");
}

/** Reads `prompts[index]`. `plain`: of the short ones that were read before it. */
export type PromptReader = (
  prompt: unknown,
  index: number,
  settings: CallSettings,
  plain: PlainPrompts,
) => Parsed<BatchCall>;

/** A parsed JSON body as calls in input order, or the first reason to refuse all of it. */
export function parseBatch(
  value: unknown,
  promptOf: PromptReader = promptCall,
): Parsed<BatchRequest & { calls: BatchCall[] }> {
  return atOnce(batchParsing(value, promptOf));
}

/** The same in slices: a small body may have as many calls as a large one. */
export function* batchParsing(
  value: unknown,
  promptOf: PromptReader = promptCall,
): Sliced<Parsed<BatchRequest & { calls: BatchCall[] }>> {
  const excess = excessOf(value);
  if (excess !== null) return excess;
  const envelope = yield* envelopeParsing(value);
  if (!envelope.ok) return envelope;
  const { shared } = envelope.value;
  if (envelope.value.times !== undefined) return copiesOf(envelope.value, envelope.value.times);
  const named = new Map<string, ContextReference>();
  const calls = yield* callsOf(envelope.value, promptOf);
  if (!calls.ok) return calls;
  const ids = namesOf(calls.value.map(({ id }) => id));
  const hasTiers = calls.value.some(({ facts }) => facts.tier !== undefined);
  for (const { context } of calls.value) noteContext(named, context);
  const contexts = { ...shared.contexts, named };
  const tools = toolsOf(
    shared,
    calls.value.some(({ facts }) => facts.toolUse !== undefined),
  );
  const labelled = labelledOf(calls.value.some(({ facts }) => isLabelled(facts)));
  const rules = { ...shared, ...tiersOf(shared, hasTiers), ...tools, ...labelled };
  return { ok: true, value: { ...rules, calls: calls.value, ids, contexts } };
}

/** The batch of one call, so many times. */
function copiesOf(envelope: Envelope, times: number): Parsed<BatchRequest & { calls: BatchCall[] }> {
  const { shared } = envelope;
  const read = atOnce(callsOf(envelope, promptCall));
  if (!read.ok) return read;
  const named = new Map<string, ContextReference>();
  for (const { context } of read.value) noteContext(named, context);
  const [only] = read.value;
  const calls = only === undefined ? [] : Array<BatchCall>(times).fill(only);
  const contexts = { ...shared.contexts, named };
  const tools = toolsOf(
    shared,
    read.value.some(({ facts }) => facts.toolUse !== undefined),
  );
  const labelled = labelledOf(only !== undefined && isLabelled(only.facts));
  const rules = { ...shared, ...tiersOf(shared, false), ...tools, ...labelled };
  return { ok: true, value: { ...rules, calls, isCopied: true, ids: [], contexts } };
}

function callsOf(envelope: Envelope, promptOf: PromptReader): Sliced<Parsed<BatchCall[]>> {
  const { settings } = envelope;
  const long = new LongPrompts();
  if (envelope.items === undefined) {
    const plain = new PlainPrompts(settings);
    const read = (prompt: unknown, index: number): Parsed<BatchCall> => promptOf(prompt, index, settings, plain);
    if (promptOf !== promptCall) return eachCall(envelope.prompts, read);
    return eachCall(envelope.prompts, read, (prompt, index) => longPromptCall(prompt, index, settings, long));
  }
  const { items, content } = envelope;
  return eachCall(
    items,
    (input, index) => itemCall(input, index, settings, content),
    (input, index) => longItemCall(input, index, settings, long),
  );
}

/** The options and rules of a batch, and its calls as the schema returns them. */
export type Envelope = {
  settings: CallSettings;
  shared: Omit<BatchRequest, "calls" | "ids">;
  /** Set if the one item is made so often. */
  times?: number;
} & (
  | { prompts: readonly unknown[]; items: undefined }
  /** `content`: that of all items; absent = each has its own. */
  | { prompts: undefined; items: readonly BatchItem[]; content?: CallContent }
);

/** Reads all of a batch but the calls of its prompts or items, in slices. */
export function* envelopeParsing(value: unknown): Sliced<Parsed<Envelope>> {
  const read = batchBody().safeParse(value);
  if (!read.success) return { ok: false, reason: zodReason(read.error) };
  const { prompts, items, concurrency, error_style, on_error, on_budget, budget_policy, detach } = read.data;
  if (prompts !== undefined && items !== undefined) return invalid("items", "give either prompts or items, not both");
  const { service_tier: sentTier, ...sent } = read.data;
  const viaBatches = sentTier === BATCH_TIER;
  const options = sentTier === BATCH_TIER ? sent : { ...sent, service_tier: sentTier };
  const settings = parseSettings(options, yield* settingsBase(options), (field) => field);
  if (!settings.ok) return settings;
  if (viaBatches) {
    const fault = batchTierFault(sent);
    if (fault !== null) return fault;
    settings.value.dispatch.wantedTier = BATCH_TIER;
  }
  const rules = askedRules(read.data);
  if (!rules.ok) return rules;
  const combined = parseAggregate(read.data.aggregate);
  if (!combined.ok) return combined;
  const { toolUse } = settings.value.dispatch;
  const shared = {
    ...rulesOf(read.data),
    defaults: settings.value.body,
    concurrency: concurrency ?? null,
    errorStyle: errorStyleOf(error_style),
    onError: on_error ?? "continue",
    onBudget: on_budget ?? "partial",
    onExhausted: read.data.on_exhausted ?? null,
    rules: rules.value,
    ...notifyOf(read.data.webhook),
    split: budget_policy === "split",
    detach: detach ?? true,
    aggregate: combined.value,
    independence: read.data.validate_independence ?? null,
    tiers: read.data.tiers ?? null,
    viaBatches,
    contexts: { named: NO_CONTEXTS, default: settings.value.context, over: null },
    tools: { default: toolUse ?? null, areUsed: toolUse !== undefined },
  };
  const { over, prompt } = read.data;
  if (over !== undefined) return overEnvelope({ over, prompt }, read.data, settings.value, shared);
  const copied = copiesOfOne(read.data);
  if (copied !== null) {
    return copied.ok ? copiedEnvelope(copied.value, read.data, settings.value, shared) : copied;
  }
  if (prompts !== undefined)
    return { ok: true, value: { settings: settings.value, shared, prompts, items: undefined } };
  if (items !== undefined) return { ok: true, value: { settings: settings.value, shared, prompts: undefined, items } };
  return invalid(
    "prompts",
    "is missing; expected prompts (an array of texts), items (an array of objects), or prompt with agents or n",
  );
}

/** The envelope of a batch that has one content for all its calls, which they share like its settings. */
function copiedEnvelope(
  { content, each }: Copied,
  { prompts, items: listed }: z.infer<ReturnType<typeof batchBody>>,
  settings: CallSettings,
  shared: Omit<BatchRequest, "calls" | "ids">,
): Parsed<Envelope> {
  if (prompts !== undefined || listed !== undefined) {
    return invalid(prompts === undefined ? "items" : "prompts", "give either one prompt or several, not both");
  }
  const defaults = { ...shared.defaults, ...content.body };
  const common = { settings, shared: { ...shared, defaults }, prompts: undefined, content };
  if (typeof each !== "number") return { ok: true, value: { ...common, items: each } };
  // Batches of a provider are made of pages of calls.
  if (shared.viaBatches) return { ok: true, value: { ...common, items: Array.from({ length: each }, () => ({})) } };
  return { ok: true, value: { ...common, items: [{}], times: each } };
}

/** Why a batch cannot go through batches of its provider; null = it can. */
function batchTierFault({
  deadline_ms: deadlineMs,
  dedupe,
  tiers,
}: Pick<z.infer<ReturnType<typeof batchBody>>, "deadline_ms" | "dedupe" | "tiers">) {
  if (deadlineMs === undefined || deadlineMs < BATCH_TIER_DEADLINE_MS_MIN) {
    const message = `with service_tier "batch", expected at least ${BATCH_TIER_DEADLINE_MS_MIN} (an hour)`;
    return invalid("deadline_ms", message);
  }
  if (dedupe === true) return invalid("dedupe", 'cannot be combined with service_tier "batch"');
  return tiers === "strict" ? invalid("tiers", '"strict" cannot be combined with service_tier "batch"') : null;
}

const NO_CONTEXTS: ReadonlyMap<string, ContextReference> = new Map();

/** The envelope of a batch with `over`: its one prompt is that of every chunk. */
function overEnvelope(
  { over, prompt }: { over: z.infer<ReturnType<typeof overField>>; prompt: string | undefined },
  { prompts, items, context, messages, agents, n }: z.infer<ReturnType<typeof batchBody>>,
  settings: CallSettings,
  shared: Omit<BatchRequest, "calls" | "ids">,
): Parsed<Envelope> {
  const beside = Object.entries({ prompts, items, messages, agents, n }).find(([, sent]) => sent !== undefined)?.[0];
  if (beside !== undefined) return invalid(beside, "cannot be combined with over; send one of them");
  if (context !== undefined) return invalid("context", "cannot be combined with over, which names the context");
  if (prompt === undefined || !prompt.includes(CHUNK_PLACE))
    return invalid("prompt", `expected a text with ${CHUNK_PLACE}, where the text of a chunk goes`);
  const contexts = { ...shared.contexts, over: overOf(over) };
  return { ok: true, value: { settings, shared: { ...shared, contexts }, prompts: [prompt], items: undefined } };
}

/** Notes what must be known of the context of a call: its index, and its chunks under the split that the call names. */
export function noteContext(named: Map<string, ContextReference>, context: ContextReference | undefined): void {
  if (context === undefined) return;
  const { id, chunk } = context;
  const name = chunk === undefined ? id : splitName(id, chunk.split);
  if (!named.has(name)) named.set(name, context);
}

/** How tiers matter: as the request says, or as a priority if a call has one. */
export function tiersOf({ tiers }: Pick<BatchRequest, "tiers">, hasTiers: boolean): Pick<BatchRequest, "tiers"> {
  return { tiers: tiers ?? (hasTiers ? "priority" : null) };
}

/** Which tools its models may use; `areUsed`: whether a call names some. */
export function toolsOf({ tools }: Pick<BatchRequest, "tools">, areUsed: boolean): Pick<BatchRequest, "tools"> {
  return { tools: { ...tools, areUsed: tools.areUsed || areUsed } };
}

/** Whether the log is to look for labels of calls. */
export function labelledOf(hasLabels: boolean): Pick<BatchRequest, "hasLabels"> {
  return hasLabels ? { hasLabels } : {};
}

/** The names of calls, in input order; empty if none has one. */
export function namesOf(ids: readonly (string | null)[]): readonly (string | null)[] {
  return ids.some((id) => id !== null) ? ids : [];
}

/** Counts before the elements are parsed: a body may have millions of them. */
function excessOf(value: unknown): { ok: false; reason: Reason } | null {
  if (typeof value !== "object" || value === null) return null;
  for (const [field, list] of Object.entries(value)) {
    if (field !== "prompts" && field !== "items") continue;
    if (Array.isArray(list) && list.length > ITEMS_PER_BATCH_MAX) {
      return invalid(field, `has ${list.length} calls; expected at most ${ITEMS_PER_BATCH_MAX}`);
    }
  }
  return null;
}

/** @param longCallOf Reads a call that takes long by itself; null = it does not. */
function* eachCall<T>(
  inputs: readonly T[],
  callOf: (input: T, index: number) => Parsed<BatchCall>,
  longCallOf: (input: T, index: number) => Sliced<Parsed<BatchCall>> | null = () => null,
): Sliced<Parsed<BatchCall[]>> {
  const slice = new SliceCount();
  const calls: BatchCall[] = [];
  let last: CallFacts | null = null;
  for (const [index, input] of inputs.entries()) {
    const long = longCallOf(input, index);
    const call = long === null ? callOf(input, index) : yield* long;
    if (!call.ok) return call;
    // Tens of thousands of calls are kept: alike ones in a row have one object of facts.
    const { facts } = call.value;
    if (last !== null && facts !== last && areAlike(last, facts)) call.value.facts = last;
    else last = facts;
    calls.push(call.value);
    if (slice.add(call.value.facts.promptBytes)) yield;
  }
  return { ok: true, value: calls };
}

/** The call of `prompts[index]`. */
export function promptCall(
  prompt: unknown,
  index: number,
  settings: CallSettings,
  plain: PlainPrompts,
): Parsed<BatchCall> {
  if (typeof prompt !== "string") return invalid(`prompts[${index}]`, `expected a text, received ${kindOf(prompt)}`);
  const known = plain.callOf(prompt);
  if (known !== null) return { ok: true, value: { id: null, body: known.body, facts: known.facts } };
  const call = parseCall({ prompt }, settings, () => `prompts[${index}]`);
  if (!call.ok) return call;
  plain.note(prompt, call.value);
  return { ok: true, value: { id: null, ...call.value } };
}

/** The same of a long prompt, in slices; null = it is not long. */
export function longPromptCall(
  prompt: unknown,
  index: number,
  settings: CallSettings,
  long: LongPrompts,
): Sliced<Parsed<BatchCall>> | null {
  return isLongPrompt(prompt) ? readLongPrompt(prompt, index, settings, long) : null;
}

function* readLongPrompt(
  prompt: string,
  index: number,
  settings: CallSettings,
  long: LongPrompts,
): Sliced<Parsed<BatchCall>> {
  const call = yield* long.callOf(prompt, index, settings, () => `prompts[${index}]`);
  return call.ok ? { ok: true, value: { id: null, ...call.value } } : call;
}

/** The call of `items[index]`, over the settings of the batch. `content`: that of all its calls; absent = the item has its own. */
export function itemCall(
  input: BatchItem,
  index: number,
  defaults: CallSettings,
  content?: CallContent,
): Parsed<BatchCall> {
  const path = (field: string) => `items[${index}].${field}`;
  const settings = parseSettings(input, defaults, path);
  if (!settings.ok) return settings;
  const call =
    content === undefined ? parseCall(input, settings.value, path) : callOf(content, settings.value, (field) => field);
  return call.ok ? { ok: true, value: itemOf(input, call.value) } : call;
}

/** The same of an item with a long prompt and no other content, in slices; null = it has none. */
export function longItemCall(
  input: BatchItem,
  index: number,
  defaults: CallSettings,
  long: LongPrompts,
): Sliced<Parsed<BatchCall>> | null {
  const { prompt, messages } = input;
  return messages === undefined && isLongPrompt(prompt) ? readLongItem(input, prompt, index, defaults, long) : null;
}

function* readLongItem(
  input: BatchItem,
  prompt: string,
  index: number,
  defaults: CallSettings,
  long: LongPrompts,
): Sliced<Parsed<BatchCall>> {
  const path = (field: string) => `items[${index}].${field}`;
  const settings = parseSettings(input, defaults, path);
  if (!settings.ok) return settings;
  const call = yield* long.callOf(prompt, index, settings.value, path);
  return call.ok ? { ok: true, value: itemOf(input, call.value) } : call;
}

/** The call with what only items have. */
function itemOf(input: BatchItem, call: ParsedCall): BatchCall {
  const claims = claimsOf(input);
  const facts = tieredFacts(call.facts, input);
  return { id: input.id ?? null, ...call, facts, ...(claims !== undefined && { claims }) };
}

/** The facts of a call with its tier, which is its priority unless the item names one. */
export function tieredFacts(
  facts: CallFacts,
  { tier: name, priority }: Pick<BatchItem, "tier" | "priority">,
): CallFacts {
  if (name === undefined) return facts;
  const tier = TIERS_BY_NAME[name];
  return { ...facts, tier, ...(priority === undefined ? { priority: PRIORITIES[name] } : {}) };
}

const TIERS_BY_NAME = { P0: 0, P1: 1, P2: 2 } as const satisfies Record<(typeof TIER_NAMES)[number], Tier>;

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
