/** Whether a batch can ever fit: its floor against the limit, less spending and child reservations. */
import { describe, expect, it } from "vitest";
import { ANY_TOKENS } from "../../../../src/run/money/estimate.ts";
import {
  floorOf,
  floorWith,
  infeasibleReason,
  unpaidReason,
  type FloorSlot,
  type SlotFloors,
} from "../../../../src/run/money/feasible.ts";
import { Ledger, NO_LIMITS, zeroAmounts, type Limits } from "../../../../src/run/money/ledger.ts";
import { COMPLETION_TOKENS_MIN, PROMPT_TOKENS_PER_MESSAGE, UNPAID_CALLS_MAX } from "../../../../src/limits.ts";

/** $1 per million tokens, both ways: a token costs 1,000 nano-USD. */
const PRICE = { inputPicoUsd: 1_000_000, cachedInputPicoUsd: 1_000_000, outputPicoUsd: 1_000_000 };
const facts = {
  promptBytes: 92,
  messageCount: 1,
  mediaParts: 0,
  model: null,
  maxTokens: null,
  priority: 2,
  timeoutMs: null,
} as const;
const free = (maxTokens: number | null = null): FloorSlot => ({
  facts: { ...facts, maxTokens },
  price: null,
  bounds: ANY_TOKENS,
});
/** 92 bytes and the tokens of a message. */
const PROMPT = 92 + PROMPT_TOKENS_PER_MESSAGE;

const floorsOf = (slots: readonly FloorSlot[]): SlotFloors[] =>
  slots.map((slot) => ({ amounts: floorOf(slot), count: 1 }));

/** Why slots can never all run, counted in two parts, as they are while a batch arrives. */
function reasonOf(slots: readonly SlotFloors[], ledger: Ledger) {
  const half = floorWith(zeroAmounts(), slots.slice(0, 3));
  return infeasibleReason(floorWith(half, slots.slice(3)), ledger);
}

const ledgerOf = (limits: Partial<Limits>) => new Ledger({ ...NO_LIMITS, ...limits });

describe("the floor of a call", () => {
  it("is its prompt's bound and the smallest completion, or a smaller one that it requests", () => {
    expect(floorOf(free())).toEqual({
      usd: 0,
      calls: 1,
      prompt_tokens: PROMPT,
      completion_tokens: COMPLETION_TOKENS_MIN,
      new_tokens: PROMPT + COMPLETION_TOKENS_MIN,
    });
    expect(floorOf(free(COMPLETION_TOKENS_MIN - 1)).completion_tokens).toBe(COMPLETION_TOKENS_MIN - 1);
    expect(floorOf(free(4_000)).completion_tokens).toBe(COMPLETION_TOKENS_MIN);
  });

  it("counts each of several completions", () => {
    const slot = free();
    expect(floorOf({ ...slot, facts: { ...slot.facts, completions: 3 } }).completion_tokens).toBe(
      3 * COMPLETION_TOKENS_MIN,
    );
  });
});

