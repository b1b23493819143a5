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

describe("a budget allocated from a parent's", () => {
  it("is what the child requests, and reserved in full", () => {
    const requested = limits({ usd: 30, calls: 2, prompt_tokens: 5, completion_tokens: 7 });
    const parent = parentOf({ usd: 100, calls: 10, prompt_tokens: 10, completion_tokens: 10 });
    expect(allocate(requested, parent, 8)).toEqual({ ok: true, limits: requested, reservation: requested });
  });

  it("changes nothing by itself", () => {
    const parent = parentOf({ usd: 100 });
    allocate(limits({ usd: 30 }), parent, 8);
    expect([parent.remaining("usd"), parent.reserved.usd]).toEqual([100, 0]);
  });

  it.each(DIMENSIONS)("is an equal split of what is left, rounded down, if the child leaves out %s", (dimension) => {
    const parent = parentOf({ [dimension]: 100 }, { [dimension]: 15 });
    parent.reserveForChild("sibling", amounts({ [dimension]: 2 }));
    const split = Math.floor(83 / 8);
    expect(allocate(NO_LIMITS, parent, 8)).toEqual({
      ok: true,
      limits: limits({ [dimension]: split }),
      reservation: amounts({ [dimension]: split }),
    });
    expect(allocate(NO_LIMITS, parent, 1)).toMatchObject({ limits: { [dimension]: 83 } });
  });

  it.each(DIMENSIONS)("may be all that is left of %s; one more is refused with the field named", (dimension) => {
    const parent = parentOf({ [dimension]: 1_000 }, { [dimension]: 300 });
    expect(allocate(limits({ [dimension]: 700 }), parent, 8)).toMatchObject({
      ok: true,
      reservation: { [dimension]: 700 },
    });
    const refused = allocate(limits({ [dimension]: 701 }), parent, 8);
    if (refused.ok) throw new Error("was not refused");
    const shown = (amount: number): number => (dimension === "usd" ? amount / 1e9 : amount);
    const facts = { limit: shown(1_000), spent: shown(300), reserved: 0, remaining: shown(700), needed: shown(701) };
    expect(refused.reason).toEqual({ reason: "budget_exhausted", dimension, ...facts, param: `budget.${dimension}` });
    const { status, error } = toWire(refused.reason);
    expect([status, error.code, error.param]).toEqual([402, "budget_exhausted", `budget.${dimension}`]);
  });

  it("reserves nothing from a parent without limits, and has only the limits that it requests", () => {
    expect(allocate(NO_LIMITS, parentOf({}), 8)).toEqual({ ok: true, limits: NO_LIMITS, reservation: zeroAmounts() });
    const requested = limits({ usd: 5 });
    expect(allocate(requested, parentOf({}), 8)).toEqual({
      ok: true,
      limits: requested,
      reservation: amounts({ usd: 5 }),
    });
  });

  it("may be zero, when it is requested or when the parent has spent all", () => {
    expect(allocate(limits({ usd: 0 }), parentOf({ usd: 100 }), 8)).toMatchObject({ ok: true, limits: { usd: 0 } });
    const spent = parentOf({ usd: 100 }, { usd: 100 });
    expect(allocate(NO_LIMITS, spent, 8)).toMatchObject({ ok: true, limits: { usd: 0 } });
    expect(allocate(limits({ usd: 1 }), spent, 8)).toMatchObject({ ok: false });
  });

  it("is refused by a parent that an upstream has overrun, whatever it requests", () => {
    const overrun = parentOf({ usd: 100 }, { usd: 101 });
    expect(allocate(NO_LIMITS, overrun, 8)).toMatchObject({ ok: false, reason: { param: "budget.usd", remaining: 0 } });
    expect(allocate(limits({ usd: 0 }), overrun, 8)).toMatchObject({ ok: false });
  });
});
