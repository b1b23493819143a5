/**
 * A call executed by its client's Worker: permit, attempt, settlement, retried while the run object allows it. Waiting here
 * is free, and a Worker request has its own six connections.
 */
import type { Permit, SettleReply } from "../run-api/calls.ts";
import { cappedOf, markCapped } from "../budget/capped.ts";
import { chargeFor } from "../budget/charge.ts";
import type { Amounts } from "../budget/ledger.ts";
import type { CallFacts, CallRules, Lease, Outcome } from "../call.ts";
import type { Reason } from "../errors.ts";
import type { RunCaller } from "../run-client/caller.ts";
import { LoneCalls, type LoneCall } from "../run-client/lone-calls.ts";
import { settleSoon } from "../run-client/settlements.ts";
import type { Upstream } from "../upstream/config/types.ts";
import { priceOf } from "../upstream/registry.ts";
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

export type CallDeps = {
  run: RunCaller;
  upstreams: readonly Upstream[];
  /** Aborts when the client has left. */
  signal: AbortSignal;
  /** Keeps the Worker running until the promise ends, whether its client waits or not. */
  waitUntil: (promise: Promise<unknown>) => void;
};

const loneCalls = new LoneCalls();

/**
 * Makes a call under a run. Rejects only if the run object is unreachable.
 * @param attempt Makes one attempt. It must not reject.
 */
export async function executeCall<A extends Attempted>(
  call: CallRules & { facts: CallFacts },
  attempt: (attempt: Attempt) => Promise<A>,
  deps: CallDeps,
): Promise<{ end: CallEnd<A>; usage: CallUsage }> {
  const { run, signal } = deps;
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
    const group = loneCalls.add(run.runId, granted);
    const attempted = await attempt(underWatch(granted.lease, run, watch));
    loneCalls.remove(run.runId, group);
    usage.parallelGroupId ??= group.parallelGroupId;
    end = { ...attempted, lease: granted.lease };
    if (attempted.kind === "answering") return { end, usage };
    const settled = await settle(granted, attempted.outcome, {
      ...deps,
      group,
      isShared: facts.dedupeKey !== undefined,
    });
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

/** What the client of a call is shown of an attempt's settlement. */
type Settled = Pick<
  SettleReply,
  | "retryInMs"
  | "costNanoUsd"
  | "promptTokens"
  | "completionTokens"
  | "cappedBy"
  | "parallelGroupId"
  | "remainingNanoUsd"
>;

/**
 * Settles an attempt. The run decides what follows a failure. A success is final, and what it costs follows from its
 * permit: so it is settled while its client has the answer already.
 */
async function settle(
  permit: Permit & { remainingNanoUsd: number | null },
  outcome: Outcome,
  { run, upstreams, waitUntil, group, isShared }: CallDeps & { group: LoneCall; isShared: boolean },
): Promise<Settled> {
  const { attemptId } = permit.lease;
  if (outcome.kind === "failure")
    return await run.callWithRetry<SettleReply>((stub) => stub.settle(attemptId, outcome));
  // The text is the client's; the run object needs it only if equal calls wait for it.
  const settled = isShared ? outcome : { ...outcome, text: "" };
  waitUntil(settleSoon(run, { attemptId, outcome: settled, stored: null }));
  const charge = chargeOfPermit(permit, outcome, upstreams);
  return {
    retryInMs: null,
    costNanoUsd: charge.usd,
    promptTokens: charge.prompt_tokens,
    completionTokens: charge.completion_tokens,
    ...cappedOf(markCapped(outcome, permit.lease)),
    parallelGroupId: group.parallelGroupId,
    remainingNanoUsd: remainingAfter(permit, charge),
  };
}

/** What the run charges for an attempt, computed as the run object does. */
function chargeOfPermit({ lease, reserved }: Permit, outcome: Outcome, upstreams: readonly Upstream[]): Amounts {
  const { upstream: name, model, priced = {} } = lease;
  const upstream = upstreams.find((configured) => configured.name === name);
  const price = upstream === undefined ? null : priceOf(upstream, model);
  return chargeFor(outcome, { amounts: reserved, price, priced }).charge;
}

/** What is left of the budget in USD, as of the permit, without the reservation and with the charge; null = no limit. */
function remainingAfter(
  permit: { reserved: Amounts; remainingNanoUsd: number | null },
  charge: Amounts,
): number | null {
  const { reserved, remainingNanoUsd } = permit;
  return remainingNanoUsd === null ? null : Math.max(0, remainingNanoUsd + reserved.usd - charge.usd);
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

function addAttempt(usage: CallUsage, outcome: Outcome, settled: Settled): void {
  usage.attempts += 1;
  usage.latencyMs += outcome.latencyMs;
  usage.promptTokens += settled.promptTokens;
  usage.completionTokens += settled.completionTokens;
  usage.costNanoUsd += settled.costNanoUsd;
  usage.parallelGroupId ??= settled.parallelGroupId;
  usage.remainingNanoUsd = settled.remainingNanoUsd;
  if (settled.cappedBy !== undefined) usage.cappedBy = settled.cappedBy;
}
