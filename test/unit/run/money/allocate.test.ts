import { describe, expect, it } from "vitest";
import { allocate } from "../../../../src/run/money/allocate.ts";
import {
  DIMENSIONS,
  Ledger,
  NO_LIMITS,
  zeroAmounts,
  type Amounts,
  type Limits,
} from "../../../../src/run/money/ledger.ts";
import { toWire } from "../../../../src/errors.ts";

const limits = (fields: Partial<Limits>): Limits => ({ ...NO_LIMITS, ...fields });
const amounts = (fields: Partial<Amounts>): Amounts => ({ ...zeroAmounts(), ...fields });

function parentOf(fields: Partial<Limits>, spent: Partial<Amounts> = {}): Ledger {
  const ledger = new Ledger(limits(fields));
  ledger.restoreSpent(amounts(spent));
  return ledger;
}

const EIGHT = { shares: 8, siblings: zeroAmounts() };

describe("equal shares", () => {
  it.each([2, 5, 64])("of %i children that are opened at once are equal, and fit what the parent has", (shares) => {
    const parent = parentOf({ usd: 1_000_000_000 }, { usd: 123_456_789 });
    const siblings = zeroAmounts();
    const given: (number | null)[] = [];
    for (let child = 0; child < shares; child += 1) {
      const allocated = allocate(NO_LIMITS, parent, { shares, siblings });
      if (!allocated.ok) throw new Error("was refused");
      parent.reserveForChild(String(child), allocated.reservation);
      siblings.usd += allocated.reservation.usd;
      given.push(allocated.limits.usd);
    }
    expect(new Set(given)).toEqual(new Set([Math.floor(876_543_211 / shares)]));
    expect(parent.remaining("usd")).toBeGreaterThanOrEqual(0);
  });

  it("are smaller after a child that has named its own, and at most what is left", () => {
    const parent = parentOf({ usd: 100, calls: 3 });
    const share = (siblings: Partial<Amounts>) =>
      allocate(NO_LIMITS, parent, { shares: 5, siblings: amounts(siblings) });
    expect(share({})).toMatchObject({ limits: { usd: 20 }, equal: ["usd", "calls"] });
    parent.reserveForChild("a", amounts({ usd: 20 }));
    parent.reserveForChild("named", amounts({ usd: 50 }));
    expect(share({ usd: 20 })).toMatchObject({ limits: { usd: 10 } });
    parent.reserveForChild("more", amounts({ usd: 25 }));
    expect(share({ usd: 20 })).toMatchObject({ limits: { usd: 5 } });
  });
});

describe("a budget allocated from a parent's", () => {
  it("is what the child requests, and reserved in full", () => {
    const requested = limits({ usd: 30, calls: 2, prompt_tokens: 5, completion_tokens: 7, new_tokens: 12 });
    const parent = parentOf({ usd: 100, calls: 10, prompt_tokens: 10, completion_tokens: 10, new_tokens: 20 });
    expect(allocate(requested, parent, EIGHT)).toEqual({
      ok: true,
      limits: requested,
      reservation: requested,
      equal: [],
    });
  });

  it("changes nothing by itself", () => {
    const parent = parentOf({ usd: 100 });
    allocate(limits({ usd: 30 }), parent, EIGHT);
    expect([parent.remaining("usd"), parent.reserved.usd]).toEqual([100, 0]);
  });

  it.each(DIMENSIONS)("is an equal split of what is left, rounded down, if the child leaves out %s", (dimension) => {
    const parent = parentOf({ [dimension]: 100 }, { [dimension]: 15 });
    parent.reserveForChild("sibling", amounts({ [dimension]: 2 }));
    const split = Math.floor(83 / 8);
    expect(allocate(NO_LIMITS, parent, EIGHT)).toEqual({
      ok: true,
      limits: limits({ [dimension]: split }),
      reservation: amounts({ [dimension]: split }),
      equal: [dimension],
    });
    expect(allocate(NO_LIMITS, parent, { shares: 1, siblings: zeroAmounts() })).toMatchObject({
      limits: { [dimension]: 83 },
    });
  });

  it.each(DIMENSIONS)("may be all that is left of %s; one more is refused with the field named", (dimension) => {
    const parent = parentOf({ [dimension]: 1_000 }, { [dimension]: 300 });
    expect(allocate(limits({ [dimension]: 700 }), parent, EIGHT)).toMatchObject({
      ok: true,
      reservation: { [dimension]: 700 },
    });
    const refused = allocate(limits({ [dimension]: 701 }), parent, EIGHT);
    if (refused.ok) throw new Error("was not refused");
    const shown = (amount: number): number => (dimension === "usd" ? amount / 1e9 : amount);
    const facts = { limit: shown(1_000), spent: shown(300), reserved: 0, remaining: shown(700), needed: shown(701) };
    expect(refused.reason).toEqual({ reason: "budget_exhausted", dimension, ...facts, param: `budget.${dimension}` });
    const { status, error } = toWire(refused.reason);
    expect([status, error.code, error.param]).toEqual([402, "budget_exhausted", `budget.${dimension}`]);
  });

  it("reserves nothing from a parent without limits, and has only the limits that it requests", () => {
    expect(allocate(NO_LIMITS, parentOf({}), EIGHT)).toEqual({
      ok: true,
      limits: NO_LIMITS,
      reservation: zeroAmounts(),
      equal: [],
    });
    const requested = limits({ usd: 5 });
    expect(allocate(requested, parentOf({}), EIGHT)).toEqual({
      ok: true,
      limits: requested,
      reservation: amounts({ usd: 5 }),
      equal: [],
    });
  });

  it("may be zero, when it is requested or when the parent has spent all", () => {
    expect(allocate(limits({ usd: 0 }), parentOf({ usd: 100 }), EIGHT)).toMatchObject({ ok: true, limits: { usd: 0 } });
    const spent = parentOf({ usd: 100 }, { usd: 100 });
    expect(allocate(NO_LIMITS, spent, EIGHT)).toMatchObject({ ok: true, limits: { usd: 0 } });
    expect(allocate(limits({ usd: 1 }), spent, EIGHT)).toMatchObject({ ok: false });
  });

  it("is refused by a parent that an upstream has overrun, whatever it requests", () => {
    const overrun = parentOf({ usd: 100 }, { usd: 101 });
    expect(allocate(NO_LIMITS, overrun, EIGHT)).toMatchObject({
      ok: false,
      reason: { param: "budget.usd", remaining: 0 },
    });
    expect(allocate(limits({ usd: 0 }), overrun, EIGHT)).toMatchObject({ ok: false });
  });
});
