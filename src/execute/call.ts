/**
 * A call executed by its client's Worker: permit, attempt, settlement, retried while the run object allows it. Waiting here
 * is free, and a Worker request has its own six connections.
 */
import type { SettleReply } from "../run-api/calls.ts";
import { cappedOf } from "../budget/capped.ts";
import type { CallFacts, CallRules, Lease, Outcome } from "../call.ts";
import type { Reason } from "../errors.ts";
import type { RunCaller } from "../run-client/caller.ts";
import type { Attempt } from "./attempt.ts";
import { acquire, attemptTimer, watchClient, type ClientWatch } from "./permit.ts";

/** What all attempts of a call took and cost. */
export type CallUsage = {
  attempts: number;
  latencyMs: number;
  queuedMs: number;
  promptTokens: number;
  completionTokens: number;
  costNanoUsd: number;
  parallelGroupId: string | null;
  /** Set when the last attempt's answer was cut by the budget. */
  cappedBy?: "budget";
  remainingNanoUsd: number | null;
};

/** An attempt that has ended, or whose answer is on its way to the client: then the caller settles it. */
type Attempted = { kind: "ended"; outcome: Outcome } | { kind: "answering" };

/** How a call ended: by its last attempt, or without one. */
export type CallEnd<A extends Attempted> =
  | (A & { lease: Lease })
  /** An equal call made the attempt, and paid for it. */
  | { kind: "shared"; outcome: Outcome }
  /** The run refused the permit. */
  | { kind: "refused"; reason: Reason }
  /** The client left before an attempt was made. */
  | { kind: "client_gone" };

/**
 * Makes a call under a run. Rejects only if the run object is unreachable.
 * @param attempt Makes one attempt. It must not reject.
 * @param signal Aborts when the client has left.
 */
export async function executeCall<A extends Attempted>(
  call: CallRules & { facts: CallFacts },
  attempt: (attempt: Attempt) => Promise<A>,
  { run, signal }: { run: RunCaller; signal: AbortSignal },
): Promise<{ end: CallEnd<A>; usage: CallUsage }> {
  const { facts, onLost } = call;
  const acceptedAtMs = Date.now();
  const callId = crypto.randomUUID();
  const usage = noUsage();
  const watch = watchClient(signal);
  let end: CallEnd<A> = { kind: "client_gone" };
  for (let delayMs = 0; ;) {
    const number = usage.attempts + 1;
    // A retry is queued for the time that its call has left.
    const ageMs = Date.now() - acceptedAtMs;
    const deadlineMs = call.deadlineMs === null ? null : Math.max(1, call.deadlineMs - ageMs);
    const { parallelGroupId } = usage;
    const request = { callId, attempt: number, facts, delayMs, ageMs, deadlineMs, onLost, parallelGroupId };
    const granted = await acquire(run, request, watch);
    if (granted === null) return { end, usage };
    usage.remainingNanoUsd = granted.remainingNanoUsd;
    if (granted.ok === "shared") {
      const { parallelGroupId, outcome } = granted;
      return { end: { kind: "shared", outcome }, usage: { ...usage, parallelGroupId, ...cappedOf(outcome) } };
    }
    if (!granted.ok) return { end: { kind: "refused", reason: granted.reason }, usage };
    if (number === 1) usage.queuedMs = granted.queuedMs;
    const { lease } = granted;
    const attempted = await attempt(underWatch(lease, run, watch));
    end = { ...attempted, lease };
    if (attempted.kind === "answering") return { end, usage };
    const settled = await settle(run, lease, attempted.outcome, facts.dedupeKey !== undefined);
    addAttempt(usage, attempted.outcome, settled);
    if (settled.retryInMs === null || signal.aborted) return { end, usage };
    delayMs = settled.retryInMs;
  }
}

/** An attempt that ends when the client leaves, and whose timer keeps its lease alive. */
function underWatch(lease: Lease, run: RunCaller, watch: ClientWatch): Attempt {
  // One for each attempt: the last one's was aborted if it took too long, which must not stop this one.
  const controller = new AbortController();
  if (watch.signal.aborted) controller.abort();
  watch.controller = controller;
  return { lease, controller, timer: attemptTimer(run, lease.attemptId, controller) };
}

/** The text is the client's; the run object needs it only if equal calls wait for it. */
function settle(run: RunCaller, { attemptId }: Lease, outcome: Outcome, isShared: boolean): Promise<SettleReply> {
  const settled = outcome.kind === "success" && !isShared ? { ...outcome, text: "" } : outcome;
  return run.callWithRetry<SettleReply>((stub) => stub.settle(attemptId, settled));
}

function noUsage(): CallUsage {
  return {
    attempts: 0,
    latencyMs: 0,
    queuedMs: 0,
    promptTokens: 0,
    completionTokens: 0,
    costNanoUsd: 0,
    parallelGroupId: null,
    remainingNanoUsd: null,
  };
}

function addAttempt(usage: CallUsage, outcome: Outcome, settled: SettleReply): void {
  usage.attempts += 1;
  usage.latencyMs += outcome.latencyMs;
  usage.promptTokens += settled.promptTokens;
  usage.completionTokens += settled.completionTokens;
  usage.costNanoUsd += settled.costNanoUsd;
  usage.parallelGroupId ??= settled.parallelGroupId;
  usage.remainingNanoUsd = settled.remainingNanoUsd;
  if (settled.cappedBy !== undefined) usage.cappedBy = settled.cappedBy;
}
