import { describe, expect, it } from "vitest";
import { endCall } from "../../../../src/run/steps/end-call.ts";
import { cancelGroup } from "../../../../src/run/steps/cancel.ts";
import { expireQueued } from "../../../../src/run/steps/deadline.ts";
import { dispatch, startableGroup, startableSlots } from "../../../../src/run/steps/dispatch.ts";
import { nextReadyMs } from "../../../../src/run/steps/next-ready.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { WORKER_SHARD_FIRST, WORKER_SHARD_LEASES_MAX, workerOf } from "../../../../src/run/leases/shard.ts";
import { groupSeqOf, slotIdOf } from "../../../../src/run/queue/slot.ts";
import type { Reason } from "../../../../src/errors.ts";
import { CLAIM_BYTES_MAX, LEASE_TTL_MS } from "../../../../src/limits.ts";
import { alike, failure, makeTarget, nameOf, seeded, success, TestEngine } from "../../../support/engine.ts";

const names = (dispatched: ReturnType<TestEngine["turn"]>): string[] => dispatched.assignments.map(nameOf);

const GONE: Reason = { reason: "cancelled", message: "by the test" };

describe("the group of a slot that only lacks an executor", () => {
  it("is named while a permit is free, and not while the run is paused, at its width, or has nothing queued", () => {
    const engine = new TestEngine({ width: 2 });
    expect(startableGroup(engine.state, 0)).toBeNull();
    engine.open(alike(3));
    expect(startableGroup(engine.state, 0)).toBe(1);
    engine.state.setPaused(true);
    expect(startableGroup(engine.state, 0)).toBeNull();
    engine.state.setPaused(false);
    expect(engine.startAll(0)).toEqual(["1:0", "1:1"]);
    expect(startableGroup(engine.state, 0)).toBeNull();
    settle(engine.state, `${65_536}.1`, success(), 10);
    expect(startableGroup(engine.state, 10)).toBe(1);
  });

  it("is not the group of slots that their upstream or their group's concurrency keeps waiting, nor single calls", () => {
    const engine = new TestEngine({ targets: [makeTarget({ upstream: "narrow", maxInFlight: 1 }), makeTarget()] });
    engine.call("c", 0, { modelIndex: 0 });
    expect(startableGroup(engine.state, 0)).toBeNull();
    expect(engine.startAll(0)).toEqual(["c"]);
    engine.open([{ modelIndex: 0 }]);
    expect(startableGroup(engine.state, 0)).toBeNull();
    engine.open([{ modelIndex: 1 }, { modelIndex: 1 }], { concurrency: 1 });
    expect(startableGroup(engine.state, 0)).toBe(2);
    engine.startAll(0);
    expect(startableGroup(engine.state, 0)).toBeNull();
  });

  it("is not the group of a slot that waits for money", () => {
    const engine = new TestEngine({ limits: { calls: 1 } });
    engine.open(alike(2));
    expect(startableGroup(engine.state, 0)).toBe(1);
    engine.startAll(0);
    expect(startableGroup(engine.state, 0)).toBeNull();
  });
});

describe("the number of slots that only lack an executor", () => {
  const all = (): boolean => true;

  it("is what is queued, up to the free permits, and 0 while the run is paused", () => {
    const engine = new TestEngine({ width: 4 });
    expect(startableSlots(engine.state, all, 0)).toBe(0);
    engine.open(alike(3));
    expect(startableSlots(engine.state, all, 0)).toBe(3);
    engine.open(alike(3));
    expect(startableSlots(engine.state, all, 0)).toBe(4);
    engine.turn([1], 0);
    expect(startableSlots(engine.state, all, 0)).toBe(3);
    engine.state.setPaused(true);
    expect(startableSlots(engine.state, all, 0)).toBe(0);
  });

  it("counts no single calls, no other groups, and what a group's concurrency and an upstream let start", () => {
    const engine = new TestEngine({ targets: [makeTarget({ upstream: "narrow", maxInFlight: 3 }), makeTarget()] });
    engine.call("c", 0, { modelIndex: 1 });
    engine.open(alike(9, { modelIndex: 0 }));
    expect(startableSlots(engine.state, all, 0)).toBe(3);
    engine.open(alike(9, { modelIndex: 1 }), { concurrency: 2 });
    expect(startableSlots(engine.state, all, 0)).toBe(5);
    expect(startableSlots(engine.state, (groupSeq) => groupSeq === 2, 0)).toBe(2);
    expect(startableSlots(engine.state, () => false, 0)).toBe(0);
  });

  it("is never less than what a turn starts, whatever is queued where", () => {
    const random = seeded(8);
    for (let history = 0; history < 200; history += 1) {
      const upTo = (most: number): number => 1 + Math.floor(random() * most);
      const targets = [makeTarget({ upstream: "narrow", maxInFlight: upTo(6) }), makeTarget()];
      const engine = new TestEngine({ targets, width: upTo(20), limits: random() < 0.3 ? { calls: upTo(9) } : {} });
      for (let group = upTo(4); group > 0; group -= 1) {
        const slots = Array.from({ length: upTo(8) }, () => ({ modelIndex: upTo(2) - 1 }));
        engine.open(slots, { concurrency: upTo(8) });
      }
      engine.turn([upTo(5)], 0);
      const most = startableSlots(engine.state, all, 0);
      expect(engine.startAll(0).length).toBeLessThanOrEqual(most);
    }
  });
});

