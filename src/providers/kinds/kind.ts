/** What the gateway knows of a kind of upstream: the one record that all readers go through. */
import type { CallBody, Endpoint, Lease } from "../../call.ts";
import type { Reason } from "../../errors.ts";
import type { Protocol } from "../../run/leases/shard.ts";
import type { TokenPrice } from "../../run/money/token-price.ts";
import type { PromptCache } from "../cache-rules.ts";
import type { Entry, ParsedUpstreams } from "../config/parsed.ts";
import type { Upstream } from "../config/types.ts";
import type { AggregatedFamily } from "../formats/aggregate/stream.ts";
import type { AnswerRead } from "../formats/response/chat.ts";
import type { LimitHeaders } from "../limits/rate-headers.ts";
import type { Failures } from "./failures.ts";

/** The HTTP request of one attempt, always a POST. `headers` contain the provider key: never log or return them. */
export type UpstreamRequest<Body extends string | Uint8Array = string> = {
  url: string;
  headers: Record<string, string>;
  body: Body;
};

/** The request, or why the call cannot be expressed as one. */
export type BuiltRequest = { ok: true; request: UpstreamRequest } | { ok: false; reason: Reason };

/**
 * How an attempt reaches the upstream. `network`: by `fetch`. `binding`: by the binding of Workers AI. `simulated`: the gateway answers itself. `pull`: programs take it from
 * the run. Executors have a sender for each.
 */
export type Sender = "network" | "binding" | "simulated" | "pull";

/** How prompts are cached where the configuration does not say. */
export type AutomaticCache = Exclude<PromptCache, "auto">;

/** `files`: a file of lines, then a batch of it, as at OpenAI. `messages`: Anthropic's Message Batches. */
export type BatchForm = "files" | "messages";

export type Kind = {
  /** Reads an entry of UPSTREAMS: its fields, their defaults, the field of the completion cap, what prices mean. */
  parse: (entry: Entry) => ParsedUpstreams;
  sends: Sender;
  /** Whose requests it takes when a route chooses an upstream; null = those of every protocol. */
  protocol: Protocol | null;
  /** Paths below the base URL. Protocols are not translated into each other: a missing endpoint is refused. */
  endpoints: Readonly<Partial<Record<Endpoint, string>>>;
  /** Why an upstream of this name has no other endpoints. */
  otherEndpoints: (name: string) => string;
  /** Path of the list of models; null = there is none. */
  models: string | null;
  /** Headers of every request; configured ones win. */
  headers: Readonly<Record<string, string>>;
  /** The headers that carry a key. */
  keyHeaders: (key: string) => Record<string, string>;
  /** The request of one attempt at a call that is a prompt or messages. */
  request: (upstream: Upstream, lease: Lease, body: CallBody) => BuiltRequest;
  /** Whether a field of the request can have this JSON Schema; else the model is told of it. */
  takesSchema: (schema: Readonly<Record<string, unknown>>) => boolean;
  /** Reads a parsed answer that reports no error, with its usage. */
  readAnswer: (json: unknown) => AnswerRead;
  /** The events of its streams, of a call that is a prompt or messages. */
  streams: AggregatedFamily;
  /** How it reports failures, what they mean, and which of them are free. */
  failures: Failures;
  /** The headers that show the limits of a key. */
  limitHeaders: LimitHeaders;
  /** How it caches the beginning of prompts, unless the configuration says so. */
  promptCache: (upstream: Pick<Upstream, "baseUrl">, price: TokenPrice | null) => AutomaticCache;
  /** The form of its batch API; null = it has none. */
  batches: BatchForm | null;
  /** Whether a cassette can record its answers. */
  isRecordable: boolean;
  /** How it counts the tokens of a body of so many bytes without a request; absent = its endpoint counts. */
  countTokens?: (bodyBytes: number) => number;
  /** Why it stores no responses; absent = it does. */
  storesNoResponses?: string;
  /** Whether the list of usable models shows a pattern; absent = each. */
  showsPattern?: (pattern: string) => boolean;
};
