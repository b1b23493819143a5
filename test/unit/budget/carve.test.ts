import { describe, expect, it } from "vitest";
import { carve } from "../../../src/budget/carve.ts";
import { DIMENSIONS, Ledger, NO_LIMITS, zeroAmounts, type Amounts, type Limits } from "../../../src/budget/ledger.ts";
import { toWire } from "../../../src/errors.ts";

const limits = (fields: Partial<Limits>): Limits => ({ ...NO_LIMITS, ...fields });
const amounts = (fields: Partial<Amounts>): Amounts => ({ ...zeroAmounts(), ...fields });

function parentOf(fields: Partial<Limits>, spent: Partial<Amounts> = {}): Ledger {
  const ledger = new Ledger(limits(fields));
  ledger.restoreSpent(amounts(spent));
  return ledger;
}

describe("a budget carved from a parent's", () => {
  it("is what the child asks for, and held in full", () => {
    const asked = limits({ usd: 30, calls: 2, prompt_tokens: 5, completion_tokens: 7 });
    const parent = parentOf({ usd: 100, calls: 10, prompt_tokens: 10, completion_tokens: 10 });
    expect(carve(asked, parent, 8)).toEqual({ ok: true, limits: asked, hold: asked });
  });

  it("changes nothing by itself", () => {
    const parent = parentOf({ usd: 100 });
    carve(limits({ usd: 30 }), parent, 8);
    expect([parent.remaining("usd"), parent.reserved.usd]).toEqual([100, 0]);
  });

  it.each(DIMENSIONS)("is an equal split of what is left, rounded down, where the child leaves out %s", (dimension) => {
    const parent = parentOf({ [dimension]: 100 }, { [dimension]: 15 });
    parent.hold("sibling", amounts({ [dimension]: 2 }));
    const split = Math.floor(83 / 8);
    expect(carve(NO_LIMITS, parent, 8)).toEqual({
      ok: true,
      limits: limits({ [dimension]: split }),
      hold: amounts({ [dimension]: split }),
    });
    expect(carve(NO_LIMITS, parent, 1)).toMatchObject({ limits: { [dimension]: 83 } });
  });

  it.each(DIMENSIONS)("may be all that is left of %s; one more is refused with the field named", (dimension) => {
    const parent = parentOf({ [dimension]: 1_000 }, { [dimension]: 300 });
    expect(carve(limits({ [dimension]: 700 }), parent, 8)).toMatchObject({ ok: true, hold: { [dimension]: 700 } });
    const refused = carve(limits({ [dimension]: 701 }), parent, 8);
    if (refused.ok) throw new Error("was not refused");
    const shown = (amount: number): number => (dimension === "usd" ? amount / 1e9 : amount);
    const facts = { limit: shown(1_000), spent: shown(300), reserved: 0, remaining: shown(700), needed: shown(701) };
    expect(refused.reason).toEqual({ reason: "budget_exhausted", dimension, ...facts, param: `budget.${dimension}` });
    const { status, error } = toWire(refused.reason);
    expect([status, error.code, error.param]).toEqual([402, "budget_exhausted", `budget.${dimension}`]);
  });

  it("holds nothing of a parent without limits, and has only the limits that it asks for", () => {
    expect(carve(NO_LIMITS, parentOf({}), 8)).toEqual({ ok: true, limits: NO_LIMITS, hold: zeroAmounts() });
    const asked = limits({ usd: 5 });
    expect(carve(asked, parentOf({}), 8)).toEqual({ ok: true, limits: asked, hold: amounts({ usd: 5 }) });
  });

  it("may be nothing: a child of zero, or of a parent that has spent all", () => {
    expect(carve(limits({ usd: 0 }), parentOf({ usd: 100 }), 8)).toMatchObject({ ok: true, limits: { usd: 0 } });
    const spent = parentOf({ usd: 100 }, { usd: 100 });
    expect(carve(NO_LIMITS, spent, 8)).toMatchObject({ ok: true, limits: { usd: 0 } });
    expect(carve(limits({ usd: 1 }), spent, 8)).toMatchObject({ ok: false });
  });

  it("is refused by a parent that an upstream has overrun, whatever it asks for", () => {
    const overrun = parentOf({ usd: 100 }, { usd: 101 });
    expect(carve(NO_LIMITS, overrun, 8)).toMatchObject({ ok: false, reason: { param: "budget.usd", remaining: 0 } });
    expect(carve(limits({ usd: 0 }), overrun, 8)).toMatchObject({ ok: false });
  });
});
