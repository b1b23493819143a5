/**
 * The types that every folder shares: a call's request, the lease of an executor, the outcome of an attempt. Data only:
 * everything here crosses object boundaries, so it consists of strings, numbers, booleans, null, arrays and plain
 * objects.
 */
import type { Dimension, Reason } from "./errors.ts";
import type { CallLabels } from "./labels.ts";
import type { TraceContext } from "./trace-context.ts";

/** Urgency, 4 = critical … 0 = background. A waiting slot gains one level per 30 s. */
export type Priority = 0 | 1 | 2 | 3 | 4;

/** An endpoint of OpenAI's or Anthropic's API, by its format of requests. */
export type Endpoint = "chat" | "completions" | "embeddings" | "responses" | "messages";

/** The endpoint that an upstream must have for a call: that of a body that is sent as its client wrote it; null = any upstream will do. */
export function neededEndpoint({ isRaw, endpoint = "chat" }: Pick<CallFacts, "isRaw" | "endpoint">): Endpoint | null {
  return isRaw === true ? endpoint : null;
}

/**
 * Why a call is made at a later target of its route. `rate_limited`: the target limits the rate of calls. `stop`: its key is
 * not accepted, or nothing is left to spend with it. `timeout`: it took too long. `context_length`: the prompt is too long for
 * the model. `upstream_error`: any other failure that passes.
 */
export const FALLBACK_CAUSES = ["rate_limited", "stop", "timeout", "upstream_error", "context_length"] as const;
export type FallbackCause = (typeof FALLBACK_CAUSES)[number];

/**
 * When two answers are one vote. `exact`: letter by letter. `normalized`: without case, white space, quotation marks and
 * final punctuation. `json_key`: by the value at `key` in the JSON of the answer; a text there is normalized.
 */
export type Comparison = { by: "exact" } | { by: "normalized" } | { by: "json_key"; key: string };

/**
 * What of an answer sends its call to the next of its models. `schema_violation`: it does not fit the call's schema, after all
 * repairs. `refusal`: the provider marks it as refused, or its filter stopped it. `length`: it ends at its completion cap.
 * `empty`: it has no text.
 */
export const GATES = ["schema_violation", "refusal", "length", "empty"] as const;
export type Gate = (typeof GATES)[number];

/** A condition on a value in the JSON of an answer, at a path such as `result.0.confidence`. */
export type JsonGate = {
  key: string;
  operator: "<" | "<=" | ">" | ">=" | "==" | "!=";
  value: string | number | boolean | null;
};

/** The models that a call goes to after its first one, in order, each if a gate stops the answer of the one before. */
export type Cascade = { models: readonly string[]; on: readonly Gate[]; json?: JsonGate };

/** Samples of a call: it is made `min` times, then until a share of at least `agree` of the votes is for one answer. */
export type Sampling = { min: number; max: number; agree: number; comparison: Comparison };

/**
 * The tools of its run that the model of a call may use before it answers, and how many answers it may give. `transcript`: its
 * client wants to see the messages between them.
 */
export type ToolUse = { tools: readonly string[]; maxTurns: number; transcript?: true };

/** One call of a tool, as a model asks for it: `arguments` is the text that it wrote. */
export type AskedCall = { id: string; name: string; arguments: string };

/**
 * The tool calls of one answer, for the executor that makes them. `isRepeated`: they may have been made before. `resultBytesMax`: of
 * each result, as JSON.
 */
export type ToolRound = { calls: readonly AskedCall[]; isRepeated: boolean; resultBytesMax: number };

/** Where a call puts the text: before its prompt, in the system message, or in place of `{{chunk}}` in its prompt. */
export type ContextPlace = "prompt" | "system" | "template";

/** The text of a call as its executor reads it. */
export type PlacedContext = {
  id: string;
  /** The name of its object in R2; absent = its run's file object has the text. */
  object?: string;
  /** The bytes to read; `to` is exclusive. They begin and end with whole characters. */
  from: number;
  to: number;
  /** Code points to drop at the beginning of these bytes, and how many to take then; absent = all of them. */
  skip?: number;
  take?: number;
  place: ContextPlace;
};

/** Parts of an answer that a call can ask for. */
export const INCLUDED = ["message", "logprobs", "transcript"] as const;
export type Included = (typeof INCLUDED)[number];

