/** What of a pull worker's report counts: random reports, reservations and limits, in a run, its parent and the day. */
import { describe, expect, it } from "vitest";
import { chargeFor, type Reserved } from "../../../../src/run/money/charge.ts";
import {
  DIMENSIONS,
  Ledger,
  NO_LIMITS,
  zeroAmounts,
  type Amounts,
  type Limits,
} from "../../../../src/run/money/ledger.ts";
import { refusedClaim, type ClaimedUsage } from "../../../../src/run/pull/claimed-cost.ts";
import { PLAIN_PRICE, seeded, success } from "../../../support/engine.ts";

const amounts = { usd: 100, calls: 1, prompt_tokens: 40, completion_tokens: 30, new_tokens: 70 };
const under = (limits: Partial<Limits>): Reserved => ({
  amounts,
  price: PLAIN_PRICE,
  priced: {},
  pulledUnder: { ...NO_LIMITS, ...limits },
});
const claim = (promptTokens: number, completionTokens: number, costUsd?: number): ClaimedUsage => ({
  promptTokens,
  completionTokens,
  ...(costUsd === undefined ? {} : { costUsd }),
});

describe("a worker's report", () => {
  it("is taken up to the reservation, and refused one above it, in each dimension with a limit", () => {
    expect(refusedClaim(claim(40, 30, 100e-9), under({ usd: 1_000, prompt_tokens: 99, completion_tokens: 99 }))).toBe(
      null,
    );
    expect(refusedClaim(claim(41, 30), under({ prompt_tokens: 99 }))).toMatchObject({ param: "usage.prompt_tokens" });
    expect(refusedClaim(claim(40, 31), under({ completion_tokens: 9 }))).toMatchObject({
      param: "usage.completion_tokens",
    });
    expect(refusedClaim(claim(0, 0, 101e-9), under({ usd: 1_000 }))).toMatchObject({ param: "usage.cost" });
    expect(refusedClaim(claim(40, 31), under({ usd: 1_000 }))).toMatchObject({ param: "usage" });
  });

  it("is taken as it is where nothing is limited: there a reservation is a guess", () => {
    expect(refusedClaim(claim(9_999, 9_999, 5), under({}))).toBe(null);
    const outcome = success({ promptTokens: 9_999, completionTokens: 9_999 });
    expect(chargeFor(outcome, under({})).charge).toMatchObject({ prompt_tokens: 9_999, completion_tokens: 9_999 });
  });

  it("that was not refused still counts up to the reservation", () => {
    const outcome = success({ promptTokens: 9_999, completionTokens: 9_999, costNanoUsd: 1e15 });
    expect(chargeFor(outcome, under({ usd: 1_000, prompt_tokens: 99 })).charge).toEqual({
      usd: 100,
      calls: 1,
      prompt_tokens: 40,
      completion_tokens: 9_999,
      new_tokens: 19_998,
    });
  });
});

describe("what a child spent", () => {
  const limits: Limits = { ...NO_LIMITS, usd: 1_000, prompt_tokens: 500 };
  const of = (values: Partial<Amounts>): Amounts => ({ ...zeroAmounts(), ...values });
  const parent = (): Ledger => {
    const ledger = new Ledger(limits);
    ledger.reserveForChild("child", of({ usd: 100, prompt_tokens: 50 }));
    return ledger;
  };

  it("counts up to its reservation and its own overruns, in each dimension with a limit", () => {
    const ledger = parent();
    const spent = { usd: 1e15, calls: 7, prompt_tokens: 60, completion_tokens: 9_999, new_tokens: 10_059 };
    expect(ledger.settleChild("child", spent, of({ usd: 30, prompt_tokens: 10 }))).toEqual({
      usd: 130,
      calls: 7,
      prompt_tokens: 60,
      completion_tokens: 9_999,
      new_tokens: 10_059,
    });
    expect(ledger.overrun).toEqual(of({ usd: 30, prompt_tokens: 10 }));
    const restored = new Ledger(limits);
    restored.restoreEndedChild(of({ usd: 100, prompt_tokens: 50 }), { ...ledger.spent });
    expect([restored.spent, restored.overrun]).toEqual([ledger.spent, ledger.overrun]);
  });

  it("never exceeds a limit by more than overruns, in 500 random trees of attempts and children", () => {
    const random = seeded(11);
    const upTo = (most: number): number => Math.floor(random() * (most + 1));
    for (let tree = 0; tree < 500; tree++) {
      const root = new Ledger(limits);
      for (let child = 0; child < 8; child++) settleOne(root, `c${child}`, upTo);
      for (const dimension of DIMENSIONS) {
        const limit = limits[dimension];
        if (limit !== null) expect(root.spent[dimension]).toBeLessThanOrEqual(limit + root.overrun[dimension]);
      }
    }
  });
});

/** A child that settles hostile reports of workers, and now and then a bill of a provider above its reservation. */
function settleOne(root: Ledger, id: string, upTo: (most: number) => number): void {
  const given = { usd: upTo(400), calls: 0, prompt_tokens: upTo(200), completion_tokens: 0, new_tokens: upTo(200) + 0 };
  if (!root.reserveForChild(id, given)) return;
  const limits = { ...NO_LIMITS, usd: given.usd, prompt_tokens: given.prompt_tokens };
  const ledger = new Ledger(limits);
  for (let attempt = 0; attempt < 6; attempt++) {
    const reserved = {
      usd: upTo(80),
      calls: 1,
      prompt_tokens: upTo(40),
      completion_tokens: 5,
      new_tokens: upTo(40) + 5,
    };
    const attemptId = `${id}.${attempt}`;
    if (!ledger.reserve(attemptId, reserved)) continue;
    const isPulled = upTo(3) > 0;
    const outcome = success({ promptTokens: upTo(1e6), completionTokens: upTo(1e6), costNanoUsd: upTo(1e12) });
    const bound = { amounts: reserved, price: PLAIN_PRICE, priced: {} };
    ledger.settle(attemptId, chargeFor(outcome, isPulled ? { ...bound, pulledUnder: limits } : bound).charge);
  }
  root.settleChild(id, ledger.spent, ledger.overrun);
}
