/** `adaptive` of an upstream: how its gate finds a width where the provider rejects calls without saying when to come again. */
import * as z from "zod";
import type { Adaptive } from "../../gate/settings.ts";
import {
  PENALTY_DECAY_MS_DEFAULT,
  PENALTY_DECAY_MS_MAX,
  PENALTY_DECAY_MS_MIN,
  PENALTY_DEFAULT_MAX,
  PENALTY_MAX,
  PENALTY_WEIGHTS,
} from "../../limits.ts";
import { atFirstUse } from "../../at-first-use.ts";

const number = (min: number, max: number) => {
  const error = `must be a number from ${min} to ${max}`;
  return z.number({ error }).min(min, { error }).max(max, { error });
};

const weightsSchema = atFirstUse(() =>
  z.strictObject(
    {
      rate_limit: number(0, PENALTY_MAX).default(PENALTY_WEIGHTS.rateLimited),
      capacity: number(0, PENALTY_MAX).default(PENALTY_WEIGHTS.overloaded),
      timeout: number(0, PENALTY_MAX).default(PENALTY_WEIGHTS.timeout),
      schema_violation: number(0, PENALTY_MAX).default(PENALTY_WEIGHTS.schemaViolation),
    },
    { error: "must be an object of numbers: rate_limit, capacity, timeout, schema_violation" },
  ),
);

const modeError = { error: "must be aimd, penalty or off" };
const penaltyFields = atFirstUse(() => ({
  weights: weightsSchema().prefault({}),
  decay: z
    .enum(["linear", "exponential", "hybrid"], { error: "must be linear, exponential or hybrid" })
    .default("linear"),
  max_penalty: number(0, PENALTY_MAX).default(PENALTY_DEFAULT_MAX),
  decay_ms: number(PENALTY_DECAY_MS_MIN, PENALTY_DECAY_MS_MAX).default(PENALTY_DECAY_MS_DEFAULT),
}));

/** The configured field. The fields of `penalty` are refused beside other modes, where they would have no effect. */
export const adaptiveField = atFirstUse(() =>
  z
    .discriminatedUnion(
      "mode",
      [
        z.strictObject({ mode: z.literal("aimd") }),
        z.strictObject({ mode: z.literal("off") }),
        z.strictObject({ mode: z.literal("penalty"), ...penaltyFields() }),
      ],
      { error: (issue) => (issue.code === "invalid_union" ? modeError.error : "must be an object with a mode") },
    )
    .default({ mode: "aimd" }),
);

export function adaptiveOf(field: z.infer<ReturnType<typeof adaptiveField>>): Adaptive {
  if (field.mode !== "penalty") return { mode: field.mode };
  const { rate_limit, capacity, timeout, schema_violation } = field.weights;
  return {
    mode: "penalty",
    weights: { rateLimited: rate_limit, overloaded: capacity, timeout, schemaViolation: schema_violation },
    decay: field.decay,
    maxPenalty: field.max_penalty,
    decayMs: field.decay_ms,
  };
}
