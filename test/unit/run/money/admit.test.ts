import { describe, expect, it } from "vitest";
import { admit } from "../../../../src/run/money/admit.ts";
import { Ledger, NO_LIMITS, zeroAmounts, type Amounts, type Limits } from "../../../../src/run/money/ledger.ts";
import type { TokenPrice } from "../../../../src/run/money/token-price.ts";
import type { CallFacts } from "../../../../src/call.ts";
import { COMPLETION_TOKENS_DEFAULT } from "../../../../src/limits.ts";
import { makeFacts, PLAIN_PRICE } from "../../../support/engine.ts";

/** A call of at most 100 prompt tokens: with the plain price, 100 nano-USD and 2 per completion token. */
const call = (fields: Partial<CallFacts> = {}): CallFacts => makeFacts({ promptBytes: 92, messageCount: 1, ...fields });

function ledgerWith(
  limits: Partial<Limits>,
  held: { reserved?: Partial<Amounts>; spent?: Partial<Amounts> } = {},
): Ledger {
  const ledger = new Ledger({ ...NO_LIMITS, ...limits });
  if (held.spent !== undefined) ledger.restoreSpent({ ...zeroAmounts(), ...held.spent });
  if (held.reserved !== undefined) ledger.restore("open", { ...zeroAmounts(), ...held.reserved });
  return ledger;
}

const decide = (facts: CallFacts, limits: Partial<Limits>, held = {}, price: TokenPrice | null = PLAIN_PRICE) =>
  admit(facts, price, ledgerWith(limits, held));

describe("a call that fits", () => {
  it("reserves its worst case and is sent with the cap that it requests", () => {
    expect(decide(call({ maxTokens: 50 }), {})).toEqual({
      kind: "reserve",
      amounts: { usd: 200, calls: 1, prompt_tokens: 100, completion_tokens: 50, new_tokens: 150 },
      capTokens: 50,
      capKind: "client",
    });
  });

  it("reserves the default completion if it requests none, and is sent without a cap if no limit needs one", () => {
    const tokens = { prompt_tokens: 100, completion_tokens: COMPLETION_TOKENS_DEFAULT };
    const amounts = { calls: 1, ...tokens, new_tokens: 100 + COMPLETION_TOKENS_DEFAULT };
    const usd = 100 + 2 * COMPLETION_TOKENS_DEFAULT;
    const asking = call({ maxTokens: null });
    const uncapped = { capTokens: null, capKind: "default" };
    expect(decide(asking, {})).toEqual({ kind: "reserve", amounts: { ...amounts, usd }, ...uncapped });
    expect(decide(asking, { calls: 9, prompt_tokens: 999 })).toMatchObject({ kind: "reserve", capTokens: null });
  });

  it.each([{ usd: 1_000_000 }, { completion_tokens: 1_000_000 }])("is capped if %o needs a bound", (limits) => {
    expect(decide(call({ maxTokens: null }), limits)).toMatchObject({ capTokens: COMPLETION_TOKENS_DEFAULT });
  });

  it("without a price is capped for tokens, not for money", () => {
    const asking = call({ maxTokens: null });
    expect(decide(asking, { usd: 0 }, {}, null)).toMatchObject({ amounts: { usd: 0 }, capTokens: null });
    expect(decide(asking, { usd: 0, completion_tokens: 20 }, {}, null)).toMatchObject({ capTokens: 20 });
  });

  it("reserves nothing by itself", () => {
    const ledger = ledgerWith({ usd: 1_000 });
    admit(call(), PLAIN_PRICE, ledger);
    expect([ledger.openCount, ledger.reserved.usd]).toEqual([0, 0]);
  });
});

describe("a call whose cap does not fit beside the reservations in flight", () => {
  const asking = call({ maxTokens: 500 });

  it("waits for its whole cap while the rest of the budget would pay for it", () => {
    const limits = { usd: 1_100 };
    expect(decide(asking, limits, { reserved: { usd: 1 } })).toMatchObject({
      kind: "wait",
      reason: { reason: "in_flight_budget_exhausted", dimension: "usd", needed: 1_100 / 1e9 },
    });
    expect(decide(asking, limits)).toMatchObject({ kind: "reserve", capTokens: 500, capKind: "client" });
  });

  it("waits for the lower cap that the rest of the budget pays for, if it does not pay for all of it", () => {
    const held = { spent: { usd: 300 }, reserved: { usd: 400 } };
    expect(decide(asking, { usd: 1_100 }, held)).toMatchObject({ kind: "wait", reason: { needed: 800 / 1e9 } });
    expect(decide(asking, { usd: 1_100 }, { spent: { usd: 300 } })).toMatchObject({
      capTokens: 350,
      capKind: "budget",
    });
    expect(decide(asking, { completion_tokens: 499 }, { reserved: { completion_tokens: 1 } }).kind).toBe("wait");
  });

  it("does not wait for the reservation of a child run, which lasts as long as the child", () => {
    const ledger = ledgerWith({ usd: 1_100 });
    ledger.restoreChild("child", { ...zeroAmounts(), usd: 400 });
    const admitted = admit(asking, PLAIN_PRICE, ledger);
    expect(admitted).toMatchObject({ kind: "reserve", capTokens: 300, capKind: "budget" });
  });
});

