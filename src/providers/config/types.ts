/** A provider endpoint as configured and parsed: see UPSTREAMS in the configuration page. Never leaves the gateway. */
import type { CassetteMode } from "../../recordings/types.ts";
import type { PromptCache } from "../cache-rules.ts";
import type { TokenBounds } from "../../run/money/estimate.ts";
import type { TokenPrice } from "../../run/money/token-price.ts";
import type { HedgeRule } from "../../call.ts";
import type { BatchTerms } from "../../run/leases/shard.ts";
import type { Adaptive } from "../../gate/settings.ts";
import type { ErrorsCost } from "../failure-table.ts";
import type { ChatCapField } from "../formats/request/rewrite.ts";
import type { Aggregate } from "../stream-choice.ts";
import type { BoundModels } from "./binding.ts";

/** Price of a model in pico-USD per token (USD per million tokens × 10⁶), so that 0.0375 USD/M stays an integer. */
export type Price = TokenPrice;

/** One of several keys of an upstream. Only its name leaves the upstream module. */
export type UpstreamKey = {
  /** The name of its secret. */
  name: string;
  key: string;
};

/**
 * `header`: the key itself, in a header of that name, after a scheme unless it is empty. `google`: the key is the JSON of a
 * service account, for which short-lived tokens are fetched. `aws`: the key signs each request (Signature Version 4).
 */
export type Auth =
  | { type: "header"; header: string; scheme: string }
  | { type: "google"; scope: string }
  | { type: "aws"; region: string; service: string };

/** The kinds of upstreams: `src/providers/kinds` has a record of each. */
export type KindName = "openai" | "anthropic" | "workers-ai" | "simulated" | "pull";

export type Upstream = {
  name: string;
  kind: KindName;
  /**
   * Without a trailing slash, and for `anthropic` without the version's `/v1`; empty for `simulated`. `{model}` in it stands for the
   * model of a request.
   */
  baseUrl: string;
  /** The parameters of every request, encoded and without a `?`; absent = none. */
  query?: string;
  /** The provider key itself, resolved from its secret; null = none is sent. With `keys`, that of the present request. */
  apiKey: string | null;
  /** How the key is shown, where that is not as its kind does. */
  auth?: Auth;
  /** Set if the upstream has several keys: dispatch chooses one for each attempt. */
  keys?: readonly UpstreamKey[];
  headers: Record<string, string>;
  /** Patterns with `*`, in the order listed; a plain name matches itself. */
  models: readonly string[];
  maxInFlight: number;
  timeoutMs: number;
  maxAttempts: number;
  /** What a request costs that this upstream read and refused: nothing, or its reservation. */
  errorsCost: ErrorsCost;
  /** Field of a chat completion that carries the completion cap. */
  capField: ChatCapField;
  /** Fields that are allowed under a limit although no reservation covers them, by decision of the operator. */
  allowParams: readonly string[];
  /** Whether chat and message calls request a stream or JSON when no client reads the stream. */
  aggregate: Aggregate;
  /** How its provider caches the beginning of prompts. */
  promptCache: PromptCache;
  /** What a streamed attempt is charged that was stopped or broke off: its reservation, or what had been seen of it. */
  abortCost: "reservation" | "seen";
  /** How the gates of this upstream find a width where it rejects calls without a hint. */
  adaptive: Adaptive;
  /** When its calls get a second attempt beside a slow one; absent = only if they ask for it. */
  hedge?: HedgeRule;
  /**
   * Who sees the usage event of a relayed stream. `auto`: a client that requests it; for others it is removed. `pass`: every
   * client. `edit`: as `auto`, and the cost is added to the event. A stream that needs no edit is moved by the runtime.
   */
  streamUsage: "auto" | "pass" | "edit";
  /**
   * Set if it gets the `traceparent` and `tracestate` of clients. `client`: as they came. `attempt`: under the attempt's own span,
   * because that is exported. Absent = it gets none.
   */
  traces?: "client" | "attempt";
  /** How its calls reach the binding of Workers AI; absent = they do not go there. */
  bound?: BoundModels;
  /** Set if a connection is tried before the first request, so that one that cannot be made is known to cost nothing. */
  connectsFirst?: true;
  /** Set if prompts and answers of its calls are exported with their spans. */
  exportsContent?: true;
  /** How this upstream's prompt tokens are bounded from what is sent. */
  bounds: TokenBounds;
  /** How calls go through its Batch API, where a price for that is known; absent = it has none that the gateway speaks. */
  batch?: BatchTerms;
  /** Set if its calls are recorded on a tape, or answered from one. All else is as of the upstream itself. */
  cassette?: { tape: string; mode: CassetteMode };
  /** By model pattern, first match wins; a model without a match has the catalogue's price, if any. */
  prices: readonly { pattern: string; price: Price }[];
};