/** Options of a call that are written into its upstream request. A group stores those that its calls share once. */
export type BodyOptions = {
  system?: string;
  temperature?: number;
  /** Further request fields, sent unchanged; the names in `OWN_PARAMS` are refused at the edge. */
  params?: Record<string, unknown>;
  /** The JSON Schema that the answer must fit; the edge has compiled it once. Absent = the answer is not checked. */
  schema?: Record<string, unknown>;
  /** What the client wants to see of an answer beside its text; absent = what the text does not say. */
  include?: readonly Included[];
  /** A text that the run has stored, which the executor inserts. The edge has found it: before, it is a reference. */
  context?: PlacedContext;
};

/**
 * The content of a call, as it is stored and given to a lane: exactly one of `prompt`, `messages` and `raw`. `messages`
 * and `params` are opaque: they are sent to the upstream unchanged.
 */
export type CallBody = BodyOptions & {
  prompt?: string;
  messages?: readonly unknown[];
  /**
   * A whole request body of an endpoint, as its client wrote it. Then no other field is set, and the answer is whole,
   * too.
   */
  raw?: { endpoint: Endpoint; json: string };
  /**
   * A call of a tool of the run instead of a model. The texts of its input are the parts of the last message, in their order, behind
   * the tool's name: so references in them are found and replaced like those of any prompt.
   */
  tool?: { name: string; input: unknown };
};

/** The upstream of tool calls in leases and logs: no upstream can be configured under this name. */
export const TOOL_UPSTREAM = "@tool";
/** Before the name of a tool where others have a model. A client's model has no control characters. */
const TOOL_MARK = "\u0001";

/** A tool as the model of its call. */
export function modelOfTool(name: string): string {
  return TOOL_MARK + name;
}

/** The tool that a model means; null = it is a model. */
export function toolOfModel(model: string | null): string | null {
  return model?.startsWith(TOOL_MARK) === true ? model.slice(TOOL_MARK.length) : null;
}

/** What the calls of a group share, and their group stores once: options, and the content of a batch that sends one several times. */
export type SharedBody = BodyOptions & Pick<CallBody, "prompt" | "messages">;

/** The mark with which a provider caches the beginning of a prompt: a field on its last block, with a key for the whole request. */
export type CacheMark = { by: "cache_control" | "breakpoint" | "key"; key: string; ttl?: "5m" | "1h" };

/**
 * The beginning of a prompt that several calls share: the same `key`, the same text. `tokens`: how many it is at least.
 * `warmMs`: how long the calls wait for the first of them; absent = the default.
 */
export type SharedPrefix = {
  key: string;
  tokens: number;
  ttl?: "5m" | "1h";
  warmMs?: number;
  /** Set if its client has marked it: the gateway adds no mark. */
  own?: true;
};

/** The service tiers that a call can ask for, by OpenAI's names. */
export const WANTED_TIERS = ["flex", "priority", "default"] as const;
/** The tier of providers' batches: calls that have hours. A group asks for it; no request names it. */
export const BATCH_TIER = "batch";
export type WantedTier = (typeof WANTED_TIERS)[number] | typeof BATCH_TIER;

/**
 * When a call gets a second attempt beside one that is slow. `after`: the time after which, ms, or `p95`: once the attempt takes
 * longer than 95 % of those of its model. `maxExtra`: the most that second attempts may cost, as a part of what the group has
 * cost, or of a single call the run.
 */
export type HedgeRule = { after: "p95" | number; maxExtra: number };

/** Options of a call that dispatch reads, and its labels, which only the log reads. */
export type DispatchOptions = CallLabels & {
  /** Model as the client named it; null = the default. */
  model: string | null;
  /** The completion cap that the client requests, in tokens; null = it requests none. */
  maxTokens: number | null;
  priority: Priority;
  /** Limit of one attempt from its dispatch, in ms; null = the upstream's. */
  timeoutMs: number | null;
  /**
   * The reservation for the completion if the request names no cap: a learned cap, which the run's answers have shown
   * to suffice, or the default cap. Absent = `learned` in a group, `worst` for a single call.
   */
  reserve?: "learned" | "worst";
  /** Tier of a slot whose group has tiers: 0 is the most important; absent = 2. */
  tier?: 0 | 1 | 2;
  /**
   * Times that the call is asked again for an answer that fits its schema. Absent from a call's facts = it has no
   * schema.
   */
  schemaRetries?: number;
  /** The models that the call goes to if an answer is not good enough; absent = none. */
  cascade?: Cascade;
  /** How often the call is made until its answers agree; absent = once. */
  sampling?: Sampling;
  /** The tools that its model may use; absent = the call ends with its first answer. */
  toolUse?: ToolUse;
  /** The service tier that it is sent in where that is sold, `default` = none; absent = that of its run. */
  wantedTier?: WantedTier;
  /** When it gets a second attempt beside a slow one; false = never, absent = as its upstream is configured. */
  hedge?: HedgeRule | false;
};

