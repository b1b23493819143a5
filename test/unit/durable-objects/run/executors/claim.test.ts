import { describe, expect, it } from "vitest";
import { claim } from "../../../../../durable-objects/run/executors/claim.ts";
import { LaneLives } from "../../../../../durable-objects/run/memory/lane-lives.ts";
import { LaneStarts } from "../../../../../durable-objects/run/memory/lane-starts.ts";
import { PresentExecutors } from "../../../../../durable-objects/run/memory/present.ts";
import { NOTHING_QUEUED, WaitingExecutors } from "../../../../../durable-objects/run/memory/waiting.ts";
import { GroupWorkers } from "../../../../../durable-objects/run/memory/workers.ts";
import { LANE_LIFE_MS, SIGNALLED_CLAIM_MS } from "../../../../../src/limits.ts";
import type { ClaimReply } from "../../../../../src/objects/methods/groups.ts";
import { alike, TestEngine } from "../../../../support/engine.ts";

/** A run with one lane, which has a socket and four attempts, and the replies to its claims. */
function makeRun() {
  const engine = new TestEngine({ width: 8 });
  engine.open(alike(20));
  engine.turn([4], 0);
  const clock = { nowMs: 0 };
  const run = {
    engine: engine.state,
    waitingExecutors: new WaitingExecutors(),
    presentExecutors: new PresentExecutors(),
    workers: new GroupWorkers(),
    laneLives: new LaneLives({ now: () => clock.nowMs, random: () => 0 }),
    laneStarts: new LaneStarts(),
    groupFollowed: () => undefined,
  };
  run.presentExecutors.opened(0);
  const replies: ClaimReply[] = [];
  const claims = (capacity: number, waits: boolean): void =>
    claim(
      run,
      { executor: 0, settlements: [], capacity, waits, worker: null, reach: null },
      (reply) => replies.push(reply),
      clock.nowMs,
    );
  return { run, clock, replies, claims };
}

describe("a lane at its socket", () => {
  it("is known to have no room once it is refused because its leases fill it: others are signalled first", () => {
    const { run, replies, claims } = makeRun();
    run.presentExecutors.replied(0, 2);
    claims(4, true);
    expect([replies, run.presentExecutors.roomOf(0)]).toEqual([[NOTHING_QUEUED], 0]);
    const restMs = SIGNALLED_CLAIM_MS;
    expect([restMs - 1, restMs].map((nowMs) => run.presentExecutors.rests(0, nowMs))).toEqual([true, false]);
  });

  it("is known to have no room once it is refused because its life has ended", () => {
    const { run, clock, replies, claims } = makeRun();
    claims(6, true);
    expect([replies, run.presentExecutors.roomOf(0)]).toEqual([[], null]);
    clock.nowMs = LANE_LIFE_MS;
    claims(6, true);
    expect(replies).toContainEqual(NOTHING_QUEUED);
    expect(run.presentExecutors.roomOf(0)).toBe(0);
  });
});
