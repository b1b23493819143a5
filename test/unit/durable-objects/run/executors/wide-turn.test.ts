/** What a turn looks at in a wide run: as much as in a narrow one, so that a run as wide as it may be settles as fast. */
import { describe, expect, it, vi } from "vitest";
import { lanesMayStartMore, workerMayStartMore } from "../../../../../durable-objects/run/executors/lanes.ts";
import { executorSignals } from "../../../../../durable-objects/run/executors/signals.ts";
import { LaneLives } from "../../../../../durable-objects/run/memory/lane-lives.ts";
import { PresentExecutors } from "../../../../../durable-objects/run/memory/present.ts";
import { WaitingExecutors } from "../../../../../durable-objects/run/memory/waiting.ts";
import { GroupWorkers } from "../../../../../durable-objects/run/memory/workers.ts";
import { expireLeases, settle } from "../../../../../src/run/steps/settle.ts";
import { LANE_LIFE_MS, PARALLEL_MAX } from "../../../../../src/limits.ts";
import { alike, makeTarget, success, TestEngine } from "../../../../support/engine.ts";

const GROUP = 1;
const CALLS_EACH = 16;

/** A run that is full: each lane has a socket and its calls, and more slots are queued. `visits` counts what is looked at. */
function makeRun(width: number) {
  const engine = new TestEngine({ width, targets: [makeTarget({ maxInFlight: width })] });
  const { state } = engine;
  const lanes = width / CALLS_EACH;
  engine.open(alike(width + 100), { concurrency: width + 1 });
  const offered = Array.from({ length: lanes }, () => CALLS_EACH);
  do engine.turn(offered, 0);
  while (state.turnShare.renew());
  // What the first end of an instance reads of its rows, it reads once.
  const [first] = state.attempts.keys();
  settle(state, first ?? "", success(), 0);
  engine.turn([1], 0);
  expect(state.attempts.size).toBe(width);
  const visits = { leases: 0, shards: 0, lanes: 0 };
  const clock = { nowMs: 0 };
  const run = {
    engine: state,
    openGroups: new Map(),
    waitingExecutors: new WaitingExecutors(),
    workers: new GroupWorkers(),
    presentExecutors: new PresentExecutors(),
    laneLives: new LaneLives({
      now: () => {
        visits.lanes += 1;
        return clock.nowMs;
      },
      random: () => 0,
    }),
  };
  run.openGroups.set(GROUP, {});
  for (let lane = 0; lane < lanes; lane++) {
    run.laneLives.mayClaim(lane, true);
    run.presentExecutors.opened(lane);
  }
  const ask = run.waitingExecutors.has.bind(run.waitingExecutors);
  run.waitingExecutors.has = (executor) => {
    visits.lanes += 1;
    return ask(executor);
  };
  const values = state.shards.values.bind(state.shards);
  vi.spyOn(state.shards, "values").mockImplementation(function* () {
    for (const shard of values()) {
      visits.shards += 1;
      yield shard;
    }
    return undefined;
  });
  for (const { lease } of state.attempts.values()) countReads(lease, visits);
  Object.assign(visits, { leases: 0, shards: 0, lanes: 0 });
  return { run, visits, clock };
}

function countReads(lease: object, visits: { leases: number }): void {
  let endMs: unknown = Reflect.get(lease, "expiresAtMs");
  Object.defineProperty(lease, "expiresAtMs", {
    get: () => {
      visits.leases += 1;
      return endMs;
    },
    set: (to: unknown) => {
      endMs = to;
    },
  });
}

/** What one turn looks at after four attempts of a lane have ended. */
function visitsOfTurn(width: number) {
  const { run, visits } = makeRun(width);
  const { engine } = run;
  const ended = [...(engine.shards.get(0)?.leases.keys() ?? [])].slice(0, 4);
  for (const attemptId of ended) settle(engine, attemptId, success(), 1);
  lanesMayStartMore(run, 1);
  workerMayStartMore(run, GROUP);
  lanesMayStartMore(run, 1);
  expect([...executorSignals(run, null, 1)]).toEqual([]);
  expect([engine.nextLeaseEndMs(), expireLeases(engine, 1)]).not.toContain(null);
  return visits;
}

describe("a turn", () => {
  it("looks at as little in a run of 4,096 attempts as in one of 64", () => {
    const wide = visitsOfTurn(PARALLEL_MAX);
    expect(wide).toEqual(visitsOfTurn(64));
    expect(wide.leases + wide.shards + wide.lanes).toBeLessThan(16);
  });
});

describe("lanes of a full run", () => {
  it("wait for work once some have retired: what these end is for others", () => {
    const { run, clock, visits } = makeRun(64);
    expect(lanesMayStartMore(run, 1)).toBe(false);
    clock.nowMs = LANE_LIFE_MS / 2;
    expect(lanesMayStartMore(run, clock.nowMs)).toBe(true);
    // They have rested, and begin new lives.
    for (let lane = 0; lane < 4; lane++) run.laneLives.mayClaim(lane, false);
    expect(lanesMayStartMore(run, clock.nowMs)).toBe(false);
    expect(visits.shards).toBe(0);
  });
});
