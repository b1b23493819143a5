import { describe, expect, it } from "vitest";
import { Ledger, NO_LIMITS, zeroAmounts, type Limits } from "../../../../src/run/money/ledger.ts";
import { admitWithTemplate } from "../../../../src/run/money/template-admit.ts";
import { ANY_TOKENS } from "../../../../src/run/money/estimate.ts";
import type { CallFacts } from "../../../../src/call.ts";
import {
  factsFrom,
  isKnown,
  mergedFacts,
  overheadOf,
  shapeOf,
  type Overhead,
} from "../../../../src/run/money/template.ts";
import { PROMPT_TOKENS_FIXED_MAX, PROMPT_TOKENS_UNSEEN } from "../../../../src/limits.ts";
import { makeFacts, PLAIN_PRICE } from "../../../support/engine.ts";

const DEFAULT = 128;

describe("the facts of a template", () => {
  it("bound it by the prompt tokens billed, and by those beyond the bytes of the prompt", () => {
    expect(factsFrom({ promptTokens: 353, byteTokensMax: 10 })).toEqual({ leastTokens: 353, excessTokens: 343 });
    expect(factsFrom({ promptTokens: 850, byteTokensMax: 2_008 })).toEqual({ leastTokens: 850, excessTokens: -1_158 });
  });

  it("are capped at what an operator could configure", () => {
    const facts = factsFrom({ promptTokens: 9_000_000, byteTokensMax: 1 });
    expect(facts.excessTokens).toBe(PROMPT_TOKENS_FIXED_MAX);
  });

  it("only tighten", () => {
    const before = { leastTokens: 353, excessTokens: 343 };
    expect(mergedFacts(before, { leastTokens: 850, excessTokens: -1_158 })).toEqual(before);
    expect(mergedFacts(before, { leastTokens: 352, excessTokens: 344 })).toEqual({
      leastTokens: 352,
      excessTokens: 344,
    });
    expect(isKnown(before, before)).toBe(true);
    expect(isKnown(before, { leastTokens: 352, excessTokens: 0 })).toBe(false);
    expect(isKnown(before, { leastTokens: 400, excessTokens: 344 })).toBe(false);
    expect(isKnown(undefined, before)).toBe(false);
  });

  it("keep the largest ratio to the look at a text, also when merged with facts without one", () => {
    const old = { leastTokens: 353, excessTokens: 343 };
    const seen = factsFrom({ promptTokens: 700, byteTokensMax: 3_000, textRatio: 0.7 });
    expect(seen).toEqual({ leastTokens: 700, excessTokens: -2_300, textRatio: 0.7 });
    expect(isKnown(old, seen)).toBe(false);
    const merged = mergedFacts(old, seen);
    expect(merged).toEqual({ ...old, textRatio: 0.7 });
    expect(isKnown(merged, old)).toBe(true);
    expect(mergedFacts(merged, old)).toEqual(merged);
    expect(mergedFacts(merged, { ...seen, textRatio: 0.6 })).toEqual(merged);
    expect(mergedFacts(merged, { ...seen, textRatio: 0.9 })).toEqual({ ...old, textRatio: 0.9 });
  });

  it("belong to a shape: an endpoint, with or without tools", () => {
    expect([shapeOf({}), shapeOf({ tools: true })]).toEqual(["chat", "chat+tools"]);
    expect([shapeOf({ endpoint: "messages" }), shapeOf({ endpoint: "responses", tools: true })]).toEqual([
      "messages",
      "responses+tools",
    ]);
  });
});

describe("the reservation for a template", () => {
  it("that is unseen is the default at least, and far more while the budget pays for it", () => {
    expect(overheadOf(DEFAULT, undefined, 0)).toEqual({
      settledTokens: DEFAULT,
      cautiousTokens: PROMPT_TOKENS_UNSEEN,
      mayProbe: true,
    });
  });

  it("that is unseen is the largest of its upstream, if that is more than the default", () => {
    expect(overheadOf(DEFAULT, undefined, 343).settledTokens).toBe(343);
  });

  it("is certain once a whole prompt was billed with no more", () => {
    const overhead = overheadOf(DEFAULT, { leastTokens: DEFAULT, excessTokens: -7 }, 343);
    expect([overhead.settledTokens, overhead.cautiousTokens]).toEqual([DEFAULT, DEFAULT]);
  });

  it("cannot exceed the smallest prompt that was billed", () => {
    const sparse = overheadOf(DEFAULT, { leastTokens: 850, excessTokens: -1_158 }, 0);
    expect(sparse).toEqual({ settledTokens: DEFAULT, cautiousTokens: 850, mayProbe: true });
  });

  it("is never probed with less than is known to be too little", () => {
    const overrun = overheadOf(DEFAULT, { leastTokens: 500, excessTokens: 200 }, 0);
    expect(overrun).toEqual({ settledTokens: 200, cautiousTokens: 500, mayProbe: false });
  });

  it("is at least what the operator configured", () => {
    expect(overheadOf(0, { leastTokens: 9, excessTokens: 1 }, 0)).toEqual({
      settledTokens: 1,
      cautiousTokens: 9,
      mayProbe: false,
    });
  });
});

