/**
 * Random runs at the edge of their budgets, at upstreams with unknown templates: a template overruns one reservation at
 * most, no call is refused that would fit, and every call ends.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PROMPT_TOKENS_FIXED_OPENAI, PROMPT_TOKENS_PER_MESSAGE } from "../../../../src/limits.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { indexOf } from "../../../../src/run/queue/slot.ts";
import { makeTarget, PLAIN_PRICE, success, TestEngine } from "../../../support/engine.ts";

const BOUNDS = {
  tokensPerByte: 1,
  mediaTokensMax: null,
  fixedTokens: PROMPT_TOKENS_FIXED_OPENAI,
  learnsTemplate: true,
} as const;

/** A text: `dense` has a token per byte, other text one per four bytes. */
type Text = { bytes: number; dense: boolean; model: 0 | 1 };
type Plan = { templates: [number, number]; texts: Text[]; paysFor: number; width: number; picks: number[] };

const plans: fc.Arbitrary<Plan> = fc.record({
  templates: fc.tuple(fc.constantFrom(0, 21, 35, 70, 128, 129, 350, 900), fc.constantFrom(0, 70, 350, 2_000)),
  // Sparse texts hide the template that dense texts after them show.
  texts: fc.array(
    fc.record({
      bytes: fc.constantFrom(1, 4, 40, 400, 4_000),
      dense: fc.boolean(),
      model: fc.constantFrom<0 | 1>(0, 0, 0, 1),
    }),
    { minLength: 1, maxLength: 60 },
  ),
  paysFor: fc.double({ min: 0.1, max: 1.5, noNaN: true }),
  width: fc.integer({ min: 1, max: 20 }),
  picks: fc.array(fc.nat(), { minLength: 5, maxLength: 5 }),
});

const CAP = 20;

function billed({ bytes, dense }: Text, template: number): number {
  return Math.ceil(dense ? bytes : bytes / 4) + PROMPT_TOKENS_PER_MESSAGE + template;
}

/** Runs a plan to its end. */
function live({ templates, texts, paysFor, width, picks }: Plan): { overruns: number } {
  const costs = texts.map((text) => billed(text, templates[text.model]) + 2 * CAP);
  const usd = Math.floor(costs.reduce((sum, cost) => sum + cost, 0) * paysFor);
  const targets = [0, 1].map((model) => makeTarget({ model: `m${model}`, bounds: BOUNDS }));
  const engine = new TestEngine({ limits: { usd }, width, targets });
  const slots = texts.map(({ bytes, model }) => ({
    promptBytes: bytes,
    messageCount: 1,
    maxTokens: CAP,
    modelIndex: model,
  }));
  const group = engine.open(slots, { models: ["m0", "m1"] });
  const { state } = engine;
  const overruns = [0, 0];
  for (let round = 0; !group.done; round++) {
    expect(round, "the run stands still").toBeLessThan(1_000);
    engine.turn([width], round);
    for (const { reason } of state.takeWrites().slots) {
      if (reason?.reason !== "budget_exhausted") continue;
      const nano = (amount: number): number => Math.round(amount * 1e9);
      expect(nano(reason.needed), "what would have fitted was refused").toBeGreaterThan(usd - nano(reason.spent));
    }
    if (overruns[0] === 0 && overruns[1] === 0) expect(state.ledger.committed("usd")).toBeLessThanOrEqual(usd);
    const running = [...state.attempts.values()].map(({ lease }) => lease);
    const lease = running[(picks[round % picks.length] ?? 0) % Math.max(1, running.length)];
    if (lease === undefined || lease.slotId === null) continue;
    const text = texts[indexOf(lease.slotId)];
    if (text === undefined) throw new Error("a slot without a text");
    const promptTokens = billed(text, templates[text.model]);
    if (promptTokens > lease.amounts.prompt_tokens) overruns[text.model] = (overruns[text.model] ?? 0) + 1;
    settle(state, lease.attemptId, success({ promptTokens, completionTokens: lease.capTokens ?? CAP }), round);
  }
  expect(state.ledger.reserved.usd).toBe(0);
  for (const [model, count] of overruns.entries()) expect(count, `overruns of model ${model}`).toBeLessThanOrEqual(1);
  if (overruns[0] === 0 && overruns[1] === 0) expect(state.ledger.spent.usd).toBeLessThanOrEqual(usd);
  return { overruns: (overruns[0] ?? 0) + (overruns[1] ?? 0) };
}

describe("runs at the edge of their budgets at upstreams with unknown templates", () => {
  it("overrun once per template at most, and end", { tags: ["slow"] }, () => {
    expect(PLAIN_PRICE).toMatchObject({ inputPicoUsd: 1_000, outputPicoUsd: 2_000 });
    let overruns = 0;
    fc.assert(
      fc.property(plans, (plan) => {
        overruns += live(plan).overruns;
      }),
      { numRuns: 500 },
    );
    expect(overruns).toBeGreaterThan(0);
  });
});
