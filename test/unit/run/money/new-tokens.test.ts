import { describe, expect, it } from "vitest";
import { admit } from "../../../../src/run/money/admit.ts";
import { chargeFor } from "../../../../src/run/money/charge.ts";
import { Ledger, NO_LIMITS, zeroAmounts, type Limits } from "../../../../src/run/money/ledger.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { alike, failure, makeFacts, PLAIN_PRICE, seeded, success, TestEngine } from "../../../support/engine.ts";

const ledgerOf = (limits: Partial<Limits>): Ledger => new Ledger({ ...NO_LIMITS, ...limits });
/** 92 bytes and a message: 100 tokens at most. */
const call = makeFacts({ maxTokens: 50 });

describe("new tokens", () => {
  it("are reserved as prompt and completion, and charged without what the cache had", () => {
    const admitted = admit(call, PLAIN_PRICE, ledgerOf({ new_tokens: 1_000 }));
    expect(admitted).toMatchObject({ kind: "reserve", amounts: { new_tokens: 150 }, capTokens: 50 });
    const reserved = { amounts: { ...zeroAmounts(), new_tokens: 150 }, price: null, priced: {} };
    const usage = { promptTokens: 90, cachedTokens: 60, completionTokens: 20 };
    expect(chargeFor(success(usage), reserved).charge).toMatchObject({ prompt_tokens: 90, new_tokens: 50 });
    // An answer that says more is cached than was sent.
    expect(chargeFor(success({ ...usage, cachedTokens: 500 }), reserved).charge.new_tokens).toBe(20);
    expect(chargeFor(failure("unknown"), reserved).charge.new_tokens).toBe(150);
  });

  it("lower the cap to what is left beside the prompt, and refuse a call that they do not cover", () => {
    expect(admit(call, PLAIN_PRICE, ledgerOf({ new_tokens: 130 }))).toMatchObject({
      kind: "reserve",
      capTokens: 30,
      capKind: "budget",
    });
    expect(admit(call, PLAIN_PRICE, ledgerOf({ new_tokens: 110 }))).toMatchObject({
      kind: "refuse",
      reason: { reason: "budget_exhausted", dimension: "new_tokens", limit: 110 },
    });
  });

  it("refuse what would add tokens that nothing bounds", () => {
    const image = admit({ ...call, mediaParts: 1 }, PLAIN_PRICE, ledgerOf({ new_tokens: 9_000 }));
    expect(image).toMatchObject({ kind: "refuse", reason: { reason: "infeasible" } });
    const unbounded = [{ field: "f", why: "It adds tokens.", spends: ["prompt_tokens" as const] }];
    expect(admit({ ...call, unbounded }, PLAIN_PRICE, ledgerOf({ new_tokens: 9_000 }))).toMatchObject({
      kind: "refuse",
    });
    expect(admit({ ...call, unbounded }, PLAIN_PRICE, ledgerOf({ usd: 9_000 })).kind).toBe("reserve");
  });

  it("never exceed their limit in 1,000 histories, whatever is cached, lost or refused", { tags: ["slow"] }, () => {
    for (let seed = 1; seed <= 1_000; seed++) {
      const random = seeded(seed);
      const limit = 300 + Math.floor(random() * 2_000);
      const engine = new TestEngine({ limits: { new_tokens: limit }, width: 1 + Math.floor(random() * 6) });
      engine.open(alike(12, { maxTokens: 10 + Math.floor(random() * 90) }));
      const { ledger, attempts } = engine.state;
      let counted = 0;
      for (let turn = 0; turn < 40; turn++) {
        engine.startAll(turn);
        expect(ledger.spent.new_tokens + ledger.reserved.new_tokens).toBeLessThanOrEqual(limit);
        const running = [...attempts.values()];
        const { lease } = running[Math.floor(random() * running.length)] ?? {};
        if (lease === undefined) break;
        const before = ledger.spent.new_tokens;
        const promptTokens = Math.floor(random() * (lease.amounts.prompt_tokens + 1));
        const cachedTokens = Math.floor(random() * (promptTokens + 1));
        const completionTokens = Math.floor(random() * ((lease.capTokens ?? 0) + 1));
        const isLost = random() < 0.1;
        const outcome = isLost ? failure("unknown") : success({ promptTokens, cachedTokens, completionTokens });
        settle(engine.state, lease.attemptId, outcome, turn);
        counted += isLost ? lease.amounts.new_tokens : promptTokens - cachedTokens + completionTokens;
        expect(ledger.spent.new_tokens - before).toBeGreaterThanOrEqual(0);
        expect(ledger.spent.new_tokens).toBe(counted);
      }
      expect(ledger.overrun.new_tokens).toBe(0);
    }
  });
});
