/** The counters of a run, which only grow: stored per shard, added up on start and for the run document. */
import type { Amounts } from "../money/ledger.ts";
import { addAmounts, zeroAmounts } from "../money/ledger.ts";
import type { MeterSheet } from "../../gate/meter.ts";
import { MODELS_COUNTED_MAX } from "../../limits.ts";
import { addDuration, addDurations, noDurations, type Durations } from "./percentiles.ts";

export type Totals = {
  spent: Amounts;
  /** Attempts that ended, and how many of them were retries of an earlier one; a hedge is none. */
  attempts: number;
  retries: number;
  /** Calls that an attempt has completed, and calls whose last attempt failed. Ends without an attempt do not count. */
  completed: number;
  failed: number;
  /** Calls that failed, with or without an attempt, by the code of their error; absent = none did. */
  failures?: Record<string, number>;
  /** When the last attempt ended, epoch ms; absent = none has. */
  lastCallMs?: number;
  /** Attempts whose cost is unknown, so that their charge is estimated. */
  estimated: number;
  /** Attempts for which the upstream billed more than was reserved. */
  overruns: number;
  /** How much they billed more; absent = none did. */
  overrun?: Amounts;
  /** Sum of attempt latencies; time with at least one attempt in flight; most in flight at once. */
  sequentialMs: number;
  busyMs: number;
  peakParallel: number;
  /** Single calls accepted, and those of them that joined a parallel group; groups that formed that way. */
  singleCalls: number;
  groupedCalls: number;
  windowGroups: number;
  /** Attempts that were charged, with their tokens and cost, by `upstream/model`. */
  models: Record<string, ModelTotals>;
  /** What hedges have cost: of each pair, the attempt that ended beside the other; absent = there were none. */
  hedges?: ExtraSpend;
  /** How long the calls that `completed` and `failed` count took and were queued; absent = there are none. */
  times?: CallTimes;
  /** What was counted at each gate, for `GET /metrics`; absent = nothing. Not summed: each gate has its own. */
  metered?: Record<string, ShardMeter>;
};

/**
 * `number` grows with each count. `isOwed`: something was counted before the gate had noted that the run may count; absent = it had.
 */
export type ShardMeter = { number: number; sheet: MeterSheet; isOwed?: true };

/** `latency`: all attempts of a call together, without the pauses between them. `queued`: before the first one. */
export type CallTimes = { latency: Durations; queued: Durations };

export function noTimes(): CallTimes {
  return { latency: noDurations(), queued: noDurations() };
}

export type ExtraSpend = { calls: number; costNanoUsd: number };

export type ModelTotals = { calls: number; promptTokens: number; completionTokens: number; costNanoUsd: number };

export function zeroTotals(): Totals {
  return {
    spent: zeroAmounts(),
    attempts: 0,
    retries: 0,
    completed: 0,
    failed: 0,
    estimated: 0,
    overruns: 0,
    sequentialMs: 0,
    busyMs: 0,
    peakParallel: 0,
    singleCalls: 0,
    groupedCalls: 0,
    windowGroups: 0,
    models: {},
  };
}

/** Sums totals. `peakParallel` is a maximum, the rest are sums. */
export function sumTotals(parts: Iterable<Totals>): Totals {
  const sum = zeroTotals();
  for (const part of parts) {
    addAmounts(sum.spent, part.spent);
    sum.attempts += part.attempts;
    sum.retries += part.retries;
    sum.completed += part.completed;
    sum.failed += part.failed;
    for (const [code, calls] of Object.entries(part.failures ?? {})) addFailures(sum, code, calls);
    if (part.lastCallMs !== undefined) sum.lastCallMs = Math.max(sum.lastCallMs ?? 0, part.lastCallMs);
    sum.estimated += part.estimated;
    sum.overruns += part.overruns;
    if (part.overrun !== undefined) addAmounts((sum.overrun ??= zeroAmounts()), part.overrun);
    sum.sequentialMs += part.sequentialMs;
    sum.busyMs += part.busyMs;
    sum.peakParallel = Math.max(sum.peakParallel, part.peakParallel);
    sum.singleCalls += part.singleCalls;
    sum.groupedCalls += part.groupedCalls;
    sum.windowGroups += part.windowGroups;
    if (part.hedges !== undefined) addExtra(sum, part.hedges);
    if (part.times !== undefined) {
      sum.times ??= noTimes();
      addDurations(sum.times.latency, part.times.latency);
      addDurations(sum.times.queued, part.times.queued);
    }
    addModels(sum.models, part.models);
  }
  return sum;
}

/** Sums what totals have of models alone. */
export function sumModels(parts: Iterable<Pick<Totals, "models">>): Totals["models"] {
  const sum: Totals["models"] = {};
  for (const { models } of parts) addModels(sum, models);
  return sum;
}

function addModels(sum: Totals["models"], models: Totals["models"]): void {
  for (const [model, more] of Object.entries(models)) addModel(sum, model, more);
}

/** Adds how long a call took whose last attempt has ended. */
export function addTimes(totals: Pick<Totals, "times">, { latencyMs, queuedMs }: TimesOfCall): void {
  const times = (totals.times ??= noTimes());
  addDuration(times.latency, latencyMs);
  addDuration(times.queued, queuedMs);
}

/** How long a call took, all its attempts together, and how long it was queued before the first one. */
export type TimesOfCall = { latencyMs: number; queuedMs: number };

/** Counts calls that failed. Codes are those of `Reason`: they are few. A cancelled call has not failed. */
export function addFailures(totals: Pick<Totals, "failures">, code: string, calls = 1): void {
  if (code === "cancelled") return;
  const failures = (totals.failures ??= {});
  failures[code] = (failures[code] ?? 0) + calls;
}

/** Adds what hedges have cost. */
export function addExtra(totals: Pick<Totals, "hedges">, { calls, costNanoUsd }: ExtraSpend): void {
  const sum = (totals.hedges ??= { calls: 0, costNanoUsd: 0 });
  sum.calls += calls;
  sum.costNanoUsd += costNanoUsd;
}

/** Adds to a model's totals. Beyond MODELS_COUNTED_MAX, models are counted together: their names come from clients. */
export function addModel(models: Record<string, ModelTotals>, model: string, more: ModelTotals): void {
  const known = Object.hasOwn(models, model) || Object.keys(models).length < MODELS_COUNTED_MAX;
  const name = known ? model : OTHER_MODELS;
  const sum = (models[name] ??= { calls: 0, promptTokens: 0, completionTokens: 0, costNanoUsd: 0 });
  sum.calls += more.calls;
  sum.promptTokens += more.promptTokens;
  sum.completionTokens += more.completionTokens;
  sum.costNanoUsd += more.costNanoUsd;
}

/** The name under which models beyond the bound are counted. */
export const OTHER_MODELS = "other/models";
