/** `aggregate`: what the answers of a batch are combined to, beside `results`. */
import * as z from "zod";
import type { AggregateSpec } from "../../run/answers/aggregate.ts";
import type { Escalation } from "../../run/answers/vote.ts";
import { DEFAULT_WEIGHTS, type UncertaintyWeights } from "../../run/answers/uncertainty.ts";
import {
  COMBINING_CHARS_DEFAULT,
  COMBINING_CHARS_MAX,
  COMBINING_CHARS_MIN,
  ITEMS_PER_BATCH_MAX,
  MAX_TOKENS_MAX,
  MERGE_SEPARATOR_CHARS_MAX,
  VOTE_WEIGHTS_MAX,
} from "../../limits.ts";
import { invalid, type Parsed } from "../errors.ts";
import { label } from "../fields.ts";
import { usageDocument } from "../query.ts";
import { strictFields } from "../strict-fields.ts";
import { COMPARED, comparisonFields, comparisonOf } from "../comparison.ts";
import { instruction } from "./instruction.ts";
import { atFirstUse } from "../../at-first-use.ts";

const share = z.number().min(0).max(1).optional();

/** The settings of calls that combine answers. */
const combiningFields = atFirstUse(() => ({
  model: label.optional().meta({ description: "The model that combines the answers; default: the run's" }),
  max_tokens: z.int().min(1).max(MAX_TOKENS_MAX).optional(),
  max_chars: z
    .int()
    .min(COMBINING_CHARS_MIN)
    .max(COMBINING_CHARS_MAX)
    .optional()
    .meta({
      description: `Most characters of answers in one call; default ${COMBINING_CHARS_DEFAULT}`,
    }),
}));

const merge = atFirstUse(() =>
  strictFields({
    strategy: z.literal("merge"),
    mode: z.enum(["concat", "json", "llm"]).optional().meta({
      description:
        "`concat` (default): the texts in input order. `json`: objects are merged member by member, arrays joined; of values that differ the first is kept, and the conflict listed. `llm`: a model combines them, level by level if they do not fit one call",
    }),
    prompt: instruction().optional().meta({ description: "With `llm`: what the model is to make of the parts" }),
    ...combiningFields(),
    separator: z
      .string()
      .max(MERGE_SEPARATOR_CHARS_MAX)
      .optional()
      .meta({ description: "Text between the parts of `concat`; default an empty line" }),
  }),
);

const vote = atFirstUse(() =>
  strictFields({
    strategy: z.literal("vote"),
    rule: z.enum(["majority", "weighted", "quorum", "unanimous"]).optional().meta({
      description:
        "`majority` (default): more than half of the votes. `weighted`: more than half of their weight. `quorum`: at least `of` votes, of which a share of at least `agree` agrees. `unanimous`: every slot has voted alike",
    }),
    of: z.int().min(1).max(ITEMS_PER_BATCH_MAX).optional(),
    agree: z.number().gt(0).max(1).optional().meta({ description: "With `quorum`; default 0.75" }),
    weights: z
      .record(label, z.number().positive().max(1_000_000))
      .refine(
        (weights) => Object.keys(weights).length <= VOTE_WEIGHTS_MAX,
        `expected at most ${VOTE_WEIGHTS_MAX} weights`,
      )
      .optional()
      .meta({ description: "With `weighted`: weights of votes by the `id` of their item; others weigh 1" }),
    escalate: strictFields({ ...combiningFields(), model: label.optional(), prompt: instruction().optional() })
      .optional()
      .meta({
        description:
          "If the votes decide nothing: `model` gets all answers; `{}`: the group ends as `escalated`, and the log has the event",
      }),
    ...comparisonFields(),
  }).meta(COMPARED),
);

const judge = atFirstUse(() =>
  strictFields({
    strategy: z.literal("judge"),
    rubric: instruction().meta({ description: "By what the model judges the answers" }),
    ...combiningFields(),
  }),
);

const uncertainty = atFirstUse(() =>
  strictFields({
    strategy: z.literal("uncertainty"),
    weights: strictFields({
      intra: strictFields({
        failed: share,
        low_confidence: share,
        no_evidence: share,
        contradiction: share,
      }).optional(),
      inter: strictFields({ conflict: share, confidence_spread: share, failed: share, no_evidence: share }).optional(),
      system: strictFields({ intra: share, inter: share, failed: share }).optional(),
    })
      .optional()
      .meta({ description: "Weights of the formula that replace its own" }),
  }),
);

export const aggregate = atFirstUse(() =>
  z.discriminatedUnion("strategy", [merge(), vote(), uncertainty(), judge()]).meta({
    id: "Aggregate",
    description: "What the answers are combined to. `results` keeps every answer",
  }),
);