/** Rules of a call as a whole, for one call or for every call of a group. */
export type CallRules = {
  /** Time within which the call must have started, ms from its acceptance; null = it waits without a limit. */
  deadlineMs: number | null;
  /** What follows an attempt whose outcome is unknown: another under a new reservation, or the failure of the call. */
  onLost: "retry" | "fail";
};

/** A field of a request that can spend more than any reservation covers. */
export type UnreservableField = {
  /** Its path in the request, as its client wrote it. */
  field: string;
  why: string;
  spends: readonly Dimension[];
  /** The name in an upstream's `allow_params` that allows it; absent = it is never allowed. */
  allowedBy?: string;
};

/** How much of an image a request wants to be seen. `other`: a value that is not known here. */
export type ImageDetail = "low" | "high" | "original" | "other";

/**
 * Images of one size and detail. `width` 0: their size is not known. `detail` absent = the request names none, or `auto`.
 * `count`: how many; absent = one.
 */
export type ImageFacts = { width: number; height: number; detail?: ImageDetail; count?: number };

/** The admission facts of a call: all that dispatch needs without reading its body. */
export type CallFacts = DispatchOptions & {
  /**
   * Bounds the prompt tokens: UTF-8 bytes of everything that the upstream reads (prompt or messages, system, params),
   * and those that a tokenizer's normalisation can add.
   */
  promptBytes: number;
  /**
   * Upper bound of the tokens of those bytes, from a look at them (src/text/tokens/text-bound.ts); absent = one per byte. It
   * is valid for tokenizers like those that it was derived from, so it is used only after answers have shown that.
   */
  textTokensMax?: number;
  /** Number of messages sent, for the per-message token overhead. */
  messageCount: number;
  /** Images among the messages' parts. Their bytes do not count in `promptBytes`: they do not bound their tokens. */
  mediaParts: number;
  /** What is known of those images; absent, or one that is not listed = nothing. */
  images?: readonly ImageFacts[];
  /**
   * Files, sounds and films among the messages' parts: bounded apart from images, since they may be of any length;
   * absent = none.
   */
  fileParts?: number;
  /** True if the request sends tools, for which the upstream's template adds further tokens; absent = no. */
  tools?: boolean;
  /**
   * Set if no field but its one message, a user's plain text, can change the template around it; absent = one may, or it is not known,
   * as of calls that earlier code stored or sends.
   */
  isBare?: true;
  /** The endpoint of the request, which decides its template; absent = chat. */
  endpoint?: Endpoint;
  /** True if the body is sent as its client wrote it, so that only upstreams of its protocol can take it; absent = no. */
  isRaw?: true;
  /** The most expensive cache lifetime that the request marks: it prices cache writes; absent = it marks none. */
  cacheTtl?: "5m" | "1h";
  /** The service tier in the request, by the upstream's name for it; absent = the upstream's default. */
  serviceTier?: string;
  /** Completions of one attempt, each up to the cap; absent = one, 0 = none (embeddings). */
  completions?: number;
  /** Prompt tokens that the request sends as token ids, beside those that `promptBytes` bounds. */
  promptTokenIds?: number;
  /** The part of `promptBytes` that the body refers to instead of having it: a shared context; absent = none. */
  contextBytes?: number;
  /** The beginning of its prompt that it shares with other calls; absent = none that is worth it. */
  shared?: SharedPrefix;
  /** Fields of the request that no reservation covers; absent = none. The name is that of stored rows. */
  unbounded?: readonly UnreservableField[];
  /**
   * In-flight key: calls with the same key are equal and share one outcome while in flight together; absent = not
   * shared.
   */
  dedupeKey?: string;
  /**
   * Hash of what decides its answer, in a run that records: with its route it is the key of its recorded answer. Absent = it is
   * neither recorded nor replayed.
   */
  content?: string;
  /** Of a single call: where in a trace its client makes it; absent = in none. A slot's is that of its group. */
  trace?: TraceContext;
};

