/**
 * Types of the JavaScript stub, /stubs/javascript. Keep both files in one folder, as fanout.mjs and fanout.d.mts:
 * `import { llmQuery } from "./fanout.mjs"` then finds both. Needs TypeScript 5 or newer, and the types of a browser,
 * Node, Deno, Bun or Workers for `AbortSignal`. The functions are documented in fanout.mjs.
 */

/** A chat message, sent to the upstream unchanged. */
export type Message = { role: string; content?: string | readonly object[] | null; [field: string]: unknown };
/** How a text is cut into chunks: at most `size` characters each, whatever `by`. */
export interface Split {
  by?: "chars" | "lines" | "paragraphs" | "markdown" | undefined;
  size?: number | undefined;
  overlap?: number | undefined;
}
/** A part of a stored text: characters `from` (first) to `to` (behind the last), or a chunk. */
export interface ContextPart {
  id: string;
  from?: number | undefined;
  to?: number | undefined;
  chunk?: number | undefined;
  split?: Split | undefined;
  /** Where it stands. Default: prompt, before the prompt. */
  as?: "prompt" | "system" | undefined;
}
/** The whole message of an answer. What its provider adds is here, too. */
export interface Answered {
  role: "assistant";
  content: string | readonly object[] | null;
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
  refusal?: string | null;
  reasoning?: string | null;
  annotations?: object[];
  [field: string]: unknown;
}
export type Included = "message" | "logprobs" | "transcript";
/** Request fields of a call, or of all calls of a batch. */
export interface CallFields {
  /** `upstream/model` or a model's name. Default: the run's. */
  model?: string | undefined;
  /** Text of a system message before the others. */
  system?: string | undefined;
  /** Completion cap, tokens. */
  max_tokens?: number | undefined;
  temperature?: number | undefined;
  priority?: "critical" | "high" | "normal" | "medium" | "low" | "background" | "P0" | "P1" | "P2" | 0 | 1 | 2 | 3 | 4;
  /** Limit of one attempt, ms. */
  timeout_ms?: number | undefined;
  /** JSON Schema that the answer must fit; one that does not is requested again, then fails with `schema_violation`. */
  schema?: Record<string, unknown> | boolean | undefined;
  /** How often an answer that does not fit is requested again. Default: 1. */
  schema_retries?: number | undefined;
  /** In place of `model`: the next one is asked if `escalate_on` stops the answer of the one before. */
  models?: readonly string[] | undefined;
  /** What stops an answer. Default: all four names. */
  escalate_on?:
    | { json: string }
    | readonly ("schema_violation" | "refusal" | "length" | "empty" | { json: string })[]
    | undefined;
  /** The call is made until enough of its answers agree, such as `{ min: 2, max: 8, agree: 0.75 }`. */
  samples?:
    | { min?: number; max?: number; agree?: number; by?: "normalized" | "exact" | "json_key"; key?: string }
    | undefined;
  /** A second attempt beside a late one: after so many ms, or longer than 95 % of the others. Default: none. */
  hedge?: false | { after?: "p95" | number; max_extra?: number } | undefined;
  /** At which step of its program it is made, from 1, for the log and `fanout watch`. */
  step?: number | undefined;
  /** How many steps that program has, if that is known. */
  steps?: number | undefined;
  /** The id of a stored text, or a part of it: the gateway puts it before the prompt. */
  context?: string | ContextPart | undefined;
  /** How the context that calls share is cached by its provider. Default: auto. */
  cache?: "auto" | "off" | { ttl?: "5m" | "1h"; warm_ms_max?: number } | undefined;
  /** `flex`: cheaper and slower where the upstream sells it, else the standard tier. Default: the run's, or none. */
  service_tier?: "flex" | "priority" | "default" | undefined;
  /** What the answer shows beside its text. */
  include?: readonly Included[] | undefined;
  /** Names of tools of the run that the model may use: the gateway calls them and asks it again. */
  tools?: readonly string[] | undefined;
  /** How many answers such a model may give. Default: 8. */
  max_turns?: number | undefined;
  /** Further fields for the upstream, sent unchanged. */
  params?: Record<string, unknown> | undefined;
}

