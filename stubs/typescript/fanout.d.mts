/**
 * Types of the JavaScript stub, /stubs/javascript. Keep both files in one folder, as fanout.mjs and fanout.d.mts:
 * `import { llmQuery } from "./fanout.mjs"` then finds both. Needs TypeScript 5 or newer, and the types of a browser,
 * Node, Deno, Bun or Workers for `AbortSignal`. What the functions do stands in fanout.mjs.
 */

/** A chat message, passed on unchanged. */
export type Message = { role: string; content?: string | readonly object[] | null; [field: string]: unknown };
/** Request fields of a call, or of all calls of a batch. */
export interface CallFields {
  /** `upstream/model` or a model's name; the run's default where it is left out. */
  model?: string | undefined;
  /** Text of a system message before the others. */
  system?: string | undefined;
  /** Completion cap, tokens. */
  max_tokens?: number | undefined;
  temperature?: number | undefined;
  priority?: "critical" | "high" | "normal" | "medium" | "low" | "background" | "P0" | "P1" | "P2" | 0 | 1 | 2 | 3 | 4;
  /** Limit of one attempt, ms. */
  timeout_ms?: number | undefined;
  /** Further fields for the upstream, passed on unchanged. */
  params?: Record<string, unknown> | undefined;
}

/** A call with fields of its own; in a batch it may have a name of its own, too. */
export type Call = CallFields & ({ prompt: string } | { messages: readonly Message[] });
export type Item = Call & { id?: string | undefined };
/** What a batch is a list of: texts, lists of chat messages, items. */
export type Prompt = string | readonly Message[] | Item;
/** Aborting rejects the call with the signal's reason. */
export type CallOptions = { signal?: AbortSignal | undefined };
export interface QueryOptions extends CallFields, CallOptions {
  /** Names the request: asked again under the same key, it is answered from the gateway's record at no cost. */
  idempotencyKey?: string | undefined;
  /** Fails with `deadline_exceeded` what has not started within this time, ms. */
  deadline_ms?: number | undefined;
  /** What follows an attempt whose outcome is unknown. Default: retry. */
  on_lost?: "retry" | "fail" | undefined;
  /** Whether equal calls in flight share one answer. Default: false. */
  dedupe?: boolean | undefined;
}

/** How a failed slot is written in its place. Default: bracket, "[error] message". */
export type ErrorStyle = "bracket" | "rlm" | "dspy" | "verifiers" | "throw" | "null" | "settled" | null;
/** What stands in a slot's place under an error style. */
export type Result<Style extends ErrorStyle> = Style extends "settled"
  ? { status: "fulfilled"; value: string; index: number } | { status: "rejected"; reason: SlotError; index: number }
  : Style extends "null" | null
    ? string | null
    : string;

export interface BatchOptions<Style extends ErrorStyle = "bracket"> extends QueryOptions {
  error_style?: Style | undefined;
  /** Calls in flight at once, at most. */
  concurrency?: number | undefined;
  on_error?: "continue" | "abort" | undefined;
  /** Whether the group runs on when its client has gone. Default: true. */
  detach?: boolean | undefined;
  budget_policy?: "shared" | "split" | undefined;
}
export type SlotError = {
  code: string;
  message: string;
  retryable: boolean;
  attempts: number;
  [fact: string]: unknown;
};
/** `cost` in USD. */
export type Usage = { prompt_tokens: number; completion_tokens: number; total_tokens: number; cost: number };
/** A slot that has ended: `error` is the truth, `result` renders it. */
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
}

/** How a group went; `cost` in USD. */
export interface GroupCompleted {
  type: "group_completed";
  id: string;
  status: "completed" | "partial" | "failed" | "cancelled";
  count: number;
  execution_ms: number;
  cost: number;
  usage: Usage;
}

/** `limit` and `remaining` are null where there is no limit. */
export type BudgetLine = { limit: number | null; spent: number; reserved: number; remaining: number | null };
/** `usd` in USD. */
export type Budget = Record<"usd" | "calls" | "prompt_tokens" | "completion_tokens", BudgetLine>;
/** `cost` in USD. */
export type Tokens = { input_tokens: number; output_tokens: number; cost: number };
export type RunUsage = Tokens & { llm_calls: number; calls_by_model: Record<string, Tokens & { calls: number }> };

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
}

/** `url` and `token` stand for FANOUT_URL and FANOUT_TOKEN, `timeoutS` for FANOUT_TIMEOUT_S. */
export function configure(changes: { url?: string; token?: string; timeoutS?: number }): void;
export function llmQuery(prompt: string | Call, options?: QueryOptions): Promise<string>;
export function llmQuery<Style extends ErrorStyle = "bracket">(
  prompts: readonly Prompt[],
  options?: BatchOptions<Style>,
): Promise<Result<Style>[]>;
/** A text can be iterated over too, but is no list of prompts. */
export function llmQueryBatch<Style extends ErrorStyle = "bracket">(
  prompts: Iterable<Prompt> & object,
  options?: BatchOptions<Style>,
): Promise<Result<Style>[]>;
/** Returns null where there was nothing to ask. */
export function llmStream<Style extends ErrorStyle = "bracket">(
  prompts: Iterable<Prompt> & object,
  options?: BatchOptions<Style>,
): AsyncGenerator<Slot<Style>, GroupCompleted | null, void>;
export function llmBudget(options?: CallOptions): Promise<Budget>;
export function llmUsage(options?: CallOptions & { reset?: boolean | undefined }): Promise<RunUsage>;
export function toolCall(name: string, input?: unknown, options?: CallOptions): Promise<unknown>;
export function llmLog(type: string, fields?: LogFields, options?: CallOptions): Promise<void>;
export function FINAL(x: unknown): Promise<void>;
