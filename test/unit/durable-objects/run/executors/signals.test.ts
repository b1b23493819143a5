/** Which lanes a turn signals: as many as the slots need that can start, and others once one of them is late. */
import { describe, expect, it } from "vitest";
import { LaneLives } from "../../../../../durable-objects/run/memory/lane-lives.ts";
import { PresentExecutors } from "../../../../../durable-objects/run/memory/present.ts";
import { executorSignals } from "../../../../../durable-objects/run/executors/signals.ts";
import { WaitingExecutors } from "../../../../../durable-objects/run/memory/waiting.ts";
import { GroupWorkers } from "../../../../../durable-objects/run/memory/workers.ts";
import { settle } from "../../../../../src/run/steps/settle.ts";
import { workerOf } from "../../../../../src/run/leases/shard.ts";
import { EXECUTOR_CALLS_MAX, LANE_LIFE_MS, SIGNALLED_CLAIM_MS } from "../../../../../src/limits.ts";
import { alike, success, TestEngine } from "../../../../support/engine.ts";

/** A run of some width with one group, whose lanes have a socket each and the attempts that are named, by lane. */
function makeRun({ attempts, slots, width }: { attempts: readonly number[]; slots: number; width: number }) {
  const engine = new TestEngine({ width });
  engine.open(alike(slots));
  engine.turn(attempts, 0);
  const clock = { nowMs: 0 };
  const run = {
    engine: engine.state,
    openGroups: new Map(),
    waitingExecutors: new WaitingExecutors(),
    workers: new GroupWorkers(),
    presentExecutors: new PresentExecutors(),
    laneLives: new LaneLives({ now: () => clock.nowMs, random: () => 0 }),
  };
  attempts.forEach((_, lane) => run.presentExecutors.opened(lane));
  const signalled = (nowMs: number, startable: number | null = 1): number[] =>
    [...executorSignals(run, startable, nowMs)].map(({ executor }) => executor);
  /** Ends attempts of a lane. */
  const end = (lane: number, count: number): void => {
    const leases = [...(engine.state.shards.get(lane)?.leases.keys() ?? [])].slice(0, count);
    for (const attemptId of leases) settle(engine.state, attemptId, success(), 1);
  };
  return { run, signalled, end, clock };
}

describe("lanes that wait at their sockets", () => {
  it("are signalled once each, as many as can take the slots that can start", () => {
    const { run, signalled, end } = makeRun({ attempts: [4, 4, 4], slots: 30, width: 12 });
    end(0, 3);
    for (const lane of [0, 1, 2]) run.presentExecutors.replied(lane, 2);
    expect(signalled(10)).toEqual([0, 1]);
    expect(signalled(11)).toEqual([]);
  });

  it("are signalled first where they are known to have room, and all others if those are too few", () => {
    const { run, signalled, end } = makeRun({ attempts: [4, 4, 4, 4], slots: 30, width: 16 });
    end(0, 2);
    run.presentExecutors.replied(2, 1);
    expect(signalled(10)).toEqual([2, 0, 1, 3]);
  });

  it("are replaced by others once they have claimed and have no room, although slots can start", () => {
    const { run, signalled, end } = makeRun({ attempts: [4, 4, 4], slots: 30, width: 12 });
    end(0, 1);
    for (const lane of [0, 1]) run.presentExecutors.replied(lane, 5);
    expect(signalled(10)).toEqual([0]);
    run.presentExecutors.claimed(0);
    run.presentExecutors.replied(0, 0);
    expect(signalled(11)).toEqual([1]);
  });

  it("are not signalled once their life has ended: others are", () => {
    const { run, signalled, end, clock } = makeRun({ attempts: [4, 4], slots: 30, width: 8 });
    end(0, 1);
    run.laneLives.mayClaim(0, true);
    clock.nowMs = LANE_LIFE_MS;
    for (const lane of [0, 1]) run.presentExecutors.replied(lane, 5);
    expect(signalled(10)).toEqual([1]);
  });

  it("count while they have been signalled and may claim, and are replaced once they are late", () => {
    const { run, signalled, end } = makeRun({ attempts: [4, 4, 4], slots: 30, width: 12 });
    end(0, 1);
    for (const lane of [0, 1, 2]) run.presentExecutors.replied(lane, 3);
    expect(signalled(10)).toEqual([0]);
    expect(signalled(9 + SIGNALLED_CLAIM_MS)).toEqual([]);
    expect(signalled(10 + SIGNALLED_CLAIM_MS)).toEqual([1]);
    run.presentExecutors.closed(1);
    expect(signalled(11 + SIGNALLED_CLAIM_MS)).toEqual([2]);
  });

  it("are not signalled while nothing can start, while they claim, or as full as they may be", () => {
    const { run, signalled, end } = makeRun({ attempts: [EXECUTOR_CALLS_MAX, 4], slots: 200, width: 68 });
    end(1, 1);
    expect(signalled(10, null)).toEqual([]);
    run.waitingExecutors.wait(1, { capacity: 1, waits: true, reply: () => undefined }, 10);
    expect(signalled(10)).toEqual([]);
  });

  it("are signalled again a while after they were refused, as one whose reply was lost: not in a loop", () => {
    const { run, signalled, end } = makeRun({ attempts: [4], slots: 30, width: 4 });
    end(0, 1);
    const told: number[] = [];
    for (let nowMs = 10; nowMs < 10 + 2 * SIGNALLED_CLAIM_MS; nowMs++) {
      for (const lane of signalled(nowMs)) {
        told.push(nowMs);
        run.presentExecutors.claimed(lane);
        run.presentExecutors.refused(lane, nowMs);
      }
    }
    expect(told).toEqual([10, 10 + SIGNALLED_CLAIM_MS]);
    expect(run.presentExecutors.nextLateMs(11)).toBe(10 + 2 * SIGNALLED_CLAIM_MS);
    run.presentExecutors.closed(0);
    expect(run.presentExecutors.nextLateMs(11)).toBeNull();
  });

  it("leave the slots of a group to its Worker, until it needs them", () => {
    const { run, signalled, end } = makeRun({ attempts: [4], slots: 30, width: 4 });
    end(0, 1);
    run.presentExecutors.opened(workerOf(1));
    run.openGroups.set(1, {});
    run.workers.claimed(1, { covers: null }, 0);
    expect(signalled(10)).toEqual([workerOf(1)]);
    run.workers.claimed(1, { covers: 6 }, 0);
    expect(signalled(10)).toEqual([0]);
  });
});
