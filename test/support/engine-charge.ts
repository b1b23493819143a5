/** The expected charge of attempts, by arithmetic of the tests' own: the engine's must not confirm itself. */
import { DIMENSIONS, zeroAmounts, type Amounts, type Ledger, type Limits } from "../../src/run/money/ledger.ts";
import type { Outcome } from "../../src/call.ts";
import type { Assignment } from "../../src/run/steps/dispatch.ts";
import { failure, success } from "./engine.ts";
import type { PlannedOutcome } from "./engine-plan.ts";

export type Charged = { charge: Amounts; overrun: boolean };

/** An upstream may generate more than was reserved if no limit needed a cap. */
const UNCAPPED_TOKENS = 6_000;

/** The reason is final, as a classifier's is. */
const STOPPED = {
  stop: "invalid_key",
  reason: { reason: "upstream_error", upstream: "acme", status: 401, message: "no such key", retryable: false },
} as const;

/** The planned outcome of this attempt: shares of its reservation become figures. */
export function outcomeOf(assignment: Assignment, planned: PlannedOutcome, nowMs: number): Outcome {
  const { lease } = assignment;
  const { capTokens } = lease;
  const latencyMs = nowMs - lease.startedAtMs;
  if (planned.kind === "failure") {
    const failed = failure(planned.class, planned.retryAfterMs, latencyMs, planned.answered);
    // Whether an attempt may have been billed is not known of a stop, if it is not known at all.
    if (planned.stop === null || failed.kind !== "failure" || !failed.answered) return failed;
    return failed.class === "rejected" || failed.class === "rate_limited" ? { ...failed, ...STOPPED } : failed;
  }
  if (planned.kind === "no_usage") return success(null, latencyMs);
  const { promptShare, completionShare, cachedShare, costShare } = planned;
  const promptTokens = Math.floor(lease.amounts.prompt_tokens * promptShare);
  const completionTokens = Math.floor((capTokens ?? UNCAPPED_TOKENS) * completionShare);
  const cachedTokens = Math.floor(promptTokens * cachedShare);
  const costNanoUsd = costShare === null || capTokens === null ? null : Math.floor(lease.amounts.usd * costShare);
  const whole = success({ promptTokens, completionTokens, cachedTokens, costNanoUsd }, latencyMs);
  const isCut = whole.kind === "success" && capTokens !== null && completionTokens >= capTokens;
  return isCut ? { ...whole, finishReason: "length" } : whole;
}

/** The charge of this attempt by the contract; `outcome` null = its executor did not report. */
export function expectedCharge({ lease }: Assignment, outcome: Outcome | null, limits: Limits): Charged {
  const reserved = lease.amounts;
  if (outcome === null) return { charge: reserved, overrun: false };
  if (outcome.kind === "failure") {
    const unbilled = { ...zeroAmounts(), calls: outcome.answered ? 1 : 0 };
    return { charge: outcome.class === "unknown" ? reserved : unbilled, overrun: false };
  }
  const { usage } = outcome;
  if (usage === null) return { charge: reserved, overrun: false };
  const { promptTokens, completionTokens, cachedTokens, costNanoUsd } = usage;
  const { price } = lease.target;
  // Exact in doubles: the plans stay far below 2^53 pico-USD.
  const picoUsd =
    price === null
      ? 0
      : (promptTokens - cachedTokens) * price.inputPicoUsd +
        cachedTokens * price.cachedInputPicoUsd +
        completionTokens * price.outputPicoUsd;
  const usd = costNanoUsd ?? Math.ceil(picoUsd / 1_000);
  const newTokens = promptTokens - Math.min(promptTokens, cachedTokens) + completionTokens;
  const tokens = { prompt_tokens: promptTokens, completion_tokens: completionTokens, new_tokens: newTokens };
  const charge = { usd, calls: 1, ...tokens };
  const overrun = DIMENSIONS.some((dimension) => limits[dimension] !== null && charge[dimension] > reserved[dimension]);
  return { charge, overrun };
}

/** Attempts that have just started must have fitted, whatever an upstream billed before. */
export function mustFit({ spent, reserved, limits }: Ledger): void {
  for (const dimension of DIMENSIONS) {
    const limit = limits[dimension];
    if (limit !== null && spent[dimension] + reserved[dimension] > limit) throw new Error(`${dimension} is overdrawn`);
  }
}
