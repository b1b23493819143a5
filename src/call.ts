/**
 * The words every folder shares: what a call asks, what an executor is lent, what came back. Data only; everything here
 * crosses object boundaries, so it holds strings, numbers, booleans, null, arrays and plain objects of those.
 */
import type { Dimension, Reason } from "./errors.ts";

/** Urgency, 4 = critical … 0 = background. A waiting slot gains one level per 30 s. */
export type Priority = 0 | 1 | 2 | 3 | 4;

/** A part of OpenAI's or Anthropic's API, by what its request bodies ask for. */
export type Endpoint = "chat" | "completions" | "embeddings" | "responses" | "messages";

/**
 * What is asked of a model, as stored and as lent to a lane: exactly one of `prompt` and `messages`.
 * `messages` and `params` stay opaque: they pass to the upstream unchanged.
 */
export type CallBody = {
  prompt?: string;
  messages?: readonly unknown[];
  system?: string;
  temperature?: number;
  /** A whole request body of an endpoint, as its client wrote it: then there is nothing else, and the answer is whole, too. */
  raw?: { endpoint: Endpoint; json: string };
  /** Further request fields, passed on unchanged; the names in `RESERVED_PARAMS` are refused at the edge. */
  params?: Record<string, unknown>;
};

/** A field of a request that can spend what no reservation covers. */
export type Unbounded = { field: string; why: string; spends: readonly Dimension[] };

/** What dispatch must know of a call without reading its body. */
export type CallFacts = {
  /** UTF-8 bytes of everything the upstream will read (prompt or messages, system, params): bounds its prompt tokens. */
  promptBytes: number;
  /** Number of messages sent, for the per-message token overhead. */
  messageCount: number;
  /** Images, sounds and files among the messages' parts: their bytes, which say nothing of tokens, are not counted above. */
  mediaParts: number;
  /** Model as the client named it; null = the default. */
  model: string | null;
  /** The completion cap that the client asked for, in tokens; null = none asked. */
  maxTokens: number | null;
  priority: Priority;
  /** Limit of one attempt from its dispatch, in ms; null = the upstream's. */
  timeoutMs: number | null;
  /** Completions that one attempt may make, each up to the cap; absent = one, 0 = none (embeddings). */
  completions?: number;
  /** Prompt tokens that the request gives by number: they come on top of what its bytes bound. */
  promptTokenIds?: number;
  /** What the request asks for that no reservation covers, and the limits that would not hold; absent = nothing. */
  unbounded?: readonly Unbounded[];
  /** Calls with the same key are equal and share one answer while they are in flight together; absent = shared with none. */
  dedupeKey?: string;
};

/** What an executor needs, beside the body, to make one attempt. */
export type Lease = {
  attemptId: string;
  /** Which attempt of its call this is, from 1 (also when absent). Only the simulated upstream reads it. */
  attempt?: number;
  /** Name of the upstream in the configuration. */
  upstream: string;
  /** Model id as the upstream knows it. */
  model: string;
  /** Completion cap sent upstream, in tokens; null when neither client nor budget sets one. */
  capTokens: number | null;
  timeoutMs: number;
};

/** Tokens and cost of one attempt as the upstream reported them. `costNanoUsd` is null when it names no cost. */
export type Usage = {
  promptTokens: number;
  completionTokens: number;
  cachedTokens: number;
  /** Prompt tokens written to the provider's cache; absent where none are named. */
  cacheWriteTokens?: number;
  reasoningTokens: number;
  costNanoUsd: number | null;
};

/**
 * How a failed attempt is treated. `rejected`: final, not billed. `transient` and `rate_limited`: not billed, tried again.
 * `unknown`: it may have been billed (timeout or reset after dispatch, truncated or unreadable answer), so its
 * reservation stays charged.
 */
export type FailureClass = "rejected" | "transient" | "rate_limited" | "unknown";

/** What an attempt ended as. Never an exception. `latencyMs` counts from dispatch. */
export type Outcome =
  | {
      kind: "success";
      text: string;
      /** Model named in the answer. */
      model: string;
      finishReason: string | null;
      /** null when the answer names none: then the reservation stays charged as an estimate. */
      usage: Usage | null;
      latencyMs: number;
    }
  | {
      kind: "failure";
      class: FailureClass;
      reason: Reason;
      /** The upstream's Retry-After, in ms from now. */
      retryAfterMs: number | null;
      /** Of a raw request: the upstream's error body, without credentials. */
      body?: string;
      latencyMs: number;
    };
