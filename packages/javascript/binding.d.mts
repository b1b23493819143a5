/**
 * Types of the binding `FanoutRun`, for code of Workers that has neither network nor token:
 * `interface Env { llm: FanoutRun }`. What its methods take and return are the JSON bodies of the gateway's routes.
 */
import type {
  BatchOptions,
  Budget,
  Call,
  CallOptions,
  DagOptions,
  ErrorStyle,
  GroupCompleted,
  GroupMetrics,
  Item,
  LogFields,
  Message,
  QueryOptions,
  Result,
  RunSettings,
  SlotError,
  Task,
  Usage,
} from "../../stubs/typescript/fanout.mjs";

/** Names the request: repeated under the same key, it gets the recorded answer at no cost. */
export interface RequestOptions {
  idempotency_key?: string | undefined;
}
/** Options of the stub that are fields of a route, too. */
type Fields<Options> = Omit<Options, "idempotencyKey" | keyof CallOptions>;
/** Styles of failed calls; `throw` is one of the stub's own. */
export type Style = Exclude<ErrorStyle, "throw">;

/** `POST /query`. */
export type Query = Call & Fields<QueryOptions>;

/** The whole message of an answer, as its provider wrote it: the type `Answered` of the stub has the fields that most write. */
export interface AnsweredMessage {
  role: string;
  [field: string]: unknown;
}
/** What an answer shows beside its text. */
interface Parts {
  finish_reason: string | null;
  /** The answer as JSON, of a call with a schema. */
  json?: unknown;
  /** If it has more than text, or is included. */
  message?: AnsweredMessage | undefined;
  [field: string]: unknown;
}
/** `text`, `result` and `response` are the same text. */
export interface QueryAnswer extends Parts {
  id: string;
  text: string;
  result: string;
  response: string;
  model: string;
  usage: Usage;
  attempts: number;
  latency_ms: number;
  queued_ms: number;
  parallel_group_id: string | null;
}

/** The calls of a batch: prompts, items, or one request that several models or `n` calls have. */
type Calls =
  | { prompts: readonly string[] }
  | { items: readonly Item[] }
  | ({ prompt: string } & ({ over: object } | Copies))
  | ({ messages: readonly Message[] } & Copies);
type Copies = { agents: readonly (string | object)[] } | { n: number };

/** `POST /batch`. */
export type Batch<Named extends Style = "bracket"> = Calls & Fields<BatchOptions<Named>>;

/** A call of a batch that has ended. */
export interface BatchItem extends Parts {
  index: number;
  id: string | null;
  status: "queued" | "running" | "completed" | "failed" | "skipped" | "cancelled";
  model: string | null;
  usage: Usage | null;
  latency_ms: number | null;
  queued_ms: number | null;
  attempts: number;
}

/** The answers are in the order of the calls. `id` is null for an empty batch. */
export interface BatchAnswer<Named extends Style = "bracket"> {
  id: string | null;
  object: "group";
  status: GroupCompleted["status"] | "awaiting_confirmation" | "running";
  results: Result<Named>[];
  errors: (SlotError | null)[];
  items: BatchItem[];
  usage: Usage;
  metrics: GroupMetrics;
  count: number;
  created_at: string;
  ended_at: string | null;
  [field: string]: unknown;
}

/** `POST /dag`. */
export type Dag = { tasks: readonly Task[] } & Omit<Fields<DagOptions>, "dedupe">;
/** A task that has ended or waits. `error`: the first of its calls'. */
export interface TaskDocument {
  status: string;
  output?: string | null | undefined;
  error: { message: string; type: string; code: string; [field: string]: unknown } | null;
  [field: string]: unknown;
}
/** `outputs`, by id: of each task that nothing depends on. */
export interface DagAnswer {
  id: string;
  object: "graph";
  status: BatchAnswer["status"];
  tasks: Record<string, TaskDocument>;
  outputs: Record<string, string | null | (string | null)[]>;
  usage: Usage;
  count: number;
  created_at: string;
  ended_at: string | null;
  [field: string]: unknown;
}
/** `POST /runs`, of a child run. */
export type ChildSettings = Fields<RunSettings>;
/** An event of the code in the run's log: `POST /log`. */
export type LogEvent = LogFields & { event_type: string };

/** A run as `GET /runs/:id` shows it. */
export interface RunDocument {
  id: string;
  object: "run";
  name: string | null;
  status: "active" | "paused" | "closed" | "cancelled" | "expired" | "escalated";
  budget: Budget;
  [field: string]: unknown;
}

/**
 * The binding. A refused call throws an `Error` with the fields of the gateway's error (`code`, `retryable`, …) and
 * `status`; to code with an old compatibility date, only its message is shown.
 */
export interface FanoutRun {
  query(call: Query, options?: RequestOptions): Promise<QueryAnswer>;
  batch<Named extends Style = "bracket">(request: Batch<Named>, options?: RequestOptions): Promise<BatchAnswer<Named>>;
  /** The same calls as bytes: one event per line, as JSON, when it happens. */
  stream<Named extends Style = "bracket">(
    request: Batch<Named>,
    options?: RequestOptions,
  ): Promise<ReadableStream<Uint8Array>>;
  dag(request: Dag, options?: RequestOptions): Promise<DagAnswer>;
  budget(): Promise<Budget>;
  /** A child run; its token stays in the gateway. */
  child(settings: ChildSettings, options?: RequestOptions): Promise<FanoutRun>;
  log(event: LogEvent | readonly LogEvent[]): Promise<unknown>;
  /** Ends the run, which gives what it has not spent back to its parent. */
  close(): Promise<RunDocument>;
}