describe("ten calls", () => {
  const slots = floorsOf(Array.from({ length: 10 }, () => free()));

  it.each([
    ["calls", 10],
    ["prompt_tokens", 10 * PROMPT],
    ["completion_tokens", 10 * COMPLETION_TOKENS_MIN],
  ] as const)("fit a limit of %s that equals their floor, and no smaller one", (dimension, floor) => {
    expect(reasonOf(slots, ledgerOf({ [dimension]: floor }))).toBeNull();
    expect(reasonOf(slots, ledgerOf({ [dimension]: floor - 1 }))).toMatchObject({
      reason: "infeasible",
      dimension,
      limit: floor - 1,
      spent: 0,
      held: 0,
      needed: floor,
    });
  });

  it("fit a run without limits", () => {
    expect(reasonOf(slots, ledgerOf({}))).toBeNull();
  });

  it("fit beside attempts in flight, but not beside spending or a child reservation", () => {
    const one = { usd: 0, calls: 1, prompt_tokens: 0, completion_tokens: 0, new_tokens: 0 };
    const ledger = ledgerOf({ calls: 11 });
    ledger.reserve("in flight 1", one);
    ledger.reserve("in flight 2", one);
    expect(reasonOf(slots, ledger)).toBeNull();
    ledger.settle("in flight 1", one);
    expect(reasonOf(slots, ledger)).toBeNull();
    ledger.reserveForChild("child", one);
    expect(reasonOf(slots, ledger)).toMatchObject({ dimension: "calls", spent: 1, held: 1, needed: 10 });
  });

  it("fit their price to the nano-dollar", () => {
    const priced = floorsOf(Array.from({ length: 10 }, () => ({ ...free(), price: PRICE })));
    const floor = priced.reduce((sum, { amounts }) => sum + amounts.usd, 0);
    expect(floor).toBe(10 * (PROMPT + COMPLETION_TOKENS_MIN) * 1_000);
    expect(reasonOf(priced, ledgerOf({ usd: floor }))).toBeNull();
    expect(reasonOf(priced, ledgerOf({ usd: floor - 1 }))).toMatchObject({
      dimension: "usd",
      needed: floor / 1e9,
    });
  });
});

describe("a batch that may run in part", () => {
  const many = (count: number): SlotFloors[] => floorsOf(Array.from({ length: count }, () => free()));

  it("is opened if the budget pays for a hundredth of it, or if few calls are unpaid", () => {
    expect(unpaidReason(many(10_000), ledgerOf({ calls: 100 }))).toBeNull();
    expect(unpaidReason(many(10_000), ledgerOf({ calls: 99 }))).toMatchObject({
      reason: "infeasible",
      dimension: "calls",
      limit: 99,
      needed: 10_000,
    });
    expect(unpaidReason(many(UNPAID_CALLS_MAX), ledgerOf({ calls: 0 }))).toBeNull();
    expect(unpaidReason(many(UNPAID_CALLS_MAX + 1), ledgerOf({ calls: 0 }))).not.toBeNull();
    expect(unpaidReason(many(10_000), ledgerOf({}))).toBeNull();
  });

  it("is judged by its cheapest calls: some that nobody could pay for do not matter", () => {
    const dear = floorsOf(Array.from({ length: 8_000 }, () => free(1_000_000)));
    for (const { amounts } of dear) amounts.completion_tokens = 1_000_000;
    const limits = { completion_tokens: 2_000 * COMPLETION_TOKENS_MIN };
    expect(unpaidReason([...dear, ...many(2_000)], ledgerOf(limits))).toBeNull();
    expect(unpaidReason([...dear, ...many(19)], ledgerOf(limits))).not.toBeNull();
  });

  it("is judged the same, whether its calls are listed or counted", () => {
    const [one] = many(1);
    if (one === undefined) throw new Error("no floor");
    const dear = { amounts: { ...one.amounts, prompt_tokens: 7 * PROMPT }, count: 30 };
    const counted = [dear, { ...one, count: 9_000 }, { ...one, count: 970 }];
    const listed = counted.flatMap(({ amounts, count }) =>
      Array.from({ length: count }, () => ({ amounts, count: 1 })),
    );
    for (const prompt_tokens of [
      0,
      PROMPT,
      99 * PROMPT,
      99 * PROMPT + 1,
      100 * PROMPT - 1,
      100 * PROMPT,
      9_980 * PROMPT,
    ]) {
      const ledger = ledgerOf({ prompt_tokens });
      expect(unpaidReason(counted, ledger)).toEqual(unpaidReason(listed, ledger));
      expect(floorWith(zeroAmounts(), counted)).toEqual(floorWith(zeroAmounts(), listed));
    }
    expect(unpaidReason(counted, ledgerOf({ prompt_tokens: 100 * PROMPT }))).toBeNull();
    expect(unpaidReason(counted, ledgerOf({ prompt_tokens: 100 * PROMPT - 1 }))).toMatchObject({
      message: expect.stringContaining("pays for at most 99 of the 10000 calls"),
    });
  });
});
