/** `stop_when`: when a batch has what its client needs, so that the rest need not run. */
import * as z from "zod";
import type { InFlightRule, StopRule } from "../../run/answers/early-stop.ts";
import type { JudgeRule } from "../../run/answers/judged-stop.ts";
import {
  COMBINING_CHARS_MIN,
  ITEMS_PER_BATCH_MAX,
  JUDGED_CHARS_DEFAULT,
  JUDGED_CHARS_MAX,
  MAX_TOKENS_MAX,
  PATTERN_CHARS_MAX,
} from "../../limits.ts";
import { compilePattern } from "../../text/pattern/pattern.ts";
import { agreeField, COMPARED, comparisonFields, comparisonOf } from "../comparison.ts";
import { instruction } from "../aggregate/instruction.ts";
import { ABSENT, exactlyOneOf, label } from "../fields.ts";
import { invalid, type Parsed } from "../errors.ts";
import { strictFields } from "../strict-fields.ts";
import type { NamedRule } from "./rule.ts";
import { atFirstUse } from "../../at-first-use.ts";

const quorum = atFirstUse(() =>
  strictFields({
    of: z.int().min(1).max(ITEMS_PER_BATCH_MAX).meta({ description: "Answers that must have voted" }),
    ...agreeField(),
    ...comparisonFields(),
  }).meta(COMPARED),
);

const judge = atFirstUse(() =>
  strictFields({
    prompt: instruction().meta({ description: "The rule that says when the answers are enough" }),
    model: label.optional().meta({ description: "The model that decides; default: the run's" }),
    max_tokens: z.int().min(1).max(MAX_TOKENS_MAX).optional(),
    max_chars: z
      .int()
      .min(COMBINING_CHARS_MIN)
      .max(JUDGED_CHARS_MAX)
      .optional()
      .meta({ description: `Most characters of answers in one call; default ${JUDGED_CHARS_DEFAULT}` }),
    every: z
      .int()
      .min(1)
      .max(ITEMS_PER_BATCH_MAX)
      .optional()
      .meta({ description: "Number of new answers before each call of the judge; default 1" }),
  }),
);

const stopWhen = atFirstUse(() =>
  strictFields({
    n_success: z.int().min(1).max(ITEMS_PER_BATCH_MAX).optional().meta({ description: "So many calls have completed" }),
    quorum: quorum().optional().meta({ description: "So many answers have voted, and enough of them agree" }),
    regex: z.string().min(1).max(PATTERN_CHARS_MAX).optional().meta({
      description: "An answer matches; JavaScript's `u` syntax without look-around and back-references",
    }),
    judge: judge().optional().meta({
      description:
        "A model decides whether the answers so far are enough. It is called as answers arrive, one call at a time",
    }),
    flags: z.enum(["i", "s", "is"]).optional().meta({ description: "Flags of `regex`" }),
    in_flight: z.enum(["auto", "finish", "abort"]).optional().meta({
      description:
        "What becomes of calls in flight: `abort` charges them in full, `finish` waits for their answers, `auto` (default) waits, but not for one that is stuck",
    }),
    hurry: z.boolean().optional().meta({
      description:
        "If true, `n_success` and `quorum` keep the full width near their end, at a higher cost; default false",
    }),
    shadow: z
      .boolean()
      .optional()
      .meta({ description: "If true, the batch runs on; its answer says what a stop would save" }),
  }).meta({
    id: "StopWhen",
    ...exactlyOneOf([
      { required: ["n_success"], properties: { flags: ABSENT } },
      { required: ["quorum"], properties: { flags: ABSENT } },
      ["regex"],
      { required: ["judge"], properties: { flags: ABSENT } },
    ]),
    description:
      "Exactly one of `n_success`, `quorum`, `regex` and `judge`. Once it is met, queued calls are cancelled",
  }),
);

export const stopFields = atFirstUse(() => ({ stop_when: stopWhen().optional() }));

export const stopRule: NamedRule<{ stop_when?: z.infer<ReturnType<typeof stopWhen>> | undefined }> = {
  read({ stop_when: sent }) {
    const rule = parseStopWhen(sent);
    if (!rule.ok) return rule;
    if (rule.value === null) return { ok: true, value: {} };
    return { ok: true, value: rule.value.kind === "judge" ? { judgeWhen: rule.value } : { stopWhen: rule.value } };
  },
};

/** What a group's answer says of its early stop; absent without `stop_when`. */
export const stopReplyFields = atFirstUse(() => ({
  saved_calls: z.int().optional().meta({ description: "Calls that were not made, because `stop_when` was met" }),
  aborted_calls: z
    .int()
    .optional()
    .meta({ description: "Calls that were in flight by then and were aborted; they stay charged" }),
  saved_usd: z
    .object({ worst_usd: z.number(), likely_usd: z.number(), net_usd: z.number(), aborted_usd: z.number() })
    .optional(),
  shadow: z.boolean().optional(),
  stopped_at: z.iso.datetime().nullable().optional(),
  judge_groups: z
    .array(z.string())
    .optional()
    .meta({ description: "The groups of the calls of the judge of `stop_when`" }),
}));

/** The rule that a request names; null = it names none. */
function parseStopWhen(sent: z.infer<ReturnType<typeof stopWhen>> | undefined): Parsed<StopRule | JudgeRule | null> {
  if (sent === undefined) return { ok: true, value: null };
  const { n_success: n, quorum: votes, regex: source, judge: judged, flags, shadow = false, hurry = false } = sent;
  const { in_flight: inFlight = "auto" } = sent;
  const all = { shadow, ...(inFlight === "auto" ? {} : { inFlight }) };
  const wide = { ...all, ...(hurry ? { hurry: true as const } : {}) };
  if ([n, votes, source, judged].filter((rule) => rule !== undefined).length !== 1) {
    return invalid("stop_when", "expected exactly one of n_success, quorum, regex, judge");
  }
  if (hurry && n === undefined && votes === undefined) {
    return invalid("stop_when.hurry", "is for n_success and quorum only");
  }
  if (judged !== undefined && flags === undefined) return { ok: true, value: judgeOf(judged, all) };
  if (flags !== undefined && source === undefined) return invalid("stop_when.flags", "is for regex only");
  if (n !== undefined) return { ok: true, value: { kind: "n_success", n, ...wide } };
  if (source !== undefined) {
    const compiled = compilePattern(source, flags);
    if (!compiled.ok) return invalid("stop_when.regex", compiled.message);
    return { ok: true, value: { kind: "regex", source, flags: flags ?? "", ...all } };
  }
  if (votes === undefined) return { ok: true, value: null };
  const comparison = comparisonOf(votes, "stop_when.quorum");
  if (!comparison.ok) return comparison;
  const { of, agree = 0.75 } = votes;
  return { ok: true, value: { kind: "quorum", of, agree, comparison: comparison.value, ...wide } };
}

function judgeOf(sent: z.infer<ReturnType<typeof judge>>, all: InFlightRule & Pick<JudgeRule, "shadow">): JudgeRule {
  const { prompt, model = null, max_tokens: maxTokens = null, max_chars: charsMax = JUDGED_CHARS_DEFAULT } = sent;
  return { kind: "judge", prompt, model, maxTokens, charsMax, every: sent.every ?? 1, ...all };
}
