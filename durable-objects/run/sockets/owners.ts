/**
 * What the sockets of owners mean for the run: who has one is alive, so its leases need no heartbeat and its place in the
 * queue is kept; who loses it has the time of a reconnect to come back.
 */
import { isAside } from "../../../src/run/steps/enqueue.ts";
import { doubtLease, holdLease } from "../../../src/run/steps/settle.ts";
import { isWorker, WORKER_FIRST } from "../../../src/run/leases/shard.ts";
import type { ExecutorOwner, GroupFollower, SocketOwner, SocketSignal } from "../../../src/objects/methods/sockets.ts";
import { DONE_CODE, ENDED_CODE } from "../../../src/objects/clients/run-socket.ts";
import { doubtLeases, endLeases, holdFound, renewNamed } from "../executors/leases.ts";
import type { RunState } from "../state.ts";
import { renewToolPermit } from "../tool-calls.ts";

type OwnedRun = Pick<
  RunState,
  | "engine"
  | "status"
  | "toolPermits"
  | "waitingCalls"
  | "openGroups"
  | "epoch"
  | "groupFollowed"
  | "groupAsked"
  | "workers"
  | "presentExecutors"
>;

const ABORT: SocketSignal = { type: "abort" };
const CHANGED: SocketSignal = { type: "changed" };

/** What follows for the run: the signal to send to the owner, and whether its alarm must ring at once. */
export type OwnerEffect = { signal: SocketSignal | null; mustLook: boolean };

/** An owner has opened its socket, has changed what it waits for, or was found by a new instance. */
export function ownerPresent(run: OwnedRun, owner: SocketOwner, nowMs: number): OwnerEffect {
  if (owner.kind !== "executor" || owner.holds === undefined)
    return { signal: signalTo(run, owner, nowMs), mustLook: false };
  const { executor, holds } = owner;
  if (isWorker(executor)) workerSeen(run, executor, nowMs);
  const { lost, lacksSome } = renewNamed(run, { executor, holds }, nowMs);
  return { signal: { type: "held", lost }, mustLook: lacksSome };
}

/** What to send to an owner that is there; null = nothing yet. */
function signalTo(run: OwnedRun, owner: SocketOwner, nowMs: number): SocketSignal | null {
  switch (owner.kind) {
    case "tool": {
      const isPermitted = renewToolPermit(run, owner, nowMs);
      if (isPermitted) run.toolPermits.hold(owner.callId);
      return isPermitted ? null : ABORT;
    }
    // A call that does not wait was decided while its Worker opened the socket, or queued in an earlier instance.
    case "tool-permit":
      return run.toolPermits.isWaiting(owner.callId) ? null : { type: "again" };
    case "call": {
      const { callId, attemptId } = owner;
      // A call that is unknown was decided while its Worker opened the socket, or queued in an earlier instance. One that
      // was put aside meanwhile goes on with its Worker's next request.
      if (attemptId === null) {
        const isKnown = run.waitingCalls.socketOpened(callId);
        return isKnown && !isAside(run.engine, callId) ? null : { type: "again" };
      }
      return holdLease(run.engine, attemptId) ? null : ABORT;
    }
    case "executor":
      return executorPresent(run, owner, nowMs);
    case "group":
      run.groupAsked(owner.seq, nowMs);
      return owner.isArmed && hasChanged(run, owner) ? { type: "changed" } : null;
  }
}

/**
 * An instance that has just woken learns from the socket that the Worker of a group is there, and needs no lanes for it; what
 * the Worker waits for it learns from its next claim.
 */
function executorPresent(run: OwnedRun, { executor, seenAtMs }: ExecutorOwner, nowMs: number): SocketSignal | null {
  run.presentExecutors.opened(executor);
  if (seenAtMs !== undefined) holdFound(run, executor, seenAtMs);
  if (!isWorker(executor)) return null;
  const seq = executor - WORKER_FIRST;
  const isKnown = run.workers.of(seq) !== undefined;
  if (run.openGroups.has(seq)) {
    workerSeen(run, executor, nowMs);
    if (!isKnown) run.workers.claimed(seq, { covers: null }, seenAtMs ?? nowMs);
  }
  // The turn that follows finds what else there is to signal.
  return isKnown || !run.presentExecutors.notes(executor, "changed", nowMs) ? null : CHANGED;
}

function workerSeen(run: OwnedRun, executor: number, nowMs: number): void {
  run.groupFollowed(executor - WORKER_FIRST, nowMs);
  run.workers.seen(executor - WORKER_FIRST, nowMs);
}

/** An owner's socket has closed. One that is done returns by itself what it holds. Returns whether the alarm must ring at once. */
export function ownerLeft(run: OwnedRun, owner: SocketOwner, code: number, nowMs: number): boolean {
  if (owner.kind === "executor") return executorLeft(run, owner.executor, code, nowMs);
  // Its lapse counts from here.
  if (owner.kind === "group") run.groupFollowed(owner.seq, nowMs);
  // The withdrawal of a call whose client has left may be lost.
  else if (owner.kind === "call" && owner.attemptId === null) run.waitingCalls.socketClosed(owner.callId, nowMs);
  // A Worker that waits for a tool's permit repeats the request, or the call is refused when it has waited long enough.
  else if (owner.kind === "tool-permit" || code === DONE_CODE) return false;
  else if (owner.kind === "tool") run.toolPermits.doubt(owner.callId, nowMs);
  else if (owner.attemptId !== null) doubtLease(run.engine, owner.attemptId, nowMs);
  return false;
}

/** An executor closes its socket when it has ended, and when it opens the next. */
function executorLeft(run: OwnedRun, executor: number, code: number, nowMs: number): boolean {
  run.presentExecutors.closed(executor);
  const seq = executor - WORKER_FIRST;
  // Its term counts from here.
  if (isWorker(executor)) workerSeen(run, executor, nowMs);
  if (code === DONE_CODE) return false;
  if (code !== ENDED_CODE) {
    run.workers.doubted(seq);
    doubtLeases(run, executor, nowMs);
    return false;
  }
  const isMissed = isWorker(executor) && run.workers.of(seq) !== undefined;
  if (isMissed) run.workers.left(seq);
  return endLeases(run, executor, nowMs) || isMissed;
}

/** Whether something of a group has ended that its follower does not know. */
export function hasChanged(
  { engine, openGroups, epoch }: Pick<RunState, "engine" | "openGroups" | "epoch">,
  { seq, after }: Pick<GroupFollower, "seq" | "after">,
): boolean {
  if (!openGroups.has(seq)) return true;
  if (after === null) return false;
  const group = engine.groups.get(seq);
  return group === undefined || group.done || after.epoch !== epoch || group.ended.length > after.position;
}
