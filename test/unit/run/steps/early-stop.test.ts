/** A group that stops early: what is cancelled, aborted and saved, and the same after a restart. */
import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../../src/call.ts";
import type { StopRule } from "../../../../src/run/answers/early-stop.ts";
import { giveUpStopped } from "../../../../src/run/steps/stopping.ts";
import type { Group } from "../../../../src/run/group/group.ts";
import { nextReadyMs } from "../../../../src/run/steps/next-ready.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import { alike, failure, makeTarget, success, TestEngine } from "../../../support/engine.ts";

const PLAIN = (n: number): StopRule => ({ kind: "n_success", n, shadow: false });
/** At the full width to the end, with an abort of what is in flight. */
const SUCCESSES = (n: number, shadow = false): StopRule => ({ ...PLAIN(n), shadow, inFlight: "abort", hurry: true });
/** By PLAIN_PRICE: 100 prompt tokens at most and 100 completion tokens at twice the price. */
const WORST_NANO_USD = 300;

function opened(rule: StopRule, { slots = 10, width = 4, fields = {} } = {}) {
  const engine = new TestEngine({ width });
  const group = engine.open(alike(slots, { promptBytes: 92, ...fields }), { rules: { stopWhen: rule } });
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

  it("charges what was seen of the streams that it stops where an abort costs that, and counts that as the price of the stop", () => {
    const engine = new TestEngine({ width: 3, limits: { usd: 10_000 }, targets: [makeTarget({ abortCost: "seen" })] });
    const group = engine.open(alike(4, { promptBytes: 92 }), { rules: { stopWhen: SUCCESSES(1) } });
    engine.startAll(0);
    end(engine, 0);
    for (const nowMs of [50, 51]) giveUpStopped(engine.state, nowMs);
    expect([...engine.state.givenUp.takeOfLanes().values()]).toEqual([[`${slotIdOf(1, 1)}.1`, `${slotIdOf(1, 2)}.1`]]);
    expect([group.done, group.saved?.aborted, engine.state.ledger.spent.usd]).toEqual([false, 0, 0]);
    const reason = { reason: "cancelled", message: "as its executor says it" } as const;
    const facts = { class: "unknown", answered: false, retryAfterMs: null, latencyMs: 60 } as const;
    end(engine, 1, { kind: "failure", ...facts, reason, seen: { promptTokens: 10, completionTokens: 2 } }, 60);
    // An answer that was there before its executor was to stop is one of the batch, and costs what it costs.
    end(engine, 2, success({ promptTokens: 7, completionTokens: 4 }), 60);
    expect([group.status, group.counts]).toMatchObject(["completed", { completed: 2, cancelled: 2 }]);
    expect(group.saved).toMatchObject({ aborted: 1, abortedNanoUsd: 210 });
    expect(engine.state.ledger.spent.usd).toBe(210 + 15);
    const rows = engine.state.takeWrites().slots;
    expect(rows.find(({ id }) => id === slotIdOf(1, 1))?.reason).toEqual(group.drained?.reason);
  });

  it("has saved the calls that it had not begun, at what a quote says", () => {
    const { engine, group } = opened(SUCCESSES(1));
    end(engine, 0, success(), 70);
    expect(group.saved).toEqual({
      calls: 6,
      aborted: 0,
      worstNanoUsd: 6 * WORST_NANO_USD,
      likelyNanoUsd: expect.any(Number),
      abortedNanoUsd: 0,
      netNanoUsd: group.saved?.likelyNanoUsd,
      atMs: 70,
    });
    giveUpStopped(engine.state, 70);
    expect(group.saved).toMatchObject({ aborted: 3, abortedNanoUsd: 3 * WORST_NANO_USD });
    // The answer has cost nothing, so what was aborted has cost all of its charge too much.
    expect(group.saved?.netNanoUsd).toBe((group.saved?.likelyNanoUsd ?? 0) - 3 * WORST_NANO_USD);
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

describe("what is in flight when an early stop is met", () => {
  const PAID = success({ promptTokens: 5, completionTokens: 1 });
  const FULL = { ...PLAIN(1), hurry: true } as const;

  it("ends by itself, is charged exactly, and its answer is kept", () => {
    const { engine, group } = opened(FULL);
    end(engine, 0, PAID);
    giveUpStopped(engine.state, 50);
    expect([group.counts, group.done]).toMatchObject([{ completed: 1, running: 3, cancelled: 6 }, false]);
    for (const index of [1, 2, 3]) end(engine, index, PAID, 60);
    expect([group.done, group.status, group.counts.completed]).toEqual([true, "completed", 4]);
    expect([engine.state.ledger.spent.usd, engine.state.stopped.has(group)]).toEqual([4 * 7, true]);
    giveUpStopped(engine.state, 60);
    expect(engine.state.stopped.has(group)).toBe(false);
    expect(group.saved).toMatchObject({ aborted: 0, abortedNanoUsd: 0, netNanoUsd: group.saved?.likelyNanoUsd });
  });

  it("is not tried again if it fails", () => {
    const { engine, group } = opened(FULL, { slots: 2, width: 2 });
    end(engine, 0, PAID);
    giveUpStopped(engine.state, 50);
    end(engine, 1, failure("transient"), 60);
    expect([group.done, group.status]).toEqual([true, "partial"]);
  });

  it("is given up once it takes ten times as long as the answers, and at least a second", () => {
    const slow = { ...PAID, latencyMs: 300 };
    const { engine, group } = opened(FULL);
    end(engine, 0, slow, 300);
    giveUpStopped(engine.state, 300);
    expect(nextReadyMs(engine.state, 300)).toBe(3_000);
    giveUpStopped(engine.state, 2_999);
    expect(group.counts.running).toBe(3);
    giveUpStopped(engine.state, 3_000);
    expect([group.done, group.counts.cancelled]).toEqual([true, 9]);
    expect(group.saved).toMatchObject({ aborted: 3, abortedNanoUsd: 900 });
    const quick = opened(FULL);
    end(quick.engine, 0, { ...PAID, latencyMs: 1 }, 1);
    giveUpStopped(quick.engine.state, 1);
    expect(nextReadyMs(quick.engine.state, 1)).toBe(1_000);
  });

  it("is given up at once where that costs nothing, and never with `finish`", () => {
    const free = opened(FULL, { fields: { price: { input: 0, output: 0 } } });
    const stuck = opened({ ...FULL, inFlight: "finish" });
    end(stuck.engine, 0, PAID);
    giveUpStopped(stuck.engine.state, 600_000);
    expect([stuck.group.counts.running, stuck.engine.state.stopped.size]).toEqual([3, 0]);
    expect(free.group.counts.running).toBe(4);
  });
});

describe("the width of a group near its early stop", () => {
  const said = (text: string): Outcome => {
    const outcome = success();
    return outcome.kind === "success" ? { ...outcome, text } : outcome;
  };
  const running = (rule: StopRule, width = 6) => opened(rule, { width }).group.inFlight;
  const QUORUM: StopRule = { kind: "quorum", of: 3, agree: 0.75, comparison: { by: "normalized" }, shadow: false };

  it("is what may still be needed, and with `hurry`, in shadow mode and for a pattern the full width", () => {
    expect([running(PLAIN(2)), running(QUORUM)]).toEqual([2, 3]);
    const full = [{ ...PLAIN(2), hurry: true } as const, { ...PLAIN(2), shadow: true }];
    expect(full.map((rule) => running(rule))).toEqual([6, 6]);
    expect(running({ kind: "regex", source: "x", flags: "", shadow: false })).toBe(6);
  });

  it("follows the answers: fewer are needed after each, and more where votes disagree or calls fail", () => {
    const { engine, group } = opened(QUORUM, { width: 6 });
    end(engine, 0, said("yes"));
    expect(group.rules.width).toBe(2);
    end(engine, 1, said("no"));
    // Two more for "yes" are three of four.
    expect(group.rules.width).toBe(2);
    end(engine, 2, failure("rejected"));
    expect(group.rules.width).toBe(3);
  });

  it("does not count an attempt that is stuck: another one starts", () => {
    const { engine, group } = opened(PLAIN(2), { width: 6 });
    end(engine, 0, success(), 20);
    engine.startAll(20);
    expect(group.inFlight).toBe(1);
    expect(nextReadyMs(engine.state, 20)).toBe(1_000);
    engine.startAll(999);
    expect(group.inFlight).toBe(1);
    engine.startAll(1_000);
    expect(group.inFlight).toBe(2);
  });
});