/** The facts that every call has. A plain text has no others, and most calls of a large batch are plain texts of a few sizes. */
const PLAIN_FACTS = [
  "promptBytes",
  "messageCount",
  "mediaParts",
  "model",
  "maxTokens",
  "priority",
  "timeoutMs",
] as const satisfies readonly (keyof CallFacts)[];

/**
 * Whether two plain calls have the same facts; false if one of them is not plain. `others`: further fields of both, which the caller has
 * compared.
 */
export function areAlike(known: CallFacts, facts: CallFacts, others = 0): boolean {
  for (const name of PLAIN_FACTS) if (known[name] !== facts[name]) return false;
  if (known.isBare !== facts.isBare) return false;
  const fields = PLAIN_FACTS.length + others + (known.isBare === undefined ? 0 : 1);
  return Object.keys(known).length === fields && Object.keys(facts).length === fields;
}

/**
 * The origin of a completion cap. `client`: named by the request. `default`: the gateway's, for a request without one.
 * `learned`: the run's answers have shown that it suffices. `budget`: the budget does not pay for more.
 */
export type CapKind = "client" | "default" | "learned" | "budget";

/** The facts of a request that decide at which rates its tokens are billed. */
export type PriceFacts = Pick<CallFacts, "cacheTtl" | "serviceTier">;

/** All that an executor needs, beside the body, to make one attempt. */
export type Lease = {
  attemptId: string;
  /** Number of the attempt within its call, from 1; absent = 1. Only the simulated upstream reads it. */
  attempt?: number;
  /** Name of the upstream in the configuration. */
  upstream: string;
  /** Model id as the upstream knows it. */
  model: string;
  /** Name of the key to send, if the upstream has several; never the key itself. */
  key?: string;
  /** Name of the route that the call asked for, if it asked for one. */
  route?: string;
  /** Completion cap sent upstream, in tokens; null when neither client nor budget sets one. */
  capTokens: number | null;
  /** Absent = `client` or `default`. */
  capKind?: CapKind;
  /** Of a cap that the budget has lowered: the cap that the client requests; null = it requests none. Absent = it is not known. */
  requestedCap?: number | null;
  timeoutMs: number;
  /** Set if the request marks cache writes or names a service tier, which decides the rates of its usage. */
  priced?: PriceFacts;
  /** The service tier to ask for, beside what the request says; absent = none. */
  tier?: string;
  /** How the shared beginning of its prompt is marked; absent = it is not. */
  mark?: CacheMark;
  /** True if others wait for the beginning of its answer; absent = no. */
  leads?: true;
  /** Of a hedge: the attempt of the same call that it may overtake. */
  hedgeOf?: string;
  /** The client's trace, for an upstream that gets it; absent = it gets none. */
  trace?: TraceContext;
};

/** Tokens and cost of one attempt as the upstream reported them. `costNanoUsd` is null when it names no cost. */
export type Usage = {
  promptTokens: number;
  completionTokens: number;
  cachedTokens: number;
  /** Prompt tokens written to the provider's cache; absent if the answer names none. */
  cacheWriteTokens?: number;
  /** The part of `cacheWriteTokens` with a lifetime of an hour; absent if the answer does not split them. */
  cacheWrite1hTokens?: number;
  reasoningTokens: number;
  /** The service tier that served the request, by the upstream's name for it; absent if the answer names none. */
  serviceTier?: string;
  costNanoUsd: number | null;
};

/**
 * How a failed attempt is treated. `rejected`: final, not billed. `transient` and `rate_limited`: not billed, retried.
 * `unknown`: it may have been billed (timeout or reset after dispatch, truncated or unreadable answer, content filter),
 * so its reservation stays charged; it is retried if its reason is retryable and the call's `on_lost` allows it.
 */
export type FailureClass = "rejected" | "transient" | "rate_limited" | "unknown";

/**
 * Why a provider calls a key itself unusable. `insufficient_quota`: its quota or credit is used up (also 402). `invalid_key`:
 * 401. `forbidden`: a 403 of the key, as opposed to one of a model or of content.
 */
