/** Lanes that wait at their sockets: which of them the run starts once more, and which keep it from starting others. */
import { describe, expect, it } from "vitest";
import { lanesDueMs, missingLanes } from "../../../../../durable-objects/run/executors/lanes.ts";
import { LaneLives } from "../../../../../durable-objects/run/memory/lane-lives.ts";
import { LaneStarts } from "../../../../../durable-objects/run/memory/lane-starts.ts";
import { PresentExecutors } from "../../../../../durable-objects/run/memory/present.ts";
import { WaitingExecutors } from "../../../../../durable-objects/run/memory/waiting.ts";
import { GroupWorkers } from "../../../../../durable-objects/run/memory/workers.ts";
import { settle } from "../../../../../src/run/steps/settle.ts";
import { LANE_LIFE_MS, LANES_START_MS, SIGNALLED_CLAIM_MS } from "../../../../../src/limits.ts";
import { alike, success, TestEngine } from "../../../../support/engine.ts";

const GROUP = 1;
const REACH = 10;

/** A run with one group, more slots than its lanes hold, and lanes with a socket and the attempts that are named, by lane. */
function makeRun(attempts: readonly number[], width = 3 * REACH) {
  const engine = new TestEngine({ width });
  engine.open(alike(2 * width));
  engine.turn(attempts, 0);
  const clock = { nowMs: 0 };
  const run = {
    engine: engine.state,
    openGroups: new Map(),
    waitingExecutors: new WaitingExecutors(),
    workers: new GroupWorkers(),
    presentExecutors: new PresentExecutors(),
    laneLives: new LaneLives({ now: () => clock.nowMs, random: () => 0 }),
    laneStarts: new LaneStarts(),
  };
  run.openGroups.set(GROUP, {});
  run.laneStarts.fullAt(REACH);
  for (const lane of attempts.keys()) {
    run.laneLives.mayClaim(lane, true);
    run.presentExecutors.opened(lane);
  }
  return { run, clock };
}

describe("lanes that are started", () => {
  it("are not those that wait at their sockets with calls", () => {
    const { run } = makeRun([2, 2]);
    run.presentExecutors.replied(0, 3);
    expect(missingLanes(run)).toEqual([2]);
    run.presentExecutors.closed(1);
    expect(missingLanes(run)).toEqual([1, 2]);
  });

  it("are those at a socket that have no calls: they are about to end", () => {
    const { run } = makeRun([2, 2, 2]);
    for (const attemptId of [...(run.engine.shards.get(1)?.leases.keys() ?? [])])
      settle(run.engine, attemptId, success(), 1);
    expect(missingLanes(run)).toEqual([1]);
  });

  it("are those that were signalled, had room or may have had, and have not claimed; not those that were full", () => {
    const { run } = makeRun([2, 2, 2]);
    run.presentExecutors.replied(0, 3);
    run.presentExecutors.replied(1, 0);
    for (const lane of [0, 1, 2]) run.presentExecutors.notes(lane, "slots", 0);
    expect(missingLanes(run)).toEqual([0, 2]);
    run.presentExecutors.claimed(0);
    expect(missingLanes(run)).toEqual([2]);
  });
});

describe("others are started", () => {
  const signalledMs = 10 * LANES_START_MS;
  const lateMs = signalledMs + SIGNALLED_CLAIM_MS;

  it("not while a lane below its reach may still claim, and at once when it is late, whatever room it had", () => {
    for (const room of [3, 0, null]) {
      const { run } = makeRun([2]);
      if (room !== null) run.presentExecutors.replied(0, room);
      expect(lanesDueMs(run, GROUP, signalledMs)).toBeNull();
      run.presentExecutors.notes(0, "slots", signalledMs);
      expect(lanesDueMs(run, GROUP, lateMs - 1)).toBeNull();
      expect(lanesDueMs(run, GROUP, lateMs)).toBe(lateMs);
      run.laneStarts.started(signalledMs);
      expect(lanesDueMs(run, GROUP, lateMs)).toBe(signalledMs + LANES_START_MS);
    }
  });

  it("although a lane whose life has ended waits at its socket with few calls", () => {
    const { run, clock } = makeRun([2]);
    expect(lanesDueMs(run, GROUP, LANE_LIFE_MS)).toBeNull();
    clock.nowMs = LANE_LIFE_MS;
    expect(lanesDueMs(run, GROUP, LANE_LIFE_MS)).toBe(LANE_LIFE_MS);
    expect(missingLanes(run)).toEqual([1, 2, 3]);
  });
});
