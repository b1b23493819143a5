/** A permit that reached nobody goes back, and its call is queued as before. */
import { describe, expect, it } from "vitest";
import { endCall } from "../../../../src/run/steps/end-call.ts";
import { resumeCall } from "../../../../src/run/steps/enqueue.ts";
import { putBack } from "../../../../src/run/steps/put-back.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { sumTotals } from "../../../../src/run/measures/totals.ts";
import type { Reason } from "../../../../src/errors.ts";
import { failure, success, TestEngine } from "../../../support/engine.ts";

const GONE: Reason = { reason: "cancelled", message: "left" };

function countsOf({ state }: TestEngine) {
  const { singleCalls, groupedCalls, windowGroups, attempts, retries } = sumTotals(
    [...state.shards.values()].map(({ totals }) => totals),
  );
  return { singleCalls, groupedCalls, windowGroups, attempts, retries };
}

const eventsOf = ({ state }: TestEngine): string[] => state.log.take()?.events.map(({ event }) => event) ?? [];

describe("a permit that reached nobody", () => {
  /** Two calls of one window have their permits; that of "b" goes back. */
  function afterPutBack(): TestEngine {
    const engine = new TestEngine({ limits: { usd: 10_000 } });
    engine.call("a", 0);
    engine.call("b", 1);
    expect(engine.startAll(1)).toEqual(["a", "b"]);
    expect(putBack(engine.state, "b", 10)).toBe(true);
    return engine;
  }

  it("frees its reservation and its count, and costs nothing", () => {
    const engine = afterPutBack();
    const { ledger, attempts, calls, queue } = engine.state;
    expect([ledger.reserved.calls, ledger.spent.calls, attempts.size, calls.size]).toEqual([1, 0, 1, 1]);
    expect([queue.readyCount, queue.delayedCount]).toEqual([0, 1]);
    expect(countsOf(engine)).toMatchObject({ singleCalls: 1, groupedCalls: 0, windowGroups: 0, attempts: 0 });
  });

  it("is not granted again before the call's Worker is back", () => {
    const engine = afterPutBack();
    expect(engine.startAll(20)).toEqual([]);
    resumeCall(engine.state, "b", 30);
    expect(engine.startAll(30)).toEqual(["b"]);
    resumeCall(engine.state, "b", 31);
    expect(engine.startAll(31)).toEqual([]);
  });

  it("leaves its call one end, one place in its window, and the number of its attempt", () => {
    const engine = afterPutBack();
    const { state } = engine;
    resumeCall(state, "b", 30);
    const [started] = engine.turn([], 30).assignments;
    expect(started?.lease).toMatchObject({ attemptId: "b.1", attempt: 1, queuedMs: 29 });
    settle(state, "a.1", success(), 40);
    settle(state, "b.1", success(), 40);
    expect(state.window.current).toMatchObject({ members: 2, completed: 2, failed: 0, inFlight: 0 });
    expect(countsOf(engine)).toEqual({ singleCalls: 2, groupedCalls: 2, windowGroups: 1, attempts: 2, retries: 0 });
    expect(eventsOf(engine).filter((event) => event === "slot_completed")).toHaveLength(2);
  });

  it("uses up none of a retry's attempts", () => {
    const engine = new TestEngine();
    engine.call("a", 0);
    engine.startAll(0);
    settle(engine.state, "a.1", failure("transient"), 10);
    engine.call("a", 10, { attempt: 2 });
    expect(engine.startAll(10)).toEqual(["a"]);
    putBack(engine.state, "a", 20);
    resumeCall(engine.state, "a", 30);
    const [started] = engine.turn([], 30).assignments;
    expect(started?.lease.attemptId).toBe("a.2");
    expect(settle(engine.state, "a.2", failure("transient"), 40)?.retryInMs).not.toBeNull();
    expect(countsOf(engine)).toMatchObject({ singleCalls: 1, attempts: 2, retries: 1 });
  });

  it("lets a call that its Worker has left end once, without an attempt", () => {
    const engine = afterPutBack();
    expect(endCall(engine.state, "b", GONE, 50)).toBe(true);
    expect(endCall(engine.state, "b", GONE, 51)).toBe(false);
    resumeCall(engine.state, "b", 60);
    expect([engine.startAll(60), engine.state.calls.size, engine.state.queue.delayedCount]).toEqual([[], 0, 0]);
    expect(engine.state.window.current).toMatchObject({ members: 2, completed: 0, failed: 1 });
  });

  it("returns the calls that waited for its answer to the queue", () => {
    const engine = new TestEngine();
    engine.call("a", 0, { dedupeKey: "same" });
    engine.call("b", 0, { dedupeKey: "same" });
    expect(engine.startAll(0)).toEqual(["a"]);
    putBack(engine.state, "a", 10);
    expect(engine.startAll(10)).toEqual(["b"]);
  });

  it("is none if the call has no permit", () => {
    const engine = new TestEngine();
    engine.call("a", 0);
    expect(putBack(engine.state, "a", 0)).toBe(false);
    expect(engine.startAll(0)).toEqual(["a"]);
  });
});

describe("a queued call whose Worker is away", () => {
  function withAway(...callIds: string[]) {
    const away = new Set(callIds);
    const engine = new TestEngine({ width: 1, isAway: (callId) => away.has(callId) });
    const comeBack = (callId: string, nowMs: number): void => {
      away.delete(callId);
      resumeCall(engine.state, callId, nowMs);
    };
    return { engine, comeBack };
  }

  it("is put aside: the next one gets the permit", () => {
    const { engine } = withAway("a");
    engine.call("a", 0);
    engine.call("b", 0);
    expect(engine.startAll(0)).toEqual(["b"]);
    settle(engine.state, "b.1", success(), 10);
    expect(engine.startAll(10)).toEqual([]);
    expect([engine.state.ledger.reserved.calls, engine.state.queue.delayedCount]).toEqual([0, 1]);
    expect(eventsOf(engine).filter((event) => event === "attempt_started")).toHaveLength(1);
  });

  it("comes before the calls that were queued after it, once its Worker is back", () => {
    const { engine, comeBack } = withAway("a");
    for (const callId of ["a", "b", "c"]) engine.call(callId, 0);
    expect(engine.startAll(0)).toEqual(["b"]);
    comeBack("a", 5);
    settle(engine.state, "b.1", success(), 10);
    expect(engine.startAll(10)).toEqual(["a"]);
  });

  it("keeps its place while no permit is free", () => {
    const { engine, comeBack } = withAway("b");
    for (const callId of ["a", "b", "c"]) engine.call(callId, 0);
    expect(engine.startAll(0)).toEqual(["a"]);
    expect(engine.state.queue.readyCount).toBe(2);
    comeBack("b", 5);
    settle(engine.state, "a.1", success(), 10);
    expect(engine.startAll(10)).toEqual(["b"]);
  });

  it("is not refused for its budget before it is back", () => {
    const away = new Set(["a"]);
    const engine = new TestEngine({ limits: { usd: 1 }, isAway: (callId) => away.has(callId) });
    engine.call("a", 0);
    expect(engine.turn([], 0).refused).toEqual([]);
    away.clear();
    resumeCall(engine.state, "a", 5);
    expect(engine.turn([], 5).refused).toMatchObject([{ call: { callId: "a" } }]);
  });
});
