import { describe, expect, it } from "vitest";
import { holdOf } from "../../../src/budget/hold.ts";
import { DIMENSIONS, Ledger, NO_LIMITS, zeroAmounts, type Amounts, type Limits } from "../../../src/budget/ledger.ts";

const amounts = (fields: Partial<Amounts>): Amounts => ({ ...zeroAmounts(), ...fields });
const limits = (fields: Partial<Limits>): Limits => ({ ...NO_LIMITS, ...fields });

/** A run of 100 nano-USD and 10 calls, with one child that holds 40 and 4. */
function parent(): Ledger {
  const ledger = new Ledger(limits({ usd: 100, calls: 10 }));
  ledger.hold("child", amounts({ usd: 40, calls: 4 }));
  return ledger;
}

const figures = ({ spent, reserved, held }: Ledger): Record<string, Amounts> => ({
  spent: { ...spent },
  reserved: { ...reserved },
  held: { ...held },
});

describe("a child's hold", () => {
  it("counts as reserved in full, and as no attempt", () => {
    const ledger = parent();
    expect(ledger.reserved).toEqual(amounts({ usd: 40, calls: 4 }));
    expect(ledger.held).toEqual(ledger.reserved);
    expect([ledger.remaining("usd"), ledger.openCount]).toEqual([60, 0]);
  });

  it.each(DIMENSIONS)("takes all that is left in %s, and not one more", (dimension) => {
    const ledger = new Ledger(limits({ [dimension]: 10 }));
    ledger.reserve("attempt", amounts({ [dimension]: 3 }));
    const before = figures(ledger);
    expect(ledger.hold("child", amounts({ [dimension]: 8 }))).toBe(false);
    expect(figures(ledger)).toEqual(before);
    expect(ledger.hold("child", amounts({ [dimension]: 7 }))).toBe(true);
    expect(ledger.remaining(dimension)).toBe(0);
    expect(ledger.reserve("more", amounts({ [dimension]: 1 }))).toBe(false);
  });

  it("is set aside once per child", () => {
    const ledger = parent();
    expect(ledger.hold("child", amounts({ usd: 1 }))).toBe(false);
    expect(ledger.reserved.usd).toBe(40);
  });

  it("and an attempt of the same name are two things", () => {
    const ledger = parent();
    expect(ledger.reserve("child", amounts({ usd: 10 }))).toBe(true);
    ledger.settle("child", amounts({ usd: 3 }));
    expect([ledger.spent.usd, ledger.held.usd, ledger.reserved.usd]).toEqual([3, 40, 40]);
  });

  it("settles once: what the child spent is spent, the rest is free", () => {
    const ledger = parent();
    expect(ledger.settleHold("child", amounts({ usd: 15, calls: 1 }))).toBe(true);
    expect(ledger.settleHold("child", amounts({ usd: 15, calls: 1 }))).toBe(false);
    expect(ledger.spent).toEqual(amounts({ usd: 15, calls: 1 }));
    expect([ledger.reserved, ledger.held]).toEqual([zeroAmounts(), zeroAmounts()]);
    expect(ledger.resizeHold("child", amounts({ usd: 1 }))).toBe(false);
  });

  it("settles for what a lying upstream made of it, which shows as an overrun", () => {
    const ledger = parent();
    ledger.settleHold("child", amounts({ usd: 130, calls: 4 }));
    expect(ledger.remaining("usd")).toBe(-30);
    expect(ledger.hold("next", zeroAmounts())).toBe(false);
  });

  it("of an unknown child neither settles nor changes", () => {
    const ledger = parent();
    expect(ledger.settleHold("stranger", amounts({ usd: 1 }))).toBe(false);
    expect(ledger.resizeHold("stranger", amounts({ usd: 1 }))).toBe(false);
    expect(ledger.reserved.usd).toBe(40);
  });

  it("taken over from storage is not refused", () => {
    const ledger = new Ledger(limits({ usd: 10 }));
    ledger.restoreHold("child", amounts({ usd: 15 }));
    expect([ledger.remaining("usd"), ledger.held.usd]).toEqual([-5, 15]);
  });
});

