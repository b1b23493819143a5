/** What a call that passes through is, and what its attempt comes to. */
import type { Lease, Outcome, Usage } from "../call.ts";
import type { StartTimer } from "./attempt.ts";
import { failed, type Verdict } from "./classify.ts";
import type { Upstream } from "./config.ts";
import type { Endpoint } from "./json-request.ts";

/** What is sent where. `body` and `headers` go out as they are; `headers` hold the provider key. */
export type PassJob = {
  upstream: Upstream;
  lease: Lease;
  endpoint: Endpoint;
  url: string;
  headers: Record<string, string>;
  body: Uint8Array;
  /** Whether an event stream is asked for, and who asked for its usage chunk. */
  stream: boolean;
  usageChunk: "asked" | "injected" | "absent";
  /** Whether embeddings are asked for as base64. */
  base64: boolean;
  costUsdOf: (usage: Usage) => number | null;
};

export type PassDeps = {
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  now: () => number;
  timer: StartTimer;
  /** Aborts the attempt: its client has gone, or nobody wants the answer any more. */
  controller: AbortController;
  /** A pipe whose writer waits for its reader. */
  pipe: () => { readable: ReadableStream<Uint8Array>; writable: WritableStream<Uint8Array> };
};

/** What an answer came to, once its last byte has gone to the client. `id` is its own name for itself. */
export type PassEnd = { outcome: Outcome; id: string | null };

export type Passed =
  | { kind: "failed"; outcome: Outcome; answer: { status: number; headers: Headers; text: string } | null }
  | {
      kind: "answered";
      status: number;
      headers: Headers;
      body: ReadableStream<Uint8Array> | Uint8Array;
      ended: Promise<PassEnd>;
    };

/** How an attempt was stopped before its end. */
export type Stopped = { by: "timeout" | "cancelled" | null };

/** What an answer's passing needs of its attempt. */
export type Passing = { deps: PassDeps; stopped: Stopped; over: (verdict: Verdict) => Outcome };

/** An attempt that was stopped: the upstream may have worked on it, and billed it. */
export function stoppedVerdict({ upstream, lease }: PassJob, { by }: Stopped): Verdict {
  if (by === "timeout") {
    return failed("unknown", { reason: "upstream_timeout", upstream: upstream.name, timeoutMs: lease.timeoutMs });
  }
  return failed("unknown", { reason: "cancelled", message: "the call was cancelled while the upstream worked on it" });
}

/** An answer that ended before it was whole: it has been worked on, and may have been billed. */
export function truncatedVerdict({ upstream }: PassJob): Verdict {
  const message = `${upstream.name} broke off its answer`;
  return failed("unknown", { reason: "upstream_truncated", upstream: upstream.name, message });
}

/** An answer that reports an error after it began to pass. */
export function errorVerdict({ upstream }: PassJob, message: string): Verdict {
  const { name } = upstream;
  return failed("unknown", { reason: "upstream_error", upstream: name, status: null, message, retryable: true });
}
