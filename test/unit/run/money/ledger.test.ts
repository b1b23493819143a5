import { describe, expect, it } from "vitest";
import {
  DIMENSIONS,
  Ledger,
  NO_LIMITS,
  addAmounts,
  zeroAmounts,
  type Amounts,
} from "../../../../src/run/money/ledger.ts";
import type { Dimension } from "../../../../src/errors.ts";

const amounts = (fields: Partial<Amounts>): Amounts => ({ ...zeroAmounts(), ...fields });
const only = (dimension: Dimension, amount: number): Amounts => amounts({ [dimension]: amount });
const limitedTo = (dimension: Dimension, limit: number): Ledger => new Ledger({ ...NO_LIMITS, [dimension]: limit });

describe.each(DIMENSIONS)("a limit of %s", (dimension) => {
  it("accepts reservations up to it, and not one more", () => {
    const ledger = limitedTo(dimension, 10);
    expect(ledger.reserve("a", only(dimension, 7))).toBe(true);
    expect(ledger.reserve("b", only(dimension, 4))).toBe(false);
    expect(ledger.reserve("c", only(dimension, 3))).toBe(true);
    expect(ledger.reserve("d", only(dimension, 1))).toBe(false);
    expect(ledger.reserve("e", zeroAmounts())).toBe(true);
    expect(ledger.reserved[dimension]).toBe(10);
    expect(ledger.remaining(dimension)).toBe(0);
  });

  it("counts spending like reservations", () => {
    const ledger = limitedTo(dimension, 10);
    ledger.restoreSpent(only(dimension, 6));
    expect(ledger.shortfall(only(dimension, 5))).toBe(dimension);
    expect(ledger.shortfall(only(dimension, 4))).toBeNull();
  });

  it("has what would be left without reservations as idle", () => {
    const ledger = limitedTo(dimension, 10);
    ledger.restoreSpent(only(dimension, 2));
    ledger.reserve("a", only(dimension, 8));
    expect([ledger.idle(dimension), ledger.remaining(dimension)]).toEqual([8, 0]);
  });

  it("shows an overrun, and accepts nothing after it", () => {
    const ledger = limitedTo(dimension, 10);
    ledger.reserve("a", only(dimension, 5));
    expect(ledger.settle("a", only(dimension, 12))).toEqual([dimension]);
    expect(ledger.remaining(dimension)).toBe(-2);
    expect(ledger.reserve("b", zeroAmounts())).toBe(false);
  });

  it("is not overrun by a charge of exactly the reservation", () => {
    const ledger = limitedTo(dimension, 10);
    ledger.reserve("a", only(dimension, 5));
    expect(ledger.settle("a", only(dimension, 5))).toEqual([]);
  });
});

describe("a ledger without limits", () => {
  it("accepts every reservation and counts it", () => {
    const ledger = new Ledger(NO_LIMITS);
    expect(ledger.reserve("a", amounts({ usd: 1e15, calls: 1 }))).toBe(true);
    expect(ledger.reserved).toEqual(amounts({ usd: 1e15, calls: 1 }));
    expect(DIMENSIONS.map((dimension) => ledger.remaining(dimension))).toEqual([null, null, null, null, null]);
  });

  it("is never overrun: no cap was sent", () => {
    const ledger = new Ledger(NO_LIMITS);
    ledger.reserve("a", amounts({ completion_tokens: 4_096 }));
    expect(ledger.settle("a", amounts({ completion_tokens: 5_000 }))).toEqual([]);
    expect(ledger.spent.completion_tokens).toBe(5_000);
  });
});

