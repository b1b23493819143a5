import { describe, expect, it } from "vitest";
import { groupResult } from "../../../../durable-objects/run/store/records.ts";
import { Group, type GroupHeader } from "../../../../src/run/group/group.ts";
import type { SlotState } from "../../../../src/run/queue/slot.ts";
import type { Reason } from "../../../../src/errors.ts";
import { makeHeader } from "../../../support/engine.ts";

const WHY: Reason = { reason: "cancelled", message: "no" };

/** A group whose slots have gone through these states; `failed`: after having run. */
function groupOf(states: readonly SlotState[], fields: Partial<GroupHeader> = {}): Group {
  const group = new Group(makeHeader({ count: states.length, ...fields }));
  states.forEach((state, index) => {
    if (state === "queued") return;
    if (state === "running" || state === "completed" || state === "failed") group.step(index, "running", 1);
    if (state !== "running") group.step(index, state, 2);
  });
  return group;
}

describe("a group's slots", () => {
  it("start queued", () => {
    const group = new Group(makeHeader({ count: 3 }));
    expect([group.stateOf(0), group.stateOf(2), group.counts.queued]).toEqual(["queued", "queued", 3]);
  });

  it("are counted by state as they move, and attempts as they begin", () => {
    const group = groupOf(["queued", "running", "completed", "failed", "skipped", "cancelled"]);
    expect(group.counts).toEqual({ queued: 1, running: 1, completed: 1, failed: 1, skipped: 1, cancelled: 1 });
    expect([...group.attempts]).toEqual([0, 1, 1, 1, 0, 0]);
    group.step(1, "queued", 3);
    group.step(1, "running", 4);
    expect([group.attempts[1], group.counts.running, group.inFlight]).toEqual([2, 1, 1]);
  });

  it("reject a step that the state machine does not have, and stay as they were", () => {
    const group = groupOf(["completed", "queued"]);
    expect(() => group.step(0, "running", 3)).toThrow("cannot go from completed to running");
    expect(() => group.step(1, "queued", 3)).toThrow("cannot go from queued to queued");
    expect(group.counts).toMatchObject({ completed: 1, queued: 1, running: 0 });
  });

  it("complete without an attempt when they share another's outcome", () => {
    const group = new Group(makeHeader({ count: 1 }));
    group.step(0, "completed", 3);
    expect([group.status, group.attempts[0], group.peakParallel, group.inFlight]).toEqual(["completed", 0, 0, 0]);
  });

  it("are listed in the order in which they ended", () => {
    const group = new Group(makeHeader({ count: 3 }));
    for (const index of [0, 1, 2]) group.step(index, "running", 1);
    for (const index of [2, 0, 1]) group.step(index, "completed", 2);
    expect(group.ended).toEqual([2, 0, 1]);
  });

  it("are restored as they are stored", () => {
    const group = new Group(makeHeader({ count: 3 }));
    group.restore(0, "completed", 2, 9);
    group.restore(1, "queued", 1, 9);
    group.restore(2, "running", 3, 9);
    expect(group.counts).toMatchObject({ completed: 1, queued: 1, running: 1 });
    expect([[...group.attempts], group.ended, group.inFlight]).toEqual([[2, 1, 3], [0], 1]);
  });
});

describe("a group's status", () => {
  it.each<[string, SlotState[]]>([
    ["running", ["completed", "queued"]],
    ["running", ["completed", "running"]],
    ["completed", ["completed", "completed"]],
    ["partial", ["completed", "failed"]],
    ["partial", ["completed", "skipped"]],
    ["failed", ["failed", "failed"]],
    ["failed", ["skipped"]],
  ])("is %s for slots %j", (status, states) => {
    expect(groupOf(states).status).toBe(status);
  });

  it("is cancelled when a cancellation has ended slots, whatever had completed before", () => {
    const stopped = (states: SlotState[], fields: Partial<GroupHeader> = {}) => {
      const group = groupOf(states, fields);
      group.drain({ state: "cancelled", reason: WHY, cause: "cancel" });
      return group.status;
    };
    expect(stopped(["completed", "cancelled"])).toBe("cancelled");
    expect(stopped(["cancelled"])).toBe("cancelled");
    expect(stopped(["completed", "completed"])).toBe("completed");
    expect(stopped(["completed", "failed"])).toBe("partial");
    expect(stopped(["cancelled", "running"])).toBe("running");
  });

  it("is partial or failed, not cancelled, when its failure rule has stopped it", () => {
    const aborted = (states: SlotState[]) => {
      const group = groupOf(states, { rules: { onError: "abort" } });
      group.drain({ state: "cancelled", reason: WHY, cause: "abort" });
      return group.status;
    };
    expect(aborted(["completed", "failed", "cancelled"])).toBe("partial");
    expect(aborted(["failed", "cancelled"])).toBe("failed");
  });
});

