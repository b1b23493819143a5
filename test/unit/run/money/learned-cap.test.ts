import { describe, expect, it } from "vitest";
import { admit } from "../../../../src/run/money/admit.ts";
import { capFor, capForPrompt, countAnswer, noLengths } from "../../../../src/run/money/learned-cap.ts";
import { Ledger, NO_LIMITS, type Limits } from "../../../../src/run/money/ledger.ts";
import {
  COMPLETION_TOKENS_DEFAULT,
  LEARNED_ANSWERS_FIRST,
  LEARNED_ANSWERS_MIN,
  LEARNED_CAP_MARGIN,
  LEARNED_CAP_MARGIN_FIRST,
  LEARNED_CAP_MARGIN_SHORT,
  LEARNED_CAP_TOKENS_FIRST_MIN,
  LEARNED_CAP_TOKENS_MIN,
  LEARNED_CLASS_TOKENS,
  LEARNED_WASTE_SHARE,
} from "../../../../src/limits.ts";
import { makeFacts, PLAIN_PRICE, seeded } from "../../../support/engine.ts";

function lengthsOf(answers: readonly number[]) {
  const lengths = noLengths();
  for (const tokens of answers) countAnswer(lengths, tokens);
  return lengths;
}

const capOf = (answers: readonly number[]): number | null => capFor(lengthsOf(answers));
const times = (count: number, tokens: number): number[] => Array.from({ length: count }, () => tokens);

describe("the learned cap of a model", () => {
  it("is the default until enough answers were seen", () => {
    expect(capOf([])).toBeNull();
    expect(capOf(times(LEARNED_ANSWERS_FIRST - 1, 10))).toBeNull();
    expect(capOf(times(LEARNED_ANSWERS_MIN, 10))).toBe(LEARNED_CAP_TOKENS_MIN);
  });

  it("is generous after the first answers: the longest of them four times", () => {
    expect(capOf(times(LEARNED_ANSWERS_FIRST, 10))).toBe(LEARNED_CAP_TOKENS_FIRST_MIN);
    expect(capOf([...times(LEARNED_ANSWERS_FIRST, 10), 160])).toBe(160 * LEARNED_CAP_MARGIN_FIRST);
    expect(capOf([...times(LEARNED_ANSWERS_FIRST, 10), 2_000])).toBeNull();
  });

  it.each([
    [1, LEARNED_CAP_TOKENS_MIN],
    [30, 64],
    [100, 224],
    [500, 1_024],
    [900, 1_140],
  ])("of answers of %i tokens is %i: short answers have the larger margin", (tokens, cap) => {
    expect(capOf(times(100, tokens))).toBe(cap);
  });

  it("is no lower than an eighth of a prompt, up to 1,024 tokens: a cut answer pays the prompt twice", () => {
    expect([100, 256, 800, 8_192, 100_000].map((prompt) => capForPrompt(32, prompt))).toEqual([
      32, 32, 100, 1_024, 1_024,
    ]);
    expect(capForPrompt(2_000, 100_000)).toBe(2_000);
  });

  it("is the longest answer plus a margin while few were seen", () => {
    const cap = capOf([...times(50, 300), 1_600]);
    expect(cap).toBe(1_600 * LEARNED_CAP_MARGIN);
  });

  it("is the default if answers are about that long, and never more", () => {
    expect(capOf(times(100, COMPLETION_TOKENS_DEFAULT))).toBeNull();
    expect(capOf(times(100, 1_000_000))).toBeNull();
    expect(capOf(times(100, 3_500))).toBeNull();
    expect(capOf(times(100, 3_200))).toBe(4_000);
  });

  it("ignores a long answer that is rarer than its waste", () => {
    // One answer of 4,000 in 2,000 of 300: requested again, it wastes at most 64 × 63 of 604,000 tokens.
    expect(capOf([...times(2_000, 300), 4_000])).toBe(304 * LEARNED_CAP_MARGIN_SHORT);
    expect(capOf([...times(200, 300), 4_000])).toBeNull();
  });

  it("rises with the length of the answers", () => {
    const lengths = lengthsOf(times(1_000, 30));
    expect(capFor(lengths)).toBe(64);
    for (const tokens of times(12, 2_000)) countAnswer(lengths, tokens);
    expect(capFor(lengths)).toBe(2_500);
  });

  it("is not misled by impossible lengths", () => {
    const lengths = lengthsOf([...times(30, -5), ...times(30, 0)]);
    expect(lengths).toMatchObject({ answers: 60, tokens: 0 });
    expect(capFor(lengths)).toBe(LEARNED_CAP_TOKENS_MIN);
  });

  it.each([1, 2, 3])("wastes at most its share whatever the spread of lengths, seed %i", (seed) => {
    const random = seeded(seed);
    const spread = 0.3 + random() * 1.2;
    const answers = Array.from({ length: 5_000 }, () => {
      const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
      return Math.max(1, Math.min(COMPLETION_TOKENS_DEFAULT, Math.round(400 * Math.exp(spread * normal))));
    });
    const cap = (capOf(answers) ?? COMPLETION_TOKENS_DEFAULT) / LEARNED_CAP_MARGIN;
    const cut = answers.filter((tokens) => tokens > Math.max(cap, LEARNED_CLASS_TOKENS));
    const sum = answers.reduce((total, tokens) => total + tokens, 0);
    expect(cut.length * cap).toBeLessThanOrEqual(sum * LEARNED_WASTE_SHARE);
    expect(cut.length).toBeLessThanOrEqual(answers.length * LEARNED_WASTE_SHARE);
  });
});