/** A call with fields of its own. */
export type Call = CallFields & ({ prompt: string } | { messages: readonly Message[] });
/** A call of a batch, which may have a name. */
export type Item = Call & { id?: string | undefined };
/** One prompt of a batch: a string, a list of chat messages, or an item. */
export type Prompt = string | readonly Message[] | Item;
/** Aborting rejects the call with the signal's reason. */
export type CallOptions = { signal?: AbortSignal | undefined };
export interface QueryOptions extends CallFields, CallOptions {
  /** Names the request: repeated under the same key, it gets the recorded answer at no cost. */
  idempotencyKey?: string | undefined;
  /** A call that has not started within this time fails with `deadline_exceeded`, ms. */
  deadline_ms?: number | undefined;
  /** What to do after an attempt whose outcome is unknown. Default: retry. */
  on_lost?: "retry" | "fail" | undefined;
  /** The completion cap to reserve if max_tokens is missing: learned from this run's answers, or the full one. */
  reserve?: "learned" | "worst" | undefined;
  /** Whether equal calls in flight share one answer. Default: false. */
  dedupe?: boolean | undefined;
}

/** How a failed slot is written in its place. Default: bracket, "[error] message". */
export type ErrorStyle = "bracket" | "rlm" | "dspy" | "verifiers" | "throw" | "null" | "settled" | null;
/** The result of a slot under an error style. */
export type Result<Style extends ErrorStyle> = Style extends "settled"
  ? { status: "fulfilled"; value: string; index: number } | { status: "rejected"; reason: SlotError; index: number }
  : Style extends "null" | null
    ? string | null
    : string;

/** What the operator's webhook is notified of: the end; a `P0` call that fails for good. Default: nothing. */
export interface WebhookOptions {
  on_end?: boolean | undefined;
  on_escalation?: boolean | undefined;
}

export interface BatchOptions<Style extends ErrorStyle = "bracket"> extends QueryOptions {
  error_style?: Style | undefined;
  /** Calls in flight at once, at most. */
  concurrency?: number | undefined;
  on_error?: "continue" | "abort" | undefined;
  /** If the budget can never pay for the whole batch: run a part, or refuse it (422). Default: partial. */
  on_budget?: "partial" | "refuse" | undefined;
  /** The share of the calls that must complete for the batch to end as `completed`. Default: all. */
  at_least?: number | undefined;
  /** Whether calls that the budget does not cover fail, or wait for a higher limit. Default: the run's. */
  on_exhausted?: "fail" | "pause" | undefined;
  /** What of the group the operator's webhook is notified of. */
  webhook?: WebhookOptions | undefined;
  /** Whether the group continues when its client disconnects. Default: true. */
  detach?: boolean | undefined;
  budget_policy?: "shared" | "split" | undefined;
  /** Stops the batch once it has enough answers, such as `{ n_success: 3 }`. */
  stop_when?: StopWhen | undefined;
  /** How the answers become one result, such as `{ strategy: "vote" }`. */
  aggregate?: Record<string, unknown> | undefined;
  /** `strict`: calls of a tier start when all of the tiers before it have ended. */
  tiers?: "strict" | "priority" | undefined;
  validate_independence?: "report" | "reject" | "serialize" | undefined;
}
/**
 * The rule that stops a group early; exactly one. `shadow`: only report what a stop would have saved. `in_flight`: what
 * becomes of calls in flight. `hurry`: keep the full width near the end of `n_success` and `quorum`, at a higher cost.
 */
