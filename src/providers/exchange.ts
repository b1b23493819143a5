/**
 * One attempt's exchange with its upstream: what is sent under the lease's time limit, and what stopped it. Attempts that
 * read their answer whole and attempts that relay it both use it, so that a timeout, a cancellation and a lost connection
 * mean the same for both.
 */
import type { Classification, Lease, Outcome } from "../call.ts";
import type { Reason } from "../errors.ts";
import { failed } from "./classify.ts";
import type { Upstream } from "./config/types.ts";
import { connectionFailure, unreachable } from "./connection-failure.ts";
import type { UpstreamRequest } from "./kinds/kind.ts";
import { isPulled } from "./kinds/table.ts";
import { withoutSecretsIn } from "./redact.ts";

/** Starts a timer and returns what stops it. */
export type StartTimer = (ms: number, elapsed: () => void) => () => void;

export type ExchangeDeps = {
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Wall clock, ms since 1970. */
  now: () => number;
  /** Calls `elapsed` after `ms`, unless what it returns is called first. */
  timer: StartTimer;
  /** Aborts the attempt: its client has left, or its run gave it up. The exchange aborts it when its time is over. */
  controller: AbortController;
  /** Whether a request has been handed to the network, or to pull workers; absent = it has. Until then, an attempt costs nothing. */
  hasSent?: () => boolean;
  /**
   * Looks whether a connection can be made, before a request is sent; null = one was made before. Absent = nobody looks, and a
   * connection that fails counts as one that was lost.
   */
  reach?: (url: string) => Promise<boolean> | null;
  /** Called when the headers of an answer have come, with the time at which the request was sent; absent = nobody looks. */
  headersSeen?: (response: Response, sentMs: number) => void;
};

/** Headers have come, or what it means that none did. */
export type Sent = { ok: true; response: Response } | { ok: false; classification: Classification };

export class Exchange {
  readonly upstream: Upstream;
  readonly lease: Lease;
  /** Aborts when the attempt is stopped. */
  readonly signal: AbortSignal;
  /** Resolves when the attempt's time is over, for what does not heed `signal`. */
  readonly timedOut: Promise<void>;
  readonly #deps: ExchangeDeps;
  readonly #startedMs: number;
  readonly #stopTimer: () => void;
  #stoppedBy: "timeout" | "cancelled" = "cancelled";
  #sentMs = 0;
  /** Set once an answer has begun. */
  #first: { ttfbMs: number; streamed?: true } | null = null;

