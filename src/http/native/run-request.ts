/** From a request for a run to what its object is opened with. */
import type { RunInput } from "../../objects/methods/runs.ts";
import type { RunSettings } from "../../objects/methods/runs.ts";
import { DIMENSIONS, NO_LIMITS, type Limits } from "../../run/money/ledger.ts";
import { limitNanoUsd, usdOf } from "../../run/money/money.ts";
import { errorStyleOf } from "../../contract/fields.ts";
import type { RunRequest } from "../../contract/runs.ts";
import { notifyOf } from "../../contract/webhook.ts";
import type { BudgetRules } from "../../env.ts";
import { Refusal } from "../../errors.ts";
import {
  DEPTH_DEFAULT,
  EXPIRES_S_DEFAULT,
  PARALLEL_DEFAULT,
  PARALLEL_STABLE,
  RETENTION_S_DEFAULT,
  WINDOW_MS_DEFAULT,
} from "../../limits.ts";

/** The wire's budget in the gateway's units; null = left out. */
function limitsOf(budget: NonNullable<RunRequest["budget"]>): Limits {
  const limits: Limits = { ...NO_LIMITS };
  for (const dimension of DIMENSIONS) {
    const requested = budget[dimension];
    if (requested !== undefined) limits[dimension] = dimension === "usd" ? limitNanoUsd(requested) : requested;
  }
  return limits;
}

/** The limits that a request names; `calls` beside `budget` is short for `budget.calls`. */
function requestedLimits({ budget = {}, calls }: RunRequest): Limits {
  if (calls === undefined) return limitsOf(budget);
  if (budget.calls !== undefined) {
    const message = "calls is the same as budget.calls; send one of them";
    throw new Refusal({ reason: "invalid_request", message, param: "calls" });
  }
  return limitsOf({ ...budget, calls });
}

/** A request as a child run's parent reads it. */
export function askedOf(request: RunRequest): RunInput {
  return {
    name: request.name ?? null,
    limits: requestedLimits(request),
    maxParallel: request.max_parallel ?? (request.profile === "stable" ? PARALLEL_STABLE : null),
    weight: request.weight ?? null,
    maxDepth: request.max_depth ?? null,
    expiresInMs: request.expires_in_s === undefined ? null : request.expires_in_s * 1_000,
    models: request.models ?? null,
    defaultModel: request.default_model ?? null,
    errorStyle: errorStyleOf(request.error_style),
    windowMs: request.window_ms ?? null,
    unpriced: request.unpriced ?? null,
    retentionMs: request.retention_s === undefined ? null : request.retention_s * 1_000,
    region: request.region ?? null,
    metadataJson: JSON.stringify(request.metadata ?? {}),
    ...replayRule(request),
    ...confirmOverIn(request),
    ...(request.service_tier === undefined ? {} : { serviceTier: request.service_tier }),
    ...(request.on_exhausted === undefined ? {} : { onExhausted: request.on_exhausted }),
    ...notifyOf(request.webhook),
  };
}

function confirmOverIn({ confirm_over: over }: RunRequest): Pick<RunInput, "confirmOver"> {
  if (over === undefined) return {};
  const { usd, calls = null } = over;
  return { confirmOver: { nanoUsd: usd === undefined ? null : limitNanoUsd(usd), calls } };
}

/** A run that replays another one records its own answers, too: the next one may replay both. */
function replayRule({ replay, replay_from: from }: RunRequest): Pick<RunInput, "replay"> {
  return replay === undefined && from === undefined ? {} : { replay: { from: from ?? null } };
}

/** A root run's settings, but for its tools: what the request leaves out is the gateway's default. */
export function rootSettings(
  requested: RunInput,
  id: string,
  rules: BudgetRules,
  nowMs: number,
): Omit<RunSettings, "tools"> {
  return {
    id,
    name: requested.name,
    parentId: null,
    ancestors: [],
    holder: rules.rootNanoUsdPerDay === null ? null : "part",
    depth: 0,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + (requested.expiresInMs ?? EXPIRES_S_DEFAULT * 1_000),
    limits: { ...requested.limits, usd: rootLimitNanoUsd(requested.limits.usd, rules) },
    maxParallel: requested.maxParallel ?? PARALLEL_DEFAULT,
    weight: requested.weight ?? 1,
    maxDepth: requested.maxDepth ?? DEPTH_DEFAULT,
    models: requested.models === null ? [] : [requested.models],
    defaultModel: requested.defaultModel,
    errorStyle: requested.errorStyle ?? "bracket",
    windowMs: requested.windowMs ?? WINDOW_MS_DEFAULT,
    unpriced: requested.unpriced ?? "refuse",
    retentionMs: requested.retentionMs ?? RETENTION_S_DEFAULT * 1_000,
    region: requested.region,
    metadataJson: requested.metadataJson,
    ...(requested.replay === undefined ? {} : { replay: requested.replay }),
    ...(requested.serviceTier === undefined ? {} : { serviceTier: requested.serviceTier }),
    ...(requested.confirmOver === undefined ? {} : { confirmOver: requested.confirmOver }),
    ...(requested.onExhausted === undefined ? {} : { onExhausted: requested.onExhausted }),
    ...(requested.trace === undefined ? {} : { trace: requested.trace }),
    ...(requested.notify === undefined ? {} : { notify: requested.notify }),
  };
}

/** A root run's USD limit. Under a maximum, or a root budget per day, no run is without one. */
export function rootLimitNanoUsd(requested: number | null, rules: BudgetRules): number | null {
  const { defaultNanoUsd, maxNanoUsd, rootNanoUsdPerDay } = rules;
  const limit = requested ?? defaultNanoUsd ?? maxNanoUsd;
  if (limit === null && rootNanoUsdPerDay !== null) {
    const message =
      "budget.usd: this gateway has a root budget per day (ROOT_BUDGET_USD_PER_DAY), so every run needs a limit of its own";
    throw new Refusal({ reason: "invalid_request", message, param: "budget.usd" });
  }
  if (limit !== null && maxNanoUsd !== null && limit > maxNanoUsd) {
    const message = `budget.usd: ${usdOf(limit)} is above this gateway's maximum for a run (MAX_BUDGET_USD); expected at most ${usdOf(maxNanoUsd)}`;
    throw new Refusal({ reason: "invalid_request", message, param: "budget.usd" });
  }
  return limit;
}
