/** Single calls in the run object: asking for a permit, giving up the place, reporting the outcome. */
import type { Outcome } from "../../src/call.ts";
import { endCall, enqueueCall } from "../../src/engine/open.ts";
import { timeoutOf } from "../../src/engine/dispatch.ts";
import { heartbeat, settle } from "../../src/engine/settle.ts";
import type { Target } from "../../src/engine/shard.ts";
import type { Reason } from "../../src/errors.ts";
import { DIRECT_CALLS_MAX } from "../../src/limits.ts";
import { leaseOf } from "./answer.ts";
import type { RunCore } from "./core.ts";
import type { AcquireReply, AcquireRequest, SettleReply } from "./rpc.ts";

/** What single calls need of the run. */
type SingleCalls = Pick<RunCore, "state" | "singles" | "resolve" | "remainingNanoUsd">;

const OVERLOADED: Reason = { reason: "overloaded", message: "too many calls wait in this run", retryAfterMs: 1_000 };

/** Queues a call for its permit, or takes up the place it has. `reply` is called when it is decided. */
export function acquire(
  core: SingleCalls,
  request: AcquireRequest,
  reply: (acquired: AcquireReply) => void,
  nowMs: number,
): void {
  const { callId, attempt, facts, delayMs, deadlineMs, onLost, parallelGroupId } = request;
  const { remainingNanoUsd } = core;
  if (core.singles.wait(callId, reply, nowMs)) return;
  const target = core.resolve(facts.model);
  if ("reason" in target) return reply({ ok: false, reason: target, remainingNanoUsd });
  const given = unheard(core, request, target, nowMs);
  if (given !== null) return reply({ ok: true, lease: given.lease, queuedMs: given.queuedMs, remainingNanoUsd });
  if (core.singles.size >= DIRECT_CALLS_MAX) return reply({ ok: false, reason: OVERLOADED, remainingNanoUsd });
  core.singles.add(callId, reply, nowMs);
  const call = { callId, attempt, facts, target, deadlineMs, onLost, parallelGroupId };
  enqueueCall(core.state, call, delayMs, nowMs);
}

/** How a call ends whose client has gone while it was queued. */
export const CLIENT_GONE: Reason = { reason: "cancelled", message: "the client left before its call started" };

/** Gives up a call's place. Its Worker must not be left waiting: it asks no more once its client has gone. */
export function withdraw(core: SingleCalls, callId: string, nowMs: number): void {
  core.singles.answer(callId, { ok: "wait" });
  endCall(core.state, callId, CLIENT_GONE, nowMs);
}

/** Records what an attempt ended as. An attempt that is not in flight any more changes nothing. */
export function settleSingle(core: SingleCalls, attemptId: string, outcome: Outcome, nowMs: number): SettleReply {
  const settled = settle(core.state, attemptId, outcome, nowMs);
  return {
    known: settled !== null,
    retryInMs: settled?.retryInMs ?? null,
    costNanoUsd: settled?.charge.usd ?? 0,
    promptTokens: settled?.charge.prompt_tokens ?? 0,
    completionTokens: settled?.charge.completion_tokens ?? 0,
    estimated: settled?.estimated ?? false,
    parallelGroupId: settled?.parallelGroupId ?? null,
    remainingNanoUsd: core.remainingNanoUsd,
  };
}

/** The permit that this call was given before, in a reply that never arrived; null when it has none. */
function unheard(core: SingleCalls, { callId, attempt, facts }: AcquireRequest, target: Target, nowMs: number) {
  const lease = core.state.attempts.get(`${callId}.${attempt}`)?.lease;
  if (lease === undefined) return null;
  heartbeat(core.state, [lease.attemptId], nowMs);
  return { lease: leaseOf({ lease, timeoutMs: timeoutOf(facts, target) }), queuedMs: lease.queuedMs };
}
