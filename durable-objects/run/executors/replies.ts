/** The replies of a turn, sent once it is written: permits, refusals and shared outcomes. */
import type { WindowGroup } from "../../../src/run/leases/concurrency-window.ts";
import { leaseOf, type Assignment, type Dispatched } from "../../../src/run/steps/dispatch.ts";
import { talkOf } from "../../../src/run/continuations/tools.ts";
import { hasInvalidAnswer } from "../../../src/run/group/record.ts";
import { isWorker, WORKER_FIRST, workerOf } from "../../../src/run/leases/shard.ts";
import { groupSeqOf } from "../../../src/run/queue/slot.ts";
import type { Permit } from "../../../src/objects/methods/calls.ts";
import type { ClaimReply, Job, OwnGroup } from "../../../src/objects/methods/groups.ts";
import type { RunState } from "../state.ts";
import { batchingDelayMs, lanesMayStartMore, workerMayStartMore } from "./lanes.ts";
import { NO_WORK, NOTHING_QUEUED } from "../memory/waiting.ts";

type Callers = Pick<
  RunState,
  | "engine"
  | "openGroups"
  | "workers"
  | "laneLives"
  | "epoch"
  | "waitingExecutors"
  | "presentExecutors"
  | "waitingCalls"
  | "remainingNanoUsd"
  | "storedCalls"
>;

/** What the reply to the Worker of a group says of its group, by the group's number. */
type OwnGroups = (seq: number) => OwnGroup;

/** What the replies of a turn say beside its attempts. `mayStartMore`: `lanesMayStartMore` after the turn, found out once if anybody asks. */
type OfTurn = { ownGroups: OwnGroups; mayStartMore: () => boolean };

/** `OfTurn` of a turn whose dispatch is over. */
export function ofTurn(run: Callers, ownGroups: OwnGroups, nowMs: number): OfTurn {
  let mayStart: boolean | null = null;
  return { ownGroups, mayStartMore: () => (mayStart ??= lanesMayStartMore(run, nowMs)) };
}

/** Replies to executors and single calls with what dispatch decided, and to calls whose equal call has ended. */
export function sendReplies(
  run: Callers,
  { assignments, refused }: Dispatched,
  { ownGroups, mayStartMore }: OfTurn,
): void {
  sendToCalls(run, { assignments, refused });
  const byExecutor = new Map<number, Assignment[]>();
  for (const assignment of assignments) {
    if (assignment.executor === null) continue;
    const own = byExecutor.get(assignment.executor);
    if (own === undefined) byExecutor.set(assignment.executor, [assignment]);
    else own.push(assignment);
  }
  const claimMore = byExecutor.size > 0 && mayStartMore();
  for (const [executor, own] of byExecutor) {
    if (!isWorker(executor)) run.waitingExecutors.replyTo(executor, laneClaimOf(run, executor, own, claimMore));
    else {
      const seq = executor - WORKER_FIRST;
      const claim = claimOf(run, own, workerMayStartMore(run, seq));
      run.waitingExecutors.replyTo(executor, { ...claim, group: ownGroups(seq) });
    }
  }
}

/** Replies to single calls with what was decided: a permit, a refusal, or the outcome of an equal call. */
export function sendToCalls(
  run: Pick<RunState, "engine" | "waitingCalls" | "remainingNanoUsd">,
  { assignments, refused }: Pick<Dispatched, "assignments" | "refused">,
): void {
  const { remainingNanoUsd } = run;
  for (const assignment of assignments) {
    if (assignment.executor !== null) continue;
    const { callId, window, recordKey } = assignment.call;
    const recorded = recordKey === undefined ? {} : { recordKey };
    const permit = { ok: true as const, ...permitOf(assignment, window), ...recorded, remainingNanoUsd };
    run.waitingCalls.replyTo(callId, permit);
  }
  for (const { call, reason } of refused) run.waitingCalls.end(call.callId, { ok: false, reason, remainingNanoUsd });
  for (const { call, outcome } of run.engine.takeSharedOutcomes()) {
    const parallelGroupId = call.window?.id ?? null;
    run.waitingCalls.end(call.callId, { ok: "shared", outcome, parallelGroupId, remainingNanoUsd });
  }
}

