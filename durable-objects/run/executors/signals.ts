/** What a turn sends to the executors that wait at sockets. */
import { isWorker, WORKER_FIRST } from "../../../src/run/leases/shard.ts";
import { EXECUTOR_CALLS_MAX } from "../../../src/limits.ts";
import type { SocketSignal } from "../../../src/objects/methods/sockets.ts";
import type { RunState } from "../state.ts";

type Signalling = Pick<RunState, "engine" | "openGroups" | "waitingExecutors" | "workers" | "presentExecutors">;

/**
 * Whom a turn signals, and what. `startable`: the group of a slot that could start if an executor had room; null = none
 * could.
 */
export function* executorSignals(
  run: Signalling,
  startable: number | null,
): Generator<{ executor: number; signal: SocketSignal }> {
  const { presentExecutors: present, waitingExecutors } = run;
  for (const executor of present.all()) {
    if (waitingExecutors.has(executor)) continue;
    if (isWorker(executor) && mustClaim(run, executor)) {
      if (present.notes(executor, "changed")) yield { executor, signal: { type: "changed" } };
    } else if (startable !== null && mayTake(run, executor, startable) && present.notes(executor, "slots")) {
      yield { executor, signal: { type: "slots" } };
    }
  }
}

/** Whether the next reply to the Worker of a group says something else than attempts to make. */
function mustClaim({ engine, openGroups, workers }: Signalling, worker: number): boolean {
  const seq = worker - WORKER_FIRST;
  if (!openGroups.has(seq) || engine.givenUp.hasOfWorker(worker)) return true;
  // Others have ended slots that it shows.
  const shown = workers.of(seq)?.shown;
  return shown !== undefined && (engine.groups.get(seq)?.ended.length ?? 0) > shown.position;
}

/** Whether an executor could take a slot of a group: its Worker, and lanes that join it or serve it alone. */
function mayTake({ engine, workers }: Signalling, executor: number, groupSeq: number): boolean {
  if (isWorker(executor)) return executor - WORKER_FIRST === groupSeq;
  const worker = workers.of(groupSeq);
  const isForLanes = worker === undefined || worker.covers !== null;
  return isForLanes && (engine.shards.get(executor)?.leases.size ?? 0) < EXECUTOR_CALLS_MAX;
}
