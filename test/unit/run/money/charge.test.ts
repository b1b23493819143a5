/** The charge by outcome. What settling makes of it is in test/unit/run/steps/settle.test.ts. */
import { describe, expect, it } from "vitest";
import { chargeFor } from "../../../../src/run/money/charge.ts";
import { zeroAmounts } from "../../../../src/run/money/ledger.ts";
import type { Outcome } from "../../../../src/call.ts";
import { SEEN_MARGIN_TOKENS } from "../../../../src/limits.ts";
import { failure, PLAIN_PRICE, success } from "../../../support/engine.ts";

const amounts = { usd: 4_100, calls: 1, prompt_tokens: 100, completion_tokens: 2_000, new_tokens: 2_100 };
const reserved = { amounts, price: PLAIN_PRICE, priced: {} };

function seen(promptTokens: number | null, completionTokens: number): Outcome {
  const stopped = failure("unknown");
  if (stopped.kind === "success") throw new Error("it failed");
  return { ...stopped, seen: { promptTokens, completionTokens } };
}

describe("the charge of an attempt", () => {
  it("is the cost of a reported usage", () => {
    const charge = { usd: 40 + 2 * 7, calls: 1, prompt_tokens: 40, completion_tokens: 7, new_tokens: 47 };
    const outcome = success({ promptTokens: 40, completionTokens: 7 });
    expect(chargeFor(outcome, reserved)).toEqual({ charge, estimated: false });
  });

  it.each([
    ["an answer without usage", success(null)],
    ["an unknown outcome", failure("unknown")],
  ])("is the reservation for %s, as an estimate", (_, outcome) => {
    expect(chargeFor(outcome, reserved)).toEqual({ charge: amounts, estimated: true });
  });

  it("is the reservation in USD if the price is not configured any more, and no cost is reported", () => {
    const outcome = success({ promptTokens: 40, completionTokens: 7 });
    const lost = { ...reserved, price: null };
    expect(chargeFor(outcome, lost)).toMatchObject({ charge: { usd: 4_100, prompt_tokens: 40 }, estimated: true });
    expect(chargeFor(success({ promptTokens: 40, costNanoUsd: 9 }), lost)).toMatchObject({ charge: { usd: 9 } });
  });

  it.each(["rejected", "transient", "rate_limited"] as const)("is one call for a failure that is %s", (kind) => {
    const charge = { ...zeroAmounts(), calls: 1 };
    expect(chargeFor(failure(kind), reserved)).toEqual({ charge, estimated: false });
    expect(chargeFor(failure(kind, null, 10, false), reserved).charge).toEqual(zeroAmounts());
  });

  it("is the tokens seen of a stopped stream and a margin, and at most the reservation", () => {
    const tokens = 10 + SEEN_MARGIN_TOKENS;
    const charge = {
      usd: 60 + 2 * tokens,
      calls: 1,
      prompt_tokens: 60,
      completion_tokens: tokens,
      new_tokens: 60 + tokens,
    };
    expect(chargeFor(seen(60, 10), reserved)).toEqual({ charge, estimated: true });
    expect(chargeFor(seen(null, 10), reserved).charge.prompt_tokens).toBe(100);
    expect(chargeFor(seen(1_000, 10_000), reserved).charge).toEqual(amounts);
  });
});