describe("admission with a learned cap", () => {
  const decide = (facts: Parameters<typeof makeFacts>[0], limits: Partial<Limits>, attemptsWanted = 20) =>
    admit(makeFacts({ maxTokens: null, ...facts }), PLAIN_PRICE, new Ledger({ ...NO_LIMITS, ...limits }), {
      learnedCapTokens: 1_200,
      attemptsWanted,
    });

  it("reserves it if the client names none", () => {
    const reserved = { capTokens: 1_200, capKind: "learned", amounts: { usd: 100 + 2 * 1_200 } };
    expect(decide({}, { usd: 20_000 })).toMatchObject(reserved);
    expect(decide({}, { completion_tokens: 9_000 })).toMatchObject({ capTokens: 1_200, capKind: "learned" });
  });

  it("reserves the default while that takes little of the rest of the budget", () => {
    const need = 100 + 2 * COMPLETION_TOKENS_DEFAULT;
    expect(decide({}, { usd: 4 * need })).toMatchObject({ capTokens: COMPLETION_TOKENS_DEFAULT, capKind: "default" });
    expect(decide({}, { usd: 4 * need - 1 })).toMatchObject({ capTokens: 1_200, capKind: "learned" });
  });

  it("reserves the default while all attempts that could run fit with it", () => {
    const usd = 3 * (100 + 2 * COMPLETION_TOKENS_DEFAULT);
    expect(decide({}, { usd }, 3)).toMatchObject({ capTokens: COMPLETION_TOKENS_DEFAULT, capKind: "default" });
    expect(decide({}, { usd }, 4)).toMatchObject({ capTokens: 1_200, capKind: "learned" });
  });

  it("reserves the cap that the client names", () => {
    expect(decide({ maxTokens: 3_000 }, { usd: 20_000 })).toMatchObject({ capTokens: 3_000, capKind: "client" });
  });

  it("sends none if no limit needs one", () => {
    expect(decide({}, { calls: 5 })).toMatchObject({ capTokens: null, capKind: "default" });
  });

  it("reserves the default for several completions, and for none", () => {
    expect(decide({ completions: 2 }, { usd: 20_000 })).toMatchObject({ capTokens: 4_096, capKind: "default" });
    expect(decide({ completions: 0 }, { usd: 20_000 })).toMatchObject({ capTokens: null });
  });

  it("is lowered by the budget if that does not pay for it", () => {
    expect(decide({}, { usd: 100 + 2 * 500 })).toMatchObject({ capTokens: 500, capKind: "budget" });
  });
});
