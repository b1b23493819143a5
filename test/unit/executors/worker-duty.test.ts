import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../src/call.ts";
import { WorkerDuty } from "../../../src/executors/worker-duty.ts";
import { Worklist } from "../../../src/executors/worklist.ts";
import { LANES_JOIN_MS } from "../../../src/limits.ts";
import type { ClaimReply, GroupView, OwnGroup, Settlement } from "../../../src/objects/methods/groups.ts";

const ANSWER: Outcome = { kind: "success", text: "a", model: "m", finishReason: "stop", usage: null, latencyMs: 1 };
const NOTHING: OwnGroup = { ended: [], aborted: [], lanes: [], view: null };
const ENDED: GroupView = {
  id: "pg",
  status: "completed",
  count: 1,
  counts: { queued: 0, running: 0, completed: 1, failed: 0, skipped: 0, cancelled: 0 },
  openedAtMs: 0,
  endedAtMs: 1,
  errorStyle: "bracket",
  parallelGroupId: "pg",
  effectiveParallel: 1,
  remainingNanoUsd: null,
  metrics: { wall_ms: 1, sequential_ms: 1, speedup: 1, peak_parallel: 1, success_rate: 1 },
  usage: { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 },
};

/** A Worker with two places, its clock, and what it was replied. */
function makeWorker(mayReplace = false) {
  let nowMs = 1_000;
  let nudges = 0;
  const timers: { atMs: number; callback: () => void }[] = [];
  const work = new Worklist({ callsMax: 2, waitingMax: 2, settleAtShare: 0.5, mergeMs: 0, shortMergeMs: 0 });
  const duty = new WorkerDuty({
    mayReplace,
    now: () => nowMs,
    nudge: () => {
      nudges += 1;
      work.nudge();
    },
    after: (ms, callback) => {
      const timer = { atMs: nowMs + ms, callback };
      timers.push(timer);
      return () => void timers.splice(timers.indexOf(timer), 1);
    },
    replied: () => undefined,
  });
  /** Takes what has ended and lets the run reply. */
  const claim = (more: Partial<ClaimReply> = {}, group: Partial<OwnGroup> = {}) => {
    const settlements = work.takeEnded();
    const worker = duty.stateOf(work);
    const reply = { jobs: [], epoch: 1, defaults: {}, claimMore: false, batchingDelayMs: 0, ...more };
    work.delivered(settlements);
    duty.replied({ ...reply, group: { ...NOTHING, ...group } }, { settlements, worker }, work);
    duty.slotsWait(reply.claimMore, work);
    return worker;
  };
  /** Begins an attempt; returns its abort signal and what ends it. */
  const begin = (attemptId: string) => {
    const controller = new AbortController();
    const { promise, resolve } = Promise.withResolvers<Settlement>();
    work.add(attemptId, { model: "m", startedMs: nowMs }, controller, promise);
    const end = async (): Promise<void> => {
      resolve({ attemptId, outcome: ANSWER });
      await promise;
    };
    return { signal: controller.signal, end };
  };
  const pass = (ms: number): void => {
    nowMs += ms;
    for (const timer of timers.splice(0)) {
      if (timer.atMs <= nowMs) timer.callback();
      else timers.push(timer);
    }
  };
  return { duty, work, claim, begin, pass, nudges: () => nudges };
}

describe("the Worker of a group", () => {
  it("waits for what the run decides while it has no calls, and for its calls while it has", async () => {
    const { duty, work, begin } = makeWorker();
    expect(duty.next(work, false)).toBe("wait");
    const { end } = begin("1.1");
    expect(duty.next(work, true)).toBe("wait");
    expect(duty.next(work, false)).toBe("idle");
    await end();
    expect(duty.next(work, false)).toBe("claim");
  });

  it("keeps an answer back that is worth waiting for others with, unless it claims for something else", async () => {
    const { duty, work, begin } = makeWorker();
    const [first] = [begin("1.1"), begin("2.1"), begin("3.1")];
    await first.end();
    expect(duty.next(work, false)).toBe("idle");
    work.nudge();
    // A claim that settles is replied to at once.
    expect(duty.next(work, false)).toBe("claim");
  });

  it("ends with its group, and stops what it still has of it", () => {
    const { duty, work, begin, claim } = makeWorker();
    const { signal } = begin("1.1");
    claim({}, { view: ENDED });
    expect(signal.aborted).toBe(true);
    expect(duty.next(work, true)).toBe("end");
  });

  it("stops the attempts that the run has given up, and no other", () => {
    const { begin, claim } = makeWorker();
    const first = begin("1.1");
    const second = begin("2.1");
    claim({}, { aborted: ["2.1"] });
    expect([first.signal.aborted, second.signal.aborted]).toEqual([false, true]);
  });
});

