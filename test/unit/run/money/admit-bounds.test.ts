import { describe, expect, it } from "vitest";
import { admit, shareOf } from "../../../../src/run/money/admit.ts";
import { promptTokensMax, type TokenBounds } from "../../../../src/run/money/estimate.ts";
import { Ledger, NO_LIMITS, zeroAmounts, type Limits } from "../../../../src/run/money/ledger.ts";
import type { CallFacts, UnreservableField } from "../../../../src/call.ts";
import type { Dimension } from "../../../../src/errors.ts";
import { makeFacts, PLAIN_PRICE } from "../../../support/engine.ts";

const limits = (fields: Partial<Limits>): Limits => ({ ...NO_LIMITS, ...fields });
const ledgerOf = (fields: Partial<Limits>): Ledger => new Ledger(limits(fields));
/** A call of at most 100 prompt tokens: with the plain price, 100 nano-USD and 2 per completion token. */
const call = (fields: Partial<CallFacts> = {}): CallFacts => makeFacts({ promptBytes: 92, messageCount: 1, ...fields });

describe("a slot with a share of the budget", () => {
  const share = limits({ usd: 200 });

  it("is capped at its share, however much is left", () => {
    const admitted = admit(call({ maxTokens: 500 }), PLAIN_PRICE, ledgerOf({ usd: 1_000_000 }), { share });
    expect(admitted).toMatchObject({ kind: "reserve", capTokens: 50, amounts: { usd: 200 } });
  });

  it("is capped at what is left if that is less than its share", () => {
    const admitted = admit(call({ maxTokens: 500 }), PLAIN_PRICE, ledgerOf({ usd: 160 }), { share });
    expect(admitted).toMatchObject({ kind: "reserve", capTokens: 30 });
  });

  it("is refused when its share does not cover its minimum, and never waits for it", () => {
    const ledger = ledgerOf({ usd: 1_000 });
    ledger.reserve("other", { ...zeroAmounts(), usd: 990 });
    const least = 100 + 2 * 16;
    const decide = (usd: number) => admit(call(), PLAIN_PRICE, ledger, { share: limits({ usd }) });
    expect(decide(least)).toMatchObject({ kind: "wait" });
    expect(decide(least - 1)).toMatchObject({ kind: "refuse", reason: { dimension: "usd" } });
  });

  it.each([
    ["prompt_tokens", { prompt_tokens: 99 }],
    ["completion_tokens", { completion_tokens: 15 }],
    ["calls", { calls: 0 }],
  ] as const)("has a share of %s too", (dimension, short) => {
    const ledger = ledgerOf({ [dimension]: 1_000 });
    expect(admit(call(), PLAIN_PRICE, ledger, { share: limits(short) })).toMatchObject({
      kind: "refuse",
      reason: { reason: "budget_exhausted", dimension },
    });
  });
});

describe("an equal share", () => {
  it("is what is left, divided and rounded down, in each limited dimension", () => {
    const ledger = ledgerOf({ usd: 100, calls: 7 });
    ledger.restoreSpent({ ...zeroAmounts(), usd: 20 });
    ledger.reserve("attempt", { ...zeroAmounts(), usd: 9, calls: 1 });
    expect(shareOf(ledger, 3)).toEqual(limits({ usd: 23, calls: 2 }));
    expect(shareOf(ledger, 1)).toEqual(limits({ usd: 71, calls: 6 }));
  });

  it("is zero, not negative, of a budget that was overrun", () => {
    const ledger = ledgerOf({ usd: 100 });
    ledger.restoreSpent({ ...zeroAmounts(), usd: 101 });
    expect(shareOf(ledger, 3)).toEqual(limits({ usd: 0 }));
  });
});