describe("permits", () => {
  it("are handed out up to the run's width, to slots and single calls alike", () => {
    const engine = new TestEngine({ width: 3 });
    engine.open(alike(5));
    engine.call("c", 0, { priority: 4 });
    expect(engine.startAll(0)).toEqual(["c", "1:0", "1:1"]);
    expect(engine.startAll(0)).toEqual([]);
  });

  it("go to the next slot as soon as one is free", () => {
    const engine = new TestEngine({ width: 2 });
    engine.open(alike(4));
    engine.startAll(0);
    settle(engine.state, `${65_536 + 1}.1`, success(), 10);
    expect(engine.startAll(10)).toEqual(["1:2"]);
  });

  it("are not handed out while the run is paused", () => {
    const engine = new TestEngine();
    engine.open(alike(1));
    engine.state.setPaused(true);
    expect(engine.startAll(0)).toEqual([]);
    engine.state.setPaused(false);
    expect(engine.startAll(0)).toEqual(["1:0"]);
  });

  it("stay within a group's concurrency, and go to other groups instead", () => {
    const engine = new TestEngine();
    engine.open(alike(5), { concurrency: 2 });
    engine.open(alike(2), { concurrency: 9 });
    expect(engine.startAll(0)).toEqual(["1:0", "1:1", "2:0", "2:1"]);
  });

  it("stay within an upstream's limit, and go to other upstreams instead", () => {
    const narrow = makeTarget({ upstream: "narrow", maxInFlight: 1 });
    const engine = new TestEngine({ targets: [narrow, makeTarget({ upstream: "wide" })] });
    engine.open([{ modelIndex: 0 }, { modelIndex: 0 }, { modelIndex: 1 }, { modelIndex: 1 }]);
    engine.call("c", 0, { modelIndex: 0, priority: 4 });
    expect(engine.startAll(0)).toEqual(["c", "1:2", "1:3"]);
    settle(engine.state, "c.1", success(), 5);
    expect(engine.startAll(5)).toEqual(["1:0"]);
  });

  it("go to a due retry before the fresh slots of its group: a 503 in a batch of 10,000 does not wait for the others", () => {
    const engine = new TestEngine({ width: 2, random: () => 0.5 });
    engine.open(alike(10_000));
    expect(engine.startAll(0)).toEqual(["1:0", "1:1"]);
    const failed = settle(engine.state, `${slotIdOf(1, 0)}.1`, failure("transient"), 1);
    const retryInMs = failed?.retryInMs ?? Number.NaN;
    expect(retryInMs).toBeGreaterThan(0);
    expect(engine.startAll(1)).toEqual(["1:2"]);
    settle(engine.state, `${slotIdOf(1, 1)}.1`, success(), retryInMs);
    expect(engine.startAll(retryInMs)).toEqual(["1:3"]);
    settle(engine.state, `${slotIdOf(1, 2)}.1`, success(), 1 + retryInMs);
    expect(engine.startAll(1 + retryInMs)).toEqual(["1:0"]);
  });

  it("are withheld from a rate-limited upstream, exactly until its Retry-After has passed", () => {
    const engine = new TestEngine({ targets: [makeTarget({ upstream: "cold" }), makeTarget({ upstream: "warm" })] });
    engine.call("first", 0, { modelIndex: 0 });
    engine.startAll(0);
    settle(engine.state, "first.1", failure("rate_limited", 500), 100);
    engine.call("cold", 100, { modelIndex: 0 });
    engine.call("warm", 100, { modelIndex: 1 });
    expect(engine.startAll(100)).toEqual(["warm"]);
    // When their coalescing window closes, they are announced.
    expect(nextReadyMs(engine.state, 100)).toBe(150);
    engine.state.emitWindows(150);
    expect(nextReadyMs(engine.state, 150)).toBe(600);
    expect(engine.startAll(599)).toEqual([]);
    expect(engine.startAll(600)).toEqual(["cold"]);
  });
});

