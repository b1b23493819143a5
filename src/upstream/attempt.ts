/**
 * One attempt: one request to one upstream, its whole answer read, one outcome. Retries, budgets and permits are the
 * caller's; so is the lease, whose time limit starts to count here.
 */
import type { CallBody, Lease, Outcome } from "../call.ts";
import { discard, readBody } from "./body.ts";
import { type Answer, classify, failed, type Verdict } from "./classify.ts";
import type { Upstream } from "./config.ts";
import { connectionFailure } from "./connection-failure.ts";
import { type BuiltRequest, buildAnthropicRequest } from "./anthropic-request.ts";
import { buildRawRequest, classifyRaw } from "./raw.ts";
import { buildRequest, type UpstreamRequest } from "./request.ts";
import { simulatedAnswer } from "./simulated.ts";

/** What is asked of whom under which lease; `lease.model` and `body` go out as they are. */
export type AttemptJob = { upstream: Upstream; lease: Lease; body: CallBody };

export type AttemptDeps = {
  fetch: typeof fetch;
  /** Wall clock, ms since 1970. */
  now: () => number;
  /** Calls `elapsed` after `ms`, unless what it returns is called first. */
  timer: StartTimer;
  /** Aborts when nobody wants the answer any more. */
  signal?: AbortSignal;
  /** The same for a caller that watches over the attempt itself: it may abort this one, without a listener per attempt. */
  controller?: AbortController;
  /**
   * Asks, before anything is sent, whether nothing listens at the upstream. True is believed as proof that the attempt
   * was never made, so it is free; without it a refused connection is an unknown outcome wherever the runtime reports
   * it like a lost one.
   */
  refuses?: (upstream: Upstream) => Promise<boolean>;
};

/** Starts a timer and returns what stops it. */
export type StartTimer = (ms: number, elapsed: () => void) => () => void;

type Stop = "timeout" | "cancelled";

/**
 * Makes one attempt and says what it ended as. Never rejects, and ends by the lease's time limit or the signal even if
 * `fetch` heeds neither. Redirects are not followed: they could carry the key to another host.
 */
export async function attempt(job: AttemptJob, deps: AttemptDeps): Promise<Outcome> {
  const startedMs = deps.now();
  const verdict = await verdictOf(job, deps);
  return { ...verdict, latencyMs: Math.max(0, deps.now() - startedMs) };
}

async function verdictOf(job: AttemptJob, deps: AttemptDeps): Promise<Verdict> {
  const over = deps.controller ?? new AbortController();
  if (deps.signal?.aborted === true || over.signal.aborted) return notSent();
  const { promise: stopped, resolve } = Promise.withResolvers<Stop>();
  const stop = (why: Stop): void => {
    resolve(why);
    over.abort();
  };
  const cancel = (): void => stop("cancelled");
  deps.signal?.addEventListener("abort", cancel);
  // A timer that is stopped, not a sleep that is aborted: an abort per attempt costs as much as a third of its fetch.
  const stopTimer = deps.timer(job.lease.timeoutMs, () => stop("timeout"));
  try {
    const ended = await Promise.race([exchange(job, deps, over.signal), stopped]);
    return typeof ended === "string" ? stoppedVerdict(job, ended) : ended;
  } catch {
    // Only a bug gets here. Whether the request went out is not known, so its reservation stays charged.
    return failed("unknown", { reason: "internal", message: "the attempt failed inside the gateway" });
  } finally {
    stopTimer();
    deps.signal?.removeEventListener("abort", cancel);
  }
}

async function exchange(job: AttemptJob, deps: AttemptDeps, signal: AbortSignal): Promise<Verdict> {
  const { upstream, lease } = job;
  const built = builtRequest(job);
  if (!built.ok) return failed("rejected", built.reason);
  if (deps.refuses !== undefined && upstream.kind !== "simulated" && (await deps.refuses(upstream))) {
    const message = `${upstream.name} refused the connection`;
    return failed("transient", {
      reason: "upstream_error",
      upstream: upstream.name,
      status: null,
      message,
      retryable: true,
    });
  }
  // The probe took time: what was stopped meanwhile is not sent.
  if (signal.aborted) return notSent();
  let response: Response;
  try {
    response = await send(job, built.request, deps, signal);
  } catch (error) {
    return signal.aborted ? stoppedVerdict(job, "cancelled") : connectionFailure(upstream, error);
  }
  if (signal.aborted) {
    // Whoever stopped it does not read the answer; the body must still be freed.
    await discard(response);
    return stoppedVerdict(job, "cancelled");
  }
  const { status, headers } = response;
  const answer: Answer = { status, headers, nowMs: deps.now(), body: null };
  try {
    answer.body = await readBody(response);
  } catch {
    // Left null: the classifier knows what a broken body means for each status.
    if (signal.aborted) return stoppedVerdict(job, "cancelled");
  }
  const { raw } = job.body;
  return raw === undefined ? classify(upstream, lease.model, answer) : classifyRaw(upstream, lease, raw, answer);
}

function builtRequest({ upstream, lease, body }: AttemptJob): BuiltRequest {
  if (body.raw !== undefined) return buildRawRequest(upstream, lease, body.raw);
  if (upstream.kind === "anthropic") return buildAnthropicRequest(upstream, lease, body);
  return { ok: true, request: buildRequest(upstream, lease, body) };
}

function send(
  { upstream, lease, body }: AttemptJob,
  request: UpstreamRequest,
  deps: AttemptDeps,
  signal: AbortSignal,
): Promise<Response> {
  if (upstream.kind === "simulated") {
    const endpoint = body.raw?.endpoint ?? "chat";
    const simulated = { now: deps.now, timer: deps.timer, signal, attempt: lease.attempt ?? 1 };
    return simulatedAnswer(endpoint, request.body, simulated);
  }
  // Called on its own: workerd's fetch refuses to be a method of another object.
  const { fetch } = deps;
  return fetch(request.url, {
    method: "POST",
    headers: request.headers,
    body: request.body,
    redirect: "manual",
    signal,
  });
}

function stoppedVerdict({ upstream, lease }: AttemptJob, stop: Stop): Verdict {
  if (stop === "timeout") {
    return failed("unknown", { reason: "upstream_timeout", upstream: upstream.name, timeoutMs: lease.timeoutMs });
  }
  return failed("unknown", { reason: "cancelled", message: "the call was cancelled while the upstream worked on it" });
}

export function notSent(): Verdict {
  return failed("rejected", { reason: "cancelled", message: "the call was cancelled before it was sent" });
}