describe("fields that no reservation covers", () => {
  const entry = (allowedBy: string | undefined, spends: readonly Dimension[]) => ({
    field: "params.n",
    why: "Each is billed.",
    spends,
    ...(allowedBy === undefined ? {} : { allowedBy }),
  });
  const refusal = (
    unbounded: readonly UnreservableField[],
    limit: Partial<Limits>,
    allowParams: readonly string[] = [],
  ) => {
    const admitted = admit(call({ unbounded }), PLAIN_PRICE, ledgerOf(limit), { allowParams });
    return admitted.kind === "refuse" ? admitted.reason : null;
  };

  it("are refused under a limit that they can exceed, with a message that names the remedy", () => {
    expect(refusal([entry("n", ["usd", "completion_tokens"])], { usd: 1_000_000 })).toEqual({
      reason: "invalid_request",
      message:
        'params.n: Each is billed. It is refused under a limit in USD; remove it, or ask the operator to add "n" to allow_params',
      param: "params.n",
    });
    expect(refusal([entry("n", ["usd", "completion_tokens"])], { completion_tokens: 1_000_000 })).toMatchObject({
      message: expect.stringContaining("under a limit in completion tokens; remove it, or"),
    });
    expect(refusal([entry("n", ["usd", "completion_tokens"])], { prompt_tokens: 1_000_000, calls: 5 })).toBeNull();
  });

  it("are allowed under a limit if the operator allows each of them", () => {
    const both = [entry("a", ["usd"]), entry("b", ["usd"])];
    expect(refusal(both, { usd: 1_000_000 }, ["a", "b"])).toBeNull();
    expect(refusal(both, { usd: 1_000_000 }, ["a"])).toMatchObject({ message: expect.stringContaining('add "b"') });
    const never = refusal([entry(undefined, ["usd"])], { usd: 1_000_000 }, ["params.n", "n", ""]);
    expect(never).toMatchObject({ message: expect.stringMatching(/remove it$/) });
  });
});

describe("files", () => {
  const file = call({ fileParts: 2 });

  it("need a bound of their own: that of images does not apply", () => {
    const bounds: TokenBounds = { tokensPerByte: 1, mediaTokensMax: 1_000 };
    expect(admit(file, PLAIN_PRICE, ledgerOf({ usd: 1_000_000 }), { bounds })).toMatchObject({
      kind: "refuse",
      reason: { reason: "infeasible", message: expect.stringContaining("file_tokens_max") },
    });
    expect(admit(file, PLAIN_PRICE, ledgerOf({ calls: 3 }), { bounds })).toMatchObject({ kind: "reserve" });
  });

  it("count as many tokens each as their upstream has configured", () => {
    const bounds: TokenBounds = { tokensPerByte: 1, mediaTokensMax: null, fileTokensMax: 700 };
    expect(admit(file, PLAIN_PRICE, ledgerOf({ usd: 1_000_000 }), { bounds })).toMatchObject({
      kind: "reserve",
      amounts: { prompt_tokens: 1_400 + 100 },
    });
  });
});

describe("images and sounds", () => {
  const picture = call({ mediaParts: 2 });
  const known: TokenBounds = { tokensPerByte: 1, mediaTokensMax: 1_000 };

  it.each([{ usd: 1_000_000_000 }, { prompt_tokens: 1_000_000 }])(
    "are refused under %o: no bytes bound them",
    (limit) => {
      expect(admit(picture, PLAIN_PRICE, ledgerOf(limit))).toMatchObject({
        kind: "refuse",
        reason: { reason: "infeasible", message: expect.stringContaining("media_tokens_max") },
      });
    },
  );

  it.each<[string, Partial<Limits>, typeof PLAIN_PRICE | null]>([
    ["no limit at all", {}, PLAIN_PRICE],
    ["limits of calls and completions", { calls: 5, completion_tokens: 5_000 }, PLAIN_PRICE],
    ["a limit in USD where tokens are free", { usd: 0 }, null],
  ])("are allowed under %s", (_, limit, price) => {
    expect(admit(picture, price, ledgerOf(limit))).toMatchObject({ kind: "reserve" });
  });

  it("count as many tokens each as their upstream has configured", () => {
    const admitted = admit(picture, PLAIN_PRICE, ledgerOf({ usd: 1_000_000 }), { bounds: known });
    expect(admitted).toMatchObject({ kind: "reserve", amounts: { prompt_tokens: 2_100, usd: 2_100 + 200 } });
    const free = { tokensPerByte: 1, mediaTokensMax: 0 };
    expect(admit(picture, PLAIN_PRICE, ledgerOf({ usd: 300 }), { bounds: free })).toMatchObject({ kind: "reserve" });
  });

  it("do not affect a call without them", () => {
    expect(admit(call(), PLAIN_PRICE, ledgerOf({ usd: 1_000 }))).toMatchObject({ kind: "reserve" });
  });
});

describe("an upstream's own bound of tokens per byte", () => {
  it("bounds text, rounded up, and not the tokens per message", () => {
    const bounds = { tokensPerByte: 0.3, mediaTokensMax: null };
    expect(promptTokensMax({ promptBytes: 11, messageCount: 2 }, bounds)).toBe(4 + 16);
    const admitted = admit(call(), PLAIN_PRICE, ledgerOf({ usd: 1_000 }), { bounds });
    expect(admitted).toMatchObject({ amounts: { prompt_tokens: 28 + 8 } });
  });
});