describe("the next to start", () => {
  it("is the first in the queue, whether a slot or a single call", () => {
    const engine = new TestEngine({ width: 1 });
    engine.open([{ priority: 1 }, { priority: 3 }]);
    engine.call("low", 0, { priority: 0 });
    engine.call("middle", 0, { priority: 2 });
    const order: string[] = [];
    for (let turn = 0; turn < 4; turn++) {
      const [started] = engine.turn([1], 0).assignments;
      if (started === undefined) throw new Error("nothing started");
      order.push(nameOf(started));
      settle(engine.state, started.lease.attemptId, success(), 0);
    }
    expect(order).toEqual(["1:1", "middle", "1:0", "low"]);
  });

  it("needs a waiting lane if it is a slot, and none if it is a single call", () => {
    const engine = new TestEngine();
    engine.open(alike(2, { priority: 4 }));
    engine.call("c", 0);
    expect(names(engine.turn([], 0))).toEqual(["c"]);
    expect(names(engine.turn([1], 0))).toEqual(["1:0"]);
    expect(names(engine.turn([1], 0))).toEqual(["1:1"]);
  });

  it("is a delayed call when its delay has passed, not before", () => {
    const engine = new TestEngine();
    engine.call("c", 1_000, { attempt: 2, delayMs: 300 });
    expect(engine.startAll(1_299)).toEqual([]);
    expect(nextReadyMs(engine.state, 1_299)).toBe(1_300);
    expect(engine.startAll(1_300)).toEqual(["c"]);
  });

  it("is never a call whose client has left", () => {
    const engine = new TestEngine();
    engine.call("gone", 0);
    engine.call("late", 0, { delayMs: 10 });
    engine.call("there", 0);
    expect([endCall(engine.state, "gone", GONE, 0), endCall(engine.state, "late", GONE, 0)]).toEqual([true, true]);
    expect(endCall(engine.state, "gone", GONE, 0)).toBe(false);
    expect(engine.startAll(100)).toEqual(["there"]);
    expect(endCall(engine.state, "there", GONE, 100)).toBe(false);
  });
});

describe("the Worker of a group", () => {
  it("gets slots of its own group only, before any lane; lanes serve every group", () => {
    const engine = new TestEngine();
    engine.open(alike(3));
    engine.open(alike(3));
    const offers = new Map([
      [0, 6],
      [workerOf(2), 2],
    ]);
    const { assignments } = dispatch(engine.state, offers, 0);
    const takers = assignments.map((each) => [each.executor, each.executor === null ? 0 : groupSeqOf(each.slotId)]);
    expect(takers).toEqual([
      [0, 1],
      [0, 1],
      [0, 1],
      [workerOf(2), 2],
      [workerOf(2), 2],
      [0, 2],
    ]);
  });

  it("lets the slots of other groups wait for a lane", () => {
    const engine = new TestEngine();
    engine.open(alike(3));
    engine.open(alike(1));
    const { assignments } = dispatch(engine.state, new Map([[workerOf(2), 6]]), 0);
    expect(assignments).toHaveLength(1);
    expect(engine.state.queue.readyCount).toBe(3);
  });

  it("gets no more prompts than one reply carries; the others are the next executor's, or wait", () => {
    const engine = new TestEngine({ width: 100 });
    engine.open(alike(30, { promptBytes: CLAIM_BYTES_MAX / 8 }));
    const { assignments } = dispatch(engine.state, new Map([[workerOf(1), 30]]), 0);
    expect(assignments).toHaveLength(8);
    expect(engine.state.queue.readyCount).toBe(22);
  });

  it("shares shards of bounded size with other Workers, so that no row of many leases is written for one answer", () => {
    const engine = new TestEngine({ width: 100 });
    engine.open(alike(70));
    dispatch(engine.state, new Map([[workerOf(1), 70]]), 0);
    const sizes = [...engine.state.shards.values()].map(({ id, leases }) => [id, leases.size]);
    expect(sizes).toEqual([
      [WORKER_SHARD_FIRST, WORKER_SHARD_LEASES_MAX],
      [WORKER_SHARD_FIRST + 1, WORKER_SHARD_LEASES_MAX],
      [WORKER_SHARD_FIRST + 2, 70 - 2 * WORKER_SHARD_LEASES_MAX],
    ]);
  });

  it("is named by the attempts that a cancelled group gives up, apart from those of lanes", () => {
    const engine = new TestEngine();
    const group = engine.open(alike(4));
    const offers = new Map([
      [workerOf(1), 2],
      [0, 2],
    ]);
    const { assignments } = dispatch(engine.state, offers, 0);
    const ofWorker = assignments.filter(({ executor }) => executor === workerOf(1)).map(({ lease }) => lease.attemptId);
    cancelGroup(engine.state, group, { reason: "cancelled", message: "by a test" }, 0);
    expect(engine.state.givenUp.hasOfWorker(workerOf(1))).toBe(true);
    expect(engine.state.givenUp.takeOfWorker(workerOf(1))).toEqual(ofWorker);
    expect(engine.state.givenUp.takeOfWorker(workerOf(1))).toEqual([]);
    expect([...engine.state.givenUp.takeOfLanes().keys()]).toEqual([0]);
  });
});

