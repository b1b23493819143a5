/** How many lanes a run needs, whether a lane with room should wait, and how long a lane collects answers. */
import { startableGroup } from "../../../src/run/steps/dispatch.ts";
import { hedgeableGroup } from "../../../src/run/steps/start-hedges.ts";
import { sleepsAtGates } from "../../../src/run/steps/next-ready.ts";
import { DIRECT_SHARD_FIRST } from "../../../src/run/leases/shard.ts";
import type { EngineState } from "../../../src/run/state.ts";
import { ATTEMPTS_PER_BATCHING_MS, BATCHING_DELAY_MS_MAX, EXECUTOR_CALLS_MAX } from "../../../src/limits.ts";
import type { RunState } from "../state.ts";

/** What decides on lanes. */
type Executed = Pick<
  RunState,
  "engine" | "openGroups" | "waitingExecutors" | "presentExecutors" | "workers" | "laneLives" | "laneStarts"
>;

/**
 * Whether a lane with room should wait for work. If lanes hold every permit, or every group with queued slots is at its
 * own limit, the next slot can only start when a lane settles, and that lane has room by then. The same is true of a
 * group's Worker and the slots of its group, which are the Worker's alone until it needs lanes; but what its end frees for
 * another group is for lanes. A permit of a retired lane goes to another lane, which therefore waits. None waits for what may
 * start only after the run has slept.
 */
export function lanesMayStartMore(
  { engine, openGroups, workers, laneLives }: Pick<Executed, "engine" | "openGroups" | "workers" | "laneLives">,
  nowMs: number,
): boolean {
  if (sleepsAtGates(engine, nowMs)) return false;
  // Every turn comes here, twice: nothing may visit each lane.
  const { lanes, workers: byWorkers } = engine.inFlightBy;
  let heldByLanes = lanes;
  for (const lane of laneLives.retired()) heldByLanes -= attemptsOf(engine, lane);
  if (heldByLanes >= engine.width) return false;
  const held = heldByLanes + byWorkers;
  for (const seq of openGroups.keys()) {
    const worker = workers.of(seq);
    const isForLanes = worker === undefined || (worker.covers !== null && held < engine.width);
    if (isForLanes && hasRoom(engine, seq)) return true;
  }
  return false;
}

/** Whether the Worker of a group should claim more: slots are queued, and not all permits are held by executors of slots. */
export function workerMayStartMore({ engine }: Pick<Executed, "engine">, seq: number): boolean {
  return hasRoom(engine, seq) && engine.attempts.size - engine.inFlightBy.calls < engine.width;
}

/**
 * Whether nothing but the end of a group waits for what its Worker ends: nothing is queued that could start then, in any group, and no slot
 * or rule of the group follows from the end of another slot.
 */
export function awaitsEnd({ engine, openGroups }: Pick<Executed, "engine" | "openGroups">, seq: number): boolean {
  const { queue, calls, groups } = engine;
  const group = groups.get(seq);
  if (group === undefined || openGroups.size !== 1 || queue.readyCount + queue.delayedCount + calls.size > 0)
    return false;
  return group.graph === null && group.header.rules === undefined && !group.mayGoOn;
}

/** A slot that runs may get a second attempt. */
function hasRoom({ groups, hedges }: EngineState, seq: number): boolean {
  const group = groups.get(seq);
  if (group === undefined || !group.hasRoom) return false;
  return group.startableSlots > 0 || hedges.hasOpenOf(seq);
}

/**
 * Lanes that should claim work and do not wait here, by number: lanes to start, or to make claim once more. One that has calls and
 * waits at its socket is signalled when it should claim.
 */
export function missingLanes({
  engine,
  openGroups,
  waitingExecutors,
  presentExecutors,
  workers,
  laneLives,
  laneStarts,
}: Executed): number[] {
  let slots = 0;
  for (const seq of openGroups.keys()) {
    const group = engine.groups.get(seq);
    if (group === undefined) continue;
    const wanted = Math.min(group.header.concurrency, engine.width, group.startableSlots + group.counts.running);
    const worker = workers.of(seq);
    // A Worker serves its group; what it cannot hold at once is for lanes.
    slots += worker === undefined ? wanted : Math.max(0, wanted - (worker.covers ?? wanted));
  }
  const needed = Math.ceil(Math.min(slots, engine.width) / laneStarts.reach);
  const leasesOf = (lane: number): number => attemptsOf(engine, lane);
  const lanes = laneLives.numbers(needed, (lane) => leasesOf(lane) > 0);
  const rests = (lane: number): boolean => leasesOf(lane) > 0 && isAtSocket(presentExecutors, lane);
  return lanes.filter((lane) => !waitingExecutors.has(lane) && !rests(lane) && leasesOf(lane) < EXECUTOR_CALLS_MAX);
}

