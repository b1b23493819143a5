import { describe, expect, it } from "vitest";
import { ExchangeTimes } from "../../../../src/run/gates/exchange-times.ts";
import { GATE_GAP_MS } from "../../../../src/limits.ts";

/** A run with one attempt in flight, whose gate has granted what is due again at `nextAtMs`. */
const nextAt = (nextAtMs: number): number | null => {
  const times = new ExchangeTimes();
  times.reported({ waiting: 0 }, 1_000);
  times.succeeded();
  const grant = { nextAtMs, wakeAtMs: nextAtMs, isShort: true };
  const situation = { inFlight: 1, grant, isOpen: false, isUrgent: false, isHalfUsed: false, isHeldUp: true };
  return times.nextMs({ waiting: 0 }, situation);
};

describe("the next exchange of a run", () => {
  it("is when its grant says", () => {
    expect(nextAt(1_000 + 2 * GATE_GAP_MS)).toBe(1_000 + 2 * GATE_GAP_MS);
  });

  it("is never sooner than the shortest time between two, whatever its grant says", () => {
    expect([nextAt(1_000), nextAt(0)]).toEqual([1_000 + GATE_GAP_MS, 1_000 + GATE_GAP_MS]);
  });
});