describe("executors", () => {
  it.each<{ what: string; calls: number; offers: [executor: number, capacity: number][]; several: boolean }>([
    { what: "none", calls: 0, offers: [], several: false },
    { what: "one Worker", calls: 0, offers: [[workerOf(1), WORKER_SHARD_LEASES_MAX + 2]], several: false },
    { what: "one lane", calls: 0, offers: [[3, 2]], several: false },
    { what: "one single call", calls: 1, offers: [], several: false },
    { what: "two single calls", calls: 2, offers: [], several: true },
    {
      what: "two Workers",
      calls: 0,
      offers: [
        [workerOf(1), 1],
        [workerOf(2), 1],
      ],
      several: true,
    },
    {
      what: "two lanes",
      calls: 0,
      offers: [
        [3, 1],
        [4, 1],
      ],
      several: true,
    },
    {
      what: "a Worker and a lane",
      calls: 0,
      offers: [
        [workerOf(1), 1],
        [3, 1],
      ],
      several: true,
    },
    { what: "a Worker and a single call", calls: 1, offers: [[workerOf(1), 1]], several: true },
  ])("are several if others settle beside them: $what", ({ calls, offers, several }) => {
    const engine = new TestEngine({ width: 64 });
    engine.open(alike(40));
    engine.open(alike(40));
    for (let call = 0; call < calls; call++) engine.call(`c${call}`, 0, { priority: 4 });
    dispatch(engine.state, new Map(offers), 0);
    const capacity = offers.reduce((sum, [, offered]) => sum + offered, 0);
    expect([engine.state.attempts.size, engine.state.hasSeveralExecutors]).toEqual([calls + capacity, several]);
  });
});

describe("lanes", () => {
  it("are filled one after the other, each with no more than it offered to take", () => {
    const engine = new TestEngine();
    engine.open(alike(9));
    const { assignments } = engine.turn([6, 2], 0);
    expect(assignments.map(({ executor }) => executor)).toEqual([0, 0, 0, 0, 0, 0, 1, 1]);
  });

  it("keep their attempts and reservations in shards of their own", () => {
    const engine = new TestEngine({ limits: { usd: 10_000 } });
    engine.open(alike(3, { maxTokens: 10 }));
    engine.turn([2, 1], 0);
    expect([engine.state.shards.get(0)?.leases.size, engine.state.shards.get(1)?.leases.size]).toEqual([2, 1]);
    expect(engine.state.ledger.reserved.usd).toBe(3 * (100 + 20));
  });
});

