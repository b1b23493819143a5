/** `stop_when`: when a batch has what its client needs, so that the rest need not run. */
import { z } from "@hono/zod-openapi";
import type { StopRule } from "../../aggregate/early-stop.ts";
import { ITEMS_PER_BATCH_MAX, PATTERN_CHARS_MAX } from "../../limits.ts";
import { compilePattern } from "../../pattern/pattern.ts";
import { comparisonFields, comparisonOf } from "./comparison.ts";
import { invalid, type Parsed } from "../errors.ts";
import { strictFields } from "../strict-fields.ts";

const quorum = strictFields({
  of: z.int().min(1).max(ITEMS_PER_BATCH_MAX).openapi({ description: "Answers that must have voted" }),
  agree: z
    .number()
    .gt(0)
    .max(1)
    .optional()
    .openapi({ description: "The share of the votes that must be for one answer; default 0.75" }),
  ...comparisonFields,
});

export const stopWhen = strictFields({
  n_success: z
    .int()
    .min(1)
    .max(ITEMS_PER_BATCH_MAX)
    .optional()
    .openapi({ description: "So many calls have completed" }),
  quorum: quorum.optional().openapi({ description: "So many answers have voted, and enough of them agree" }),
  regex: z.string().min(1).max(PATTERN_CHARS_MAX).optional().openapi({
    description: "An answer matches; JavaScript's `u` syntax without look-around and back-references",
  }),
  flags: z.enum(["i", "s", "is"]).optional().openapi({ description: "Flags of `regex`" }),
  shadow: z
    .boolean()
    .optional()
    .openapi({ description: "If true, the batch runs on; its answer says what a stop would save" }),
}).openapi("StopWhen", {
  description:
    "Exactly one of `n_success`, `quorum` and `regex`. Once it is met, queued calls are cancelled and calls in flight are aborted",
});

/** What a group's answer says of its early stop; absent without `stop_when`. */
export const stopReplyFields = {
  saved_calls: z.int().optional().openapi({ description: "Calls that were not made, because `stop_when` was met" }),
  aborted_calls: z.int().optional().openapi({ description: "Calls that were in flight by then; they stay charged" }),
  saved_usd: z.object({ worst_usd: z.number(), likely_usd: z.number() }).optional(),
  shadow: z.boolean().optional(),
  stopped_at: z.iso.datetime().nullable().optional(),
};

/** The rule that a request names; null = it names none. */
export function parseStopWhen(sent: z.infer<typeof stopWhen> | undefined): Parsed<StopRule | null> {
  if (sent === undefined) return { ok: true, value: null };
  const { n_success: n, quorum: votes, regex: source, flags, shadow = false } = sent;
  if ([n, votes, source].filter((rule) => rule !== undefined).length !== 1) {
    return invalid("stop_when", "expected exactly one of n_success, quorum, regex");
  }
  if (flags !== undefined && source === undefined) return invalid("stop_when.flags", "is for regex only");
  if (n !== undefined) return { ok: true, value: { kind: "n_success", n, shadow } };
  if (source !== undefined) {
    const compiled = compilePattern(source, flags);
    if (!compiled.ok) return invalid("stop_when.regex", compiled.message);
    return { ok: true, value: { kind: "regex", source, flags: flags ?? "", shadow } };
  }
  if (votes === undefined) return { ok: true, value: null };
  const comparison = comparisonOf(votes, "stop_when.quorum");
  if (!comparison.ok) return comparison;
  const { of, agree = 0.75 } = votes;
  return { ok: true, value: { kind: "quorum", of, agree, comparison: comparison.value, shadow } };
}
