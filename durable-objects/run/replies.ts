/** The replies of a turn, sent once it is written: permits, refusals and shared outcomes. */
import type { Lease } from "../../src/call.ts";
import type { WindowGroup } from "../../src/engine/calls/coalescing-window.ts";
import type { Assignment, Dispatched } from "../../src/engine/dispatch.ts";
import { groupSeqOf } from "../../src/engine/slot.ts";
import type { Permit } from "../../src/run-api/calls.ts";
import type { ClaimReply, Job } from "../../src/run-api/groups.ts";
import { batchingDelayMs, lanesMayStartMore } from "./lanes.ts";
import type { RunState } from "./state.ts";

type Callers = Pick<
  RunState,
  "engine" | "openGroups" | "epoch" | "waitingLanes" | "waitingCalls" | "remainingNanoUsd" | "callOf"
>;

/** Replies to lanes and single calls with what dispatch decided, and to calls whose equal call has ended. */
export function sendReplies(run: Callers, { assignments, refused }: Dispatched): void {
  const { remainingNanoUsd } = run;
  const byLane = new Map<number, Assignment[]>();
  for (const assignment of assignments) {
    if (assignment.lane === null) {
      run.waitingCalls.replyTo(assignment.call.callId, {
        ok: true,
        ...permitOf(assignment, assignment.call.window),
        remainingNanoUsd,
      });
    } else {
      const own = byLane.get(assignment.lane);
      if (own === undefined) byLane.set(assignment.lane, [assignment]);
      else own.push(assignment);
    }
  }
  const claimMore = byLane.size > 0 && lanesMayStartMore(run.engine, run.openGroups);
  for (const [lane, own] of byLane) run.waitingLanes.replyTo(lane, claimOf(run, own, claimMore));
  for (const { call, reason } of refused)
    run.waitingCalls.replyTo(call.callId, { ok: false, reason, remainingNanoUsd });
  for (const { call, outcome } of run.engine.takeSharedOutcomes()) {
    const parallelGroupId = call.window?.id ?? null;
    run.waitingCalls.replyTo(call.callId, { ok: "shared", outcome, parallelGroupId, remainingNanoUsd });
  }
}

function claimOf(
  run: Pick<RunState, "engine" | "openGroups" | "epoch" | "callOf">,
  assignments: Assignment[],
  claimMore: boolean,
): ClaimReply {
  const jobs: Job[] = [];
  const defaults: Record<number, string> = {};
  for (const assignment of assignments) {
    if (assignment.lane === null) continue;
    const groupSeq = groupSeqOf(assignment.slotId);
    defaults[groupSeq] ??= run.openGroups.get(groupSeq)?.defaultsJson ?? "{}";
    jobs.push({ groupSeq, lease: leaseOf(assignment), callJson: run.callOf(assignment.slotId) });
  }
  return { jobs, epoch: run.epoch, defaults, claimMore, batchingDelayMs: batchingDelayMs(run.engine.attempts.size) };
}

/** The permit of a single call's attempt. `window` null = a restart has forgotten it. */
export function permitOf(attempt: Pick<Assignment, "lease" | "timeoutMs">, window: WindowGroup | null): Permit {
  const { queuedMs, amounts: reserved } = attempt.lease;
  const group = { parallelGroupId: window?.id ?? null, windowOpenedAtMs: window?.openedAtMs ?? null };
  return { lease: leaseOf(attempt), queuedMs, reserved, ...group };
}

/** What an executor needs to know of its attempt. */
export function leaseOf({ lease, timeoutMs }: Pick<Assignment, "lease" | "timeoutMs">): Lease {
  const { attemptId, attempt, capTokens, capKind, target, priced } = lease;
  const { upstream, model } = target;
  const sent = { attemptId, attempt, upstream, model, capTokens, capKind, timeoutMs };
  return Object.keys(priced).length === 0 ? sent : { ...sent, priced };
}
