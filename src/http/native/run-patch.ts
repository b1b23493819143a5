/** Turns a request to change a run into the patch for its object. */
import type { RunPatch } from "../../objects/methods/runs.ts";
import { DIMENSIONS, type Limits } from "../../run/money/ledger.ts";
import { limitNanoUsd } from "../../run/money/money.ts";
import type { RunPatchRequest } from "../../contract/runs.ts";
import type { BudgetRules } from "../../env.ts";
import { Refusal } from "../../errors.ts";
import { rootLimitNanoUsd } from "./run-request.ts";

/** What of the run and the time decides. */
type Patched = { isRoot: boolean; nowMs: number };

/** A request as the run's object reads it. The rules bear on what the request names, and on nothing that stays. */
export function patchOf(request: RunPatchRequest, rules: BudgetRules, { isRoot, nowMs }: Patched): RunPatch {
  if (!isRoot && request.models !== undefined) {
    const message =
      "models: only of a root run; a child run has its parent's models, and those that it was opened with";
    throw new Refusal({ reason: "invalid_request", message, param: "models" });
  }
  const limits: Partial<Limits> = {};
  for (const dimension of DIMENSIONS) {
    const limit = request.budget?.[dimension];
    if (limit !== undefined) limits[dimension] = dimension === "usd" ? limitNanoUsd(limit) : limit;
  }
  if (isRoot && limits.usd !== undefined) limits.usd = rootLimitNanoUsd(limits.usd, rules);
  return {
    limits,
    maxParallel: request.max_parallel ?? null,
    paused: request.paused ?? null,
    rootNanoUsdPerDay: rules.rootNanoUsdPerDay,
    ...(request.expires_in_s === undefined ? {} : { expiresAtMs: nowMs + request.expires_in_s * 1_000 }),
    ...(request.models === undefined ? {} : { models: request.models }),
  };
}
