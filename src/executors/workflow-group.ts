/**
 * Groups without a client, executed by Workflow instances: an instance runs the executor of a client's Worker for one group,
 * and is billed for its CPU only, not for the seconds in which it waits. It is never the last resort: if no instance can be
 * created, or if it ends before its group does, lanes take the group over.
 */
import type { GroupName } from "../objects/address.ts";
import { workerOf } from "../run/leases/shard.ts";
import type { ClaimReply, GroupView, WorkerState } from "../objects/methods/groups.ts";
import type { RunCaller } from "../objects/clients/caller.ts";
import { GroupExecutor, type GroupExecutorDeps } from "./group-executor.ts";

/** What an instance claims with the opening of its group, which it has not seen: nothing. */
export const WORKFLOW_CAPACITY = 0;

const LEAVES: WorkerState = { covers: null, asksForLanes: false, leaves: true, holds: null, gaveUp: [] };

/** The part of a Workflow's binding that is used here. */
export type Workflows = {
  create: (options: { id: string; params: GroupName }) => Promise<unknown>;
  /** Rejects if there is no such instance. */
  get: (id: string) => Promise<unknown>;
};

/** Has an instance execute a group; hands the group to lanes if that fails. Safe to repeat. Never rejects. */
export async function startWorkflow(
  workflows: Workflows,
  run: Pick<RunCaller, "runId" | "callWithRetry">,
  seq: number,
): Promise<void> {
  const { runId } = run;
  const id = `${runId}-${seq}`;
  try {
    await workflows.create({ id, params: { runId, seq } });
  } catch (error) {
    // A repeated request finds the instance that the first one has created.
    if (
      await workflows.get(id).then(
        () => true,
        () => false,
      )
    )
      return;
    console.error(`no Workflow instance executes group ${seq} of ${runId}; lanes do`, error);
    const leave = run.callWithRetry<ClaimReply>((stub) => stub.settleAndClaim(workerOf(seq), [], 0, false, LEAVES));
    // If this call is lost too, the run's alarm misses the executor after the term of a lease.
    await leave.catch(() => undefined);
  }
}

/**
 * Executes a group in the present instance. Resolves with the group, or with null if lanes must take it over. The platform runs
 * an instance again if it has lost the machine that ran it.
 */
export function executeGroup(
  seq: number,
  deps: Pick<GroupExecutorDeps, "objects" | "run" | "waitingFetchesMax" | "execute">,
): Promise<GroupView | null> {
  // The step waits for the end, and nobody reads answers here.
  const rest = { waitUntil: () => undefined, idOf: () => null, showsSlots: false };
  return new GroupExecutor(seq, null, { ...deps, ...rest }).ended;
}