/** Replies to the executors that wait here and need not, or must know at once what the turn changed. */
export function releaseExecutors(run: Callers, { ownGroups, mayStartMore }: OfTurn): void {
  const { waitingExecutors, engine, openGroups } = run;
  if (waitingExecutors.size === 0) return;
  const hasCalls = (lane: number): boolean => (engine.shards.get(lane)?.leases.size ?? 0) > 0;
  if (waitingExecutors.hasLanes)
    waitingExecutors.releaseLanes(
      mayStartMore(),
      (lane, room) => run.presentExecutors.replied(lane, room) && hasCalls(lane),
    );
  waitingExecutors.releaseWorkers((worker, waits) => {
    const seq = worker - WORKER_FIRST;
    if (waits && openGroups.has(seq) && !engine.givenUp.hasOfWorker(worker) && !hasNews(run, seq)) return null;
    const claim = workerMayStartMore(run, seq) ? NO_WORK : NOTHING_QUEUED;
    return { ...claim, epoch: run.epoch, group: ownGroups(seq) };
  });
}

/** Whether slots have ended that a group's Worker, which waits here, must show. */
function hasNews({ waitingExecutors, engine, epoch }: Callers, seq: number): boolean {
  const after = waitingExecutors.knownTo(workerOf(seq));
  const ended = engine.groups.get(seq)?.ended.length ?? 0;
  return after !== undefined && (after.epoch !== epoch || ended > after.position);
}

/**
 * The reply to a lane that gets attempts. It need not claim more where it has a socket: all that could start and that it had room
 * for is in this reply, and the run signals what can start later.
 */
function laneClaimOf(run: Callers, lane: number, assignments: Assignment[], claimMore: boolean): ClaimReply {
  const claim = claimOf(run, assignments, claimMore);
  const room = run.waitingExecutors.roomOf(lane) - assignments.length;
  return run.presentExecutors.replied(lane, room) && claimMore ? { ...claim, atSocket: true } : claim;
}

function claimOf(
  run: Pick<RunState, "engine" | "openGroups" | "epoch" | "storedCalls">,
  assignments: Assignment[],
  claimMore: boolean,
): ClaimReply {
  const jobs: Job[] = [];
  const defaults: Record<number, string> = {};
  for (const assignment of assignments) {
    if (assignment.executor === null) continue;
    const groupSeq = groupSeqOf(assignment.slotId);
    const group = run.openGroups.get(groupSeq);
    defaults[groupSeq] ??= group?.defaultsJson ?? "{}";
    const tried = run.engine.tried.get(assignment.slotId);
    const { round, added } = talkOf(tried);
    const job: Job = {
      groupSeq,
      lease: leaseOf(assignment, group?.header.trace),
      callJson: round === undefined ? run.storedCalls.bodyOf(assignment.slotId) : "{}",
      ...(round !== undefined && { round }),
      ...(added !== undefined && { added }),
    };
    if (hasInvalidAnswer(tried)) job.repair = { text: tried.text, violation: tried.checks.violation };
    jobs.push(job);
  }
  return { jobs, epoch: run.epoch, defaults, claimMore, batchingDelayMs: batchingDelayMs(run.engine.attempts.size) };
}

/** The permit of a single call's attempt. `window` null = a restart has forgotten it. */
export function permitOf(attempt: Pick<Assignment, "lease" | "timeoutMs">, window: WindowGroup | null): Permit {
  const { queuedMs, amounts: reserved } = attempt.lease;
  const group = { parallelGroupId: window?.id ?? null, windowOpenedAtMs: window?.openedAtMs ?? null };
  return { lease: leaseOf(attempt), queuedMs, reserved, ...group };
}
