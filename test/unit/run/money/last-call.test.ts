/**
 * The last calls of a budget: none is refused while its own worst case fits, as these tests reckon it by themselves, and no bill is
 * above the limit.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { COMPLETION_TOKENS_DEFAULT, COMPLETION_TOKENS_MIN, PROMPT_TOKENS_PER_MESSAGE } from "../../../../src/limits.ts";
import { admit } from "../../../../src/run/money/admit.ts";
import type { TokenBounds } from "../../../../src/run/money/estimate.ts";
import { addAmounts, DIMENSIONS, Ledger, NO_LIMITS, zeroAmounts } from "../../../../src/run/money/ledger.ts";
import type { Amounts } from "../../../../src/run/money/ledger.ts";
import { makeFacts } from "../../../support/engine.ts";

/** What an upstream adds to each prompt, at most. */
const FIXED = 20;
const BOUNDS: TokenBounds = { tokensPerByte: 1, mediaTokensMax: null, fixedTokens: FIXED };

/** `billed`: the share of the prompt's worst case, and of the answer's cap, that the upstream bills. */
type Call = { bytes: number; maxTokens: number | null; billed: [number, number] };
type Plan = {
  /** pico-USD per token of the prompt and of the answer. */
  price: { input: number; output: number };
  /** What the budget covers of the calls' worst cases, per dimension; null = no limit. */
  covers: Record<"usd" | "prompt_tokens" | "completion_tokens" | "new_tokens", number | null>;
  /** Attempts in flight at once. */
  width: number;
  calls: Call[];
};

const share = fc.double({ min: 0, max: 1, noNaN: true });
const cover = fc.option(fc.double({ min: 0.02, max: 0.6, noNaN: true }), { freq: 3 });
const plans: fc.Arbitrary<Plan> = fc.record({
  price: fc.record({ input: fc.integer({ min: 0, max: 20_000 }), output: fc.integer({ min: 0, max: 90_000 }) }),
  covers: fc.record({ usd: cover, prompt_tokens: cover, completion_tokens: cover, new_tokens: cover }),
  width: fc.integer({ min: 1, max: 8 }),
  calls: fc.array(
    fc.record({
      bytes: fc.integer({ min: 1, max: 400 }),
      maxTokens: fc.option(fc.integer({ min: 1, max: 300 }), { freq: 3 }),
      billed: fc.tuple(share, share),
    }),
    { minLength: 5, maxLength: 60 },
  ),
});

const promptMax = ({ bytes }: Call): number => bytes + PROMPT_TOKENS_PER_MESSAGE + FIXED;
const capOf = ({ maxTokens }: Call): number => maxTokens ?? COMPLETION_TOKENS_DEFAULT;

function amounts({ price }: Plan, promptTokens: number, completionTokens: number): Amounts {
  const usd = Math.ceil((promptTokens * price.input + completionTokens * price.output) / 1_000);
  const tokens = { prompt_tokens: promptTokens, completion_tokens: completionTokens };
  return { usd, calls: 1, ...tokens, new_tokens: promptTokens + completionTokens };
}

/** The least that a call can reserve: its prompt's worst case, and the shortest answer that is worth it. */
function least(plan: Plan, call: Call): Amounts {
  return amounts(plan, promptMax(call), Math.min(capOf(call), COMPLETION_TOKENS_MIN));
}

function limitsOf(plan: Plan): Record<keyof Plan["covers"], number | null> {
  const whole = zeroAmounts();
  for (const call of plan.calls) addAmounts(whole, amounts(plan, promptMax(call), Math.min(capOf(call), 300)));
  const limit = (name: keyof Plan["covers"]): number | null => {
    const covered = plan.covers[name];
    return covered === null ? null : Math.floor(whole[name] * covered);
  };
  return {
    usd: limit("usd"),
    prompt_tokens: limit("prompt_tokens"),
    completion_tokens: limit("completion_tokens"),
    new_tokens: limit("new_tokens"),
  };
}

type Lived = { refused: number; answered: number };

/** Makes the calls of a plan in turn, some at a time; each bills a part of what was reserved for it. */
function live(plan: Plan): Lived {
  const { input, output } = plan.price;
  const price = { inputPicoUsd: input, cachedInputPicoUsd: input, outputPicoUsd: output };
  const ledger = new Ledger({ ...NO_LIMITS, ...limitsOf(plan) });
  const inFlight: { id: string; bill: Amounts }[] = [];
  const lived: Lived = { refused: 0, answered: 0 };
  const endOne = (): boolean => {
    const first = inFlight.shift();
    if (first === undefined) return false;
    ledger.settle(first.id, first.bill);
    lived.answered += 1;
    return true;
  };
  for (const [at, call] of plan.calls.entries()) {
    if (inFlight.length >= plan.width) endOne();
    const facts = makeFacts({ promptBytes: call.bytes, messageCount: 1, maxTokens: call.maxTokens });
    let admitted = admit(facts, price, ledger, { bounds: BOUNDS });
    while (admitted.kind === "wait" && endOne()) admitted = admit(facts, price, ledger, { bounds: BOUNDS });
    expect(admitted.kind, "a call waits for nothing").not.toBe("wait");
    if (admitted.kind === "refuse") {
      lived.refused += 1;
      const needed = least(plan, call);
      const short = DIMENSIONS.filter((name) => needed[name] > (ledger.limits[name] ?? Infinity) - ledger.spent[name]);
      expect(short, "a call was refused that the rest of the budget covers").not.toEqual([]);
    } else if (admitted.kind === "reserve") {
      const [promptShare, answerShare] = call.billed;
      const cap = admitted.capTokens ?? capOf(call);
      expect(ledger.reserve(`call-${at}`, admitted.amounts)).toBe(true);
      const bill = amounts(plan, Math.floor(promptMax(call) * promptShare), Math.floor(cap * answerShare));
      inFlight.push({ id: `call-${at}`, bill });
    }
  }
  while (endOne());
  for (const name of DIMENSIONS) expect(ledger.spent[name]).toBeLessThanOrEqual(ledger.limits[name] ?? Infinity);
  expect(ledger.overrun).toEqual(zeroAmounts());
  return lived;
}

describe("the last calls of a budget", () => {
  it("are refused only if not even their shortest answer fits what is not spent, and no bill is above the limit", () => {
    const sum: Lived = { refused: 0, answered: 0 };
    fc.assert(
      fc.property(plans, (plan) => {
        const { refused, answered } = live(plan);
        sum.refused += refused;
        sum.answered += answered;
      }),
      { numRuns: 500 },
    );
    expect(sum.refused).toBeGreaterThan(0);
    expect(sum.answered).toBeGreaterThan(sum.refused / 100);
  });

  it("leave less than one worst case of equal calls", () => {
    const call: Call = { bytes: 46, maxTokens: 7, billed: [12 / (46 + PROMPT_TOKENS_PER_MESSAGE + FIXED), 1] };
    const covers = { usd: null, prompt_tokens: null, completion_tokens: null, new_tokens: null };
    const plan: Plan = {
      price: { input: 10_000, output: 50_000 },
      covers,
      width: 1,
      calls: Array.from({ length: 1_000 }, () => call),
    };
    const [bill, worst] = [amounts(plan, 12, 7).usd, amounts(plan, promptMax(call), 7).usd];
    const limit = 50_000;
    const whole = plan.calls.length * amounts(plan, promptMax(call), 7).usd;
    const { answered } = live({ ...plan, covers: { ...covers, usd: (limit + 0.5) / whole } });
    expect(answered).toBe(Math.floor((limit - worst) / bill) + 1);
  });
});
