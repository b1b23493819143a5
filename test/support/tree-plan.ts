/** Random histories of a tree of runs. Numbers called `pick` choose among what there is when the operation comes. */
import * as fc from "fast-check";
import type { Dimension } from "../../src/errors.ts";

export const MODELS = ["up/x", "dear/x", "free/x"] as const;

/** How an upstream answered, in shares (‰) of what was reserved; `lie` bills that many times the whole completion. */
export type PlannedEnd =
  | { kind: "used"; promptShare: number; completionShare: number; costShare: number | null }
  | { kind: "no_usage" | "unknown" | "rejected" | "rate_limited" }
  | { kind: "lie"; times: number };

export type TreeOp =
  | { do: "open"; pick: number; shares: Partial<Record<Dimension, number>>; maxParallel: number | null }
  | { do: "call"; pick: number; model: number; promptBytes: number; maxTokens: number }
  | { do: "settle"; pick: number; end: PlannedEnd }
  | { do: "batch"; pick: number; model: number; count: number; maxTokens: number; split: boolean }
  | { do: "end"; pick: number; how: "closed" | "cancelled" }
  | { do: "patch"; pick: number; dimension: Dimension; share: number }
  | { do: "pause"; pick: number }
  | { do: "crash"; pick: number; how: "evict" | "abort" };

/** Operations that happen at once, step by step. */
export type TreePlan = { steps: TreeOp[][]; limits: Record<Dimension, number | null> };

const OPS_PER_STEP = 4;
const STEPS = 25;

const pick = fc.nat({ max: 1_000 });
const share = fc.nat({ max: 1_000 });
const dimension = fc.constantFrom<Dimension>("usd", "calls", "prompt_tokens", "completion_tokens");
/** Of what the parent has left: sometimes a little more than that. */
const carved = fc.option(
  fc.nat({ max: 700 }).chain((low) => fc.constantFrom(low, low, low, 1_050)),
  { nil: undefined },
);

const honestEnd: fc.Arbitrary<PlannedEnd> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("used" as const),
      promptShare: share,
      completionShare: share,
      costShare: fc.option(share, { freq: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("no_usage", "unknown", "rejected", "rate_limited") }) },
);
const lyingEnd: fc.Arbitrary<PlannedEnd> = fc.oneof(
  { weight: 3, arbitrary: honestEnd },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("lie" as const), times: fc.integer({ min: 2, max: 20 }) }) },
);

function operation(end: fc.Arbitrary<PlannedEnd>): fc.Arbitrary<TreeOp> {
  const model = fc.nat({ max: MODELS.length - 1 });
  const maxTokens = fc.constantFrom(1, 16, 60, 400);
  const open = fc.record({
    do: fc.constant("open" as const),
    pick,
    shares: fc
      .record({ usd: carved, calls: carved, prompt_tokens: carved, completion_tokens: carved, new_tokens: carved })
      .map(defined),
    maxParallel: fc.option(fc.constantFrom(1, 2, 4), { freq: 3 }),
  });
  const promptBytes = fc.constantFrom(0, 20, 100, 700);
  const call = fc.record({ do: fc.constant("call" as const), pick, model, promptBytes, maxTokens });
  const settle = fc.record({ do: fc.constant("settle" as const), pick, end });
  const count = fc.integer({ min: 1, max: 12 });
  const batch = fc.record({ do: fc.constant("batch" as const), pick, model, count, maxTokens, split: fc.boolean() });
  const how = fc.constantFrom("closed" as const, "cancelled" as const);
  const ended = fc.record({ do: fc.constant("end" as const), pick, how });
  const patch = fc.record({ do: fc.constant("patch" as const), pick, dimension, share: fc.nat({ max: 2_000 }) });
  const pause = fc.record({ do: fc.constant("pause" as const), pick });
  const crash = fc.record({
    do: fc.constant("crash" as const),
    pick,
    how: fc.constantFrom("evict" as const, "abort" as const),
  });
  return fc.oneof(
    { weight: 5, arbitrary: open },
    { weight: 8, arbitrary: call },
    { weight: 6, arbitrary: settle },
    { weight: 2, arbitrary: batch },
    { weight: 2, arbitrary: ended },
    { weight: 2, arbitrary: patch },
    { weight: 1, arbitrary: pause },
    { weight: 2, arbitrary: crash },
  );
}

export function treePlans({ lying }: { lying: boolean }): fc.Arbitrary<TreePlan> {
  const op = operation(lying ? lyingEnd : honestEnd);
  const step = fc.array(op, { minLength: OPS_PER_STEP, maxLength: OPS_PER_STEP });
  const limit = (...limits: number[]) => fc.option(fc.constantFrom(...limits), { freq: 5 });
  return fc.record({
    steps: fc.array(step, { minLength: STEPS, maxLength: STEPS }),
    limits: fc.record({
      usd: limit(2_000_000, 40_000_000),
      calls: limit(40, 400),
      prompt_tokens: limit(5_000, 100_000),
      completion_tokens: limit(3_000, 50_000),
      new_tokens: limit(8_000, 150_000),
    }),
  });
}

function defined(shares: Record<Dimension, number | undefined>): Partial<Record<Dimension, number>> {
  const named: Partial<Record<Dimension, number>> = {};
  for (const [name, value] of Object.entries(shares)) {
    if (value !== undefined) Object.assign(named, { [name]: value });
  }
  return named;
}