describe("an attempt that starts", () => {
  it("is named after its call and number, and has its target, its time limit and its cap", () => {
    const engine = new TestEngine({ limits: { usd: 1_000 }, targets: [makeTarget({ timeoutMs: 9_000 })] });
    engine.open([{ maxTokens: 40, timeoutMs: 5_000 }], { openedAtMs: 1_000 });
    const [started] = engine.turn([1], 1_250).assignments;
    expect(started).toMatchObject({
      executor: 0,
      timeoutMs: 5_000,
      lease: {
        capTokens: 40,
        attemptId: "65536.1",
        attempt: 1,
        queuedMs: 250,
        startedAtMs: 1_250,
        expiresAtMs: 1_250 + LEASE_TTL_MS,
        amounts: { usd: 180, calls: 1, prompt_tokens: 100, completion_tokens: 40, new_tokens: 140 },
      },
    });
  });

  it("never outlasts the upstream's own limit", () => {
    const engine = new TestEngine({ targets: [makeTarget({ timeoutMs: 9_000 })] });
    engine.open([{ timeoutMs: 9_001 }, { timeoutMs: null }]);
    expect(engine.turn([2], 0).assignments.map(({ timeoutMs }) => timeoutMs)).toEqual([9_000, 9_000]);
  });

  it("is reserved and marked for writing before any reply", () => {
    const engine = new TestEngine();
    engine.open(alike(1));
    engine.startAll(0);
    const { shards, slots } = engine.state.takeWrites();
    expect(shards.map(({ leases }) => [...leases.keys()])).toEqual([["65536.1"]]);
    // A claim writes no row of the slot: the lease implies that it runs.
    expect(slots).toEqual([]);
    expect(engine.state.takeWrites()).toEqual({ shards: [], apart: [], slots: [], groups: [], credits: null });
  });
});

describe("when the budget is short", () => {
  it("a slot that waits for reservations is not overtaken", () => {
    const engine = new TestEngine({ limits: { usd: 1_000 } });
    engine.open([{ maxTokens: 200 }]);
    engine.startAll(0);
    engine.call("dear", 0, { promptBytes: 700, maxTokens: 16 });
    engine.call("cheap", 0, { promptBytes: 2, maxTokens: 16 });
    const waiting = engine.turn([], 0);
    expect([names(waiting), waiting.waitingFor?.reason]).toEqual([[], "in_flight_budget_exhausted"]);
    settle(engine.state, "65536.1", success({ promptTokens: 50 }), 10);
    expect(engine.turn([], 10)).toMatchObject({
      assignments: [{ call: { callId: "dear" } }, { call: { callId: "cheap" } }],
      waitingFor: null,
    });
  });

  it("a slot that can never fit is refused, and the next one starts", () => {
    const engine = new TestEngine({ limits: { usd: 1_000 } });
    engine.call("dear", 0, { promptBytes: 2_000 });
    engine.call("cheap", 0, { maxTokens: 16 });
    const { refused, assignments } = engine.turn([], 0);
    expect(refused).toMatchObject([{ call: { callId: "dear" }, reason: { reason: "budget_exhausted" } }]);
    expect(assignments.map(nameOf)).toEqual(["cheap"]);
    expect(engine.state.calls.size).toBe(0);
  });

  it("a refused slot fails with the reason in its row, and its group continues", () => {
    const engine = new TestEngine({ limits: { usd: 300 } });
    const group = engine.open([{ promptBytes: 2_000 }, { maxTokens: 16 }]);
    expect(engine.startAll(0)).toEqual(["1:1"]);
    expect(group.stateOf(0)).toBe("failed");
    expect(engine.state.takeWrites().slots).toMatchObject([
      { id: 65_536, state: "failed", attempts: 0, costNanoUsd: 0, reason: { reason: "budget_exhausted" } },
    ]);
  });

  it("a group that is entirely refused ends", () => {
    const engine = new TestEngine({ limits: { calls: 0 } });
    const group = engine.open(alike(3));
    engine.startAll(7);
    expect([group.status, group.endedAtMs]).toEqual(["failed", 7]);
    expect(engine.state.takeWrites().groups).toEqual([group]);
  });

  it("the first refusal stops a group that aborts on errors", () => {
    const engine = new TestEngine({ limits: { usd: 300 } });
    const group = engine.open([{ promptBytes: 2_000 }, {}, {}], { rules: { onError: "abort" } });
    expect(engine.startAll(0)).toEqual([]);
    expect(group.counts).toMatchObject({ failed: 1, cancelled: 2 });
    expect(group.status).toBe("failed");
  });
});

describe("a model that is no longer configured", () => {
  it("fails its slots, and no others", () => {
    const engine = new TestEngine({ targets: [null, makeTarget()] });
    const group = engine.open([{ modelIndex: 0, model: "old" }, { modelIndex: 1 }]);
    expect(engine.startAll(0)).toEqual(["1:1"]);
    expect(group.stateOf(0)).toBe("failed");
    expect(engine.state.takeWrites().slots).toMatchObject([{ reason: { reason: "model_not_found", model: "old" } }]);
  });
});