describe("a reservation", () => {
  const reserved = (): Ledger => {
    const ledger = new Ledger({ usd: 100, calls: 5, prompt_tokens: 100, completion_tokens: 100, new_tokens: 200 });
    ledger.reserve("a", { usd: 60, calls: 1, prompt_tokens: 30, completion_tokens: 20, new_tokens: 50 });
    return ledger;
  };

  it("changes nothing if any dimension is short", () => {
    const ledger = reserved();
    expect(ledger.reserve("b", { usd: 1, calls: 1, prompt_tokens: 71, completion_tokens: 1, new_tokens: 72 })).toBe(
      false,
    );
    expect(ledger.reserved).toEqual({ usd: 60, calls: 1, prompt_tokens: 30, completion_tokens: 20, new_tokens: 50 });
    expect(ledger.openCount).toBe(1);
  });

  it("is made once under its id", () => {
    const ledger = reserved();
    expect(ledger.reserve("a", amounts({ usd: 1 }))).toBe(false);
    expect(ledger.reserved.usd).toBe(60);
  });

  it("settles: the charge is spent, the rest is free", () => {
    const ledger = reserved();
    expect(ledger.settle("a", { usd: 25, calls: 1, prompt_tokens: 30, completion_tokens: 1, new_tokens: 31 })).toEqual(
      [],
    );
    expect(ledger.reserved).toEqual(zeroAmounts());
    expect(ledger.spent).toEqual({ usd: 25, calls: 1, prompt_tokens: 30, completion_tokens: 1, new_tokens: 31 });
    expect([ledger.remaining("usd"), ledger.openCount]).toEqual([75, 0]);
  });

  it("names every dimension in which it was overrun", () => {
    const charge = { usd: 61, calls: 1, prompt_tokens: 30, completion_tokens: 21, new_tokens: 51 };
    expect(reserved().settle("a", charge)).toEqual(["usd", "completion_tokens", "new_tokens"]);
  });

  it("settles once: the second settlement changes nothing", () => {
    const ledger = reserved();
    ledger.settle("a", amounts({ usd: 25 }));
    expect(ledger.settle("a", amounts({ usd: 25 }))).toBeNull();
    expect(ledger.release("a")).toBe(false);
    expect(ledger.spent.usd).toBe(25);
    expect(ledger.reserved.usd).toBe(0);
  });

  it("is released at no charge, once", () => {
    const ledger = reserved();
    expect([ledger.release("a"), ledger.release("a")]).toEqual([true, false]);
    expect([ledger.spent, ledger.reserved]).toEqual([zeroAmounts(), zeroAmounts()]);
    expect(ledger.settle("a", amounts({ usd: 1 }))).toBeNull();
  });

  it("does not settle under an unknown id", () => {
    expect(reserved().settle("x", amounts({ usd: 1 }))).toBeNull();
    expect(reserved().release("x")).toBe(false);
  });

  it("is not refused when it is taken over from storage, and settles like any other", () => {
    const ledger = new Ledger({ ...NO_LIMITS, usd: 10 });
    ledger.restore("a", amounts({ usd: 15 }));
    expect(ledger.remaining("usd")).toBe(-5);
    expect(ledger.settle("a", amounts({ usd: 4 }))).toEqual([]);
    expect(ledger.remaining("usd")).toBe(6);
  });
});

describe("shortfall", () => {
  it("names the first dimension that is short, in the contract's order", () => {
    const ledger = new Ledger({ usd: 5, calls: 5, prompt_tokens: 5, completion_tokens: 5, new_tokens: 10 });
    const need = (...four: [number, number, number, number]) =>
      ledger.shortfall({
        usd: four[0],
        calls: four[1],
        prompt_tokens: four[2],
        completion_tokens: four[3],
        new_tokens: four[2] + four[3],
      });
    expect([need(6, 6, 6, 6), need(5, 6, 6, 6), need(5, 5, 6, 6), need(5, 5, 5, 6), need(5, 5, 5, 5)]).toEqual([
      "usd",
      "calls",
      "prompt_tokens",
      "completion_tokens",
      null,
    ]);
  });
});

describe("adding amounts", () => {
  it("adds in place, several times, and subtracts", () => {
    const sum = { usd: 1, calls: 2, prompt_tokens: 3, completion_tokens: 4, new_tokens: 7 };
    addAmounts(sum, { usd: 10, calls: 20, prompt_tokens: 30, completion_tokens: 40, new_tokens: 70 }, 2);
    expect(sum).toEqual({ usd: 21, calls: 42, prompt_tokens: 63, completion_tokens: 84, new_tokens: 147 });
    addAmounts(sum, sum, -1);
    expect(sum).toEqual(zeroAmounts());
  });
});
