/**
 * One call executed by the Worker that holds its client: permit, attempt, settlement, again while the run object says
 * so. Waiting here is free, and a Worker request has its own six connections.
 */
import type { RunCaller } from "../../durable-objects/again.ts";
import type { SettleReply } from "../../durable-objects/run/rpc.ts";
import type { CallBody, CallFacts, Lease, Outcome } from "../call.ts";
import type { Reason } from "../errors.ts";
import { attempt } from "../upstream/attempt.ts";
import type { Upstream } from "../upstream/config.ts";
import { acquire, beatingTimer, watchClient, type Watch } from "./permit.ts";

export type SingleCallDeps = {
  run: RunCaller;
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
  call: { body: CallBody; facts: CallFacts; deadlineMs: number | null; onLost: "retry" | "fail" },
  deps: SingleCallDeps,
): Promise<CallEnd> {
  const acceptedAtMs = Date.now();
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
  const watch = watchClient(deps.signal);
  for (let delayMs = 0; ;) {
    const number = end.attempts + 1;
    // A retry is queued for what its call has left.
    const leftMs = call.deadlineMs === null ? null : Math.max(1, call.deadlineMs - (Date.now() - acceptedAtMs));
    const { facts, onLost } = call;
    const { parallelGroupId } = end;
    const request = { callId, attempt: number, facts, delayMs, deadlineMs: leftMs, onLost, parallelGroupId };
    const granted = await acquire(deps.run, request, watch);
    if (granted === null) return end;
    end.remainingNanoUsd = granted.remainingNanoUsd;
    if (granted.ok === "shared") {
      // An equal call made the attempt, and paid for it.
      return { ...end, parallelGroupId: granted.parallelGroupId, outcome: endOf(granted.outcome) };
    }
    if (!granted.ok) return { ...end, outcome: { ok: false, reason: granted.reason } };
    if (number === 1) end.queuedMs = granted.queuedMs;
    const outcome = await execute(granted.lease, call.body, deps, watch);
    // The text is the client's; the run object needs it only if equal calls wait for it.
    const told = outcome.kind === "success" && facts.dedupeKey === undefined ? { ...outcome, text: "" } : outcome;
    const settled = await deps.run.untilAnswered<SettleReply>((run) => run.settle(granted.lease.attemptId, told));
    addAttempt(end, outcome, settled);
    if (settled.retryInMs === null || deps.signal.aborted) return end;
    delayMs = settled.retryInMs;
  }
}

const CLIENT_GONE: Reason = { reason: "cancelled", message: "the client left before its call started" };

async function execute(lease: Lease, body: CallBody, deps: SingleCallDeps, watch: Watch): Promise<Outcome> {
  const upstream = deps.upstreams.find(({ name }) => name === lease.upstream);
  if (upstream === undefined) {
    const message = `upstream ${lease.upstream} is not configured any more`;
    const reason: Reason = { reason: "misconfigured", variable: "UPSTREAMS", message };
    return { kind: "failure", class: "rejected", reason, retryAfterMs: null, latencyMs: 0 };
  }
  // One for each attempt: the last one's was aborted if it took too long, which must not stop this one.
  const controller = new AbortController();
  if (deps.signal.aborted) controller.abort();
  watch.controller = controller;
  const timer = beatingTimer(deps.run, lease.attemptId, controller);
  return attempt({ upstream, lease, body }, { fetch, now: Date.now, timer, controller });
}

function addAttempt(end: CallEnd, outcome: Outcome, settled: SettleReply): void {
  end.attempts += 1;
  end.latencyMs += outcome.latencyMs;
  end.promptTokens += settled.promptTokens;
  end.completionTokens += settled.completionTokens;
  end.costNanoUsd += settled.costNanoUsd;
  end.parallelGroupId ??= settled.parallelGroupId;
  end.remainingNanoUsd = settled.remainingNanoUsd;
  end.outcome = endOf(outcome);
}

function endOf(outcome: Outcome): CallEnd["outcome"] {
  return outcome.kind === "success"
    ? { ok: true, text: outcome.text, model: outcome.model, finishReason: outcome.finishReason }
    : { ok: false, reason: outcome.reason };
}