export type StopWhen = {
  shadow?: boolean | undefined;
  in_flight?: "auto" | "finish" | "abort" | undefined;
  hurry?: boolean | undefined;
} & (
  | { n_success: number }
  | { quorum: { of: number; agree?: number; by?: "normalized" | "exact" | "json_key"; key?: string } }
  | { regex: string; flags?: "i" | "s" | "is" | undefined }
  | { judge: { prompt: string; model?: string; max_tokens?: number; max_chars?: number; every?: number } }
);
export type SlotError = {
  code: string;
  message: string;
  retryable: boolean;
  attempts: number;
  [fact: string]: unknown;
};
/** `cost` in USD. */
export type Usage = { prompt_tokens: number; completion_tokens: number; total_tokens: number; cost: number };
/** A slot that has ended. If it failed, `error` has the facts and `result` is their text in the error style. */
export interface Slot<Style extends ErrorStyle = "bracket"> {
  type: "slot";
  index: number;
  id: string | null;
  result: Result<Style>;
  error: SlotError | null;
  status: "completed" | "failed" | "skipped" | "cancelled";
  model: string | null;
  usage: Usage | null;
  latency_ms: number | null;
  queued_ms: number | null;
  attempts: number;
  finish_reason: string | null;
  /** The answer as JSON, of a call with a schema. */
  json?: unknown;
  /** If it has more than text, or is included. */
  message?: Answered;
}

/** The outcome of a group; `cost` in USD. */
export interface GroupCompleted {
  type: "group_completed";
  id: string;
  status: "completed" | "partial" | "failed" | "cancelled" | "escalated";
  count: number;
  execution_ms: number;
  cost: number;
  usage: Usage;
  metrics: GroupMetrics;
  /** With `at_least`: indexes of the slots that did not complete. */
  missing?: number[];
}
/** How a group ran. `narrowed_by`: why fewer calls ran at once than it may have; absent: as many did. */
export interface GroupMetrics {
  wall_ms: number;
  speedup: number | null;
  peak_parallel: number;
  success_rate: number | null;
  narrowed_by?: NarrowedBy;
  [field: string]: unknown;
}
/** `width` of `of` calls ran at once for a `share` of the time; each reserves `per_call` of the `dimension`. */
export interface NarrowedBy {
  by: "budget";
  dimension: "usd" | "calls" | "prompt_tokens" | "completion_tokens" | "new_tokens";
  width: number;
  of: number;
  share: number;
  per_call: number;
  remedy: string;
}
export type WithSchema<Options> = Options & { schema: Record<string, unknown> | boolean };
/** What the output of a task is compared with; `else`: that task was skipped by its own condition. */
export type OutputCondition =
  | { task: string; json: string }
  | { task: string; equals: string }
  | { task: string; contains: string }
  | { task: string; matches: string; flags?: "i" | "s" | "is" | undefined }
  | { else: string };
