import { beforeEach, describe, expect, it } from "vitest";
import { awaitsEnd, lanesToStart, missingLanes } from "../../../../../durable-objects/run/executors/lanes.ts";
import { LaneLives } from "../../../../../durable-objects/run/memory/lane-lives.ts";
import { LaneStarts } from "../../../../../durable-objects/run/memory/lane-starts.ts";
import { PresentExecutors } from "../../../../../durable-objects/run/memory/present.ts";
import { WaitingExecutors } from "../../../../../durable-objects/run/memory/waiting.ts";
import { GroupWorkers } from "../../../../../durable-objects/run/memory/workers.ts";
import type { StoredGroup } from "../../../../../durable-objects/run/store/records.ts";
import { alike, TestEngine } from "../../../../support/engine.ts";

const NOW = 1_000;
/** How many calls a lane reached when it was full. */
const REACH = 6;

let engine: TestEngine;
let groups: Map<number, StoredGroup>;

/** What of a run decides on its lanes: one whose lanes were full with `REACH` calls, all of which an earlier alarm has started. */
function runOf({ state }: TestEngine) {
  const laneStarts = new LaneStarts();
  laneStarts.fullAt(REACH);
  laneStarts.takeDue();
  return {
    engine: state,
    openGroups: groups,
    hasGroupWork: groups.size > 0,
    waitingExecutors: new WaitingExecutors(),
    presentExecutors: new PresentExecutors(),
    workers: new GroupWorkers(),
    laneLives: new LaneLives({ now: () => NOW, random: () => 0 }),
    laneStarts,
  };
}

function open(slots: number): void {
  const { header } = engine.open(alike(slots));
  const request = { defaultsJson: "{}", openKey: "key", detach: true, errorStyle: "bracket", named: false } as const;
  groups.set(header.seq, { header, sealed: true, ...request });
}

describe("a group", () => {
  const OWN = 1;

  beforeEach(() => {
    groups = new Map();
    engine = new TestEngine();
    open(4);
  });

  it("has nothing but its end wait for its answers once all of its slots run, and no other group is open", () => {
    engine.turn([3], NOW);
    expect(awaitsEnd(runOf(engine), OWN)).toBe(false);
    engine.turn([1], NOW);
    expect([awaitsEnd(runOf(engine), OWN), awaitsEnd(runOf(engine), OWN + 1)]).toEqual([true, false]);
    engine.call("a", NOW);
    expect(awaitsEnd(runOf(engine), OWN)).toBe(false);
    engine.startAll(NOW);
    expect(awaitsEnd(runOf(engine), OWN)).toBe(true);
    open(1);
    engine.startAll(NOW);
    expect(awaitsEnd(runOf(engine), OWN)).toBe(false);
  });

  it("has its other slots wait for answers that a rule looks at, or after which a slot may go on", () => {
    engine.startAll(NOW);
    const group = engine.state.groups.get(OWN);
    expect([group?.mayGoOn, awaitsEnd(runOf(engine), OWN)]).toEqual([false, true]);
    const checked = new TestEngine();
    checked.open([{ schemaRetries: 1 }]);
    checked.startAll(NOW);
    expect(awaitsEnd({ engine: checked.state, openGroups: groups }, OWN)).toBe(false);
    const ruled = new TestEngine();
    ruled.open(alike(1), { rules: { atLeast: 1 } });
    ruled.startAll(NOW);
    expect(awaitsEnd({ engine: ruled.state, openGroups: groups }, OWN)).toBe(false);
  });
});

describe("an alarm", () => {
  /** What a slot reserves, nano-USD. */
  function reserved(): number {
    const other = new TestEngine();
    other.open(alike(1));
    return other.turn([1], NOW).assignments[0]?.lease.amounts.usd ?? 0;
  }

  beforeEach(() => {
    // The budget pays for two calls at a time; the others wait for what these leave.
    groups = new Map();
    engine = new TestEngine({ limits: { usd: 2.5 * reserved() } });
    open(20);
    expect(engine.turn([REACH], NOW).assignments).toHaveLength(2);
  });

  it("starts no lane while nothing that is queued could start", () => {
    expect(missingLanes(runOf(engine))).toEqual([0, 1, 2, 3]);
    expect(lanesToStart(runOf(engine), NOW)).toEqual([]);
  });

  it("starts lanes once something could", () => {
    engine.state.ledger.setLimits({ ...engine.state.ledger.limits, usd: 10 * reserved() });
    expect(lanesToStart(runOf(engine), NOW)).toEqual([0, 1, 2, 3]);
  });

  it("starts those that a turn has found due, once, and the first of an instance starts what is missing", () => {
    const run = runOf(engine);
    run.laneStarts.due();
    expect([lanesToStart(run, NOW), lanesToStart(run, NOW)]).toEqual([[0, 1, 2, 3], []]);
    const laneStarts = new LaneStarts();
    expect([lanesToStart({ ...run, laneStarts }, NOW), lanesToStart({ ...run, laneStarts }, NOW)]).toEqual([[0], []]);
  });

  it("must fire once for what a turn needs, and starts it", () => {
    const run = runOf(engine);
    expect(run.laneStarts.takeNeed()).toBe(false);
    run.laneStarts.need();
    run.laneStarts.due();
    expect([run.laneStarts.takeNeed(), run.laneStarts.takeNeed()]).toEqual([true, false]);
    expect([lanesToStart(run, NOW), lanesToStart(run, NOW)]).toEqual([[0, 1, 2, 3], []]);
  });

  it("starts none while no group is open, and what was due then is not due later", () => {
    const run = runOf(engine);
    run.laneStarts.due();
    expect(lanesToStart({ ...run, hasGroupWork: false }, NOW)).toEqual([]);
    expect(lanesToStart(run, NOW)).toEqual([]);
  });
});
