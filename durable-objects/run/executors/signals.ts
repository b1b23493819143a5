/** What a turn sends to the executors that wait at sockets. */
import { startableSlots } from "../../../src/run/steps/dispatch.ts";
import { WORKER_FIRST, workerOf } from "../../../src/run/leases/shard.ts";
import { EXECUTOR_CALLS_MAX } from "../../../src/limits.ts";
import type { SocketSignal } from "../../../src/objects/methods/sockets.ts";
import type { RunState } from "../state.ts";

type Signalling = Pick<
  RunState,
  "engine" | "openGroups" | "waitingExecutors" | "workers" | "presentExecutors" | "laneLives"
>;

/**
 * Whom a turn signals, and what. `startable`: the group of a slot that could start if an executor had room; null = none
 * could.
 */
export function* executorSignals(
  run: Signalling,
  startable: number | null,
  nowMs: number,
): Generator<{ executor: number; signal: SocketSignal }> {
  const { presentExecutors: present, waitingExecutors } = run;
  for (const executor of present.workers()) {
    if (waitingExecutors.has(executor)) continue;
    if (mustClaim(run, executor)) {
      if (present.notes(executor, "changed", nowMs)) yield { executor, signal: { type: "changed" } };
    } else if (startable !== null && executor === workerOf(startable)) {
      if (present.notes(executor, "slots", nowMs)) yield { executor, signal: { type: "slots" } };
    }
  }
  if (startable === null || !isForLanes(run, startable)) return;
  const lanes = [...present.lanes()].filter((lane) => !waitingExecutors.has(lane) && mayTake(run, lane, nowMs));
  for (const executor of enough(run, lanes, nowMs)) {
    if (present.notes(executor, "slots", nowMs)) yield { executor, signal: { type: "slots" } };
  }
}

/**
 * As many lanes as the slots need that can start: each that is signalled claims, and a claim costs a turn. Those that are known to
 * have room come first, and all others only if these are too few. A lane that was signalled counts until it claims or is late.
 */
function* enough(run: Signalling, lanes: readonly number[], nowMs: number): Generator<number> {
  const { presentExecutors: present, engine } = run;
  const quiet = lanes.filter((lane) => !present.isSignalled(lane));
  if (quiet.length === 0) return;
  const startable = startableSlots(engine, (groupSeq) => isForLanes(run, groupSeq), nowMs);
  // The second attempt of a slot that runs is not counted.
  let slots = Math.max(1, startable);
  for (const lane of lanes) if (present.isSignalled(lane) && !present.isLate(lane, nowMs)) slots -= roomOf(run, lane);
  for (const lane of quiet) {
    if (slots <= 0) return;
    const room = roomOf(run, lane);
    slots -= room;
    if (room > 0) yield lane;
  }
  // Headers that came since may have made room in the others.
  if (slots > 0) for (const lane of quiet) if (roomOf(run, lane) === 0) yield lane;
}

/** How many attempts a lane at its socket has room for, as far as the run knows. One without attempts is about to end. */
function roomOf({ engine, presentExecutors }: Signalling, lane: number): number {
  const attempts = engine.shards.get(lane)?.leases.size ?? 0;
  return attempts === 0 ? 0 : (presentExecutors.roomOf(lane) ?? 0);
}

/** Whether the next reply to the Worker of a group says something else than attempts to make. */
function mustClaim({ engine, openGroups, workers }: Signalling, worker: number): boolean {
  const seq = worker - WORKER_FIRST;
  if (!openGroups.has(seq) || engine.givenUp.hasOfWorker(worker)) return true;
  // Others have ended slots that it shows.
  const shown = workers.of(seq)?.shown;
  return shown !== undefined && (engine.groups.get(seq)?.ended.length ?? 0) > shown.position;
}

/** Whether a lane could take a slot. One whose life has ended would be refused, again and again. */
function mayTake({ laneLives, presentExecutors, engine }: Signalling, lane: number, nowMs: number): boolean {
  if (laneLives.isRetired(lane) || presentExecutors.rests(lane, nowMs)) return false;
  return (engine.shards.get(lane)?.leases.size ?? 0) < EXECUTOR_CALLS_MAX;
}

/** Whether lanes join the Worker of a group, or serve it alone. */
function isForLanes({ workers }: Signalling, groupSeq: number): boolean {
  const worker = workers.of(groupSeq);
  return worker === undefined || worker.covers !== null;
}