describe("single calls that arrive together", () => {
  it("are counted as single calls, and as a group from the second one on", () => {
    const engine = new TestEngine({ windowMs: 50 });
    const counters = () => {
      const { singleCalls, groupedCalls, windowGroups } = engine.state.directShard().totals;
      return [singleCalls, groupedCalls, windowGroups];
    };
    const arrive = (callId: string, nowMs: number, attempt = 1) => {
      engine.call(callId, nowMs, { attempt });
      engine.startAll(nowMs);
      return counters();
    };
    expect(arrive("a", 1_000)).toEqual([1, 0, 0]);
    expect(arrive("b", 1_049)).toEqual([2, 2, 1]);
    expect(arrive("c", 1_049)).toEqual([3, 3, 1]);
    expect(arrive("d", 1_099)).toEqual([4, 3, 1]);
    expect(arrive("a", 1_100, 2)).toEqual([4, 3, 1]);
  });

  it("are counted with their first attempt, in the same row, and not while queued or when refused", () => {
    const engine = new TestEngine({ width: 1, limits: { calls: 1 } });
    const counted = () => engine.state.directShard().totals.singleCalls;
    engine.call("a", 0);
    engine.call("b", 0);
    expect(counted()).toBe(0);
    engine.startAll(0);
    expect(counted()).toBe(1);
    expect(engine.state.takeWrites().shards.map(({ totals }) => totals.singleCalls)).toEqual([1]);
    settle(engine.state, "a.1", success(), 1);
    expect(engine.turn([], 1).refused.map(({ call }) => call.callId)).toEqual(["b"]);
    expect(counted()).toBe(1);
  });

  it("start in the order of their arrival within a second", () => {
    const engine = new TestEngine({ width: 2 });
    engine.call("a", 1_900);
    engine.call("b", 1_100);
    engine.call("c", 2_000);
    expect(engine.startAll(2_000)).toEqual(["a", "b"]);
  });

  it("share a shard of sixteen leases, and not of more", () => {
    const engine = new TestEngine();
    for (let call = 0; call < 17; call++) engine.call(`c${call}`, 0);
    engine.startAll(0);
    expect([engine.state.shards.get(1_000)?.leases.size, engine.state.shards.get(1_001)?.leases.size]).toEqual([16, 1]);
  });
});

describe("a slot whose body is not at hand", () => {
  it("is passed over by other groups and single calls, and starts first once the body has arrived", () => {
    const absent = new Set([slotIdOf(1, 1)]);
    const engine = new TestEngine({ width: 4, bodyOf: (slotId) => (absent.has(slotId) ? "awaited" : "here") });
    engine.open(alike(3));
    engine.open(alike(1));
    engine.call("c", 0);
    expect(engine.startAll(0)).toEqual(["c", "1:0", "2:0"]);
    expect(engine.startAll(0)).toEqual([]);
    absent.clear();
    expect(engine.startAll(0)).toEqual(["1:1"]);
  });

  it("is asked for only while a permit is free for it", () => {
    const asked: number[] = [];
    const bodyOf = (slotId: number) => {
      asked.push(slotId);
      return "here" as const;
    };
    const engine = new TestEngine({ width: 1, bodyOf });
    engine.open(alike(2));
    engine.open(alike(2));
    engine.startAll(0);
    engine.startAll(0);
    expect(asked).toEqual([slotIdOf(1, 0)]);
  });

  it("holds no budget and ends at its deadline", () => {
    const engine = new TestEngine({ limits: { calls: 5 }, bodyOf: () => "awaited" });
    const group = engine.open(alike(2), { deadlineMs: 100 });
    expect(engine.startAll(0)).toEqual([]);
    expect(engine.state.ledger.reserved.calls).toBe(0);
    expireQueued(engine.state, null, 100);
    expect([group.status, group.counts.failed]).toEqual(["failed", 2]);
  });

  it("fails by itself if the body is lost, at no cost", () => {
    const engine = new TestEngine({ bodyOf: (slotId) => (slotId === slotIdOf(1, 1) ? "lost" : "here") });
    const group = engine.open(alike(3));
    expect(engine.startAll(0)).toEqual(["1:0", "1:2"]);
    expect([group.stateOf(1), group.counts.failed]).toEqual(["failed", 1]);
    expect(engine.state.takeWrites().slots).toEqual([
      expect.objectContaining({
        state: "failed",
        attempts: 0,
        costNanoUsd: 0,
        reason: expect.objectContaining({ reason: "internal" }),
      }),
    ]);
  });
});