describe("a Worker that is full while slots wait", () => {
  it("says what it holds once it has been full for a moment, and not before", () => {
    const { duty, work, begin, claim, pass, nudges } = makeWorker();
    begin("1.1");
    begin("2.1");
    expect(claim({ claimMore: true }).covers).toBeNull();
    pass(LANES_JOIN_MS - 1);
    expect([nudges(), duty.stateOf(work).covers]).toEqual([0, null]);
    pass(1);
    expect([nudges(), duty.next(work, true), duty.stateOf(work).covers]).toEqual([1, "claim", 2]);
  });

  it("asks for lanes once, and says from then on what it holds", () => {
    const { duty, work, begin, claim, pass } = makeWorker();
    begin("1.1");
    begin("2.1");
    claim({ claimMore: true });
    pass(LANES_JOIN_MS);
    expect(claim({ claimMore: true })).toMatchObject({ covers: 2, asksForLanes: true });
    expect(claim({ claimMore: false })).toMatchObject({ covers: 2, asksForLanes: false });
    work.nudge();
    expect([duty.next(work, true), claim().covers]).toEqual(["wait", 2]);
  });

  it("needs no lanes if none waits, or if it has room again", async () => {
    const { duty, work, begin, claim, pass } = makeWorker();
    begin("1.1");
    const { end } = begin("2.1");
    claim({ claimMore: false });
    pass(LANES_JOIN_MS);
    expect(duty.stateOf(work).covers).toBeNull();
    claim({ claimMore: true });
    await end();
    claim({ claimMore: true });
    pass(LANES_JOIN_MS);
    expect(duty.stateOf(work).covers).toBeNull();
  });
});

describe("a Worker whose client has left", () => {
  it("says so at once, completes its calls without claiming more, and ends", async () => {
    const { duty, work, begin, claim } = makeWorker();
    const { end } = begin("1.1");
    duty.leave();
    expect(duty.next(work, true)).toBe("claim");
    expect(claim({ claimMore: true }).leaves).toBe(true);
    expect(duty.next(work, true)).toBe("idle");
    await end();
    expect(duty.next(work, true)).toBe("claim");
    expect(claim({ claimMore: true }).leaves).toBe(true);
    expect(duty.next(work, true)).toBe("leave");
  });

  it("reports the attempts that it gives up, once", () => {
    const { duty, work, begin, claim } = makeWorker();
    begin("1.1");
    duty.leave();
    claim();
    duty.giveUp(["1.1"]);
    expect(duty.next(work, false)).toBe("claim");
    expect(claim().gaveUp).toEqual(["1.1"]);
    expect(duty.stateOf(work).gaveUp).toEqual([]);
  });

  it("repeats what it has to say until a reply comes", () => {
    const { duty, work, begin } = makeWorker();
    begin("1.1");
    duty.leave();
    duty.giveUp(["1.1"]);
    duty.failed();
    expect(duty.next(work, false)).toBe("claim");
    const state = { covers: null, asksForLanes: true, leaves: true, holds: ["1.1"], gaveUp: ["1.1"] };
    expect(duty.stateOf(work)).toEqual(state);
  });
});

describe("a Worker that has missed a reply", () => {
  it("names all that it has, nothing, with its first claim where it may replace a lost executor, and only there", () => {
    expect(makeWorker().claim().holds).toBeNull();
    const again = makeWorker(true);
    expect(again.claim().holds).toEqual([]);
    expect(again.claim().holds).toBeNull();
  });

  it("names all that it has until a reply comes, and takes no job of an earlier instance after it", async () => {
    const { duty, work, begin, claim } = makeWorker();
    begin("1.1");
    const { end } = begin("2.1");
    await end();
    expect(duty.stateOf(work).holds).toBeNull();
    duty.failed();
    expect(duty.stateOf(work).holds?.toSorted()).toEqual(["1.1", "2.1"]);
    claim({ epoch: 5 });
    expect(duty.stateOf(work).holds).toBeNull();
    expect([work.isReplaced(4), work.isReplaced(5)]).toEqual([true, false]);
  });
});
