/** What a turn tells those who wait in the run object: their permits, their refusals, their share of another's answer. */
import type { Lease } from "../../src/call.ts";
import type { Assignment, Dispatched } from "../../src/engine/dispatch.ts";
import { groupSeqOf } from "../../src/engine/slot.ts";
import type { RunCore } from "./core.ts";
import { lanesMayStartMore, lingerMs } from "./lanes.ts";
import type { ClaimReply, Job } from "./rpc.ts";

/** Answers lanes and single calls with what dispatch decided. Runs once the turn is written. */
export function answer(core: RunCore, { assignments, refused }: Dispatched): void {
  const { remainingNanoUsd } = core;
  const byLane = new Map<number, Assignment[]>();
  for (const assignment of assignments) {
    if (assignment.lane === null) {
      const { lease, call } = assignment;
      const granted = { ok: true, lease: leaseOf(assignment), queuedMs: lease.queuedMs, remainingNanoUsd } as const;
      core.singles.answer(call.callId, granted);
    } else {
      const own = byLane.get(assignment.lane);
      if (own === undefined) byLane.set(assignment.lane, [assignment]);
      else own.push(assignment);
    }
  }
  const ask = byLane.size > 0 && lanesMayStartMore(core);
  for (const [lane, own] of byLane) core.lanes.answer(lane, claimOf(core, own, ask));
  for (const { call, reason } of refused) core.singles.answer(call.callId, { ok: false, reason, remainingNanoUsd });
  for (const { call, outcome } of core.state.landed.splice(0)) {
    const parallelGroupId = call.window?.id ?? null;
    core.singles.answer(call.callId, { ok: "shared", outcome, parallelGroupId, remainingNanoUsd });
  }
}

function claimOf(core: RunCore, assignments: Assignment[], ask: boolean): ClaimReply {
  const jobs: Job[] = [];
  const defaults: Record<number, string> = {};
  for (const assignment of assignments) {
    if (assignment.lane === null) continue;
    const groupSeq = groupSeqOf(assignment.slotId);
    defaults[groupSeq] ??= core.open.get(groupSeq)?.defaultsJson ?? "{}";
    jobs.push({ groupSeq, lease: leaseOf(assignment), callJson: core.callOf(assignment.slotId) });
  }
  return { jobs, epoch: core.epoch, defaults, ask, lingerMs: lingerMs(core.state) };
}

/** What an executor is told of its attempt. */
export function leaseOf({ lease, timeoutMs }: Pick<Assignment, "lease" | "timeoutMs">): Lease {
  const { attemptId, attempt, capTokens, target } = lease;
  const { upstream, model } = target;
  return { attemptId, attempt, upstream, model, capTokens, timeoutMs };
}
