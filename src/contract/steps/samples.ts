/** `samples`: a call that is made until enough of its answers agree. */
import * as z from "zod";
import type { Sampling } from "../../call.ts";
import { SAMPLES_MAX, SAMPLES_MAX_DEFAULT, SAMPLES_MIN_DEFAULT } from "../../limits.ts";
import { agreeField, COMPARED, comparisonFields, comparisonOf } from "../comparison.ts";
import { invalid, type Parsed } from "../errors.ts";
import { strictFields } from "../strict-fields.ts";
import { atFirstUse } from "../../at-first-use.ts";

/** The field as it is documented. */
export const samplesField = atFirstUse(() =>
  strictFields({
    min: z
      .int()
      .min(2)
      .max(SAMPLES_MAX)
      .optional()
      .meta({ description: `Answers that must have voted; default ${SAMPLES_MIN_DEFAULT}` }),
    max: z
      .int()
      .min(2)
      .max(SAMPLES_MAX)
      .optional()
      .meta({ description: `Most times that the call is made; default ${SAMPLES_MAX_DEFAULT}` }),
    ...agreeField(),
    ...comparisonFields(),
  }).meta({
    id: "Samples",
    ...COMPARED,
    description:
      "The call is made `min` times, then until a share of `agree` of its answers is the same, `max` times at most. A failed sample is no vote",
  }),
);

/** What an answer shows of its call's samples. */
export const sampledFields = atFirstUse(() => ({
  decided: z.boolean().optional().meta({ description: "Of a call with `samples`: whether enough of them agree" }),
  samples: z
    .object({
      made: z.int(),
      failed: z.int(),
      votes: z.int(),
      agreement: z.number(),
      counts: z.array(z.object({ answer: z.string(), votes: z.int() })).readonly(),
    })
    .optional()
    .meta({ description: "How often the call was made, and what its answers were; most frequent first" }),
}));

/** The samples that a request names at `path`. */
export function samplingOf(sent: z.infer<ReturnType<typeof samplesField>>, path: string): Parsed<Sampling> {
  const { min = SAMPLES_MIN_DEFAULT, max = Math.max(min, SAMPLES_MAX_DEFAULT), agree = 0.75 } = sent;
  if (max < min) return invalid(`${path}.max`, `expected at least min (${min})`);
  const comparison = comparisonOf(sent, path);
  return comparison.ok ? { ok: true, value: { min, max, agree, comparison: comparison.value } } : comparison;
}