  /** The lease's time limit starts to count here. Every exchange must be brought to its end with `end`. */
  constructor({ upstream, lease }: { upstream: Upstream; lease: Lease }, deps: ExchangeDeps) {
    this.upstream = upstream;
    this.lease = lease;
    this.signal = deps.controller.signal;
    this.#deps = deps;
    this.#startedMs = deps.now();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.timedOut = promise;
    // A timer that is stopped, not a sleep that is aborted: an abort per attempt costs as much as a third of its fetch.
    this.#stopTimer = deps.timer(lease.timeoutMs, () => {
      if (!this.signal.aborted) this.#stoppedBy = "timeout";
      deps.controller.abort();
      resolve();
    });
  }

  get isStopped(): boolean {
    return this.signal.aborted;
  }

  /** Sends a request. Redirects are not followed: they could carry the key to another host. */
  async send({ url, headers, body }: UpstreamRequest<string | Uint8Array>): Promise<Sent> {
    // Called on its own: workerd's fetch refuses to be a method of another object.
    const { fetch } = this.#deps;
    const looked = this.#deps.reach?.(url) ?? null;
    if (looked !== null && !(await this.#mayReach(looked))) {
      return { ok: false, classification: this.isStopped ? this.stopped() : unreachable(this.upstream) };
    }
    const sentMs = this.#deps.now();
    this.#sentMs = sentMs;
    try {
      const response = await fetch(url, { method: "POST", headers, body, redirect: "manual", signal: this.signal });
      this.#deps.headersSeen?.(response, sentMs);
      this.#first = { ttfbMs: this.#sinceSentMs };
      return { ok: true, response };
    } catch (error) {
      return { ok: false, classification: this.isStopped ? this.stopped() : connectionFailure(this.upstream, error) };
    }
  }

  /** Whether a connection was made before the attempt was stopped. */
  async #mayReach(looked: Promise<boolean>): Promise<boolean> {
    const stopped = Promise.withResolvers<boolean>();
    const stop = (): void => stopped.resolve(false);
    this.signal.addEventListener("abort", stop);
    const isReached = await Promise.race([looked, stopped.promise]);
    this.signal.removeEventListener("abort", stop);
    return isReached && !this.isStopped;
  }

  /** The first bytes of a stream have come. Called again, it changes nothing. */
  streamBegun(): void {
    if (this.#first?.streamed !== true) this.#first = { ttfbMs: this.#sinceSentMs, streamed: true };
  }

  /** What a stopped attempt counts as: once it is sent, the upstream may have worked on it, and billed it. */
  stopped(by: "timeout" | "cancelled" = this.#stoppedBy): Classification {
    const { upstream, lease } = this;
    const isSent = this.#deps.hasSent?.() ?? true;
    if (by === "timeout") {
      const reason: Reason = { reason: "upstream_timeout", upstream: upstream.name, timeoutMs: lease.timeoutMs };
      return failed(isSent ? "unknown" : "rejected", reason);
    }
    return isSent ? failed("unknown", CANCELLED) : failed("rejected", CANCELLED_BEFORE);
  }

  /** What an answer counts as that ended before it was whole: stopped, or broken off by an upstream that may bill it. */
  truncated(): Classification {
    if (this.isStopped) return this.stopped();
    const { name } = this.upstream;
    return failed("unknown", { reason: "upstream_truncated", upstream: name, message: `${name} broke off its answer` });
  }

  /** The outcome so far: the timer, and with it the attempt's heartbeat, runs on. Nothing in it quotes the upstream's key. */
  outcome(ended: Classification): Outcome {
    const classification = withoutSecretsIn(ended, this.upstream);
    const latencyMs = Math.max(0, this.#deps.now() - this.#startedMs);
    if (classification.kind === "failure") return { ...classification, ...this.#unsent, latencyMs };
    if (isPulled(this.upstream)) return { ...classification, latencyMs };
    return { ...classification, latencyMs, ...this.#first };
  }

  get #unsent(): { unsent?: true } {
    return this.#deps.hasSent?.() === false ? { unsent: true } : {};
  }

  get #sinceSentMs(): number {
    return Math.max(0, this.#deps.now() - this.#sentMs);
  }

  /** The outcome of an exchange that has ended. */
  end(classification: Classification): Outcome {
    this.#stopTimer();
    return this.outcome(classification);
  }
}

const CANCELLED: Reason = { reason: "cancelled", message: "the call was cancelled while the upstream worked on it" };
const CANCELLED_BEFORE: Reason = { reason: "cancelled", message: "the call was cancelled before it was sent" };

/** An attempt that was stopped before anything was sent: it costs nothing. */
export function notSent(): Outcome {
  return { ...failed("rejected", CANCELLED_BEFORE), unsent: true, latencyMs: 0 };
}

/** What sends requests, and whether it has sent one. Nothing is sent under a signal that has aborted. */
export type Sender = Pick<ExchangeDeps, "fetch"> & { hasSent: () => boolean };

export function senderOf(fetch: ExchangeDeps["fetch"]): Sender {
  let isSent = false;
  // Not async: each async function on the way of a call costs it a promise, and turns of the microtask queue.
  const send: ExchangeDeps["fetch"] = (url, init) => {
    const { signal } = init;
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    isSent = true;
    return fetch(url, init);
  };
  return { fetch: send, hasSent: () => isSent };
}