describe("a call that the rest of the budget does not cover in full", () => {
  it("is capped at exactly what the rest pays for", () => {
    const asking = call({ maxTokens: 500 });
    expect(decide(asking, { usd: 100 + 2 * 500 })).toMatchObject({ capTokens: 500 });
    expect(decide(asking, { usd: 100 + 2 * 500 - 1 })).toMatchObject({ capTokens: 499, amounts: { usd: 1_098 } });
    expect(decide(asking, { usd: 1_100 }, { spent: { usd: 700 } })).toMatchObject({
      capTokens: 150,
      amounts: { usd: 400, completion_tokens: 150 },
    });
    expect(decide(asking, { completion_tokens: 77 })).toMatchObject({ capTokens: 77 });
    expect(decide(asking, { usd: 300, completion_tokens: 77 })).toMatchObject({ capTokens: 77 });
    expect(decide(asking, { usd: 200, completion_tokens: 77 })).toMatchObject({ capTokens: 50 });
  });

  it("is capped by the sum of prompt and completion, whose fractions of a nano-USD round up once", () => {
    // 100.5 nano-USD of prompt and 8.5 of completion are 109 together, though 101 and 9 if each were rounded.
    const price = { inputPicoUsd: 1_005, cachedInputPicoUsd: 0, outputPicoUsd: 500 };
    expect(decide(call({ maxTokens: 17 }), { usd: 109 }, {}, price)).toMatchObject({ kind: "reserve", capTokens: 17 });
    expect(decide(call({ maxTokens: 17 }), { usd: 108 }, {}, price)).toMatchObject({ kind: "refuse" });
  });

  it("is capped at 16 tokens, not below", () => {
    const asking = call({ maxTokens: 500 });
    expect(decide(asking, { usd: 132 })).toMatchObject({ kind: "reserve", capTokens: 16 });
    expect(decide(asking, { usd: 131 })).toMatchObject({ kind: "refuse" });
    expect(decide(asking, { completion_tokens: 16 })).toMatchObject({ kind: "reserve", capTokens: 16 });
    expect(decide(asking, { completion_tokens: 15 })).toMatchObject({ kind: "refuse" });
  });

  it("may be capped below 16 tokens if it requests less", () => {
    const asking = call({ maxTokens: 3 });
    expect(decide(asking, { usd: 106 })).toMatchObject({ kind: "reserve", capTokens: 3 });
    expect(decide(asking, { usd: 105 })).toMatchObject({ kind: "refuse" });
  });

  it("reserves the higher of input and cache price for its prompt", () => {
    const price = { ...PLAIN_PRICE, cachedInputPicoUsd: 3_000 };
    expect(decide(call({ maxTokens: 100 }), { usd: 400 }, {}, price)).toMatchObject({ capTokens: 50 });
  });
});

describe("a call whose minimum does not fit", () => {
  it.each<[string, Partial<Limits>, Partial<Amounts>, number]>([
    ["usd", { usd: 200 }, { usd: 69 }, 200],
    ["calls", { calls: 1 }, { calls: 1 }, 1],
    ["prompt_tokens", { prompt_tokens: 150 }, { prompt_tokens: 51 }, 100],
    ["completion_tokens", { completion_tokens: 40 }, { completion_tokens: 25 }, 40],
  ])("waits for %s that is reserved by others", (dimension, limits, reserved, needed) => {
    const waiting = decide(call(), limits, { reserved });
    expect(waiting).toMatchObject({ kind: "wait", reason: { reason: "in_flight_budget_exhausted", dimension } });
    const shown = dimension === "usd" ? needed / 1e9 : needed;
    expect(waiting).toMatchObject({ reason: { needed: shown } });
  });

  it.each<[string, Partial<Limits>, Partial<Amounts>]>([
    ["usd", { usd: 200 }, { usd: 69 }],
    ["calls", { calls: 1 }, { calls: 1 }],
    ["prompt_tokens", { prompt_tokens: 150 }, { prompt_tokens: 51 }],
    ["completion_tokens", { completion_tokens: 40 }, { completion_tokens: 25 }],
  ])("is refused for %s that is spent, even while others are in flight", (dimension, limits, spent) => {
    const refused = { kind: "refuse", reason: { reason: "budget_exhausted", dimension } };
    expect(decide(call(), limits, { spent })).toMatchObject(refused);
    expect(decide(call(), limits, { spent, reserved: { calls: 0 } })).toMatchObject(refused);
  });

  it("waits only for reservations that are enough when freed", () => {
    expect(decide(call(), { usd: 132 }, { reserved: { usd: 132 } })).toMatchObject({ kind: "wait" });
    expect(decide(call(), { usd: 131 }, { reserved: { usd: 131 } })).toMatchObject({ kind: "refuse" });
  });

  it("is refused with limit, spent, reserved and remaining, in USD", () => {
    const held = { spent: { usd: 400_000_000 }, reserved: { usd: 100_000_000 } };
    expect(decide(call(), { usd: 500_000_100 }, held)).toMatchObject({
      kind: "wait",
      reason: { limit: 0.5000001, spent: 0.4, reserved: 0.1, remaining: 1e-7, needed: 3e-7 },
    });
  });

  it("never has less than zero remaining in its refusal after an overrun", () => {
    const refused = decide(call(), { usd: 500 }, { spent: { usd: 900 } });
    expect(refused).toMatchObject({ kind: "refuse", reason: { dimension: "usd", remaining: 0 } });
  });

  it("is refused once a limit is overrun, even if it needs nothing", () => {
    const overrun = { spent: { usd: 2 } };
    expect(decide(call(), { usd: 1 }, overrun, null)).toMatchObject({ kind: "refuse", reason: { dimension: "usd" } });
  });
});