/** The result in a group's answer. Every strategy has its own fields beside `strategy`. */
export const aggregation = atFirstUse(() =>
  z
    .looseObject({
      strategy: z.enum(["merge", "vote", "uncertainty", "judge"]),
      output: z.unknown().meta({ description: "`merge`: the combined answers" }),
      left_out: z.array(z.int()).optional(),
      conflicts: z.array(z.looseObject({ path: z.string() })).optional(),
      decided: z.boolean().optional(),
      winner: z.unknown().meta({ description: "`vote`: the answer that won, or null" }),
      agreement: z.number().optional(),
      counts: z.array(z.looseObject({ answer: z.string(), votes: z.int() })).optional(),
      verdict: z.enum(["trusted", "partial", "untrusted"]).nullable().optional(),
      formula_verdict: z
        .enum(["trusted", "partial", "untrusted"])
        .optional()
        .meta({ description: "`judge`: what the formula of `uncertainty` says" }),
      confidence: z.number().nullable().optional(),
      escalated: z.object({ to: z.string(), output: z.string() }).nullable().optional(),
      groups: z.array(z.string()).optional().meta({ description: "The groups of the calls that combined the answers" }),
      // Without a copy, which `meta` would make: the document refers to `Usage` then.
      usage: usageDocument()
        .optional()
        .register(z.globalRegistry, { description: "What those calls cost, beside the `usage` of the group" }),
      error: z
        .object({ code: z.string(), message: z.string() })
        .nullable()
        .optional()
        .meta({ description: "Why such a call failed; null = none did" }),
    })
    .meta({ id: "Aggregation" }),
);

/** The rule that a request names; null = it names none. */
export function parseAggregate(sent: z.infer<ReturnType<typeof aggregate>> | undefined): Parsed<AggregateSpec | null> {
  if (sent === undefined) return { ok: true, value: null };
  if (sent.strategy === "vote") return voteOf(sent);
  if (sent.strategy === "uncertainty") {
    return { ok: true, value: { strategy: "uncertainty", weights: weightsOf(sent.weights) } };
  }
  if (sent.strategy === "judge") {
    const { strategy, rubric } = sent;
    return { ok: true, value: { strategy, rubric, ...combiningOf(sent) } };
  }
  return mergeOf(sent);
}

function combiningOf(sent: z.infer<z.ZodObject<ReturnType<typeof combiningFields>>>) {
  const { model = null, max_tokens: maxTokens = null, max_chars: charsMax = COMBINING_CHARS_DEFAULT } = sent;
  return { model, maxTokens, charsMax };
}

function mergeOf(sent: z.infer<ReturnType<typeof merge>>): Parsed<AggregateSpec> {
  const { strategy, mode = "concat", separator, prompt = MERGE_PROMPT } = sent;
  if (mode === "llm") {
    return separator === undefined
      ? { ok: true, value: { strategy, mode, prompt, ...combiningOf(sent) } }
      : invalid("aggregate.separator", 'is for "mode": "concat" only; leave it out');
  }
  const ofLlm = (["prompt", "model", "max_tokens", "max_chars"] as const).find((name) => sent[name] !== undefined);
  if (ofLlm !== undefined) return invalid(`aggregate.${ofLlm}`, 'is for "mode": "llm" only; leave it out');
  if (mode === "concat") return { ok: true, value: { strategy, mode, separator: separator ?? "\n\n" } };
  return separator === undefined
    ? { ok: true, value: { strategy, mode } }
    : invalid("aggregate.separator", 'is for "mode": "concat" only; leave it out');
}

const MERGE_PROMPT =
  "Combine the parts below into one text. Keep all that is in them, say each thing once, and name what contradicts. Answer with that text only.";
const ESCALATION_PROMPT =
  "The answers below were to agree, and do not. Decide which of them is right, or give the right one. Answer with that answer only.";

function voteOf(sent: z.infer<ReturnType<typeof vote>>): Parsed<AggregateSpec> {
  const { strategy, rule = "majority", of, agree, weights } = sent;
  const compared = comparisonOf(sent, "aggregate");
  if (!compared.ok) return compared;
  const escalation = escalationOf(sent);
  if (!escalation.ok) return escalation;
  const base = { strategy, comparison: compared.value, ...escalation.value };
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

/** Who decides if the votes do not: a model, or a person or program that follows the group. */
function escalationOf({
  escalate,
  rule,
}: z.infer<ReturnType<typeof vote>>): Parsed<{ escalate: Escalation } | { escalatesGroup: true } | object> {
  if (escalate === undefined) return { ok: true, value: {} };
  const { model, prompt = ESCALATION_PROMPT } = escalate;
  if (model !== undefined) return { ok: true, value: { escalate: { ...combiningOf(escalate), model, prompt } } };
  if (Object.keys(escalate).length > 0) {
    return invalid("aggregate.escalate.model", "is missing; expected the model that gets the answers");
  }
  return rule === "weighted"
    ? invalid("aggregate.escalate.model", 'is missing; with "rule": "weighted" only a model can decide')
    : { ok: true, value: { escalatesGroup: true } };
}

function weightsOf(sent: z.infer<ReturnType<typeof uncertainty>>["weights"]): UncertaintyWeights {
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
