import { describe, expect, it } from "vitest";
import { expireQueued } from "../../../../src/run/steps/deadline.ts";
import { nextReadyMs } from "../../../../src/run/steps/next-ready.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import type { Reason } from "../../../../src/errors.ts";
import { success, TestEngine } from "../../../support/engine.ts";

const MONEY: Reason = {
  reason: "in_flight_budget_exhausted",
  dimension: "usd",
  limit: 1,
  spent: 0,
  reserved: 1,
  remaining: 0,
  needed: 1,
};

describe("deadlines", () => {
  it("end a queued call exactly at its deadline, and not before", () => {
    const engine = new TestEngine();
    engine.call("late", 1_000, { deadlineMs: 50 });
    engine.call("patient", 1_000);
    expect(expireQueued(engine.state, null, 1_049)).toEqual([]);
    const late = expireQueued(engine.state, null, 1_050);
    expect(late.map(({ call, reason }) => [call.callId, reason])).toEqual([
      ["late", { reason: "deadline_exceeded", deadlineMs: 50 }],
    ]);
    expect([...engine.state.calls.values()].map(({ callId }) => callId)).toEqual(["patient"]);
    expect(engine.state.queue.readyCount).toBe(1);
  });

  it("end the queued slots of a group, and let running slots end with their attempts", () => {
    const engine = new TestEngine({ width: 1 });
    const group = engine.open([{}, {}, {}], { deadlineMs: 100 });
    const [running] = engine.turn([6], 0).assignments;
    expect(expireQueued(engine.state, null, 100)).toEqual([]);
    expect(group.counts).toMatchObject({ running: 1, queued: 0, failed: 2 });
    const reason = { reason: "deadline_exceeded", deadlineMs: 100 };
    expect(group.drained).toEqual({ state: "failed", reason, cause: "deadline" });
    if (running === undefined) throw new Error("nothing was dispatched");
    settle(engine.state, running.lease.attemptId, success(), 150);
    expect([group.done, group.status]).toEqual([true, "partial"]);
  });

  it("end a call that waited for its budget with that reason, so that its client can retry", () => {
    const engine = new TestEngine();
    engine.call("poor", 0, { deadlineMs: 10 });
    expect(expireQueued(engine.state, MONEY, 10)[0]?.reason).toBe(MONEY);
  });

  it("are times at which the next turn is due", () => {
    const engine = new TestEngine();
    engine.call("late", 1_000, { deadlineMs: 50 });
    expect(nextReadyMs(engine.state, 1_000)).toBe(1_050);
  });
});
