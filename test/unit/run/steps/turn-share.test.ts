/** What one turn of a run may do at most: ends of slots that had no attempt of their own. Counted, whatever a machine takes for it. */
import { describe, expect, it } from "vitest";
import { cancelGroup, cancelSlot } from "../../../../src/run/steps/cancel.ts";
import { endOwed, settle } from "../../../../src/run/steps/settle.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import { ENDS_PER_TURN_MAX, ITEMS_PER_BATCH_MAX, REPLAYED_UNIT_CHARS } from "../../../../src/limits.ts";
import { alike, success, TestEngine } from "../../../support/engine.ts";

const STOPPED = { reason: "cancelled", message: "by the test" } as const;

/** Turns until nothing more ends, with the ends of each. */
function endsByTurn(engine: TestEngine): number[] {
  const { state } = engine;
  const ends: number[] = [];
  do {
    endOwed(state, 0);
    engine.startAll(0);
    ends.push(state.takeWrites().slots.length);
  } while (state.turnShare.renew());
  return ends;
}

describe("one turn", () => {
  it("refuses so many slots that the budget does not cover, and the turns after it the others", () => {
    const engine = new TestEngine({ limits: { calls: 0 } });
    const group = engine.open(alike(2 * ENDS_PER_TURN_MAX + 100));
    expect(endsByTurn(engine)).toEqual([ENDS_PER_TURN_MAX, ENDS_PER_TURN_MAX, 100]);
    expect([group.status, group.counts.failed]).toEqual(["failed", 2 * ENDS_PER_TURN_MAX + 100]);
  });

  it("gives so many slots the answer of an equal one, and fewer if it is long", () => {
    const engine = new TestEngine();
    const group = engine.open(alike(2 * ENDS_PER_TURN_MAX + 1, { dedupeKey: "k" }));
    expect(engine.startAll(0)).toEqual(["1:0"]);
    engine.state.takeWrites();
    const text = "x".repeat(3 * REPLAYED_UNIT_CHARS);
    settle(engine.state, `${slotIdOf(1, 0)}.1`, Object.assign(success({ completionTokens: 1 }), { text }), 5);
    const ends = endsByTurn(engine);
    // The first turn has the end of the leader too.
    expect(ends).toEqual([1 + ENDS_PER_TURN_MAX / 4, ...Array<number>(7).fill(ENDS_PER_TURN_MAX / 4), 0]);
    expect([group.status, group.counts.completed]).toEqual(["completed", 2 * ENDS_PER_TURN_MAX + 1]);
  });

  it("leaves a slot that was cancelled before its turn came as it is", () => {
    const engine = new TestEngine();
    const group = engine.open(alike(ENDS_PER_TURN_MAX + 2, { dedupeKey: "k" }));
    engine.startAll(0);
    settle(engine.state, `${slotIdOf(1, 0)}.1`, success({ completionTokens: 1 }), 5);
    const last = ENDS_PER_TURN_MAX + 1;
    expect(group.stateOf(last)).toBe("queued");
    cancelSlot(engine.state, group, last, STOPPED, 5);
    endsByTurn(engine);
    expect([group.stateOf(last), group.counts.completed, group.done]).toEqual(["cancelled", last, true]);
  });

  it("stops the largest group with one row and two events", () => {
    const engine = new TestEngine({ width: 1 });
    const group = engine.open(alike(ITEMS_PER_BATCH_MAX));
    const before = engine.state.log.lastSeq;
    cancelGroup(engine.state, group, STOPPED, 5);
    expect([group.status, group.counts.cancelled]).toEqual(["cancelled", ITEMS_PER_BATCH_MAX]);
    expect(engine.state.log.lastSeq - before).toBe(2);
    expect(engine.state.takeWrites()).toMatchObject({ slots: [], groups: [group] });
  });
});