/** Comparisons together, in two levels at most. */
export type OutputConditions<Part> = { all: readonly Part[] } | { any: readonly Part[] };
/** A condition on outputs. */
export type Condition = OutputCondition | OutputConditions<OutputCondition | OutputConditions<OutputCondition>>;
export type RunIf = "all_success" | "any" | "always" | { at_least: number } | Condition;
/** A task of a graph: `{{id.output}}` in its prompt is the output of another one. */
export type Task = Call & {
  id: string;
  dependencies?: readonly string[] | undefined;
  foreach?: string | undefined;
  max_items?: number | undefined;
  run_if?: RunIf | undefined;
  max_retries?: number | undefined;
  fallback?: string | undefined;
  alternatives?: readonly (string | { id: string; when: Condition })[] | undefined;
  context_limit_chars?: number | undefined;
  tier?: "P0" | "P1" | "P2" | undefined;
  phase?: string | undefined;
  estimated_duration_ms?: number | undefined;
};
export interface DagOptions extends QueryOptions {
  dependencies?: Record<string, readonly string[]> | undefined;
  options?: {
    inject?: "template" | "markdown" | undefined;
    on_error?: "continue" | "abort" | undefined;
    schedule?: "critical_path" | "fifo" | "weight" | undefined;
    concurrency?: number | undefined;
  };
  /** What of the graph the operator's webhook is notified of. */
  webhook?: WebhookOptions | undefined;
  detach?: boolean | undefined;
  stop_when?: StopWhen | undefined;
  aggregate?: Record<string, unknown> | undefined;
  tiers?: "strict" | "priority" | undefined;
}
/** What became of a graph, its tasks by id; `outputs` has those of the tasks that nothing depends on. */
export interface Graph {
  id: string;
  status: GroupCompleted["status"];
  tasks: Record<string, { status: string; output?: string | null; json?: unknown; error: SlotError | null }>;
  outputs: Record<string, string | null | (string | null)[]>;
  [field: string]: unknown;
}
/** `winner` is null if nothing was decided. */
export interface Vote {
  decided: boolean;
  winner: unknown;
  agreement: number;
  tie: boolean;
  votes: number;
  [field: string]: unknown;
}
/** `limit` and `remaining` are null where there is no limit. */
export type BudgetLine = { limit: number | null; spent: number; reserved: number; remaining: number | null };
/** `usd` in USD. */
export type Budget = Record<"usd" | "calls" | "prompt_tokens" | "completion_tokens" | "new_tokens", BudgetLine>;
/** `cost` in USD. */
export type Tokens = { input_tokens: number; output_tokens: number; cost: number };
/** At most 5 % too high, ms; null: no call has ended. */
export type Percentiles = { p50: number; p95: number; p99: number } | null;
export type RunUsage = Tokens & {
  llm_calls: number;
  calls_by_model: Record<string, Tokens & { calls: number }>;
  latency_ms?: Percentiles;
  queued_ms?: Percentiles;
};
export interface LogFields {
  output?: string | null;
  data?: unknown;
  code?: string | null;
  reasoning?: string | null;
  hasError?: boolean;
  step?: number | null;
  usage?: Record<string, unknown> | null;
  timestamps?: Record<string, unknown> | null;
  parallel_group_id?: string | null;
}
export class FanoutError extends Error {
  constructor(message: string, code: string, facts?: Partial<Omit<FanoutError, "name" | "message" | "code" | "stack">>);
  readonly name: "FanoutError";
  /** The gateway's, or one of the stub's own. */
  readonly code: string;
  /** HTTP status; null where there was no answer. */
  readonly status: number | null;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  readonly retryAfterMs: number | null;
  /** What a call has used up that was made; else null. */
  readonly attempts: number | null;
  readonly chargedUsd: number | null;
}
/** Limits of a child run, reserved in its parent; an omitted one is an equal split of what remains there. */
export interface RunLimits {
  /** USD. */
  usd?: number | undefined;
  calls?: number | undefined;
  prompt_tokens?: number | undefined;
  completion_tokens?: number | undefined;
  /** Completions, and prompts that no cache had. */
  new_tokens?: number | undefined;
}
/** Settings of a child run: its limits, and the fields of POST /runs. */
export interface RunSettings extends RunLimits, CallOptions {
  name?: string | undefined;
  /** The limits as one object, instead of the four fields. */
  budget?: RunLimits | undefined;
  /** How long to wait for room in the parent, ms. Default: not at all. */
  wait_ms?: number | undefined;
  /** Calls in flight at once, at most; 0 = no cap of the run's own. */
  max_parallel?: number | undefined;
  /** A set of defaults: `stable` is narrow. */
  profile?: "default" | "stable" | undefined;
  /** Share of a limited upstream, relative to other runs; at most the parent's. */
  weight?: number | undefined;
  /** How deep child runs may go below this run. */
  max_depth?: number | undefined;
  expires_in_s?: number | undefined;
  /** Patterns of the models that it may use, as `upstream/model`. */
  models?: readonly string[] | undefined;
  default_model?: string | undefined;
  error_style?: ErrorStyle | undefined;
  /** Calls of /query within this time of the first are one group, ms. */
  window_ms?: number | undefined;
  unpriced?: "refuse" | "free" | undefined;
  retention_s?: number | undefined;
  /** Where in the world the run should begin, such as `weur`. */
  region?: string | undefined;
  metadata?: Record<string, unknown> | undefined;
  /** Records the run's answers, and replays them for equal calls. A child of a run that records also records. */
  replay?: "run" | undefined;
  /** Id of a run with `replay` whose answers this one replays, a child instead of its parent's. */
  replay_from?: string | undefined;
  /** The service tier of calls that name none. */
  service_tier?: "flex" | "priority" | "default" | undefined;
  /** Groups whose quote is above this await a confirmation. */
  confirm_over?: { usd?: number | undefined; calls?: number | undefined } | undefined;
  /** Whether calls of groups that the budget does not cover fail, or wait for a higher limit. */
  on_exhausted?: "fail" | "pause" | undefined;
  /** What of the run, and of calls of its groups that fail, the operator's webhook is notified of. */
  webhook?: WebhookOptions | undefined;
  /** Names the request: repeated under the same key, it returns the same child run. */
  idempotencyKey?: string | undefined;
}
/** A child run, and the functions of the stub for it. They can be taken out: `({ llmQuery }) => …`. */
export interface ChildRun {
  readonly id: string;
  /** For another process: its FANOUT_TOKEN. */
  readonly token: string;
  readonly llmQuery: typeof llmQuery;
  readonly llmMessage: typeof llmMessage;
  readonly llmQueryBatch: typeof llmQueryBatch;
  readonly llmStream: typeof llmStream;
  readonly llmContext: typeof llmContext;
  readonly llmMap: typeof llmMap;
  readonly llmDag: typeof llmDag;
  readonly llmVote: typeof llmVote;
  readonly llmCancel: typeof llmCancel;
  readonly llmRetry: typeof llmRetry;
  readonly withRun: typeof withRun;
  readonly llmBudget: typeof llmBudget;
  readonly llmUsage: typeof llmUsage;
  readonly toolCall: typeof toolCall;
  readonly llmLog: typeof llmLog;
  readonly FINAL: typeof FINAL;
}
/** In place of FANOUT_URL, FANOUT_TOKEN and FANOUT_TIMEOUT_S. */
export function configure(changes: { url?: string; token?: string; timeoutS?: number }): void;
/** With `schema`, the answer is the JSON value that fits it. */
export function llmQuery<Value = unknown>(prompt: string | Call, options: WithSchema<QueryOptions>): Promise<Value>;
export function llmQuery(prompt: string | Call, options?: QueryOptions): Promise<string>;
export function llmQuery(prompt: string | Call, model: string, options?: QueryOptions): Promise<string>;
export function llmQuery<Style extends ErrorStyle = "bracket">(
  prompts: readonly Prompt[],
  options?: BatchOptions<Style>,
): Promise<Result<Style>[]>;
export function llmQuery<Style extends ErrorStyle = "bracket">(
  prompts: readonly Prompt[],
  model: string,
  options?: BatchOptions<Style>,
): Promise<Result<Style>[]>;
/** Tools of a chat completion: with them, answers are whole messages. */
export type WithTools<Options> = Omit<Options, "tools"> & { tools: readonly object[] };
export type WithMessages<Options> = Options & { include: readonly ["message", ...Included[]] };
export function llmMessage(
  prompt: string | readonly Message[] | Call,
  options?: QueryOptions | WithTools<QueryOptions>,
): Promise<Answered>;
export function llmMessage(
  prompt: string | readonly Message[] | Call,
  model: string,
  options?: QueryOptions | WithTools<QueryOptions>,
): Promise<Answered>;
/** A failed slot is a text in its error style, any other a whole message. */
export function llmQueryBatch(
  prompts: Iterable<Prompt> & object,
  options: WithTools<BatchOptions> | WithMessages<BatchOptions>,
): Promise<(Answered | string)[]>;
/** With `schema`, a failed slot is a text in its error style, any other the JSON value that fits. */
export function llmQueryBatch<Value = unknown>(
  prompts: Iterable<Prompt> & object,
  options: WithSchema<BatchOptions>,
): Promise<(Value | string)[]>;
/** A string is iterable too, but is no list of prompts. */
export function llmQueryBatch<Style extends ErrorStyle = "bracket">(
  prompts: Iterable<Prompt> & object,
  options?: BatchOptions<Style>,
): Promise<Result<Style>[]>;
export function llmQueryBatch<Style extends ErrorStyle = "bracket">(
  prompts: Iterable<Prompt> & object,
  model: string,
  options?: BatchOptions<Style>,
): Promise<Result<Style>[]>;
/** Returns null if there is no prompt. */
export function llmStream<Style extends ErrorStyle = "bracket">(
  prompts: Iterable<Prompt> & object,
  options?: BatchOptions<Style>,
): AsyncGenerator<Slot<Style>, GroupCompleted | null, void>;
export function llmStream<Style extends ErrorStyle = "bracket">(
  prompts: Iterable<Prompt> & object,
  model: string,
  options?: BatchOptions<Style>,
): AsyncGenerator<Slot<Style>, GroupCompleted | null, void>;
/** Stores a text in the run and returns its id, which calls name as `context`. */
export function llmContext(text: string, options?: CallOptions & { name?: string | undefined }): Promise<string>;
export interface MapOptions<Style extends ErrorStyle = "bracket"> extends Omit<BatchOptions<Style>, "context">, Split {
  model?: string | undefined;
}
/** Answers a prompt about each chunk of a text, or of a stored one by its id; `{{chunk}}` is where the chunk goes. */
export function llmMap<Style extends ErrorStyle = "bracket">(
  context: string,
  prompt: string,
  options?: MapOptions<Style>,
): Promise<Result<Style>[]>;
/** Runs a graph: tasks whose prompts refer to each other. */
export function llmDag(tasks: Iterable<Task>, options?: DagOptions): Promise<Graph>;
/** Asks a prompt `n` times, 3 by default. */
export function llmVote(prompt: Prompt, n?: number, options?: BatchOptions): Promise<Vote>;
/** The calls of cancelled groups; `groups` 0: there is none of that name. */
export interface Cancellation {
  groups: number;
  ids: string[];
  /** Groups that have calls in flight. */
  running: number;
  counts: Record<"queued" | "running" | "completed" | "failed" | "skipped" | "cancelled", number>;
  spent_usd: number;
  unknown: string[];
}
/** Cancels the queued calls of a group, by its id or by the key of its request. Calls in flight end, or are aborted. */
export function llmCancel(
  group: string,
  options?: CallOptions & { inFlight?: "end" | "abort" | undefined; waitMs?: number | undefined },
): Promise<Cancellation>;
/** Makes the calls of a group again that did not complete. */
export function llmRetry(
  group: string,
  options?: CallOptions,
): Promise<{ id: string; results: unknown[]; [field: string]: unknown }>;
/** Opens a child run for the time of `scope`, and returns what `scope` returns. */
export function withRun<Value>(settings: RunSettings, scope: (run: ChildRun) => Value | Promise<Value>): Promise<Value>;
/** Child runs are included: the limit of an open one is `reserved`, what a closed one has spent is `spent`. */
export function llmBudget(options?: CallOptions): Promise<Budget>;
/** Child runs are not included. */
export function llmUsage(options?: CallOptions & { reset?: boolean | undefined }): Promise<RunUsage>;
export function toolCall(name: string, input?: unknown, options?: CallOptions): Promise<unknown>;
export function llmLog(type: string, fields?: LogFields, options?: CallOptions): Promise<void>;
export function FINAL(x: unknown): Promise<void>;