/**
 * The lanes that an alarm starts. An alarm that fires for something else starts none unless a slot could start: hundreds of lanes would
 * wake, claim and find nothing while the budget or a gate lets few calls through.
 */
export function lanesToStart(run: Executed & Pick<RunState, "hasGroupWork">, nowMs: number): number[] {
  const isDue = run.laneStarts.takeDue();
  if (!run.hasGroupWork) return [];
  return isDue || startableOf(run, nowMs) !== null ? missingLanes(run) : [];
}

/** The group of a slot, or of a second attempt, that could start if an executor had room; null = none could. */
export function startableOf(
  { engine, hasGroupWork }: Pick<RunState, "engine" | "hasGroupWork">,
  nowMs: number,
): number | null {
  return hasGroupWork ? (hedgeableGroup(engine, nowMs) ?? startableGroup(engine, nowMs)) : null;
}

/**
 * Whether a lane is known to wait at its socket, or to claim there once it has room. One that had room, or may have had, and has not
 * claimed since it was signalled may have ended without a word.
 */
function isAtSocket(present: Executed["presentExecutors"], lane: number): boolean {
  return present.has(lane) && !(present.isSignalled(lane) && present.roomOf(lane) !== 0);
}

/**
 * When lanes must be started although no group is opened: slots of this group, which are theirs, could start, and no lane with
 * room is there. A lane without calls ends when it would have to wait; one that holds as many as its headers let it begin claims
 * no more until some have come. null = a lane has room, none is needed, or those that were started last may be on their way.
 */
export function lanesDueMs(run: Executed, startable: number, nowMs: number): number | null {
  const worker = run.workers.of(startable);
  if (worker !== undefined && worker.covers === null) return null;
  // One that is late or was refused is full, whatever others reach, or has ended without a word; one whose life has ended claims no more.
  const mayClaim = (lane: number): boolean =>
    attemptsOf(run.engine, lane) < run.laneStarts.reach &&
    !run.presentExecutors.isLate(lane, nowMs) &&
    !run.presentExecutors.rests(lane, nowMs) &&
    !run.laneLives.isRetired(lane);
  let isAnyThere = false;
  for (const lane of lanesThere(run)) {
    if (mayClaim(lane)) return null;
    isAnyThere = true;
  }
  const dueMs = run.laneStarts.nextMs(nowMs);
  // While lanes are full, no turn may come for long that looks again.
  if (dueMs > nowMs && !isAnyThere) return null;
  // What the Worker of a group covers needs none.
  return missingLanes(run).length > 0 ? dueMs : null;
}

/** The lanes that wait for work, here or at a socket, and those that have calls. One may come twice. */
function* lanesThere({
  engine,
  waitingExecutors,
  presentExecutors,
}: Pick<RunState, "engine" | "waitingExecutors" | "presentExecutors">): Generator<number> {
  for (const { id, leases } of engine.shards.values()) if (id < DIRECT_SHARD_FIRST && leases.size > 0) yield id;
  yield* presentExecutors.lanes();
  yield* waitingExecutors.lanes();
}

/**
 * How long a lane should collect answers before it settles, ms. A settlement costs the run object as much as several slots
 * in it, and a wide run has many lanes that settle: a few milliseconds are nothing to an LLM call and halve that cost.
 */
export function batchingDelayMs(attemptsInFlight: number): number {
  return Math.min(BATCHING_DELAY_MS_MAX, Math.floor(attemptsInFlight / ATTEMPTS_PER_BATCHING_MS));
}

function attemptsOf({ shards }: EngineState, lane: number): number {
  return shards.get(lane)?.leases.size ?? 0;
}
