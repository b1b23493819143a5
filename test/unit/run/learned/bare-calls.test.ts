/** The last calls of a budget whose prompts are one text each: their template is bounded by what such calls were billed. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CallFacts } from "../../../../src/call.ts";
import { PROMPT_TOKENS_FIXED_OPENAI, PROMPT_TOKENS_PER_MESSAGE } from "../../../../src/limits.ts";
import { Templates } from "../../../../src/run/learned/templates.ts";
import { leaseShapeOf } from "../../../../src/run/money/template.ts";
import { indexOf, type SlotFacts } from "../../../../src/run/queue/slot.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { makeFacts, makeTarget, success, TestEngine } from "../../../support/engine.ts";

const BOUNDS = {
  tokensPerByte: 1,
  mediaTokensMax: null,
  fixedTokens: PROMPT_TOKENS_FIXED_OPENAI,
  learnsTemplate: true,
} as const;

const target = makeTarget({ bounds: BOUNDS });
const bare = makeFacts({ promptBytes: 47, isBare: true });

/** Takes in the bill of one call. */
function learn(templates: Templates, facts: CallFacts, promptTokens: number, at = target): void {
  const byteTokensMax = facts.promptBytes + PROMPT_TOKENS_PER_MESSAGE;
  templates.learn(at, leaseShapeOf(facts), { promptTokens, byteTokensMax, textRatio: null });
}

describe("the template of calls whose prompt is one text", () => {
  it("has, with its one message, no more tokens than the least of them was billed", () => {
    const templates = new Templates();
    learn(templates, bare, 30);
    learn(templates, bare, 12);
    learn(templates, bare, 40);
    const settledTokens = 12 - PROMPT_TOKENS_PER_MESSAGE;
    expect(templates.overheadOf(target, bare, 0)).toMatchObject({ settledTokens, cautiousTokens: settledTokens });
  });

  it("has none where they were billed less than a message may have", () => {
    const templates = new Templates();
    learn(templates, bare, PROMPT_TOKENS_PER_MESSAGE - 1);
    expect(templates.overheadOf(target, bare, 0)).toMatchObject({ settledTokens: 0 });
  });

  it("is reserved as what was billed beyond their bytes, if that is more", () => {
    const templates = new Templates();
    learn(templates, bare, 12);
    learn(templates, { ...bare, promptBytes: 10 }, 60);
    expect(templates.overheadOf(target, bare, 0)?.settledTokens).toBe(60 - 10 - PROMPT_TOKENS_PER_MESSAGE);
  });

  it.each<[string, SlotFacts]>([
    ["messages of the client's, or params, or one of earlier code, which did not say", makeFacts({ promptBytes: 47 })],
    ["another message", { ...bare, messageCount: 2 }],
    ["tools", { ...bare, tools: true }],
    ["an image", { ...bare, mediaParts: 1 }],
    ["a file", { ...bare, fileParts: 1 }],
    ["another endpoint", { ...bare, endpoint: "messages" }],
    ["an endpoint without messages", { ...bare, endpoint: "responses" }],
  ])("neither says anything of a call with %s, nor is known from one", (_, other) => {
    const templates = new Templates();
    learn(templates, bare, 12);
    expect(templates.overheadOf(target, other, 0)?.settledTokens).toBe(PROMPT_TOKENS_FIXED_OPENAI);
    const another = new Templates();
    learn(another, other, 12);
    expect(another.overheadOf(target, bare, 0)?.settledTokens).toBe(PROMPT_TOKENS_FIXED_OPENAI);
  });

  it("is that of bodies as their clients wrote them too, if they are one plain text", () => {
    const templates = new Templates();
    const raw: SlotFacts = { ...bare, isRaw: true };
    learn(templates, raw, 12);
    expect(templates.overheadOf(target, raw, 0)?.settledTokens).toBe(12 - PROMPT_TOKENS_PER_MESSAGE);
  });

  it("is known of its own model only", () => {
    const templates = new Templates();
    learn(templates, bare, 12);
    const other = makeTarget({ bounds: BOUNDS, model: "gpt-y" });
    expect(templates.overheadOf(other, bare, 0)?.settledTokens).toBe(PROMPT_TOKENS_FIXED_OPENAI);
  });

  it("is what the operator has configured, until more was billed", () => {
    const vouched = makeTarget({ bounds: { ...BOUNDS, vouched: true } });
    const templates = new Templates();
    learn(templates, bare, 12, vouched);
    expect(templates.overheadOf(vouched, bare, 0)?.settledTokens).toBe(PROMPT_TOKENS_FIXED_OPENAI);
  });

  it("lowers nothing for other runs: what is reported is as of any other call", () => {
    const templates = new Templates(undefined, "run_a");
    learn(templates, bare, 12);
    const [row] = [...templates.takeNews().values()].flat();
    expect(row).toEqual({ model: "gpt-x", shape: "chat", root: "run_a", leastTokens: 12, excessTokens: -43 });
    const reader = new Templates(() => (row === undefined ? [] : [row]));
    expect(reader.overheadOf(target, bare, 0)?.settledTokens).toBe(PROMPT_TOKENS_FIXED_OPENAI);
  });
});

type Text = { bytes: number; dense: boolean; shaped: boolean };
type Plan = {
  template: number;
  shapedTemplate: number;
  texts: Text[];
  paysFor: number;
  width: number;
  picks: number[];
};
type Call = { facts: Partial<SlotFacts>; billed: number };
type Lived = { answered: number; refused: number };

