/**
 * The leases of executors. An executor that has a socket names the attempts that it has whenever it opens one, and what it is
 * granted meanwhile lasts until the next; without a socket it sends heartbeats. When its socket closes because it has ended,
 * what it still holds is lost at once; a socket that breaks leaves it the time of a reconnect; and if nothing is heard of it, its
 * leases end with their term.
 */
import type { Assignment } from "../../../src/run/steps/dispatch.ts";
import { doubtLease, heartbeat } from "../../../src/run/steps/settle.ts";
import { isWorker, WORKER_FIRST, WORKER_SHARD_FIRST, type AttemptInFlight } from "../../../src/run/leases/shard.ts";
import { groupSeqOf } from "../../../src/run/queue/slot.ts";
import type { EngineState } from "../../../src/run/state.ts";
import { CALL_SOCKET_AFTER_MS, EXECUTOR_LEASE_MS, LEASE_TTL_MS } from "../../../src/limits.ts";
import type { RunState } from "../state.ts";

type Leasing = Pick<RunState, "engine" | "workers" | "groupFollowed">;

/** The attempts in flight of a lane, or of the Worker of a group. */
export function leasesOf({ shards }: Pick<EngineState, "shards">, executor: number): AttemptInFlight[] {
  if (!isWorker(executor)) return [...(shards.get(executor)?.leases.values() ?? [])];
  const seq = executor - WORKER_FIRST;
  const found: AttemptInFlight[] = [];
  for (const { id, leases } of shards.values()) {
    if (id < WORKER_SHARD_FIRST) continue;
    for (const lease of leases.values())
      if (lease.slotId !== null && groupSeqOf(lease.slotId) === seq) found.push(lease);
  }
  return found;
}

/** Renews leases; a Worker that renews one is alive. Returns the attempts that are not in flight any more. */
export function renewLeases(run: Leasing, attemptIds: readonly string[], nowMs: number, termMs?: number): string[] {
  for (const attemptId of attemptIds) {
    const inFlight = run.engine.attempts.get(attemptId);
    if (inFlight === undefined || inFlight.shard.id < WORKER_SHARD_FIRST || inFlight.lease.slotId === null) continue;
    const seq = groupSeqOf(inFlight.lease.slotId);
    run.workers.seen(seq, nowMs);
    run.groupFollowed(seq, nowMs);
  }
  return heartbeat(run.engine, attemptIds, nowMs, termMs);
}

/** Lets what is granted to an executor that has a socket last until it has opened the next. */
export function holdGranted(
  { engine, presentExecutors }: Pick<RunState, "engine" | "presentExecutors">,
  assignments: readonly Assignment[],
): void {
  for (const { executor, lease } of assignments) {
    if (executor !== null && presentExecutors.has(executor))
      engine.setLeaseEnd(lease, lease.startedAtMs + EXECUTOR_LEASE_MS);
  }
}

/**
 * An executor names what it has, at a socket that it has opened. Returns those attempts that are not in flight any more, and
 * whether it lacks some of its leases: they end now.
 */
export function renewNamed(
  run: Leasing,
  { executor, holds }: { executor: number; holds: readonly string[] },
  nowMs: number,
): { lost: string[]; lacksSome: boolean } {
  const lost = renewLeases(run, holds, nowMs, EXECUTOR_LEASE_MS);
  const named = new Set(holds);
  let lacksSome = false;
  for (const lease of leasesOf(run.engine, executor)) {
    if (named.has(lease.attemptId)) continue;
    // The reply that grants it may still be on its way: then the executor names it the next time.
    const isYoung = nowMs < lease.startedAtMs + LEASE_TTL_MS;
    const endMs = isYoung ? Math.max(lease.expiresAtMs, lease.startedAtMs + EXECUTOR_LEASE_MS) : nowMs;
    run.engine.setLeaseEnd(lease, endMs);
    lacksSome ||= !isYoung;
  }
  return { lost, lacksSome };
}

/** An instance that wakes has found leases in the rows, and a socket of their executor, which was last heard of at `seenAtMs`. */
export function holdFound({ engine }: Pick<RunState, "engine">, executor: number, seenAtMs: number): void {
  for (const lease of leasesOf(engine, executor))
    engine.setLeaseEnd(lease, Math.max(seenAtMs, lease.startedAtMs) + EXECUTOR_LEASE_MS);
}

/**
 * An executor has ended: what it still holds is lost. Returns whether it held something. A lane of its number that was started
 * since has no socket for CALL_SOCKET_AFTER_MS: what is younger may be that lane's.
 */
export function endLeases({ engine }: Pick<RunState, "engine">, executor: number, nowMs: number): boolean {
  const held = leasesOf(engine, executor).filter(({ startedAtMs }) => nowMs >= startedAtMs + CALL_SOCKET_AFTER_MS);
  for (const lease of held) engine.setLeaseEnd(lease, nowMs);
  return held.length > 0;
}

/** The socket of an executor broke: it has the time of a reconnect to open another. */
export function doubtLeases({ engine }: Pick<RunState, "engine">, executor: number, nowMs: number): void {
  for (const { attemptId } of leasesOf(engine, executor)) doubtLease(engine, attemptId, nowMs);
}