describe("an attempt with an unknown template", () => {
  const unseen = overheadOf(DEFAULT, undefined, 0);
  /** 100 tokens of text and 10 of completion: with the plain price 120 nano-USD, without the template. */
  const call = makeFacts({ promptBytes: 92, messageCount: 1, maxTokens: 10 });
  const decide = (usd: number, { reserved = 0, inFlight = false, overhead = unseen } = {}) => {
    const ledger = new Ledger({ ...NO_LIMITS, usd });
    if (reserved > 0) ledger.restore("other", { ...zeroAmounts(), usd: reserved });
    return admitWithTemplate(call, PLAIN_PRICE, ledger, { overhead, isInFlight: () => inFlight });
  };
  const whole = 120 + PROMPT_TOKENS_UNSEEN;

  it("reserves the cautious overhead if the budget pays for it, however many are in flight", () => {
    const reserved = { kind: "reserve", amounts: { prompt_tokens: 100 + PROMPT_TOKENS_UNSEEN, usd: whole } };
    expect(decide(whole)).toMatchObject(reserved);
    expect(decide(whole * 2, { reserved: whole, inFlight: true })).toMatchObject(reserved);
  });

  it("waits for the cautious overhead that others have reserved", () => {
    expect(decide(whole, { reserved: 1, inFlight: false }).kind).toBe("wait");
  });

  it("starts alone with the settled overhead if the budget does not pay for more", () => {
    expect(decide(whole - 1)).toMatchObject({ kind: "reserve", amounts: { prompt_tokens: 228, usd: 248 } });
    expect(decide(248)).toMatchObject({ kind: "reserve", capTokens: 10, capKind: "client" });
  });

  it("waits for the attempt that probes", () => {
    const waiting = decide(whole - 1, { reserved: 248, inFlight: true });
    expect(waiting).toMatchObject({ kind: "wait", reason: { reason: "in_flight_budget_exhausted", dimension: "usd" } });
  });

  it("waits for the facts of other runs before it probes, and for nothing if it can never fit", () => {
    const overhead = { ...unseen, awaitsFacts: true };
    expect(decide(whole, { overhead }).kind).toBe("reserve");
    expect(decide(whole - 1, { overhead }).kind).toBe("wait");
    expect(decide(248, { overhead }).kind).toBe("wait");
    expect(decide(247, { overhead }).kind).toBe("refuse");
  });

  it("with an image waits for the facts of other runs, whatever the budget pays for: they may know that its header lies", () => {
    const seeing = makeFacts({ ...call, mediaParts: 1, images: [{ width: 3, height: 3 }] });
    const bounds = { ...ANY_TOKENS, mediaTokensMax: 50 };
    const known = overheadOf(DEFAULT, { leastTokens: DEFAULT, excessTokens: 1 }, 0);
    const kindOf = (facts: CallFacts, overhead: Overhead, limits: Partial<Limits> = { usd: 1e9 }): string => {
      const ledger = new Ledger({ ...NO_LIMITS, ...limits });
      return admitWithTemplate(facts, PLAIN_PRICE, ledger, { overhead, isInFlight: () => false, bounds }).kind;
    };
    const unread = { ...known, awaitsFacts: true };
    expect(kindOf(seeing, known)).toBe("reserve");
    expect(kindOf(seeing, unread)).toBe("wait");
    expect(kindOf(call, unread)).toBe("reserve");
    // The lie is known already, no limit is at stake, or nothing pays for the image even as it says.
    expect(kindOf(seeing, { ...unread, imageExcessTokens: 9 })).toBe("reserve");
    expect(kindOf(seeing, unread, { calls: 5 })).toBe("reserve");
    expect(kindOf(seeing, unread, { usd: 10 })).toBe("refuse");
  });

  it("is not cut because of a template that may not exist", () => {
    expect(decide(whole - 1)).toMatchObject({ capTokens: 10 });
  });

  it("is refused only if the settled overhead does not fit either", () => {
    expect(decide(247).kind).toBe("refuse");
    expect(decide(248).kind).toBe("reserve");
  });

  it("is refused if known facts show that it would overrun", () => {
    const overhead = overheadOf(DEFAULT, { leastTokens: 500, excessTokens: 200 }, 0);
    expect(decide(619, { overhead }).kind).toBe("refuse");
    expect(decide(620, { overhead })).toMatchObject({ kind: "reserve", amounts: { prompt_tokens: 600 } });
  });

  it("reserves the settled overhead under limits that its prompt does not affect", () => {
    const ledger = new Ledger({ ...NO_LIMITS, calls: 5 });
    const admitted = admitWithTemplate(call, PLAIN_PRICE, ledger, { overhead: unseen, isInFlight: () => true });
    expect(admitted).toMatchObject({ kind: "reserve", amounts: { prompt_tokens: 228 } });
  });
});