const CAP = 7;
/** As in the bench: $10 and $50 per million tokens, in thousandths. */
const PRICE = { inputPicoUsd: 10_000, cachedInputPicoUsd: 10_000, outputPicoUsd: 50_000 };

function usdOf(promptTokens: number): number {
  return promptTokens * 10 + CAP * 50;
}

/** Runs calls to the end of a budget in nano-USD; `billed`: the prompt tokens of each. */
function live(
  calls: readonly Call[],
  { usd, width, picks }: { usd: number; width: number; picks: readonly number[] },
): Lived {
  const engine = new TestEngine({ limits: { usd }, width, targets: [makeTarget({ price: PRICE, bounds: BOUNDS })] });
  const group = engine.open(calls.map(({ facts }) => ({ maxTokens: CAP, ...facts })));
  const { state } = engine;
  const lived: Lived = { answered: 0, refused: 0 };
  for (let round = 0; !group.done; round++) {
    expect(round, "the run stands still").toBeLessThan(3_000);
    engine.turn([width], round);
    for (const { reason } of state.takeWrites().slots) if (reason?.reason === "budget_exhausted") lived.refused += 1;
    expect(state.ledger.committed("usd")).toBeLessThanOrEqual(usd);
    const running = [...state.attempts.values()].map(({ lease }) => lease);
    const lease = running[(picks[round % picks.length] ?? 0) % Math.max(1, running.length)];
    if (lease === undefined || lease.slotId === null) continue;
    const call = calls[indexOf(lease.slotId)];
    if (call === undefined) throw new Error("a slot without a call");
    expect(call.billed, "a bill is above its reservation").toBeLessThanOrEqual(lease.amounts.prompt_tokens);
    settle(
      state,
      lease.attemptId,
      success({ promptTokens: call.billed, completionTokens: lease.capTokens ?? CAP }),
      round,
    );
    lived.answered += 1;
  }
  expect(state.ledger.spent.usd).toBeLessThanOrEqual(usd);
  return lived;
}

const plans: fc.Arbitrary<Plan> = fc.record({
  template: fc.integer({ min: 0, max: PROMPT_TOKENS_FIXED_OPENAI }),
  shapedTemplate: fc.integer({ min: 0, max: PROMPT_TOKENS_FIXED_OPENAI }),
  texts: fc.array(fc.record({ bytes: fc.constantFrom(1, 4, 40, 400), dense: fc.boolean(), shaped: fc.boolean() }), {
    minLength: 1,
    maxLength: 60,
  }),
  paysFor: fc.double({ min: 0.2, max: 1.2, noNaN: true }),
  width: fc.integer({ min: 1, max: 20 }),
  picks: fc.array(fc.nat(), { minLength: 5, maxLength: 5 }),
});

describe("the last calls of a budget whose prompts are one text each", () => {
  it("are refused only when less is left than the text and what the least of them was billed", () => {
    const limit = 50_000;
    const call: Call = { facts: { promptBytes: 47, isBare: true }, billed: 12 };
    const calls = Array.from({ length: 200 }, () => call);
    const { answered } = live(calls, { usd: limit, width: 64, picks: [3, 1, 4, 1, 5] });
    const worst = usdOf(47 + 12);
    expect(answered).toBe(Math.floor((limit - worst) / usdOf(12)) + 1);
  });

  it("fit to the last nano-USD, and are refused one below it", () => {
    const calls = Array.from({ length: 10 }, (): Call => ({ facts: { promptBytes: 47, isBare: true }, billed: 12 }));
    const exact = 9 * usdOf(12) + usdOf(47 + 12);
    const plan = { width: 4, picks: [0] };
    expect(live(calls, { usd: exact, ...plan })).toEqual({ answered: 10, refused: 0 });
    expect(live(calls, { usd: exact - 1, ...plan })).toEqual({ answered: 9, refused: 1 });
  });

  it("stay within the limit where the last of them is billed a token a byte, and as much template as the others", () => {
    const calls = Array.from({ length: 10 }, (_, at): Call => {
      return { facts: { promptBytes: 47, isBare: true }, billed: at < 9 ? 12 : 47 + 12 };
    });
    const usd = calls.reduce((sum, { billed }) => sum + usdOf(billed), 0);
    expect(live(calls, { usd, width: 4, picks: [0] })).toEqual({ answered: 10, refused: 0 });
  });

  it("bill no more than was reserved, whatever templates other calls have and however dense the texts are", () => {
    const sum: Lived = { answered: 0, refused: 0 };
    fc.assert(
      fc.property(plans, ({ template, shapedTemplate, texts, paysFor, ...rest }) => {
        const calls = texts.map(({ bytes, dense, shaped }): Call => ({
          facts: { promptBytes: bytes, ...(shaped ? {} : { isBare: true }) },
          billed:
            Math.ceil(dense ? bytes : bytes / 4) + PROMPT_TOKENS_PER_MESSAGE + (shaped ? shapedTemplate : template),
        }));
        const usd = Math.floor(calls.reduce((all, { billed }) => all + usdOf(billed), 0) * paysFor);
        const { answered, refused } = live(calls, { usd, ...rest });
        sum.answered += answered;
        sum.refused += refused;
      }),
      { numRuns: 300 },
    );
    expect(sum.answered).toBeGreaterThan(0);
    expect(sum.refused).toBeGreaterThan(0);
  });
});
