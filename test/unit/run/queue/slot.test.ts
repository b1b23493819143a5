import { describe, expect, it } from "vitest";
import { groupSeqOf, isFinalState, indexOf, mayStep, SLOT_STATES, slotIdOf } from "../../../../src/run/queue/slot.ts";
import { ITEMS_PER_BATCH_MAX } from "../../../../src/limits.ts";

describe("the state machine of a slot", () => {
  it("has these steps and no others", () => {
    const steps = SLOT_STATES.flatMap((from) =>
      SLOT_STATES.filter((to) => mayStep(from, to)).map((to) => `${from} → ${to}`),
    );
    expect(steps).toEqual([
      "queued → running",
      "queued → completed",
      "queued → failed",
      "queued → skipped",
      "queued → cancelled",
      "running → queued",
      "running → completed",
      "running → failed",
      "running → cancelled",
    ]);
  });

  it("has final states, which no step leaves", () => {
    expect(SLOT_STATES.filter(isFinalState)).toEqual(["completed", "failed", "skipped", "cancelled"]);
  });
});

describe("a slot's id", () => {
  it("is one exact integer that encodes its group and its index", () => {
    const places = [0, 1, ITEMS_PER_BATCH_MAX - 1, 49_999, 65_535];
    for (const seq of [1, 2, 4_000_000, 2 ** 37 - 1]) {
      for (const index of places) {
        const id = slotIdOf(seq, index);
        expect(Number.isSafeInteger(id)).toBe(true);
        expect([groupSeqOf(id), indexOf(id)]).toEqual([seq, index]);
      }
    }
  });

  it("of a group's last index precedes that of the next group's first", () => {
    expect(slotIdOf(7, 65_535) + 1).toBe(slotIdOf(8, 0));
  });
});
