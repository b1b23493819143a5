/** A group that stops early: what is cancelled, aborted and saved, and the same after a restart. */
import { describe, expect, it } from "vitest";
import type { StopRule } from "../../../../src/run/answers/early-stop.ts";
import { giveUpStopped } from "../../../../src/run/steps/cancel.ts";
import type { Group } from "../../../../src/run/group/group.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import { alike, failure, success, TestEngine } from "../../../support/engine.ts";

const SUCCESSES = (n: number, shadow = false): StopRule => ({ kind: "n_success", n, shadow });
/** By PLAIN_PRICE: 100 prompt tokens at most and 100 completion tokens at twice the price. */
const WORST_NANO_USD = 300;

function opened(rule: StopRule, { slots = 10, width = 4, fields = {} } = {}) {
  const engine = new TestEngine({ width });
  const group = engine.open(alike(slots, { promptBytes: 92, ...fields }), { stopWhen: rule });
  engine.startAll(0);
  return { engine, group };
}

const end = ({ state }: TestEngine, index: number, outcome = success(), nowMs = 50) =>
  settle(state, `${slotIdOf(1, index)}.1`, outcome, nowMs);
const statesOf = (group: Group) => Array.from({ length: group.header.count }, (_, index) => group.stateOf(index));

describe("a group whose early stop is met", () => {
  it("cancels what is queued with the end that met it, and gives up what is in flight by the end of the turn", () => {
    const { engine, group } = opened(SUCCESSES(2));
    end(engine, 0);
    expect(group.drained).toBeNull();
    end(engine, 2);
    expect(group.drained).toMatchObject({ cause: "stop", state: "cancelled" });
    expect(group.counts).toMatchObject({ completed: 2, running: 2, queued: 0, cancelled: 6 });
    giveUpStopped(engine.state, 50);
    expect(statesOf(group)).toEqual([
      "completed",
      "cancelled",
      "completed",
      ...Array.from({ length: 7 }, () => "cancelled"),
    ]);
    expect([group.done, group.status, engine.state.attempts.size]).toEqual([true, "completed", 0]);
    expect([...engine.state.givenUp.takeOfLanes().values()].flat()).toEqual([
      `${slotIdOf(1, 1)}.1`,
      `${slotIdOf(1, 3)}.1`,
    ]);
  });

  it("has saved the calls that it had not begun, at what a quote says", () => {
    const { engine, group } = opened(SUCCESSES(1));
    end(engine, 0, success(), 70);
    expect(group.saved).toEqual({
      calls: 6,
      aborted: 3,
      worstNanoUsd: 6 * WORST_NANO_USD,
      likelyNanoUsd: expect.any(Number),
      atMs: 70,
    });
    expect(group.saved?.likelyNanoUsd).toBeGreaterThan(0);
    expect(group.saved?.likelyNanoUsd).toBeLessThan(6 * WORST_NANO_USD);
  });

  it("keeps the answer of an attempt that settles in the same turn", () => {
    const { engine, group } = opened(SUCCESSES(1));
    end(engine, 0);
    end(engine, 1);
    giveUpStopped(engine.state, 50);
    expect(group.counts).toMatchObject({ completed: 2, cancelled: 8 });
  });

  it("charges what was in flight at its reservation, and nothing of what was queued", () => {
    const { engine } = opened(SUCCESSES(1));
    end(engine, 0, success({ promptTokens: 5, completionTokens: 1 }));
    giveUpStopped(engine.state, 50);
    const { spent, reserved } = engine.state.ledger;
    expect(spent).toMatchObject({ calls: 4, usd: 7 + 3 * WORST_NANO_USD });
    expect(reserved.usd).toBe(0);
  });

  it("cancels a slot that waits for its retry", () => {
    const { engine, group } = opened(SUCCESSES(1), { slots: 2, width: 2 });
    end(engine, 0, failure("transient", 60_000));
    end(engine, 1);
    expect(statesOf(group)).toEqual(["cancelled", "completed"]);
    expect(group.saved).toMatchObject({ calls: 1, aborted: 0 });
  });

  it("is partial if a slot had failed by then, and its success rate counts what was tried", () => {
    const { engine, group } = opened(SUCCESSES(1));
    end(engine, 0, failure("rejected"));
    end(engine, 1);
    giveUpStopped(engine.state, 50);
    expect([group.status, group.metrics(50).success_rate]).toEqual(["partial", 0.5]);
  });

  it("saves nothing if its last slot meets it", () => {
    const { engine, group } = opened(SUCCESSES(2), { slots: 2 });
    end(engine, 0);
    end(engine, 1);
    expect([group.status, group.saved, group.drained]).toEqual(["completed", null, null]);
  });

  it("runs on in shadow mode, with what a stop would have saved, and reports it with its end", () => {
    const { engine, group } = opened(SUCCESSES(1, true), { slots: 6, width: 4 });
    end(engine, 0);
    expect([group.drained, group.saved]).toMatchObject([null, { calls: 2, aborted: 3, worstNanoUsd: 600 }]);
    engine.startAll(60);
    for (let index = 1; index < 6; index++) {
      end(engine, index, success(), 80 + index);
      engine.startAll(80 + index);
    }
    expect([group.status, group.counts.completed, group.saved?.atMs]).toEqual(["completed", 6, 50]);
    const events = engine.state.log.take()?.events ?? [];
    expect(events.find(({ event }) => event === "group_completed")).toMatchObject({
      saved: { calls: 2, shadow: true },
    });
  });

  it("does nothing to other groups", () => {
    const { engine, group } = opened(SUCCESSES(1), { width: 8, slots: 4 });
    const other = engine.open(alike(2));
    engine.startAll(10);
    end(engine, 0);
    giveUpStopped(engine.state, 50);
    expect(group.done).toBe(true);
    expect(other.counts).toMatchObject({ running: 2 });
  });
});

it("counts no error as an answer", () => {
  const { engine, group } = opened(SUCCESSES(3), { slots: 4 });
  for (let index = 0; index < 3; index++) end(engine, index, failure("rejected"));
  expect([group.drained, group.saved]).toEqual([null, null]);
});
