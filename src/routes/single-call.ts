/**
 * One call executed by the Worker that holds its client: permit, attempt, settlement, again while the run object says
 * so. Waiting here is free, and a Worker request has its own six connections.
 */
import type { Objects } from "../../durable-objects/address.ts";
import { runOf } from "../../durable-objects/address.ts";
import { untilAnswered } from "../../durable-objects/again.ts";
import type { AcquireReply, SettleReply } from "../../durable-objects/run/rpc.ts";
import type { CallBody, CallFacts, Lease, Outcome } from "../call.ts";
import type { Reason } from "../errors.ts";
import { HEARTBEAT_MS } from "../limits.ts";
import { attempt, type StartTimer } from "../upstream/attempt.ts";
import type { Upstream } from "../upstream/config.ts";

export type SingleCallDeps = {
  objects: Objects;
  upstreams: readonly Upstream[];
  /** Aborts when the client has gone. */
  signal: AbortSignal;
};

/** What a call ended as, with what all its attempts took and cost. */
export type CallEnd = {
  outcome: { ok: true; text: string; model: string; finishReason: string | null } | { ok: false; reason: Reason };
  attempts: number;
  latencyMs: number;
  queuedMs: number;
  promptTokens: number;
  completionTokens: number;
  costNanoUsd: number;
  parallelGroupId: string | null;
  remainingNanoUsd: number | null;
};

/** Makes a call under a run. Never rejects for what the upstream or the budget did; only if the run object is unreachable. */
export async function makeCall(
  runId: string,
  call: { body: CallBody; facts: CallFacts },
  deps: SingleCallDeps,
): Promise<CallEnd> {
  const callId = crypto.randomUUID();
  const end: CallEnd = {
    outcome: { ok: false, reason: CLIENT_GONE },
    attempts: 0,
    latencyMs: 0,
    queuedMs: 0,
    promptTokens: 0,
    completionTokens: 0,
    costNanoUsd: 0,
    parallelGroupId: null,
    remainingNanoUsd: null,
  };
  for (let delayMs = 0; ; ) {
    const number = end.attempts + 1;
    const granted = await acquire(runId, { callId, attempt: number, facts: call.facts, delayMs }, deps);
    if (granted === null) return end;
    end.remainingNanoUsd = granted.remainingNanoUsd;
    if (!granted.ok) return { ...end, outcome: { ok: false, reason: granted.reason } };
    if (number === 1) end.queuedMs = granted.queuedMs;
    const outcome = await execute(runId, granted.lease, call.body, deps);
    const settled = await untilAnswered<SettleReply>(deps.objects, runId, (run) => run.settle(granted.lease.attemptId, outcome));
    addAttempt(end, outcome, settled);
    if (settled.retryInMs === null || deps.signal.aborted) return end;
    delayMs = settled.retryInMs;
  }
}

const CLIENT_GONE: Reason = { reason: "cancelled", message: "the client left before its call started" };

/** Waits for the permit; null when the client left meanwhile. */
async function acquire(
  runId: string,
  request: { callId: string; attempt: number; facts: CallFacts; delayMs: number },
  { objects, signal }: SingleCallDeps,
): Promise<Exclude<AcquireReply, { ok: "wait" }> | null> {
  const withdraw = (): void => void runOf(objects, runId).withdraw(request.callId).catch(() => undefined);
  signal.addEventListener("abort", withdraw);
  try {
    while (!signal.aborted) {
      const reply = await untilAnswered<AcquireReply>(objects, runId, (run) => run.acquire(request));
      if (reply.ok !== "wait") return reply;
    }
    return null;
  } finally {
    signal.removeEventListener("abort", withdraw);
  }
}

async function execute(runId: string, lease: Lease, body: CallBody, deps: SingleCallDeps): Promise<Outcome> {
  const upstream = deps.upstreams.find(({ name }) => name === lease.upstream);
  if (upstream === undefined) {
    const message = `upstream ${lease.upstream} is not configured any more`;
    const reason: Reason = { reason: "misconfigured", variable: "UPSTREAMS", message };
    return { kind: "failure", class: "rejected", reason, retryAfterMs: null, latencyMs: 0 };
  }
  const timer = timerWithBeat(() => {
    // A missed beat is harmless: a lease outlives two.
    runOf(deps.objects, runId)
      .heartbeat([lease.attemptId])
      .catch(() => undefined);
  });
  return attempt({ upstream, lease, body }, { fetch, now: Date.now, timer, signal: deps.signal });
}

/** The attempt's one timer also keeps its lease alive: it goes off at every heartbeat until the time is over. */
function timerWithBeat(beat: () => void): StartTimer {
  return (ms, elapsed) => {
    let leftMs = ms;
    let handle: ReturnType<typeof setTimeout>;
    const next = (): void => {
      const stepMs = Math.min(leftMs, HEARTBEAT_MS);
      leftMs -= stepMs;
      handle = setTimeout(() => {
        if (leftMs <= 0) return elapsed();
        beat();
        next();
      }, stepMs);
    };
    next();
    return () => clearTimeout(handle);
  };
}

function addAttempt(end: CallEnd, outcome: Outcome, settled: SettleReply): void {
  end.attempts += 1;
  end.latencyMs += outcome.latencyMs;
  end.promptTokens += settled.promptTokens;
  end.completionTokens += settled.completionTokens;
  end.costNanoUsd += settled.costNanoUsd;
  end.parallelGroupId ??= settled.parallelGroupId;
  end.remainingNanoUsd = settled.remainingNanoUsd;
  end.outcome =
    outcome.kind === "success"
      ? { ok: true, text: outcome.text, model: outcome.model, finishReason: outcome.finishReason }
      : { ok: false, reason: outcome.reason };
}
