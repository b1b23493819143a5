import { describe, expect, it } from "vitest";
import { reservationFor } from "../../../../src/run/money/allocate.ts";
import {
  DIMENSIONS,
  Ledger,
  NO_LIMITS,
  zeroAmounts,
  type Amounts,
  type Limits,
} from "../../../../src/run/money/ledger.ts";

const amounts = (fields: Partial<Amounts>): Amounts => ({ ...zeroAmounts(), ...fields });
const limits = (fields: Partial<Limits>): Limits => ({ ...NO_LIMITS, ...fields });

/** A run of 100 nano-USD and 10 calls, with a reservation of 40 and 4 for one child. */
function parent(): Ledger {
  const ledger = new Ledger(limits({ usd: 100, calls: 10 }));
  ledger.reserveForChild("child", amounts({ usd: 40, calls: 4 }));
  return ledger;
}

const figures = ({ spent, reserved, reservedByChildren }: Ledger): Record<string, Amounts> => ({
  spent: { ...spent },
  reserved: { ...reserved },
  reservedByChildren: { ...reservedByChildren },
});

describe("a child's reservation", () => {
  it("counts as reserved in full, and not as an attempt", () => {
    const ledger = parent();
    expect(ledger.reserved).toEqual(amounts({ usd: 40, calls: 4 }));
    expect(ledger.reservedByChildren).toEqual(ledger.reserved);
    expect([ledger.remaining("usd"), ledger.openCount]).toEqual([60, 0]);
  });

  it.each(DIMENSIONS)("takes all that is left in %s, and not one more", (dimension) => {
    const ledger = new Ledger(limits({ [dimension]: 10 }));
    ledger.reserve("attempt", amounts({ [dimension]: 3 }));
    const before = figures(ledger);
    expect(ledger.reserveForChild("child", amounts({ [dimension]: 8 }))).toBe(false);
    expect(figures(ledger)).toEqual(before);
    expect(ledger.reserveForChild("child", amounts({ [dimension]: 7 }))).toBe(true);
    expect(ledger.remaining(dimension)).toBe(0);
    expect(ledger.reserve("more", amounts({ [dimension]: 1 }))).toBe(false);
  });

  it("is made once per child", () => {
    const ledger = parent();
    expect(ledger.reserveForChild("child", amounts({ usd: 1 }))).toBe(false);
    expect(ledger.reserved.usd).toBe(40);
  });

  it("does not collide with the reservation of an attempt of the same name", () => {
    const ledger = parent();
    expect(ledger.reserve("child", amounts({ usd: 10 }))).toBe(true);
    ledger.settle("child", amounts({ usd: 3 }));
    expect([ledger.spent.usd, ledger.reservedByChildren.usd, ledger.reserved.usd]).toEqual([3, 40, 40]);
  });

  it("settles once: what the child spent is spent, the rest is free", () => {
    const ledger = parent();
    expect(ledger.settleChild("child", amounts({ usd: 15, calls: 1 }))).toEqual(amounts({ usd: 15, calls: 1 }));
    expect(ledger.settleChild("child", amounts({ usd: 15, calls: 1 }))).toBeNull();
    expect(ledger.spent).toEqual(amounts({ usd: 15, calls: 1 }));
    expect([ledger.reserved, ledger.reservedByChildren]).toEqual([zeroAmounts(), zeroAmounts()]);
    expect(ledger.resizeChild("child", amounts({ usd: 1 }))).toBe(false);
  });

  it("settles for more than was reserved when an upstream overran the child, which shows as an overrun here", () => {
    const ledger = parent();
    ledger.settleChild("child", amounts({ usd: 130, calls: 4 }));
    expect(ledger.remaining("usd")).toBe(-30);
    expect(ledger.reserveForChild("next", zeroAmounts())).toBe(false);
  });

  it("neither settles nor changes for an unknown child", () => {
    const ledger = parent();
    expect(ledger.settleChild("stranger", amounts({ usd: 1 }))).toBeNull();
    expect(ledger.resizeChild("stranger", amounts({ usd: 1 }))).toBe(false);
    expect(ledger.reserved.usd).toBe(40);
  });

  it("is not refused when it is taken over from storage", () => {
    const ledger = new Ledger(limits({ usd: 10 }));
    ledger.restoreChild("child", amounts({ usd: 15 }));
    expect([ledger.remaining("usd"), ledger.reservedByChildren.usd]).toEqual([-5, 15]);
  });
});