describe("a group's measures", () => {
  it("are wall time to its end, sequential time, their ratio, peak in flight and success rate", () => {
    const group = new Group(makeHeader({ count: 3, openedAtMs: 1_000 }));
    for (const index of [0, 1]) group.step(index, "running", 1_000);
    group.addAttempt(500, { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 });
    group.step(0, "completed", 1_200);
    group.step(1, "failed", 1_200);
    group.addEnded({ attempts: 1, latencyMs: 500, queuedMs: 0 });
    group.addEnded({ attempts: 0, latencyMs: 0, queuedMs: 0 });
    expect(group.metrics(1_250)).toEqual({
      latency_ms: { p50: 500, p95: 500, p99: 500 },
      queued_ms: { p50: 0, p95: 0, p99: 0 },
      wall_ms: 250,
      sequential_ms: 500,
      speedup: 2,
      peak_parallel: 2,
      success_rate: 0.5,
    });
    group.step(2, "running", 1_200);
    group.step(2, "completed", 1_300);
    expect(group.endedAtMs).toBe(1_300);
    expect(group.metrics(9_999)).toMatchObject({ wall_ms: 300, speedup: 1.667, success_rate: 0.667, peak_parallel: 2 });
  });

  it("have the tokens and the cost of all attempts, in the result that is stored", () => {
    const group = new Group(makeHeader({ count: 2 }));
    expect(groupResult(group, 0).usage).toEqual({ promptTokens: 0, completionTokens: 0, costNanoUsd: 0 });
    group.addAttempt(1, { promptTokens: 3, completionTokens: 5, costNanoUsd: 7 });
    group.addAttempt(1, { promptTokens: 10, completionTokens: 20, costNanoUsd: 30 });
    expect(groupResult(group, 0).usage).toEqual({ promptTokens: 13, completionTokens: 25, costNanoUsd: 37 });
  });

  it("are those of a perfect group before any attempt, and never negative", () => {
    const group = new Group(makeHeader({ count: 1, openedAtMs: 1_000 }));
    const start = { wall_ms: 0, sequential_ms: 0, speedup: 1, peak_parallel: 0, success_rate: 1 };
    Object.assign(start, { latency_ms: null, queued_ms: null });
    expect(group.metrics(1_000)).toEqual(start);
    expect(group.metrics(990)).toEqual(start);
  });
});

describe("a group with at_least", () => {
  const ended = (completed: number, others: readonly SlotState[], atLeast: number): Group =>
    groupOf([...Array.from({ length: completed }, () => "completed" as const), ...others], { rules: { atLeast } });
  const failed = (count: number): SlotState[] => Array.from({ length: count }, () => "failed");

  it("is completed from its share on, whatever the share is as a binary fraction", () => {
    for (let share = 1; share <= 10; share++) {
      expect(ended(share, failed(10 - share), share / 10).status).toBe("completed");
      expect(ended(share - 1, failed(11 - share), share / 10).status).toBe(share === 1 ? "failed" : "partial");
    }
  });

  it("lists what is missing once it has ended, and nothing otherwise", () => {
    expect(ended(1, ["failed", "skipped"], 0.3).rules.shown.missing).toEqual([1, 2]);
    expect(ended(1, ["failed", "running"], 0.3).rules.shown.missing).toBeUndefined();
    expect(groupOf(["completed", "failed"]).rules.shown.missing).toBeUndefined();
    expect(groupResult(ended(2, [], 0.5), 3).missing).toEqual([]);
  });

  it("counts what an early stop has cancelled as not expected, and stays cancelled if its client cancels it", () => {
    const reason = WHY;
    const stopped = ended(1, ["failed", "cancelled", "cancelled"], 0.5);
    expect(stopped.status).toBe("partial");
    stopped.drain({ state: "cancelled", reason, cause: "stop" });
    expect(stopped.status).toBe("completed");
    const cancelled = ended(3, ["cancelled"], 0.5);
    cancelled.drain({ state: "cancelled", reason, cause: "cancel" });
    expect(cancelled.status).toBe("cancelled");
  });
});