describe("a hold that changes", () => {
  it("rises to all that is left, and not one more", () => {
    const ledger = parent();
    expect(ledger.resizeHold("child", amounts({ usd: 101, calls: 4 }))).toBe(false);
    expect(ledger.reserved.usd).toBe(40);
    expect(ledger.resizeHold("child", amounts({ usd: 100, calls: 4 }))).toBe(true);
    expect([ledger.held.usd, ledger.reserved.usd, ledger.remaining("usd")]).toEqual([100, 100, 0]);
  });

  it("falls, also where another dimension has been overrun", () => {
    const ledger = parent();
    ledger.restoreSpent(amounts({ calls: 9 }));
    expect(ledger.remaining("calls")).toBe(-3);
    expect(ledger.resizeHold("child", amounts({ usd: 10, calls: 4 }))).toBe(true);
    expect([ledger.held.usd, ledger.held.calls]).toEqual([10, 4]);
    expect(ledger.resizeHold("child", amounts({ usd: 10, calls: 5 }))).toBe(false);
  });

  it("settles by what it holds by then", () => {
    const ledger = parent();
    ledger.resizeHold("child", amounts({ usd: 70, calls: 1 }));
    ledger.settleHold("child", amounts({ usd: 5 }));
    expect([ledger.reserved, ledger.held, ledger.spent.usd]).toEqual([zeroAmounts(), zeroAmounts(), 5]);
  });
});

describe("waiting for money", () => {
  it("counts on attempts in flight, not on children: those may live for weeks", () => {
    const ledger = parent();
    ledger.reserve("attempt", amounts({ usd: 60 }));
    expect(ledger.couldFit(amounts({ usd: 60 }))).toBe(true);
    expect(ledger.couldFit(amounts({ usd: 61 }))).toBe(false);
    ledger.settleHold("child", zeroAmounts());
    expect(ledger.couldFit(amounts({ usd: 100 }))).toBe(true);
  });
});

describe("new limits", () => {
  const busy = (): Ledger => {
    const ledger = parent();
    ledger.reserve("attempt", amounts({ usd: 10, calls: 1 }));
    ledger.restoreSpent(amounts({ usd: 5, calls: 1 }));
    return ledger;
  };

  it("may fall to what is spent and reserved, and no further", () => {
    const ledger = busy();
    expect(ledger.committed("usd")).toBe(55);
    expect(ledger.setLimits(limits({ usd: 54, calls: 10 }))).toBe("usd");
    expect(ledger.setLimits(limits({ usd: 55, calls: 5 }))).toBe("calls");
    expect(ledger.limits).toEqual(limits({ usd: 100, calls: 10 }));
    expect(ledger.setLimits(limits({ usd: 55, calls: 6 }))).toBeNull();
    expect([ledger.remaining("usd"), ledger.remaining("calls")]).toEqual([0, 0]);
  });

  it("may rise, be lifted, and be set where there was none", () => {
    const ledger = busy();
    expect(ledger.setLimits(limits({ usd: 1_000, completion_tokens: 0 }))).toBeNull();
    expect([ledger.remaining("usd"), ledger.remaining("calls"), ledger.remaining("completion_tokens")]).toEqual([
      945,
      null,
      0,
    ]);
  });

  it("leave a dimension alone that an upstream has overrun, and that they do not change", () => {
    const ledger = new Ledger(limits({ usd: 10, calls: 5 }));
    ledger.restoreSpent(amounts({ usd: 12 }));
    expect(ledger.setLimits(limits({ usd: 10, calls: 9 }))).toBeNull();
    expect(ledger.setLimits(limits({ usd: 11, calls: 9 }))).toBe("usd");
    expect(ledger.setLimits(limits({ usd: 12, calls: 9 }))).toBeNull();
  });
});

describe("what a run of given limits holds", () => {
  it("is its limits, and nothing where it has none", () => {
    expect(holdOf(limits({ usd: 7, completion_tokens: 0 }))).toEqual(amounts({ usd: 7 }));
    expect(holdOf(NO_LIMITS)).toEqual(zeroAmounts());
  });
});
