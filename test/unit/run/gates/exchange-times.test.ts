import { describe, expect, it } from "vitest";
import { ExchangeTimes, type Situation } from "../../../../src/run/gates/exchange-times.ts";
import { GATE_GAP_MS } from "../../../../src/limits.ts";

/** A run with one attempt in flight, whose gate has granted what is due again at `nextAtMs`. */
const nextAt = (nextAtMs: number, more: Partial<Situation> = {}): number | null => {
  const times = new ExchangeTimes();
  times.reported({ waiting: 0 }, 1_000);
  times.succeeded();
  const grant = { nextAtMs, wakeAtMs: nextAtMs, isShort: true };
  const news = { isUrgent: false, hasRetired: false, owes: false };
  const situation = { inFlight: 1, grant, isOpen: false, ...news, isHalfUsed: false, isHeldUp: true, ...more };
  return times.nextMs({ waiting: 0 }, situation);
};

describe("the next exchange of a run", () => {
  it("is when its grant says", () => {
    expect(nextAt(1_000 + 2 * GATE_GAP_MS)).toBe(1_000 + 2 * GATE_GAP_MS);
  });

  it("is at once for a run that has told readers of its counts that it exchanges before it counts more, once it calls", () => {
    expect(nextAt(99_000, { hasRetired: true })).toBe(1_000);
    expect(nextAt(99_000, { hasRetired: true, inFlight: 0 })).toBe(null);
  });

  it("is due without a call for a run that has counted something of which the gate may not know", () => {
    expect(nextAt(99_000, { owes: true, inFlight: 0 })).toBe(99_000);
  });

  it("is never sooner than the shortest time between two, whatever its grant says", () => {
    expect([nextAt(1_000), nextAt(0)]).toEqual([1_000 + GATE_GAP_MS, 1_000 + GATE_GAP_MS]);
  });
});