describe("a child's reservation that changes", () => {
  it("rises to all that is left, and not one more", () => {
    const ledger = parent();
    expect(ledger.resizeChild("child", amounts({ usd: 101, calls: 4 }))).toBe(false);
    expect(ledger.reserved.usd).toBe(40);
    expect(ledger.resizeChild("child", amounts({ usd: 100, calls: 4 }))).toBe(true);
    expect([ledger.reservedByChildren.usd, ledger.reserved.usd, ledger.remaining("usd")]).toEqual([100, 100, 0]);
  });

  it("falls, even when another dimension has been overrun", () => {
    const ledger = parent();
    ledger.restoreSpent(amounts({ calls: 9 }));
    expect(ledger.remaining("calls")).toBe(-3);
    expect(ledger.resizeChild("child", amounts({ usd: 10, calls: 4 }))).toBe(true);
    expect([ledger.reservedByChildren.usd, ledger.reservedByChildren.calls]).toEqual([10, 4]);
    expect(ledger.resizeChild("child", amounts({ usd: 10, calls: 5 }))).toBe(false);
  });

  it("settles the amounts of its last change", () => {
    const ledger = parent();
    ledger.resizeChild("child", amounts({ usd: 70, calls: 1 }));
    ledger.settleChild("child", amounts({ usd: 5 }));
    expect([ledger.reserved, ledger.reservedByChildren, ledger.spent.usd]).toEqual([zeroAmounts(), zeroAmounts(), 5]);
  });
});

describe("the idle budget", () => {
  it("includes the reservations of attempts in flight, not those of children: they may live for weeks", () => {
    const ledger = parent();
    ledger.reserve("attempt", amounts({ usd: 60 }));
    expect(ledger.idle("usd")).toBe(60);
    ledger.settleChild("child", zeroAmounts());
    expect(ledger.idle("usd")).toBe(100);
  });
});

describe("new limits", () => {
  const busy = (): Ledger => {
    const ledger = parent();
    ledger.reserve("attempt", amounts({ usd: 10, calls: 1 }));
    ledger.restoreSpent(amounts({ usd: 5, calls: 1 }));
    return ledger;
  };

  it("may fall to what is spent and reserved, and not below", () => {
    const ledger = busy();
    expect(ledger.committed("usd")).toBe(55);
    expect(ledger.setLimits(limits({ usd: 54, calls: 10 }))).toBe("usd");
    expect(ledger.setLimits(limits({ usd: 55, calls: 5 }))).toBe("calls");
    expect(ledger.limits).toEqual(limits({ usd: 100, calls: 10 }));
    expect(ledger.setLimits(limits({ usd: 55, calls: 6 }))).toBeNull();
    expect([ledger.remaining("usd"), ledger.remaining("calls")]).toEqual([0, 0]);
  });

  it("may rise, be removed, and be set for a dimension that had none", () => {
    const ledger = busy();
    expect(ledger.setLimits(limits({ usd: 1_000, completion_tokens: 0 }))).toBeNull();
    expect([ledger.remaining("usd"), ledger.remaining("calls"), ledger.remaining("completion_tokens")]).toEqual([
      945,
      null,
      0,
    ]);
  });

  it("are accepted in a dimension that an upstream has overrun if they leave it as it is", () => {
    const ledger = new Ledger(limits({ usd: 10, calls: 5 }));
    ledger.restoreSpent(amounts({ usd: 12 }));
    expect(ledger.setLimits(limits({ usd: 10, calls: 9 }))).toBeNull();
    expect(ledger.setLimits(limits({ usd: 11, calls: 9 }))).toBe("usd");
    expect(ledger.setLimits(limits({ usd: 12, calls: 9 }))).toBeNull();
  });
});

describe("the reservation for a run's limits", () => {
  it("is its limits, and zero in a dimension without one", () => {
    expect(reservationFor(limits({ usd: 7, completion_tokens: 0 }))).toEqual(amounts({ usd: 7 }));
    expect(reservationFor(NO_LIMITS)).toEqual(zeroAmounts());
  });
});