export type StopReason = "insufficient_quota" | "invalid_key" | "forbidden";

/** Tokens that were seen of a stream before it was stopped or broke off; `promptTokens` null = not reported by then. */
export type Seen = { promptTokens: number | null; completionTokens: number };

/** What an executor has found of the answer to a call with a schema. */
export type Checked = {
  /** Why the answer does not fit; null = it does. */
  violation: string | null;
  /** Bytes that the request for another answer adds to the prompt; absent = the answer fits. */
  repairBytes?: number;
  /** Set by the Worker of a single call that requests another answer, if the run lets it. */
  again?: true;
};

/** What a model answered: one type from the readers of the providers' formats to the replies. */
export type Answer = {
  /** The text of its message; "" if it has none, as beside tool calls. */
  text: string;
  /** What it has beside the text; absent = its message is that text only, and nobody asked for more. */
  parts?: AnswerParts;
  /** The model that the answer names. */
  model: string;
  finishReason: string | null;
  /** Set if the provider marks the answer as a refusal, apart from its finish reason. */
  refused?: true;
  /** null if the answer has none: then the reservation stays charged as an estimate. */
  usage: Usage | null;
};

/** Parts of an answer as JSON texts without line breaks: parsed numbers would lose digits, and parsed objects their order. */
export type AnswerParts = {
  /** The whole message in its chat form. */
  message?: string;
  /** The log probabilities of its tokens. */
  logprobs?: string;
  /** The messages that its call has added to the request, and the answer: a JSON array. */
  transcript?: string;
};

/** The outcome of an attempt; an executor never throws instead. `latencyMs` counts from dispatch. */
export type Outcome =
  | (Answer & {
      kind: "success";
      /** Set if the answer ended at a cap that the budget had lowered; the engine sets it, executors do not. */
      cappedBy?: "budget";
      /** Of a call with a schema; absent = the executor checked nothing. */
      checked?: Checked;
      /** Absent unless content is exported. */
      content?: SpanContent;
      latencyMs: number;
      /**
       * Time from when the request was sent to the first byte of the answer; of one that is no stream, to its headers, with which
       * such an answer comes. Absent = not measured, as where a worker took the call when it wanted to.
       */
      ttfbMs?: number;
      /** Set if the answer came as a stream. */
      streamed?: true;
    })
  | {
      kind: "failure";
      class: FailureClass;
      reason: Reason;
      /** True if the upstream answered: then the attempt counts as a call, even if it is free. */
      answered: boolean;
      /** Set if no request left the gateway; absent = one may have. */
      unsent?: true;
      /** The upstream's Retry-After, in ms from now. */
      retryAfterMs: number | null;
      /** Set if the upstream calls its key unusable: other calls with the key fail in the same way. Never billed. */
      stop?: StopReason;
      /** Set if only the service tier was refused that the lease asked for: the call is sent without it. Never billed. */
      refusesTier?: true;
      /** Set if no connection to the upstream could be made: it gets no further attempt of the call. Never billed. */
      unreachable?: true;
      /** For a raw request: the upstream's error body, without credentials. */
      body?: string;
      /**
       * Tokens that were seen, if the upstream stops generating when the connection closes: then only they are charged.
       */
      seen?: Seen;
      /** Absent unless content is exported. */
      content?: SpanContent;
      latencyMs: number;
    };

/** What an attempt has asked and got, as JSON texts for its span; what is absent is not known, or is not there. */
export type SpanContent = { system?: string; input?: string; output?: string };

type WithoutLatency<T> = T extends unknown ? Omit<T, "latencyMs"> : never;

/** What an attempt counts as: an outcome before its latency is known. */
export type Classification = WithoutLatency<Outcome>;

/** What of a run or a group the operator's webhook is notified of; absent = it is not. */
export type Notify = { onEnd?: true; onEscalation?: true };

/** What of an AbortSignal says that the client of a request has left, for code that only listens. */
export type LeavingSignal = {
  readonly aborted: boolean;
  addEventListener: (type: "abort", listener: () => void) => void;
  /** Who listens no more is not kept: what a listener holds lives as long as the request's own signal, which is longer than the call. */
  removeEventListener: (type: "abort", listener: () => void) => void;
};
