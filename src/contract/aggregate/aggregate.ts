/** `aggregate`: what the answers of a batch are combined to, beside `results`. */
import { z } from "@hono/zod-openapi";
import type { AggregateSpec } from "../../aggregate/aggregate.ts";
import { DEFAULT_WEIGHTS, type UncertaintyWeights } from "../../aggregate/uncertainty.ts";
import { ITEMS_PER_BATCH_MAX, MERGE_SEPARATOR_CHARS_MAX, VOTE_WEIGHTS_MAX } from "../../limits.ts";
import { invalid, type Parsed } from "../errors.ts";
import { label } from "../fields.ts";
import { strictFields } from "../strict-fields.ts";
import { comparisonFields, comparisonOf } from "./comparison.ts";

const share = z.number().min(0).max(1).optional();

const merge = strictFields({
  strategy: z.literal("merge"),
  mode: z.enum(["concat", "json"]).optional().openapi({
    description:
      "`concat` (default): the texts in input order. `json`: objects are merged member by member, arrays joined; of values that differ the first is kept, and the conflict listed",
  }),
  separator: z
    .string()
    .max(MERGE_SEPARATOR_CHARS_MAX)
    .optional()
    .openapi({ description: "Text between the parts of `concat`; default an empty line" }),
});

const vote = strictFields({
  strategy: z.literal("vote"),
  rule: z.enum(["majority", "weighted", "quorum", "unanimous"]).optional().openapi({
    description:
      "`majority` (default): more than half of the votes. `weighted`: more than half of their weight. `quorum`: at least `of` votes, of which a share of at least `agree` agrees. `unanimous`: every slot has voted alike",
  }),
  of: z.int().min(1).max(ITEMS_PER_BATCH_MAX).optional(),
  agree: z.number().gt(0).max(1).optional().openapi({ description: "With `quorum`; default 0.75" }),
  weights: z
    .record(label, z.number().positive().max(1_000_000))
    .refine(
      (weights) => Object.keys(weights).length <= VOTE_WEIGHTS_MAX,
      `expected at most ${VOTE_WEIGHTS_MAX} weights`,
    )
    .optional()
    .openapi({ description: "With `weighted`: weights of votes by the `id` of their item; others weigh 1" }),
  ...comparisonFields,
});

const uncertainty = strictFields({
  strategy: z.literal("uncertainty"),
  weights: strictFields({
    intra: strictFields({ failed: share, low_confidence: share, no_evidence: share, contradiction: share }).optional(),
    inter: strictFields({ conflict: share, confidence_spread: share, failed: share, no_evidence: share }).optional(),
    system: strictFields({ intra: share, inter: share, failed: share }).optional(),
  })
    .optional()
    .openapi({ description: "Weights of the formula that replace its own" }),
});

export const aggregate = z.discriminatedUnion("strategy", [merge, vote, uncertainty]).openapi("Aggregate", {
  description: "What the answers are combined to. `results` keeps every answer",
});

/** The result in a group's answer. Every strategy has its own fields beside `strategy`. */
export const aggregation = z
  .looseObject({
    strategy: z.enum(["merge", "vote", "uncertainty"]),
    output: z.unknown().openapi({ description: "`merge`: the combined answers" }),
    left_out: z.array(z.int()).optional(),
    conflicts: z.array(z.looseObject({ path: z.string() })).optional(),
    decided: z.boolean().optional(),
    winner: z.unknown().openapi({ description: "`vote`: the answer that won, or null" }),
    agreement: z.number().optional(),
    counts: z.array(z.looseObject({ answer: z.string(), votes: z.int() })).optional(),
    verdict: z.enum(["trusted", "partial", "untrusted"]).optional(),
    confidence: z.number().optional(),
  })
  .openapi("Aggregation");

/** The rule that a request names; null = it names none. */
export function parseAggregate(sent: z.infer<typeof aggregate> | undefined): Parsed<AggregateSpec | null> {
  if (sent === undefined) return { ok: true, value: null };
  if (sent.strategy === "vote") return voteOf(sent);
  if (sent.strategy === "uncertainty") {
    return { ok: true, value: { strategy: "uncertainty", weights: weightsOf(sent.weights) } };
  }
  const { strategy, mode = "concat", separator } = sent;
  if (mode === "concat") return { ok: true, value: { strategy, mode, separator: separator ?? "\n\n" } };
  return separator === undefined
    ? { ok: true, value: { strategy, mode } }
    : invalid("aggregate.separator", 'is for "mode": "concat" only; leave it out');
}

function voteOf(sent: z.infer<typeof vote>): Parsed<AggregateSpec> {
  const { strategy, rule = "majority", of, agree, weights } = sent;
  const compared = comparisonOf(sent, "aggregate");
  if (!compared.ok) return compared;
  const base = { strategy, comparison: compared.value };
  if (weights !== undefined && rule !== "weighted")
    return invalid("aggregate.weights", 'is for "rule": "weighted" only');
  if (of !== undefined && rule !== "quorum") return invalid("aggregate.of", 'is for "rule": "quorum" only');
  if (agree !== undefined && rule !== "quorum") return invalid("aggregate.agree", 'is for "rule": "quorum" only');
  if (rule === "quorum") {
    if (of === undefined) return invalid("aggregate.of", "is missing; expected how many must have voted");
    return { ok: true, value: { ...base, rule, of, agree: agree ?? 0.75 } };
  }
  return { ok: true, value: rule === "weighted" ? { ...base, rule, weights: weights ?? {} } : { ...base, rule } };
}

function weightsOf(sent: z.infer<typeof uncertainty>["weights"]): UncertaintyWeights {
  const { intra, inter, system } = DEFAULT_WEIGHTS;
  return {
    intra: { ...intra, ...stated(sent?.intra) },
    inter: { ...inter, ...stated(sent?.inter) },
    system: { ...system, ...stated(sent?.system) },
  };
}

/** The weights that a request names: an absent one must not replace the formula's own. */
function stated(weights: Readonly<Record<string, number | undefined>> | undefined): Record<string, number> {
  return Object.fromEntries(
    Object.entries(weights ?? {}).flatMap(([name, each]) => (each === undefined ? [] : [[name, each]])),
  );
}
