/** The one call of an executor: it settles what has ended, and waits here for what dispatch gives it. */
import { LOST } from "../../../src/run/gates/retry.ts";
import { heartbeat, loseAttempts, settle } from "../../../src/run/steps/settle.ts";
import { isWorker, WORKER_FIRST, workerOf } from "../../../src/run/leases/shard.ts";
import { sampled } from "../../../src/run/steps/exchange.ts";
import { EXECUTOR_CALLS_MAX, WORKER_CALLS_MAX } from "../../../src/limits.ts";
import type { ClaimReply, Settlement, WorkerState } from "../../../src/objects/methods/groups.ts";
import type { RunState } from "../state.ts";
import { leasesOf } from "./leases.ts";

export type Claim = {
  /** The number of a lane, or of a group's Worker. */
  executor: number;
  settlements: readonly Settlement[];
  capacity: number;
  waits: boolean;
  /** Set by a Worker. */
  worker: WorkerState | null;
  /** Set by a lane that was full: how many calls it can have in flight. */
  reach: number | null;
};

type Failure = Extract<Settlement["outcome"], { kind: "failure" }>;

type Run = Pick<
  RunState,
  "engine" | "waitingExecutors" | "presentExecutors" | "workers" | "laneLives" | "laneStarts" | "groupFollowed"
>;

/** Settles, and lets the executor wait for its reply, which the turn sends. */
export function claim(run: Run, request: Claim, reply: (claim: ClaimReply) => void, nowMs: number): void {
  const { engine, waitingExecutors } = run;
  const { executor, settlements, capacity, waits, worker, reach } = request;
  run.presentExecutors.claimed(executor);
  const settled = new Map<number, { answered: boolean }>();
  const answered = new Set<number>();
  const gaveUp = new Set(worker?.gaveUp);
  for (const { attemptId, outcome, samples } of settlements) {
    // Nobody has cancelled the call: its Worker aborted the attempt to give it up, and it counts as lost, unless it was not sent.
    if (gaveUp.has(attemptId) && isCancelled(outcome)) {
      if (isUnsent(outcome)) settle(engine, attemptId, { ...outcome, class: "transient", reason: LOST }, nowMs);
      continue;
    }
    if (samples !== undefined) sampled(engine, samples, nowMs);
    const slotId = engine.attempts.get(attemptId)?.lease.slotId ?? null;
    settle(engine, attemptId, outcome, nowMs);
    const slot = Number.parseInt(attemptId, 10);
    // Its Worker does not know which of two answers was the slot's if the first of them came too late.
    if (slotId !== null) settled.set(slotId, { answered: outcome.kind === "success" && !answered.has(slot) });
    if (outcome.kind === "success") answered.add(slot);
  }
  // Leases are counted here: the reply to an older call may still be on its way to its executor.
  if (worker === null || !isWorker(executor)) {
    const leases = engine.shards.get(executor)?.leases.size ?? 0;
    const mayClaim = run.laneLives.mayClaim(executor, leases > 0 || settlements.length > 0);
    if (reach !== null) run.laneStarts.fullAt(reach);
    const free = Math.min(capacity, EXECUTOR_CALLS_MAX) - leases;
    // A lane that waits although the run counts no room has yet to get, or has lost, the reply to an older call.
    if (!mayClaim || (waits && free <= 0)) {
      run.presentExecutors.refused(executor, nowMs);
      return waitingExecutors.refuse(executor, reply);
    }
    return waitingExecutors.wait(executor, { capacity: free, waits, reply }, nowMs);
  }
  const seq = executor - WORKER_FIRST;
  const leases = reconcile(run, seq, worker, nowMs);
  const free = worker.leaves ? 0 : Math.min(capacity, WORKER_CALLS_MAX) - leases;
  const { asksForLanes, after } = worker;
  waitingExecutors.wait(executor, { capacity: free, waits, settled, asksForLanes, after, reply }, nowMs);
}

function isCancelled(outcome: Settlement["outcome"]): outcome is Failure {
  return outcome.kind === "failure" && outcome.reason.reason === "cancelled";
}

/** An attempt that is aborted after its request has left the executor ends as unknown. */
function isUnsent(outcome: Failure): boolean {
  return outcome.class === "rejected";
}

/** Compares what a group's Worker says of itself with what is known of it. Returns how many leases it has. */
function reconcile(
  run: Run,
  seq: number,
  { covers, after, leaves, holds, gaveUp }: WorkerState,
  nowMs: number,
): number {
  run.groupFollowed(seq, nowMs);
  if (leaves) run.workers.left(seq);
  else run.workers.claimed(seq, { covers, after }, nowMs);
  // What keeps the Worker from more keeps lanes from it, too.
  if (covers !== null) run.laneStarts.fullAt(covers);
  loseAttempts(run.engine, gaveUp, nowMs);
  const leases = leasesOf(run.engine, workerOf(seq)).map(({ attemptId }) => attemptId);
  if (holds === null) return leases.length;
  // Those of a run that has restarted are confirmed by this.
  heartbeat(run.engine, holds, nowMs);
  const held = new Set(holds);
  const lost = leases.filter((attemptId) => !held.has(attemptId));
  loseAttempts(run.engine, lost, nowMs);
  return leases.length - lost.length;
}
